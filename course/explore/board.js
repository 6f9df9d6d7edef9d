// The browser's half of board_view.py: cards that are laid into slots by mouse or keys, a step, a table afterwards.
// Everything shown is text or numbers from the kernel, set as text.

const QUIET = "data-lm-suppress-shortcuts"; // see keys.js
const BEAT = 350; // ms a step when a schedule is played
const KEY = [["prefill", "prefill"], ["decode", "decode"], ["padding", "padding"], ["free", "free while somebody waits"]];

async function render({ model, el }) {
  seeWords();
  const state = await model.widget_manager.get_model(model.get("state_id"));
  const root = make("div", "course-board course-figure");
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  el.style.width = "100%";
  el.append(root);
  const goal = make("div", "course-board-goal");
  const bar = make("div", "course-board-bar");
  const button = (text, name = "") => bar.appendChild(make("button", name, text));
  const [go, back, again] = [button("", "course-go"), button("Undo (U)"), button("From the start")];
  const meters = { budget: make("span", "course-meter"), blocks: make("span", "course-meter") };
  bar.append(meters.budget, meters.blocks);
  const line = make("div", "course-board-line");
  const lineHead = make("b");
  const queue = make("div", "course-board-queue");
  queue.setAttribute("role", "list");
  queue.setAttribute("aria-label", "In line");
  const coming = make("span");
  line.append(lineHead, queue, coming);
  const lanes = make("div", "course-board-lanes");
  const heads = make("div");
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("role", "img");
  lanes.append(heads, picture);
  const legend = make("div", "course-board-key");
  const said = make("div", "course-board-said");
  said.setAttribute("role", "status");
  const spoken = make("div", "course-spoken"); // what keys do before a step is taken
  spoken.setAttribute("aria-live", "polite");
  const table = make("table");
  table.setAttribute("aria-label", "Scores");
  root.append(goal, bar, line, lanes, legend, said, spoken, table);

  let board = state.get("board");
  let draft = { tokens: new Map(), preempt: new Set() };
  let sent = false; // and not answered yet
  let shown = null; // whose schedule is looked at, in place of the learner's
  let upTo = Infinity; // steps of it that are shown
  let timer = 0;
  const cards = new Map();
  const by = (hand) => board.hand.includes(hand);
  const request = (row) => board.requests.find((one) => one.row === row);
  const lane = (row) => board.lanes[row] ?? -1;
  const time = (seconds) => (board.unit === "ms" ? `${(1e3 * seconds).toFixed(0)} ms` : steps(Number(seconds.toFixed(2))));
  const steps = (count) => `${count} step${count === 1 ? "" : "s"}`;
  const total = () => [...draft.tokens.values()].reduce((sum, one) => sum + one, 0);
  const running = () => board.requests.filter((one) => lane(one.row) >= 0).sort((a, b) => lane(a.row) - lane(b.row));
  const joining = () => [...draft.tokens.keys()].filter((row) => lane(row) < 0 || draft.preempt.has(row));
  const free = () => board.slots - running().length + draft.preempt.size;
  const other = () => board.others[shown];
  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // A move as it is laid down. Where tokens are handed out, whoever decodes has its one, and prompts the rest.
  function fresh() {
    draft = { tokens: new Map(), preempt: new Set() };
    if (!by("tokens")) return;
    for (const one of running()) if (one.remaining === 1) draft.tokens.set(one.row, 1);
    for (const one of running()) if (one.remaining > 1) give(one.row);
  }
  function give(row) {
    const left = board.budget && by("tokens") ? board.budget - total() : Infinity;
    draft.tokens.set(row, Math.max(1, Math.min(request(row).remaining, left)));
  }
  function toggle(row, byKey = false) {
    const one = request(row);
    if (!one || sent || board.over || shown) return;
    const field = byKey && by("tokens") && heads.querySelector(`input[data-of="${row}"]`);
    if (field) return field.select();
    if (one.waits) draft.tokens.has(row) ? draft.tokens.delete(row) : give(row);
    else if (lane(row) >= 0 && by("preempt")) draft.preempt.has(row) ? draft.preempt.delete(row) : draft.preempt.add(row);
    else return;
    if (said.classList.contains("course-broken")) {
      // It was of another plan.
      board = { ...board, broken: null };
      said.textContent = "Changed: take the step.";
      said.classList.remove("course-broken");
    }
    const [laid, kept] = one.waits ? ["joins in this step", "stays in line"] : ["is sent away in this step", "keeps its slot"];
    const left = free() - joining().length;
    const room = left < 0 ? `${-left} more than there are slots` : `${left} slot${left === 1 ? "" : "s"} left`;
    spoken.textContent = `Request ${row + 1} ${(one.waits ? draft.tokens : draft.preempt).has(row) ? laid : kept}, ${room}.`;
    paint();
  }
  function send(what) {
    if (sent || state.comm_live === false) return;
    sent = true;
    root.dataset.sent = performance.now();
    state.send(what);
  }
  function step() {
    if (board.own) return walk(1);
    if (board.over || shown) return;
    const [empty] = [...heads.querySelectorAll("input")].filter((box) => !box.value || box.validity.stepMismatch || box.validity.rangeUnderflow);
    if (empty) {
      said.textContent = `Request ${Number(empty.dataset.of) + 1} needs a whole number of tokens from ${empty.min} to ${empty.max}.`;
      said.classList.add("course-broken");
      return empty.select();
    }
    const tokens = [...draft.tokens].filter(([row, count]) => count !== 0 && !draft.preempt.has(row));
    send({ play: { tokens, preempt: [...draft.preempt] } });
  }
  const undo = () => (board.own ? walk(-1) : board.moves && send({ undo: true }));

  function card(row) {
    if (cards.has(row)) return cards.get(row);
    const item = make("div");
    item.setAttribute("role", "listitem");
    const box = make("button", "course-card");
    box.dataset.see = `request-${row + 1}`;
    item.append(box);
    let from = null;
    let dragged = false;
    const over = ({ clientX, clientY }) => {
      const area = lanes.getBoundingClientRect();
      return clientX > area.left && clientX < area.right && clientY > area.top && clientY < area.bottom;
    };
    box.onpointerdown = (event) => {
      from = [event.clientX, event.clientY];
      box.setPointerCapture(event.pointerId);
    };
    box.onpointermove = (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
      if (Math.hypot(dx, dy) < 6 && !box.style.transform) return;
      box.style.transform = `translate(${dx}px, ${dy}px)`;
      lanes.classList.toggle("course-board-drop", over(event));
    };
    box.onpointerup = box.onpointercancel = (event) => {
      dragged = Boolean(box.style.transform);
      if (dragged && event.type === "pointerup" && over(event) !== draft.tokens.has(row)) toggle(row);
      from = null;
      box.style.transform = "";
      lanes.classList.remove("course-board-drop");
    };
    box.onclick = () => {
      if (!dragged) toggle(row);
      dragged = false;
    };
    cards.set(row, item);
    return item;
  }

  function paintLine() {
    const waits = board.requests.filter((one) => one.waits);
    const frames = shown ? other().frames : [];
    const rows = shown ? (frames[Math.min(upTo, frames.length) - 1]?.[3] ?? []) : [];
    lineHead.textContent = `In line: ${shown ? rows.length : waits.length}`;
    coming.textContent = shown ? rows.map((row) => row + 1).join(", ") : board.coming ? `${board.coming} more will come` : board.over ? "" : "nobody else will come";
    queue.hidden = Boolean(shown);
    const broken = board.broken?.rows ?? [];
    for (const [row, item] of cards) {
      if (request(row)?.waits) continue;
      if (item.contains(document.activeElement)) root.focus();
      item.remove();
    }
    for (const one of waits) {
      const box = card(one.row).firstChild;
      const laid = draft.tokens.has(one.row);
      const words = [...one.card, board.now > one.since ? `came ${time(board.now - one.since)} ago` : "just came"];
      if (one.emitted) words.unshift(`${one.emitted} said`);
      box.replaceChildren(make("b", "", String(one.row + 1)), make("span", "", words.slice(0, 3).join(", ")));
      box.setAttribute("aria-pressed", laid);
      box.setAttribute("aria-label", `Request ${one.row + 1}, ${words.join(", ")}${laid ? ", joins in this step" : ""}`);
      box.classList.toggle("course-lit", broken.includes(one.row));
    }
    // Moved only where the order differs: a card that is moved loses the focus.
    const wanted = waits.map((one) => card(one.row));
    if (wanted.some((item, place) => queue.children[place] !== item)) queue.append(...wanted);
  }

  function field(row, low) {
    const box = make("input");
    Object.assign(box, { type: "number", min: low, max: request(row).remaining, value: draft.tokens.get(row) ?? 0 });
    box.dataset.of = row;
    box.setAttribute("aria-label", `Tokens for request ${row + 1} in this step, of ${request(row).remaining}`);
    box.oninput = () => {
      draft.tokens.set(row, Math.trunc(Number(box.value)) || 0);
      paintMeters();
      paintPicture();
    };
    return box;
  }
  function paintHeads() {
    const focused = document.activeElement?.dataset?.of;
    const joins = by("tokens") ? joining() : [];
    const boxes = [];
    for (let place = 0; place < board.slots; place++) {
      const head = make("div", "course-board-head");
      const one = shown ? null : running().find((each) => lane(each.row) === place);
      if (shown) head.append(make("b", "", `Slot ${place + 1}`));
      else if (!one && joins.length) {
        const row = joins.shift();
        head.append(make("b", "", `Request ${row + 1} joins`), field(row, 1), `of ${request(row).remaining}`);
      } else if (!one) head.append(make("b", "", `Slot ${place + 1}`), " free");
      else {
        head.dataset.see = `request-${one.row + 1}`;
        const holds = board.blocks ? `, ${one.blocks} block${one.blocks === 1 ? "" : "s"}` : "";
        head.append(make("b", "", `Request ${one.row + 1}`), `${one.emitted} said${holds}`);
        if (by("tokens")) head.append(field(one.row, 0), `of ${one.remaining}`);
        if (by("preempt") && !board.over) {
          const away = make("button", "", "send away");
          away.setAttribute("aria-pressed", draft.preempt.has(one.row));
          away.setAttribute("aria-label", `Send request ${one.row + 1} away: it loses ${one.blocks} blocks`);
          away.dataset.of = one.row;
          away.onclick = () => toggle(one.row);
          head.append(away);
        }
        head.classList.toggle("course-lit", (board.broken?.rows ?? []).includes(one.row));
      }
      boxes.push(head);
    }
    heads.replaceChildren(...boxes);
    if (focused === undefined) return;
    const again = heads.querySelector(`[data-of="${focused}"]`);
    // Where there is nothing to choose, a digit is a request again, and no number of tokens.
    (again?.max === "1" ? root : (again ?? root)).focus();
    again?.select?.(); // what is typed next takes the place of the number
  }

  function meter(box, text, share, over) {
    const [frame, fill] = [make("i"), make("i")];
    fill.style.width = `${Math.min(100, 100 * share)}%`;
    frame.append(fill);
    box.replaceChildren(text, frame);
    box.classList.toggle("course-lit", over);
  }
  function paintMeters() {
    if (board.budget && by("tokens")) {
      meter(meters.budget, `tokens ${total()} of ${board.budget}`, total() / board.budget, total() > board.budget || board.broken?.rule === "budget");
    }
    if (board.blocks) {
      const [all, left] = board.blocks;
      meter(meters.blocks, `blocks ${all - left} of ${all} taken`, (all - left) / all, board.broken?.rule === "blocks");
    }
    lanes.classList.toggle("course-lit", !shown && (joining().length > free() || board.broken?.rule === "slots"));
    const idle = !joining().length && !draft.preempt.size && !running().length;
    go.textContent = board.own ? "One step (N)" : board.over ? "All answered" : idle ? "Let time pass (N)" : "Take the step (N)";
    go.disabled = board.own ? upTo >= other().frames.length : board.over || Boolean(shown);
    back.textContent = board.own ? "One back (U)" : "Undo (U)";
    back.disabled = board.own ? upTo <= 0 : !board.moves;
    again.disabled = !board.own && !board.moves;
    again.textContent = board.own ? "Play it" : "From the start";
  }

  function paintPicture() {
    const width = Math.max(200, lanes.clientWidth - heads.clientWidth);
    picture.setAttribute("width", width);
    picture.setAttribute("height", board.slots * LANE + 20);
    picture.replaceChildren();
    hatches(picture);
    const ms = board.unit === "ms";
    const at = (seconds) => (seconds / board.horizon) * (width - 8);
    const frames = shown ? other().frames.slice(0, upTo) : board.frames;
    const name = (row) => `${row + 1}${request(row)?.tenant ?? ""}`; // whose it is stands in the picture, too
    const space = { slots: board.slots, at, time, horizon: board.horizon, ms, name };
    drawSteps(picture, frames, space);
    drawAxis(picture, space);
    const x = at(frames.at(-1)?.[1] ?? 0);
    draw("line", { x1: x, x2: x, y1: 0, y2: board.slots * LANE, stroke: "currentColor", "stroke-width": 1.5 }, picture);
    if (!shown && !board.over) {
      const held = Object.fromEntries(running().filter((one) => !draft.preempt.has(one.row)).map((one) => [one.row, lane(one.row)]));
      const stays = Object.keys(held).map(Number).map((row) => [row, by("tokens") ? (draft.tokens.get(row) ?? 0) : 1]);
      const asked = [...stays, ...joining().map((row) => [row, draft.tokens.get(row)])];
      drawAsked(picture, { slots: board.slots, x, asked, held, wrong: board.broken?.rows ?? [], joins: (row) => lane(row) < 0 });
    }
    if (shown && other().refused && upTo >= other().frames.length) {
      const { asked, rows, lanes: held } = other();
      drawAsked(picture, { slots: board.slots, x, asked, held, wrong: rows, joins: (row) => held[row] === undefined });
    }
    picture.setAttribute("aria-label", inWords(shown ?? "Your schedule", frames, board.slots));
    const kinds = new Set(frames.flatMap((frame) => frame[2].map((part) => part[2])));
    if (picture.querySelector('[data-see="free"]')) kinds.add("free");
    legend.replaceChildren(...KEY.filter(([name]) => kinds.has(name)).map(([name, text]) => {
      const entry = make("span", "course-lights");
      entry.dataset.lights = name;
      entry.tabIndex = 0;
      entry.setAttribute("role", "img");
      entry.setAttribute("aria-label", text);
      entry.append(make("i", `course-key-${name}`), text);
      return entry;
    }));
  }

  // Another schedule in place of the learner's: held to compare, or played step by step.
  function look(who, steps = Infinity) {
    clearTimeout(timer);
    [shown, upTo] = [who, steps];
    paint();
  }
  function walk(by) {
    const last = other().frames.length;
    look(board.own, Math.max(0, Math.min(last, Math.min(upTo, last) + by)));
  }
  function perform(who) {
    const last = board.others[who].frames.length;
    const beat = () => {
      if (upTo < last) {
        upTo += 1;
        paint();
        timer = setTimeout(beat, BEAT);
      } else if (!board.own) timer = setTimeout(() => look(null), 4 * BEAT);
    };
    look(who, still() ? last : 0);
    beat();
  }

  function paintTable() {
    const focused = document.activeElement?.dataset?.who;
    table.replaceChildren();
    table.hidden = board.rows.length < 2;
    if (table.hidden) return;
    const top = table.createTHead().insertRow();
    for (const head of ["", ...board.heads, ""]) top.append(make("th", "", head));
    const body = table.createTBody();
    for (const [who, values] of board.rows) {
      const row = body.insertRow();
      row.append(make("th", "", who), ...values.map((value) => make("td", "", value)));
      const cell = row.insertCell();
      if (!board.others[who] || who === board.own) continue;
      const hold = make("button", "", "hold to see");
      hold.setAttribute("aria-label", `Hold to see the schedule of ${who}`);
      hold.dataset.who = `hold ${who}`;
      const begin = () => {
        look(who);
        spoken.textContent = picture.getAttribute("aria-label");
      };
      const end = () => shown === who && look(board.own || null);
      hold.onpointerdown = (event) => {
        hold.setPointerCapture(event.pointerId); // until it is let go, wherever the hand moves
        begin();
      };
      hold.onpointerup = hold.onpointercancel = hold.onblur = end;
      hold.onkeydown = (event) => {
        // Without a value of its own: false would stop the Tab key.
        if ([" ", "Enter"].includes(event.key) && !event.repeat) begin();
      };
      hold.onkeyup = end;
      cell.append(hold);
      if (board.own) continue;
      const plays = make("button", "", "play");
      plays.setAttribute("aria-label", `Play the schedule of ${who} step by step`);
      plays.dataset.who = `play ${who}`;
      plays.onclick = () => perform(who);
      cell.append(" ", plays);
    }
    if (focused) [...table.querySelectorAll("button")].find((one) => one.dataset.who === focused)?.focus();
  }

  function paint() {
    paintLine();
    paintHeads();
    paintMeters();
    paintPicture();
  }
  function changed() {
    sent = false;
    const before = board;
    board = state.get("board");
    if (!board.broken || before.moves !== board.moves) fresh();
    clearTimeout(timer);
    [shown, upTo] = [board.own || null, Infinity];
    const title = board.title + (board.title.endsWith("?") ? " " : ". ");
    goal.replaceChildren(make("b", "", title), board.goal);
    lanes.style.gridTemplateColumns = `${board.own ? 64 : by("preempt") ? 284 : by("tokens") ? 250 : 170}px minmax(0, 1fr)`;
    const hand = `Keys: a number lays a request down, N takes the step, U takes it back.${by("tokens") ? " The number again goes to its tokens, Escape leaves them." : ""}`;
    root.setAttribute("aria-label", title + (board.own ? "N shows one step more, U one less." : hand));
    said.textContent = board.said;
    spoken.textContent = ""; // it was of the plan before
    said.classList.toggle("course-broken", Boolean(board.broken) || Boolean(board.own && other().refused));
    paint();
    paintTable();
    if (root.dataset.sent) root.dataset.took = performance.now() - Number(root.dataset.sent);
    delete root.dataset.sent;
    root.dataset.moves = board.moves;
    if ([go, back, again].some((one) => one.disabled && one === document.activeElement)) root.focus();
  }

  go.onclick = step;
  back.onclick = undo;
  again.onclick = () => (board.own ? perform(board.own) : send({ again: true }));
  const keys = (event) => {
    if (!root.contains(event.target)) return;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    root.toggleAttribute(QUIET, plain && event.key !== "Escape" && event.key !== "Tab");
  };
  root.onkeydown = (event) => {
    const typing = event.target.tagName === "INPUT" && /^[0-9-]$|^Arrow|^Backspace$|^Delete$|^Home$|^End$/.test(event.key);
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    const key = event.key.toLowerCase();
    if (/^[1-9]$/.test(key)) toggle(Number(key) - 1, true);
    else if (key === "n" || (key === "enter" && (event.target === root || event.target.tagName === "INPUT"))) step();
    else if (key === "u") undo();
    else if (key === "escape" && event.target.tagName === "INPUT") root.focus();
    else return;
    event.preventDefault();
  };
  window.addEventListener("keydown", keys, true);
  state.on("change:board", changed);
  const width = new ResizeObserver(() => lanes.clientWidth && paintPicture());
  width.observe(lanes);
  fresh();
  changed();
  return () => {
    clearTimeout(timer);
    width.disconnect();
    window.removeEventListener("keydown", keys, true);
    state.off("change:board", changed);
  };
}

export default { render };
