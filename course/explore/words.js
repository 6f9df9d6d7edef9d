// The browser's half of words_view.py: it asks the kernel for steps, and plays them. A frame is a step: when it began
// and ended, what each slot did, who stood in line, whose answer went out (see course/lm/watch.py).

const SPEEDS = [[1, "real time"], [0.5, "1/2"], [0.2, "1/5"], [0.1, "1/10"], [0.05, "1/20"]];
const USUAL = 0.1;
const LONGEST_JUMP = 0.1; // seconds between two pictures that count: a tab that was hidden goes on where it was
const PADDINGS = 60; // marks of padding that a lane shows; their number stands beside them

function words(seconds) {
  return seconds < 0.9995 ? `${Number((1e3 * seconds).toPrecision(3))} ms` : `${Number(seconds.toPrecision(3))} s`;
}

// What the first `count` frames of a run amount to, at time t. Throughput counts from the first arrival on.
function figures(load, frames, count, t) {
  const first = new Map();
  let tokens = 0;
  let padding = 0;
  let computed = 0;
  for (const frame of frames.slice(0, count)) {
    for (const [, , prefill, wasted, text] of frame.parts) {
      padding += wasted;
      computed += wasted + (prefill || (text === null ? 0 : 1));
      if (text !== null) tokens += 1;
    }
    for (const row of frame.sent) first.set(row, frame.end - load.arrival[row]);
  }
  const all = [...first.values()];
  const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
  return {
    first,
    shown: [
      tokens ? (tokens / (t - load.arrival[0])).toFixed(0) : "-",
      all.length ? words(mean) : "-",
      computed ? `${((100 * padding) / computed).toFixed(0)}%` : "-",
    ],
  };
}

async function render({ model, el }) {
  const stage = await model.widget_manager.get_model(model.get("stage_id"));
  const root = make("div", "course-stage");
  el.style.width = "100%";
  el.append(root);

  // Buttons
  const bar = make("div", "course-stage-bar");
  const play = make("button", "jupyter-button", "▶ Play");
  const step = make("button", "jupyter-button", "One step");
  const again = make("button", "jupyter-button", "From the start");
  const speed = make("select");
  speed.setAttribute("aria-label", "Speed");
  for (const [value, text] of SPEEDS) speed.append(new Option(text, value, value === USUAL, value === USUAL));
  const speedLabel = make("label", "", "Speed ");
  speedLabel.append(speed);
  const status = make("span", "course-stage-status");
  bar.append(play, step, again, speedLabel, status);
  // Lanes, line and key to the left, numbers to the right
  const body = make("div", "course-stage-body");
  const left = make("div", "course-stage-left");
  const lanes = make("div", "course-lanes");
  lanes.setAttribute("role", "list");
  lanes.setAttribute("aria-label", "Slots");
  const line = make("div", "course-line");
  const key = make("div", "course-stage-key");
  const side = make("div", "course-stage-side");
  left.append(lanes, line, key);
  body.append(left, side);
  root.append(bar, body);

  let load = { run: 0 };
  let frames = [];
  let done = false;
  let now = 0; // what the kernel has computed so far, seconds
  let t = 0; // what is shown, seconds
  let applied = 0; // frames that are over at t
  let begun = -1; // the last frame that has begun at t
  let playing = false;
  let started = false; // something was played or moved: the run is to be computed
  let steps = 0; // single steps that are wanted
  let asking = false;
  let drawn = 0; // pictures while it played
  let handle = 0;
  let last = 0;
  let before = null; // the numbers of the run before
  let slots = [];
  let sent = new Set();
  const told = new Map(); // from a row to what it has said

  const alive = () => stage.comm_live !== false;
  const end = () => (frames.length ? frames[frames.length - 1].end : 0);

  function ask() {
    if (!started || done || asking || !load.run || !alive() || document.hidden || !root.isConnected) return;
    asking = true;
    stage.send({ run: load.run, has: frames.length });
  }

  function heard(answer) {
    if (answer.run !== load.run) return;
    asking = false;
    if (answer.has <= frames.length) {
      for (const [place, frame] of answer.frames.entries()) frames[answer.has + place] = frame;
      done = done || answer.done;
      now = Math.max(now, answer.now);
    }
    ask();
    schedule();
  }

  function empty() {
    t = applied = 0;
    begun = -1;
    sent = new Set();
    told.clear();
    lanes.replaceChildren();
    slots = [];
    for (let lane = 0; lane < (load.slots ?? 0); lane++) {
      const box = make("div", "course-lane");
      box.setAttribute("role", "listitem");
      const who = make("span", "course-lane-who", "free");
      const say = make("span", "course-lane-say");
      const inner = make("span", "course-lane-words");
      const note = make("span", "course-lane-note");
      say.append(inner);
      box.append(who, say, note);
      lanes.append(box);
      slots.push({ box, who, inner, note, row: -1, padding: 0, ended: "" });
    }
    lanes.classList.toggle("course-lanes-many", slots.length > 4);
  }

  function newRun() {
    if (load.run && done) before = figures(load, frames, frames.length, end()).shown;
    const next = stage.get("load");
    if (load.run) started = true; // the controls have moved
    load = next;
    frames = [];
    done = asking = false;
    now = steps = 0;
    root.classList.toggle("course-stage-none", !load.run);
    playing = playing && Boolean(load.run);
    key.replaceChildren();
    if (load.run) {
      if (load.padded) {
        key.append(make("span", "course-padding-mark"), " a token of padding. ");
        key.append(make("i", "", "Italics"), ": computed, not sent before the batch ends.");
      } else key.append("Each word is sent as it is computed.");
    }
    empty();
    ask();
    draw();
    schedule();
  }

  function leave(slot) {
    Object.assign(slot, { row: -1, padding: 0, ended: "" });
    slot.inner.replaceChildren();
    slot.note.textContent = "";
    slot.who.textContent = "free";
    slot.who.title = "";
    slot.box.className = "course-lane";
  }

  // A request that comes again after a preemption brings what it has said, and leaves the lane where it was.
  function take(slot, row) {
    for (const other of slots) if (other.row === row) leave(other);
    Object.assign(slot, { row, padding: 0, ended: "" });
    slot.inner.replaceChildren(told.get(row) ?? "");
    slot.note.textContent = "";
    slot.box.className = "course-lane";
    slot.who.textContent = `#${row} ${load.asked[row]}`;
    slot.who.title = load.asked[row];
  }

  // What is seen while a step runs.
  function begin(place) {
    begun = place;
    const here = new Map(frames[place].parts.map((part) => [part[0], part]));
    for (const [lane, slot] of slots.entries()) {
      const part = here.get(lane);
      if (part && part[1] !== slot.row) take(slot, part[1]);
      if (part) slot.box.classList.remove("course-lane-over");
      if (part && part[2]) slot.note.textContent = `prefill ${part[2]} tokens`;
      slot.box.classList.toggle("course-lane-prefill", Boolean(part && part[2]));
      if (!part && slot.row >= 0 && !slot.box.classList.contains("course-lane-over")) {
        slot.box.classList.add("course-lane-over");
        slot.note.textContent = slot.ended ? "complete" : "preempted";
      }
    }
  }

  // What is there once it is over.
  function finish(place) {
    const frame = frames[place];
    for (const [lane, , prefill, padding, text, ended] of frame.parts) {
      const slot = slots[lane];
      if (slot.box.classList.contains("course-lane-prefill")) slot.note.textContent = "";
      slot.box.classList.remove("course-lane-prefill");
      slot.inner.querySelector(".course-new")?.classList.remove("course-new");
      slot.ended = ended;
      for (let mark = 0; mark < padding; mark++) {
        if (slot.padding++ < PADDINGS) slot.inner.append(make("span", "course-padding-mark"));
      }
      if (prefill && padding) slot.inner.append(" "); // behind the prompt, before the first word
      if (text) {
        const said = text.replace(/\s*\n\s*/g, " ");
        slot.inner.append(make("span", "course-new", said));
        told.set(slot.row, (told.get(slot.row) ?? "") + said);
      }
      if (slot.padding) slot.note.textContent = `${slot.padding} padding`;
      else if (ended) slot.note.textContent = "complete";
    }
    for (const row of frame.sent) sent.add(row);
    for (const slot of slots) slot.box.classList.toggle("course-unsent", slot.row >= 0 && !sent.has(slot.row));
    applied = place + 1;
  }

  function queue() {
    const from = begun < 0 ? -1 : frames[begun].start;
    const rows = begun < 0 ? [] : [...frames[begun].waiting];
    load.arrival.forEach((at, row) => at > from && at <= t && rows.push(row));
    return rows;
  }

  let side_drawn = "";
  function draw() {
    if (!load.run) {
      status.textContent = "";
      line.replaceChildren();
      side.replaceChildren();
      return;
    }
    while (applied < frames.length && frames[applied].end <= t + 1e-12) {
      if (begun < applied) begin(applied);
      finish(applied);
    }
    if (applied < frames.length && begun < applied && frames[applied].start <= t) begin(applied);
    const over = done && applied === frames.length;
    const of = done ? ` of ${frames.length}` : "";
    const late = playing && !over && t >= now && !done ? ", computing" : "";
    status.textContent = `step ${applied}${of}, ${words(t)}${over ? ": all answers are complete" : late}`;
    play.textContent = playing ? "❚❚ Pause" : over ? "▶ Play again" : "▶ Play";
    step.disabled = over;
    again.disabled = t === 0;
    const rows = queue();
    const text = rows.join();
    if (line.dataset.rows !== text || !line.firstChild) {
      line.dataset.rows = text;
      line.replaceChildren(make("span", "course-line-head", `In line: ${rows.length}`));
      for (const row of rows) line.append(make("span", "course-line-one", `#${row}`));
    }
    const place = `${load.run} ${applied} ${before} ${over}`;
    if (place === side_drawn) return;
    side_drawn = place;
    const { first, shown } = figures(load, frames, applied, over ? end() : t);
    const table = make("table", "course-grid");
    table.setAttribute("aria-label", "So far");
    const head = table.createTHead().insertRow();
    for (const name of ["", "so far", "before"]) head.append(make("th", name === "before" ? "course-before" : "", name));
    const rest = table.createTBody();
    ["tokens/s", "TTFT, mean", "padding"].forEach((name, index) => {
      const row = rest.insertRow();
      row.append(make("th", "", name), make("td", "", shown[index]), make("td", "course-before", before?.[index] ?? ""));
    });
    const list = make("div", "course-ttft");
    list.setAttribute("role", "list");
    list.setAttribute("aria-label", "TTFT of each request");
    list.tabIndex = 0;
    load.asked.forEach((asked, row) => {
      const one = make("span", "", `#${row} `);
      one.setAttribute("role", "listitem");
      one.title = asked;
      one.append(make("b", "", first.has(row) ? words(first.get(row)) : "-"));
      list.append(one);
    });
    const scrolled = side.lastChild?.scrollTop ?? 0;
    side.replaceChildren(table, make("div", "course-ttft-head", "TTFT"), list);
    list.scrollTop = scrolled;
  }

  function schedule() {
    if (!handle) handle = requestAnimationFrame(tick);
  }

  function tick(stamp) {
    handle = 0;
    const passed = last ? Math.min((stamp - last) / 1e3, LONGEST_JUMP) : 0;
    last = stamp;
    if (steps && applied < frames.length) {
      t = frames[applied].end;
      steps -= 1;
    }
    if (done && applied === frames.length) steps = 0;
    if (playing) {
      t = Math.max(t, Math.min(t + passed * Number(speed.value), done ? end() : now));
      root.dataset.drawn = ++drawn;
      if (done && t >= end()) playing = false;
    }
    draw();
    root.dataset.step = applied;
    root.dataset.playing = playing;
    if (playing || (steps && applied < frames.length)) schedule();
    else last = 0;
  }

  play.onclick = () => {
    if (!playing && done && applied === frames.length) empty();
    playing = !playing;
    started = true;
    steps = 0;
    ask();
    schedule();
  };
  step.onclick = () => {
    playing = false;
    started = true;
    steps += 1;
    ask();
    schedule();
  };
  again.onclick = () => {
    empty();
    steps = 0;
    schedule();
  };
  const back = () => !document.hidden && (ask(), schedule());
  const gone = () => {
    if (alive()) return;
    playing = false;
    steps = 0;
    root.classList.add("course-stage-none");
    schedule();
  };
  stage.on("msg:custom", heard);
  stage.on("change:load", newRun);
  stage.on("comm_live_update", gone);
  document.addEventListener("visibilitychange", back);
  newRun();
  return () => {
    playing = false;
    cancelAnimationFrame(handle);
    handle = -1; // nothing is scheduled any more
    stage.off("msg:custom", heard);
    stage.off("change:load", newRun);
    stage.off("comm_live_update", gone);
    document.removeEventListener("visibilitychange", back);
  };
}

export default { render };
