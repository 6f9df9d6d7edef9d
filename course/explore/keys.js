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
  const unit = label.match(/\(([^()]*)\)\s*$/)?.[1] ?? "";
  const text = `${shown.textContent.trim()} ${unit}`.trim();
  if (handle.getAttribute("aria-label") !== label) handle.setAttribute("aria-label", label);
  if (handle.getAttribute("aria-valuetext") !== text) handle.setAttribute("aria-valuetext", text);
  if (shown.getAttribute("role") !== "textbox") {
    shown.setAttribute("role", "textbox");
    shown.setAttribute("contenteditable", "true");
    shown.setAttribute("tabindex", "0");
    shown.setAttribute("aria-label", `${label}, typed`);
  }
}

// Sliders of stops have no field of their own: a number typed into the readout goes to the nearest stop.
function typed(model, shown) {
  const number = parseFloat(shown.textContent.replaceAll(",", ""));
  const stops = model.get("_options_labels").map((text) => parseFloat(text.replaceAll(",", "")));
  let best = model.get("index");
  if (Number.isFinite(number)) {
    const far = stops.map((stop) => Math.abs(stop - number));
    best = far.indexOf(Math.min(...far));
  }
  shown.textContent = model.get("_options_labels")[best];
  if (best !== model.get("index")) {
    model.set("index", best);
    model.save_changes();
  }
}

function render({ model, el }) {
  el.style.display = "none";
  let root = null;
  const here = () => (root = root || el.closest(".course-keys"));
  const boxes = () => [...(here()?.querySelectorAll(".jupyter-widgets.widget-slider, .jupyter-widgets.widget-inline-hbox") ?? [])]
    .filter((box) => box.querySelector("[role=slider]"));

  const pressed = (event) => {
    if (!here()?.contains(event.target)) return;
    const field = event.target.closest(".widget-readout[contenteditable=true]");
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    event.target.toggleAttribute(QUIET, Boolean(field) || (plain && OURS.has(event.key)));
    if (field && event.key === "Enter") {
      event.preventDefault();
      field.blur();
    }
  };
  const label = () => boxes().forEach(speak);
  const left = async (event) => {
    const shown = event.target.closest?.(".widget-readout");
    if (!shown || !here()?.contains(shown)) return;
    const position = boxes().findIndex((box) => box.contains(shown));
    const id = model.get("sliders")[position];
    const slider = id && (await model.widget_manager.get_model(id));
    if (slider?.get("_options_labels")) typed(slider, shown);
  };
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
  document.addEventListener("focusout", left);
  const later = setTimeout(begin, 1000);
  return () => {
    clearTimeout(later);
    watch.disconnect();
    window.removeEventListener("keydown", pressed, true);
    document.removeEventListener("focusin", label);
    document.removeEventListener("focusout", left);
  };
}

export default { render };
