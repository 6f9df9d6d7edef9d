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
  if (box.classList.contains("course-stops")) {
    shown.setAttribute("contenteditable", "false"); // ipywidgets does nothing with what is typed there
  } else if (shown.getAttribute("role") !== "textbox") {
    shown.setAttribute("role", "textbox");
    shown.setAttribute("contenteditable", "true");
    shown.setAttribute("tabindex", "0");
    shown.setAttribute("aria-label", `${label}, typed`);
  }
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
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    event.target.toggleAttribute(QUIET, Boolean(field) || (plain && OURS.has(event.key)));
    if (field && event.key === "Enter") {
      event.preventDefault();
      field.blur();
    }
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
  const later = setTimeout(begin, 1000);
  return () => {
    clearTimeout(later);
    watch.disconnect();
    window.removeEventListener("keydown", pressed, true);
    document.removeEventListener("focusin", label);
  };
}

export default { render };
