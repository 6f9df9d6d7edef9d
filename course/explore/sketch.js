// The browser's half of sketch_view.py: a hand or arrow keys set one value in each column; the true curve comes after the
// commit. Everything shown is text or numbers from the kernel, set as text.

const QUIET = "data-lm-suppress-shortcuts"; // see keys.js
const ROOM = { left: 74, right: 110, top: 12, bottom: 44 };
const HEIGHT = 330;
const FINE = 60; // presses of an arrow key from one end of the axis to the other
const NEAR = 14; // pixels beside a column in which a point still belongs to it

const short = (value) => Number(value.toPrecision(3)).toLocaleString("en-US", { maximumSignificantDigits: 3 });

// From values to pixels and back, straight or logarithmic.
function scale(axis, from, to) {
  const [f, g] = axis.log ? [Math.log, Math.exp] : [(v) => v, (v) => v];
  const [low, high] = [f(axis.low), f(axis.high)];
  const inside = (v) => Math.min(axis.high, Math.max(axis.low, v));
  return {
    to: (v) => from + ((f(inside(v)) - low) / (high - low)) * (to - from),
    back: (pixel) => inside(g(low + ((pixel - from) / (to - from)) * (high - low))),
    step: (v, presses) => inside(g(f(v) + (presses * (high - low)) / FINE)),
  };
}

async function render({ model, el }) {
  const paper = await model.widget_manager.get_model(model.get("paper_id"));
  const { question, x, y, columns, given, named } = paper.get("axes");
  const root = make("div", "course-sketch");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", `${question} A slider for each of ${columns.length} columns.`);
  el.style.width = "100%";
  const svg = document.createElementNS(SVG, "svg");
  const bar = make("div", "course-sketch-bar");
  const button = (text, name = "") => bar.appendChild(make("button", name, text));
  const [commit, again, hold] = [button("Commit", "course-go"), button("Draw again"), button("Hold to hide the true curve")];
  const said = make("div", "course-sketch-said");
  said.setAttribute("role", "status");
  root.append(make("div", "course-sketch-ask", question), svg, bar, said);
  el.append(root);

  let done = paper.get("drawn");
  let open = !done.mine;
  const empty = () => columns.map((_, i) => given[i] ?? null);
  let values = done.mine ? [...done.mine] : empty();
  let hidden = false;
  let width = 0;
  let [across, up] = [null, null];
  const wide = () => Math.max(320, Math.min(900, root.clientWidth) - 8); // without the padding of sketch.css

  function line(points, settings) {
    const d = points.map(([a, b], i) => `${i ? "L" : "M"}${across.to(a).toFixed(1)},${up.to(b).toFixed(1)}`).join("");
    if (points.length) draw("path", { d, fill: "none", "stroke-width": 3, ...settings }, svg);
  }

  function paintAxes() {
    const [right, bottom] = [width - ROOM.right, HEIGHT - ROOM.bottom];
    for (const tick of y.ticks) {
      draw("line", { x1: ROOM.left, x2: right, y1: up.to(tick), y2: up.to(tick), stroke: "currentColor", opacity: 0.15 }, svg);
      draw("text", { x: ROOM.left - 6, y: up.to(tick) + 4, "text-anchor": "end", "aria-hidden": true }, svg, short(tick));
    }
    for (const tick of x.ticks) draw("text", { x: across.to(tick), y: bottom + 18, "text-anchor": "middle", "aria-hidden": true }, svg, tick.toLocaleString("en-US"));
    for (const column of columns) {
      const at = across.to(column);
      draw("line", { x1: at, x2: at, y1: ROOM.top, y2: bottom, stroke: "currentColor", opacity: open ? 0.35 : 0.12, "stroke-dasharray": "2 4" }, svg);
    }
    draw("text", { x: (ROOM.left + right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, svg, x.label);
    draw("text", { transform: `translate(16 ${(bottom + ROOM.top) / 2}) rotate(-90)`, "text-anchor": "middle" }, svg, y.label);
  }

  function paintTruth() {
    line(done.curve, { class: "course-true" });
    const at = across.to(columns[done.worst]);
    draw("line", { x1: at, x2: at, y1: up.to(values[done.worst]), y2: up.to(done.true[done.worst]), stroke: "#D55E00", "stroke-width": 3 }, svg);
    const last = columns.length - 1;
    const end = across.to(columns[last]) + 12;
    const [mine, true_] = [up.to(values[last]), up.to(done.true[last])];
    const apart = Math.abs(mine - true_) < 16 ? (mine < true_ ? -8 : 8) : 0;
    draw("text", { x: end, y: mine + 4 + apart }, svg, "yours");
    draw("text", { x: end, y: true_ + 4 - apart }, svg, "the true one");
  }

  function knob(column, i) {
    const middle = (HEIGHT - ROOM.bottom + ROOM.top) / 2;
    const [cx, cy] = [across.to(column), values[i] === null ? middle : up.to(values[i])];
    const fixed = given[i] !== null;
    const group = draw("g", { role: fixed || !open ? "img" : "slider", "data-column": i }, svg);
    const text = (values[i] === null ? "not drawn yet" : short(values[i])) + (fixed ? ", given" : "") + (open ? "" : `, the true value is ${done.values[i]}`);
    group.setAttribute("aria-label", fixed || !open ? `${y.label} at ${named[i]}: ${text}` : `${y.label} at ${named[i]}`);
    if (!fixed && open) {
      const said = { tabindex: 0, "aria-orientation": "vertical", "aria-valuemin": y.low, "aria-valuemax": y.high, "aria-valuenow": values[i] ?? y.low, "aria-valuetext": text };
      for (const [name, value] of Object.entries(said)) group.setAttribute(name, value);
    }
    if (fixed) draw("rect", { x: cx - 5, y: cy - 5, width: 10, height: 10, fill: "currentColor" }, group);
    else draw("circle", { cx, cy, r: 6, class: "course-mine", fill: values[i] === null ? "none" : "currentColor", "stroke-width": 2, opacity: values[i] === null ? 0.6 : 1 }, group);
  }

  function paint() {
    width = wide();
    across = scale(x, ROOM.left, width - ROOM.right);
    up = scale(y, HEIGHT - ROOM.bottom, ROOM.top);
    const focused = root.contains(document.activeElement) ? document.activeElement.dataset?.column : undefined;
    svg.setAttribute("width", width);
    svg.setAttribute("height", HEIGHT);
    svg.classList.toggle("course-open", open);
    svg.replaceChildren();
    paintAxes();
    if (done.first && !open) line(columns.map((column, i) => [column, done.first[i]]), { class: "course-first", "stroke-dasharray": "2 4" });
    line(columns.map((column, i) => [column, values[i]]).filter(([, value]) => value !== null), { class: "course-mine", "stroke-dasharray": "7 4" });
    if (!open && !hidden) paintTruth();
    columns.forEach(knob);
    if (focused !== undefined) svg.querySelector(`[data-column="${focused}"]`)?.focus();
    const left = values.filter((value) => value === null).length;
    commit.hidden = !open;
    commit.disabled = left > 0;
    again.hidden = hold.hidden = open;
    const todo = left
      ? `Draw from left to right, or Tab to a column and press Up or Down. Columns left to draw: ${left}.`
      : "Commit when you are content.";
    said.textContent = open ? (done.fault ?? todo) : done.said;
    said.classList.toggle("course-off", !open && !done.close);
    root.dataset.open = open;
  }

  // A hand: the columns that it crosses get the height at which it crosses them.
  let last = null;
  const at = (event) => {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const set = (i, pixel) => {
    if (given[i] === null) values[i] = up.back(pixel);
  };
  function trace(from, to) {
    const [[xa, ya], [xb, yb]] = from[0] < to[0] ? [from, to] : [to, from];
    columns.forEach((column, i) => {
      const place = across.to(column);
      if (xa <= place && place <= xb && xb > xa) set(i, ya + ((place - xa) / (xb - xa)) * (yb - ya));
      else if (Math.abs(place - to[0]) < NEAR) set(i, to[1]);
    });
    paint();
  }
  svg.onpointerdown = (event) => {
    if (!open) return;
    svg.setPointerCapture(event.pointerId);
    trace((last = at(event)), last);
    event.preventDefault();
  };
  svg.onpointermove = (event) => {
    if (!last || !open) return;
    const now = at(event);
    trace(last, now);
    last = now;
  };
  svg.onpointerup = svg.onpointercancel = () => (last = null);

  svg.onkeydown = (event) => {
    const i = Number(event.target.dataset?.column ?? -1);
    if (i < 0 || !open || event.ctrlKey || event.metaKey || event.altKey) return;
    const presses = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (presses) {
      // The first press puts the point beside its neighbour on the left.
      const beside = values.slice(0, i).findLast((value) => value !== null) ?? up.back((HEIGHT - ROOM.bottom + ROOM.top) / 2);
      values[i] = values[i] === null ? beside : up.step(values[i], presses);
      paint();
    } else if (side) {
      let next = i + side;
      while (given[next] !== undefined && given[next] !== null) next += side;
      svg.querySelector(`[data-column="${next}"][tabindex]`)?.focus();
    } else if (event.key === "Home" || event.key === "End") {
      values[i] = event.key === "Home" ? y.low : y.high;
      paint();
    } else if (event.key === "Enter" && !commit.disabled) commit.click();
    else return;
    event.preventDefault();
  };

  commit.onclick = () => paper.comm_live !== false && paper.send({ commit: values });
  again.onclick = () => {
    open = true;
    values = empty();
    paint();
    svg.querySelector("[tabindex]")?.focus();
  };
  const hide = (now) => {
    hidden = now;
    paint();
  };
  hold.onpointerdown = (event) => {
    hold.setPointerCapture(event.pointerId);
    hide(true);
  };
  hold.onpointerup = hold.onpointercancel = hold.onblur = () => hidden && hide(false);
  hold.onkeydown = (event) => {
    // Without a value of its own: false would stop the Tab key.
    if ([" ", "Enter"].includes(event.key) && !event.repeat) hide(true);
  };
  hold.onkeyup = () => hide(false);
  const keys = (event) => {
    if (!root.contains(event.target)) return;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    root.toggleAttribute(QUIET, plain && event.key !== "Escape" && event.key !== "Tab");
  };
  const changed = () => {
    const inside = root.contains(document.activeElement);
    done = paper.get("drawn");
    if (done.mine && !done.fault) {
      open = false;
      values = [...done.mine];
    }
    paint();
    if (inside && !root.contains(document.activeElement)) again.focus();
    else if (inside && commit.hidden && document.activeElement === commit) again.focus();
  };
  window.addEventListener("keydown", keys, true);
  paper.on("change:drawn", changed);
  const size = new ResizeObserver(() => root.clientWidth && Math.abs(wide() - width) > 1 && paint());
  size.observe(root);
  paint();
  return () => {
    size.disconnect();
    window.removeEventListener("keydown", keys, true);
    paper.off("change:drawn", changed);
  };
}

export default { render };
