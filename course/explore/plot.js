// The browser's half of plot.py: draw a plotly figure, and redraw it whenever the kernel sends another.
// plotly.js (5 MB) is loaded once for a page, however many figures it shows. The first figure of a kernel brings it along;
// a figure that finds it missing asks for it.

function library(version) {
  const key = `course-plotly-${version}`;
  if (!globalThis[key]) {
    const entry = { started: false };
    entry.ready = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
    globalThis[key] = entry;
  }
  return globalThis[key];
}

async function load(entry, bytes) {
  if (entry.started) return;
  entry.started = true;
  const url = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
  try {
    await import(url);
    entry.resolve(globalThis.Plotly);
  } catch (error) {
    entry.reject(error);
  } finally {
    URL.revokeObjectURL(url);
  }
}

// What to draw, and plotly.js itself, are in a plain widget without a view (see plot.py for the reason).
function drawingOf(model) {
  return model.widget_manager.get_model(model.get("drawing_id"));
}

const CONFIG = {
  displaylogo: false,
  // Named one by one: plotly's own set has a button that sends the figure to a web site.
  modeBarButtons: [["toImage", "resetScale2d"]],
};

async function plotly(drawing) {
  const entry = library(drawing.get("version"));
  const take = () => {
    const bytes = drawing.get("plotlyjs");
    if (bytes?.byteLength) load(entry, bytes);
  };
  take();
  drawing.on("change:plotlyjs", take);
  const asking = setTimeout(() => entry.started || drawing.send({ want: "plotly" }), 300);
  try {
    return await entry.ready;
  } finally {
    clearTimeout(asking);
    drawing.off("change:plotlyjs", take);
  }
}

// The room that plotly leaves around the axes, as a text; nothing before the first drawing.
function margins(box) {
  const { l, r, t, b } = box._fullLayout?._size ?? {};
  return l === undefined ? "" : `${l} ${r} ${t} ${b}`;
}

// The ghost: a pale copy of what is drawn when a move begins, in an SVG of its own, so that plotly never draws it again.
// Where an axis has changed its range since, the copy is moved and stretched with it. Bars and tiles on top of each other
// cannot be read: their panels have no ghost, and a button shows the whole picture before while it is held.
const SVG = "http://www.w3.org/2000/svg";

function axes(box) {
  const found = {};
  for (const name of Object.keys(box._fullLayout ?? {})) {
    const axis = /^[xy]axis\d*$/.test(name) && box._fullLayout[name];
    if (!axis || !axis.range || axis._offset === undefined) continue;
    const ends = axis.range.map((end) => (axis.r2l ? axis.r2l(end) : Number(end)));
    found[axis._id] = { ends, offset: axis._offset, length: axis._length, type: axis.type, up: axis._id[0] === "y" };
  }
  return found;
}

// From pixels on the old axis to pixels on the new one: p -> scale * p + shift.
function along(old, now) {
  const pixels = (axis, value) => {
    const share = (value - axis.ends[0]) / (axis.ends[1] - axis.ends[0]);
    return axis.offset + axis.length * (axis.up ? 1 - share : share);
  };
  const [a, b] = old.ends.map((end) => pixels(old, end));
  const [c, d] = old.ends.map((end) => pixels(now, end));
  const scale = (d - c) / (b - a);
  return { scale, shift: c - scale * a };
}

const panel = ({ xaxis = "x", yaxis = "y" }) => xaxis + yaxis;
const solid = (traces) => new Set(traces.filter(({ type }) => type === "bar" || type === "heatmap").map(panel));

function capture(box, filled) {
  const groups = [];
  for (const plot of box.querySelectorAll(".cartesianlayer > .subplot")) {
    const id = [...plot.classList].find((name) => /^x\d*y\d*$/.test(name));
    const marks = plot.querySelector(`.overplot > .${id}`);
    if (!id || !marks || filled.has(id)) continue;
    const copy = marks.cloneNode(true);
    for (const text of copy.querySelectorAll("text, .errorbars")) text.remove();
    for (const line of copy.querySelectorAll("path")) line.style.vectorEffect = "non-scaling-stroke";
    copy.removeAttribute("clip-path");
    for (const clipped of copy.querySelectorAll("[clip-path]")) clipped.removeAttribute("clip-path");
    const [x, y] = id.match(/[xy]\d*/g);
    groups.push({ copy, x, y });
  }
  return { groups, axes: axes(box) };
}

function place(ghost, box, layer) {
  const now = axes(box);
  const key = JSON.stringify([now, box._fullLayout.width, box._fullLayout.height]);
  if (ghost.placed === key) return;
  ghost.placed = key;
  layer.replaceChildren();
  const { width, height } = box._fullLayout;
  layer.setAttribute("width", width);
  layer.setAttribute("height", height);
  for (const { copy, x, y } of ghost.groups) {
    const [ox, oy, nx, ny] = [ghost.axes[x], ghost.axes[y], now[x], now[y]];
    if (!ox || !oy || !nx || !ny || ox.type !== nx.type || oy.type !== ny.type) continue;
    const h = along(ox, nx);
    const v = along(oy, ny);
    if (![h.scale, h.shift, v.scale, v.shift].every(Number.isFinite)) continue;
    // A window onto the panel: what the stretched copy has outside of the axes is not shown.
    const pane = document.createElementNS(SVG, "svg");
    for (const [name, value] of Object.entries({ x: nx.offset, y: ny.offset, width: nx.length, height: ny.length })) {
      pane.setAttribute(name, value);
    }
    const moved = document.createElementNS(SVG, "g");
    moved.setAttribute(
      "transform",
      `translate(${h.shift - nx.offset} ${v.shift - ny.offset}) scale(${h.scale} ${v.scale})`,
    );
    moved.appendChild(copy);
    pane.appendChild(moved);
    layer.appendChild(pane);
    // Marks keep their shape.
    for (const mark of copy.querySelectorAll(".points > path")) {
      const at = (mark.dataset.at ??= mark.getAttribute("transform") ?? "");
      if (at.startsWith("translate")) mark.setAttribute("transform", `${at} scale(${1 / h.scale} ${1 / v.scale})`);
    }
  }
}

// Whether the figure fills its box; one of the two is rounded.
const asWide = (box) => Math.abs(box.clientWidth - (box._fullLayout?.width ?? 0)) < 1;

// Only x and y of some traces differ, and the axes stay: plotly then moves the marks alone, without axes and labels.
function moves(box, old, traces, layout) {
  if (!old || old.layout !== layout || old.traces.length !== traces.length) return null;
  const drawn = Object.entries(box._fullLayout ?? {}).filter(([name]) => /^[xy]axis\d*$/.test(name));
  if (drawn.some(([, axis]) => axis.autorange)) return null;
  const changed = [];
  for (const [index, trace] of traces.entries()) {
    const { x, y, ...rest } = trace;
    const { x: x0, y: y0, ...rest0 } = old.traces[index];
    if (trace.type !== "scatter" || JSON.stringify(rest) !== JSON.stringify(rest0)) return null;
    if (![x, y, x0, y0].every(Array.isArray) || x.length !== x0.length) return null;
    if (JSON.stringify([x, y]) === JSON.stringify([x0, y0])) continue;
    if (trace.mode !== "markers") return null; // a line comes out slightly different than drawn afresh
    changed.push(index);
  }
  return changed;
}

// Put marks where plotly would put them, and nothing else; false where that cannot be done. Plotly's own way goes over
// all settings of the figure first, which takes longer than all else between a key and its picture.
function carry(box, changed, traces) {
  const places = [];
  for (const index of changed) {
    const { x, y } = traces[index];
    const drawn = box.calcdata?.[index]?.[0];
    const marks = [...(drawn?.node3?.[0]?.[0]?.querySelectorAll("path.point") ?? [])];
    const [across, up] = ["xaxis", "yaxis"].map((letter) => {
      const id = drawn?.trace?.[letter] ?? "";
      return box._fullLayout[letter + id.slice(1)];
    });
    if (marks.length !== x.length || !across?.c2p || !up?.c2p || traces[index].error_x || traces[index].error_y) return false;
    for (const [i, mark] of marks.entries()) {
      const [left, top] = [across.c2p(across.d2c(x[i])), up.c2p(up.d2c(y[i]))].map((p) => Math.round(p * 100) / 100);
      if (!Number.isFinite(left) || !Number.isFinite(top)) return false;
      places.push([mark, `translate(${left},${top})`]);
    }
  }
  for (const [mark, place] of places) mark.setAttribute("transform", place);
  return true;
}

// Whether every panel has one of these traces. Plotly's animation empties a panel where none of its traces moves.
function everywhere(indices, traces) {
  return new Set([...indices].map((index) => panel(traces[index]))).size === new Set(traces.map(panel)).size;
}

// The button, in the line that says what changed. While the mouse, Space or Enter holds it, the picture before stands in
// place of the present one, on the axes of the present one.
function hold(el, box, drawing, Plotly) {
  const button = document.createElement("button");
  button.className = "course-hold jupyter-button";
  button.type = "button";
  button.textContent = "Hold to see before";
  button.setAttribute("aria-pressed", "false");
  let before = null;
  let over = null;
  const release = () => {
    if (!over) return;
    Plotly.purge(over.firstChild);
    over.remove();
    over = null;
    box.style.visibility = "";
    button.setAttribute("aria-pressed", "false");
  };
  const press = (event) => {
    event.preventDefault();
    if (over || !before) return;
    button.focus();
    over = document.createElement("div");
    over.className = "course-held";
    over.append(document.createElement("div"));
    el.append(over);
    box.style.visibility = "hidden";
    button.setAttribute("aria-pressed", "true");
    const layout = structuredClone(before.layout);
    const present = drawing.get("plot_layout");
    for (const [name, axis] of Object.entries(layout)) {
      if (axis.range && present[name]?.range && axis.type === present[name].type) {
        axis.range = [...box._fullLayout[name].range]; // as zoomed
      }
    }
    const size = { autosize: false, width: box._fullLayout.width, height: box._fullLayout.height };
    Plotly.newPlot(over.firstChild, structuredClone(before.traces), { ...layout, ...size }, { staticPlot: true });
  };
  const held = (work) => (event) => (event.key === " " || event.key === "Enter") && work(event);
  button.addEventListener("pointerdown", press);
  for (const end of ["pointerup", "pointercancel", "pointerleave", "blur"]) button.addEventListener(end, release);
  button.addEventListener("keydown", held(press));
  button.addEventListener("keyup", held(release));
  return {
    /** Offer this picture; none takes the button away. */
    offer(picture) {
      release();
      before = picture;
      if (!picture) button.remove();
      else (el.closest(".course-explorer")?.querySelector(".course-changed") ?? el).prepend(button);
    },
    end() {
      release();
      button.remove();
    },
  };
}

// How figures look in the dark theme, and where their buttons stand: FIGURES is the sheet of course/figures/in_page.py.
function dress() {
  if (document.getElementById("course-figures")) return;
  const style = document.createElement("style");
  style.id = "course-figures";
  style.textContent = FIGURES;
  document.head.append(style);
}

const REST = 200; // ms after the last move; then plotly itself learns where the marks are, for who points at them or zooms
const AT_ONCE = { mode: "immediate", transition: { duration: 0 }, frame: { duration: 0, redraw: false } };

async function render({ model, el }) {
  seeWords();
  dress();
  const drawing = await drawingOf(model);
  const box = document.createElement("div");
  box.style.width = "100%";
  box.style.height = `${drawing.get("plot_layout").height || 380}px`; // the page must not jump when the figure arrives
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", drawing.get("label"));
  el.style.width = "100%";
  el.style.position = "relative";
  const layer = document.createElementNS(SVG, "svg");
  layer.setAttribute("class", "course-ghost");
  layer.setAttribute("aria-hidden", "true");
  el.append(box, layer);
  const Plotly = await plotly(drawing);
  const holding = hold(el, box, drawing, Plotly);

  let busy = false;
  let stale = true;
  let ghost = null;
  let move = 0;
  let last = null;
  let resting = false;
  let timer = 0;
  const behind = new Set(); // traces whose marks were moved, and plotly does not know it yet
  const draw = async () => {
    stale = true;
    if (busy) return;
    busy = true;
    try {
      while (stale) {
        stale = false;
        if (drawing.get("move") !== move) {
          move = drawing.get("move");
          const stood = move && box._fullLayout ? last : null;
          const filled = solid(stood?.traces ?? []);
          ghost = stood && capture(box, filled);
          holding.offer(filled.size ? { traces: stood.traces, layout: JSON.parse(stood.layout) } : null);
          layer.replaceChildren();
        }
        const layout = structuredClone(drawing.get("plot_layout"));
        const traces = structuredClone(drawing.get("traces"));
        const now = { traces: drawing.get("traces"), layout: JSON.stringify(layout) };
        const fits = asWide(box);
        const changed = fits ? moves(box, last, now.traces, now.layout) : null;
        last = now;
        clearTimeout(timer);
        if (changed) {
          for (const index of changed) behind.add(index);
          if (!resting && carry(box, changed, traces)) {
            timer = setTimeout(() => draw((resting = true)), REST);
          } else if (behind.size && !everywhere(behind, traces)) {
            behind.clear();
            await Plotly.react(box, traces, layout, CONFIG);
          } else if (behind.size) {
            const data = [...behind].map((index) => ({ x: traces[index].x, y: traces[index].y }));
            await Plotly.animate(box, { data, traces: [...behind] }, AT_ONCE);
            behind.clear();
          }
        } else {
          behind.clear();
          box.style.height = `${layout.height || 380}px`;
          const before = margins(box);
          await Plotly.react(box, traces, layout, CONFIG);
          // Plotly measures labels of the old figure when it makes room for those of the new one.
          if (before && margins(box) !== before) await Plotly.redraw(box);
        }
        resting = false;
        if (ghost) place(ghost, box, layer);
      }
    } finally {
      busy = false;
    }
  };
  drawing.on("change", draw); // once, when traces and layout come together
  await draw();
  box.on("plotly_relayout", () => ghost && place(ghost, box, layer)); // somebody zooms
  // A cell that is drawn out of sight has no width yet, and side bars change it without the window changing.
  const width = new ResizeObserver(() => box.clientWidth && !asWide(box) && draw());
  width.observe(box);
  return () => {
    width.disconnect();
    clearTimeout(timer);
    drawing.off("change", draw);
    holding.end();
    Plotly.purge(box);
  };
}

export default { render };
