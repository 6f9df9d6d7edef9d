// What the browser tests ask of a page. Loaded before anything else in it, as window.courseProbe.

const settledFrames = 3;

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

// Bring an element to the top of what is seen. Cells above change their height when they are first drawn, so repeat
// until it stays where it is.
async function show(element) {
  let still = 0;
  for (let last = NaN, n = 0; still < settledFrames && n < 200; n += 1) {
    element.scrollIntoView({ block: "start" });
    await frame();
    const { top, height } = element.getBoundingClientRect();
    still = top === last && height > 0 ? still + 1 : 0;
    last = top;
  }
}

// Notice that a cell, or one of a notebook's, begins to run: its prompt shows [*], perhaps for a moment only.
function watch(element) {
  window.courseProbe.began = false;
  new MutationObserver((_changes, observer) => {
    const prompts = [...element.querySelectorAll(".jp-InputPrompt")];
    if (!prompts.some((prompt) => prompt.textContent.includes("[*]"))) return;
    observer.disconnect();
    window.courseProbe.began = true;
  }).observe(element, { childList: true, characterData: true, subtree: true });
}

function hash(text) {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return (value >>> 0).toString(16);
}

const GEOMETRY = ["d", "x", "y", "width", "height", "transform"];

// What a drawn SVG element looks like. A stroke of no width may have any colour: plotly leaves old ones there.
function looks(element) {
  const { fill, opacity, strokeWidth, stroke } = element.style ?? {};
  const own = element.childElementCount ? "" : element.textContent;
  const line = parseFloat(strokeWidth) > 0 ? [strokeWidth, stroke] : [];
  return [element.tagName, ...GEOMETRY.map((name) => element.getAttribute(name)), fill, opacity, ...line, own].join(" ");
}

// What the figures in an element look like, as a short text: everything drawn but what follows the mouse.
function picture(element) {
  const drawn = element.querySelectorAll(".js-plotly-plot svg.main-svg > *:not(.hoverlayer) *");
  return hash([...drawn].map(looks).join("\n"));
}

// Wait until the kernel is idle and the figures in an element fill their width and look the same for a few frames.
async function settled(element) {
  const status = document.querySelector(".jp-Notebook-ExecutionIndicator").dataset;
  const until = performance.now() + 5000; // whatever is not at rest by then is for a test to complain of
  let still = 0;
  for (let last = ""; still < 6 && performance.now() < until; ) {
    await frame();
    const now = picture(element);
    const fits = figures(element).every(({ width, room }) => Math.abs(width - room) < 2);
    still = now === last && fits && status.status === "idle" ? still + 1 : 0;
    last = now;
  }
}

// Figures in an element, each with its width and height in pixels, the width that there is for it, and how many marks
// (lines, points, bars, shapes) are drawn in it.
function figures(element) {
  return [...element.querySelectorAll(".js-plotly-plot")].map((plot) => {
    const { width, height } = (plot.querySelector("svg.main-svg") ?? plot).getBoundingClientRect();
    const marks = plot.querySelectorAll(".cartesianlayer .trace path, .shapelayer path").length;
    return { width, height, room: plot.getBoundingClientRect().width, marks };
  });
}

// Ancestors that clip what sticks out of them, from the element itself up to the top.
function clipping(element, top) {
  const found = [];
  for (let box = element; box; box = box === top ? null : box.parentElement) {
    if (box instanceof HTMLElement && getComputedStyle(box).overflowX !== "visible") found.push(box);
  }
  return found;
}

// Texts of an element (or of the select lists and figures in it) of which a part cannot be seen.
function cutOff(top) {
  const found = [];
  const edge = top.closest(".jp-OutputArea-child, .jp-OutputArea") ?? top;
  const walker = document.createTreeWalker(top, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("style, script, svg, option, .modebar, .course-dead, .course-spoken")) continue;
    if (parent.closest(".course-lane")) continue; // shows the end of what is said; the question is whole in its title
    const range = document.createRange();
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    if (!text.width || !text.height) continue; // not displayed at all
    for (const box of clipping(parent, edge)) {
      const seen = box.getBoundingClientRect();
      if (text.left < seen.left - 1 || text.right > seen.right + 1 || text.bottom > seen.bottom + 2) {
        found.push(`${node.data.trim().slice(0, 60)} (${box.className || box.tagName})`);
        break;
      }
    }
  }
  const pen = document.createElement("canvas").getContext("2d");
  for (const list of top.querySelectorAll("select")) {
    const style = getComputedStyle(list);
    pen.font = style.font;
    const room = list.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    for (const option of list.options) {
      if (pen.measureText(option.text).width > room) found.push(`${option.text} (select)`);
    }
  }
  for (const plot of top.querySelectorAll(".js-plotly-plot")) {
    const seen = plot.getBoundingClientRect();
    for (const text of plot.querySelectorAll("svg.main-svg text")) {
      const { left, right, top: above, bottom, width } = text.getBoundingClientRect();
      if (width && (left < seen.left - 1 || right > seen.right + 1 || above < seen.top - 1 || bottom > seen.bottom + 1)) {
        found.push(`${text.textContent.slice(0, 60)} (figure)`);
      }
    }
  }
  const wide = edge.getBoundingClientRect();
  for (const box of [top, ...top.querySelectorAll("table, button, .widget-label, .js-plotly-plot")]) {
    if (box.getBoundingClientRect().right > wide.right + 1) {
      found.push(`${box.className || box.tagName} is wider than its cell`);
    }
  }
  for (const control of top.querySelectorAll(".course-controls > *")) {
    const right = control.getBoundingClientRect().right;
    for (const part of control.children) {
      if (part.getBoundingClientRect().right > right + 1) found.push(`${control.textContent} runs into its neighbour`);
    }
  }
  return found;
}

// Words of the stored texts in an element that stand partly on one line and partly on the next.
function brokenWords(top) {
  const found = [];
  for (const text of top.querySelectorAll(".jp-RenderedText pre")) {
    const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const lines = new Set([...range.getClientRects()].filter((box) => box.width).map((box) => Math.round(box.top)));
        if (lines.size > 1) found.push(word);
      }
    }
  }
  return found;
}

// Pairs of texts in the figures of an element that lie on top of each other by more than a fifth of the smaller one.
function overlaps(top) {
  const found = [];
  for (const plot of top.querySelectorAll(".js-plotly-plot")) {
    const texts = [...plot.querySelectorAll("svg.main-svg text")]
      .filter((text) => text.textContent.trim() && !text.closest(".hoverlayer"))
      .map((text) => [text, text.getBoundingClientRect()])
      .filter(([, box]) => box.width > 0);
    texts.forEach(([one, a], index) => {
      for (const [other, b] of texts.slice(index + 1)) {
        const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const smaller = Math.min(a.width * a.height, b.width * b.height);
        if (width > 0 && height > 0 && width * height > 0.2 * smaller) {
          found.push(`"${one.textContent.slice(0, 40)}" and "${other.textContent.slice(0, 40)}"`);
        }
      }
    });
  }
  return found;
}

window.courseProbe = { show, watch, began: false, looks, picture, settled, figures, cutOff, brokenWords, overlaps };
