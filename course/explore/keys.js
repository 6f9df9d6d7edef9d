// The browser's half of keys.py, for everything inside the nearest .course-keys.

// JupyterLab reads these keys first (arrows select cells) unless the focused element has the attribute below.
const OURS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown", " ", "Enter"]);
const QUIET = "data-lm-suppress-shortcuts";

// What a slider's readout shows is its value; a slider of stops says only "9" for 65,536.
function speak(box) {
  const handle = box.querySelector("[role=slider]");
  const label = box.querySelector(".widget-label")?.textContent ?? "";
  const shown = box.querySelector(".widget-readout");
  if (!handle || !shown) return;
  const number = shown.textContent.trim();
  const unit = label.match(/\(([^()]*)\)\s*$/)?.[1] ?? "";
  const text = `${number} ${number === "1" ? unit.replace(/^([a-z]{3,})s(?=\/|$)/, "$1") : unit}`.trim();
  if (handle.getAttribute("aria-label") !== label) handle.setAttribute("aria-label", label);
  if (handle.getAttribute("aria-valuetext") !== text) handle.setAttribute("aria-valuetext", text);
  if (box.classList.contains("course-stops")) {
    shown.setAttribute("contenteditable", "false"); // ipywidgets does nothing with what is typed there
  } else if (shown.getAttribute("role") !== "textbox") {
    shown.setAttribute("role", "textbox");
    shown.setAttribute("contenteditable", "true");
    shown.setAttribute("tabindex", "0");
    shown.setAttribute("aria-label", `${label}, typed`);
    const said = box.appendChild(document.createElement("span"));
    said.className = "course-snapped";
    said.setAttribute("role", "status");
  }
}

// A number as ipywidgets reads it, which stops at a comma: without those of thousands, and with a point for a decimal one.
function plain(text) {
  const whole = text.trim();
  if (/^[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(whole)) return whole.replaceAll(",", "");
  return /^[-+]?\d*,\d+$/.test(whole) ? whole.replace(",", ".") : whole;
}

// A slider stands at its stops only. Beside a number that was typed and is none of them: what is there, and why.
const SHORT = 300; // ms: by then it has moved
function snapped(field, typed) {
  const box = field.closest(".widget-slider");
  const number = (text) => Number(plain(text));
  const [shown, wanted] = [field.textContent.trim(), number(typed)];
  // Not `aria-valuemin` and `aria-valuemax`: those are rounded to one decimal.
  const { min, max } = box.querySelector(".noUi-target").noUiSlider.options.range;
  if (wanted === number(shown)) return "";
  if (!typed.trim() || Number.isNaN(wanted)) return `That is no number: ${shown} stays.`;
  if (wanted < min) return `The least is ${shown}.`;
  if (wanted > max) return `The most is ${shown}.`;
  return `${typed.trim()} is between two stops: it is ${shown}.`;
}

function render({ el }) {
  el.style.display = "none";
  let root = null;
  const here = () => (root = root || el.closest(".course-keys"));
  const boxes = () => [...(here()?.querySelectorAll(".widget-slider") ?? [])]
    .filter((box) => box.querySelector("[role=slider]"));

  const pressed = (event) => {
    if (!here()?.contains(event.target)) return;
    const field = event.target.closest(".widget-readout[contenteditable=true]");
    const bare = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    event.target.toggleAttribute(QUIET, Boolean(field) || (bare && OURS.has(event.key)));
    if (field && event.key === "Enter") {
      event.preventDefault();
      field.blur();
    }
  };
  const typed = (event) => {
    const field = here()?.contains(event.target) && event.target.closest(".widget-readout[contenteditable=true]");
    if (field) field.dataset.typed = field.textContent;
  };
  const read = ({ target }) => {
    if (target.dataset?.typed !== undefined && here()?.contains(target)) target.textContent = plain(target.textContent);
  };
  const left = ({ target }) => {
    const said = target.dataset?.typed === undefined ? null : target.closest(".widget-slider")?.querySelector(".course-snapped");
    if (!said || !here()?.contains(target)) return;
    const text = target.dataset.typed;
    delete target.dataset.typed;
    setTimeout(() => (said.textContent = snapped(target, text)), SHORT);
  };
  const moved = ({ target }) => {
    const said = here()?.contains(target) && target.closest(".widget-slider")?.querySelector(".course-snapped");
    if (said) said.textContent = "";
  };
  const label = () => boxes().forEach(speak);
  const watch = new MutationObserver(label);
  const begin = () => {
    label();
    for (const box of boxes()) {
      const shown = box.querySelector(".widget-readout");
      if (shown) watch.observe(shown, { childList: true, characterData: true, subtree: true });
    }
  };
  window.addEventListener("keydown", pressed, true);
  document.addEventListener("focusin", label);
  document.addEventListener("focusin", moved);
  document.addEventListener("input", typed);
  window.addEventListener("blur", read, true); // before ipywidgets
  document.addEventListener("focusout", left);
  const later = setTimeout(begin, 1000);
  return () => {
    clearTimeout(later);
    watch.disconnect();
    window.removeEventListener("keydown", pressed, true);
    document.removeEventListener("focusin", label);
    document.removeEventListener("focusin", moved);
    document.removeEventListener("input", typed);
    window.removeEventListener("blur", read, true);
    document.removeEventListener("focusout", left);
  };
}

export default { render };
