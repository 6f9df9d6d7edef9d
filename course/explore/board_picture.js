// The picture of a board: a lane for each slot, a box for each step, and behind the line of now what is laid down.
// A frame is [start, end, [[lane, row, kind, tokens], ...], rows in line, rows that lost their slot].

const FILL = { prefill: "#E69F00", decode: "#0072B2", padding: "url(#course-padding)", idle: "none" };
const LANE = 44;
const SAYS = { prefill: "prefill", decode: "decode", padding: "padding", idle: "stands still" };

function hatches(svg) {
  const defs = draw("defs", {}, svg);
  for (const [id, colour] of [["course-padding", "#D55E00"], ["course-unused", "#8c8c8c"]]) {
    const pattern = draw("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, defs);
    draw("rect", { width: 2.5, height: 6, fill: colour }, pattern);
  }
}

// The steps so far. before: whose box stood there last, so that a request has its number once.
function drawSteps(svg, frames, { slots, at, time, name }) {
  const before = {};
  for (const [start, end, parts, queue] of frames) {
    const [x, width] = [at(start), Math.max(1, at(end) - at(start) - 1)];
    let line = queue.length;
    for (let lane = 0; lane < slots; lane++) {
      const part = parts.find((each) => each[0] === lane);
      const box = { x, y: lane * LANE + 4, width, height: LANE - 8 };
      if (!part) {
        if (line-- > 0) {
          const free = draw("g", { "data-see": "free" }, svg);
          draw("rect", { ...box, fill: "url(#course-unused)", opacity: 0.7 }, free);
          draw("title", {}, free, `slot ${lane + 1} is free while somebody waits`);
        }
        before[lane] = null;
        continue;
      }
      const [, row, kind, tokens] = part;
      const group = draw("g", { "data-see": `request-${row + 1} ${kind}` }, svg);
      const edge = kind === "idle" || kind === "padding" ? { stroke: "#8c8c8c", "stroke-dasharray": kind === "idle" ? "3 2" : "none" } : {};
      draw("rect", { ...box, fill: FILL[kind], ...edge }, group);
      draw("title", {}, group, `request ${row + 1}: ${SAYS[kind]}${tokens > 1 ? `, ${tokens} tokens` : ""}, ${time(start)} to ${time(end)}`);
      const ink = { decode: "course-on-dark", prefill: "course-on-light" }[kind] ?? "";
      const middle = { x: x + width / 2, "text-anchor": "middle", class: ink };
      if (before[lane] !== row && width > 9) draw("text", { ...middle, y: box.y + 15 }, group, name(row));
      if (kind === "prefill" && tokens > 1 && width > 16) draw("text", { ...middle, y: box.y + 31, "font-size": 11 }, group, String(tokens));
      before[lane] = row;
    }
  }
}

function drawAxis(svg, { slots, at, time, horizon, ms }) {
  const apart = [1, 2, 5, 10, 20, 50].map((n) => (ms ? n / 100 : n)).find((n) => horizon / n <= 10) ?? horizon;
  for (let tick = 0; tick <= horizon * 0.94; tick += apart) {
    draw("line", { x1: at(tick), x2: at(tick), y1: slots * LANE, y2: slots * LANE + 5, stroke: "currentColor" }, svg);
    draw("text", { x: at(tick) + 3, y: slots * LANE + 15 }, svg, tick === 0 ? `0 ${ms ? "ms" : "steps"}` : time(tick).replace(/ .*/, ""));
  }
}

// What is asked for in a step: rows in their lanes, in red those who break a rule, behind the lanes those without a slot.
// asked: [row, tokens]; held: {row: lane}.
function drawAsked(svg, { slots, x, asked, held, wrong, joins }) {
  const lanes = [...Array(slots).keys()];
  const open = lanes.filter((lane) => !Object.values(held).includes(lane));
  const used = new Set();
  let behind = 0;
  for (const [row, count] of asked) {
    const lane = held[row] ?? (wrong.includes(row) && !open.length ? undefined : open.shift());
    const bad = wrong.includes(row) || lane === undefined;
    const [left, y] = lane === undefined ? [x + 48 + 40 * behind++, 4] : [x + 4, lane * LANE + 4];
    used.add(lane);
    const fill = bad ? "#D55E00" : joins(row) ? "#E69F00" : count ? "#0072B2" : "none";
    draw("rect", { x: left, y, width: 34, height: LANE - 8, rx: 4, fill, "fill-opacity": bad ? 0.25 : 0.45, stroke: bad ? "#D55E00" : "currentColor", "stroke-width": bad ? 3 : 1, "stroke-dasharray": bad ? "none" : "4 3" }, svg);
    draw("text", { x: left + 17, y: y + 16, "text-anchor": "middle" }, svg, String(row + 1));
    if (count > 1) draw("text", { x: left + 17, y: y + 31, "text-anchor": "middle", "font-size": 11 }, svg, String(count));
  }
  if (behind) draw("text", { x: x + 48, y: LANE + 18 }, svg, "no slot");
  for (const lane of lanes) {
    if (used.has(lane) || Object.values(held).includes(lane)) continue;
    draw("rect", { x: x + 4, y: lane * LANE + 4, width: 34, height: LANE - 8, rx: 4, fill: "none", stroke: "currentColor", "stroke-dasharray": "4 3", opacity: 0.6 }, svg);
  }
}

// The schedule in words, for who does not see it.
function inWords(whose, frames, slots) {
  const lanes = [...Array(slots).keys()].map((lane) => {
    const runs = [];
    for (const [, , parts] of frames) {
      const part = parts.find((each) => each[0] === lane);
      const what = part ? `request ${part[1] + 1}${part[2] === "padding" || part[2] === "idle" ? ` ${SAYS[part[2]]}` : ""}` : "free";
      if (runs.at(-1)?.[0] === what) runs.at(-1)[1] += 1;
      else runs.push([what, 1]);
    }
    const told = runs.map(([what, steps]) => `${what} for ${steps} step${steps === 1 ? "" : "s"}`);
    return `slot ${lane + 1}: ${told.join(", ") || "nothing yet"}`;
  });
  return `${whose}. ${lanes.join(". ")}.`;
}

