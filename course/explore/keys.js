// The browser's half of keys.py, for everything inside the nearest .course-keys.

// JupyterLab reads these keys first (arrows select cells) unless the focused element has the attribute below.
const OURS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown", " ", "Enter"]);
const QUIET = "data-lm-suppress-shortcuts";

function render({ el }) {
  el.style.display = "none";
  let root = null;

  const pressed = (event) => {
    root = root || el.closest(".course-keys");
    if (!root || !root.contains(event.target)) return;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    event.target.toggleAttribute(QUIET, plain && OURS.has(event.key));
  };
  // Sliders of ipywidgets have a visible label that screen readers are not told of.
  const label = () => {
    root = root || el.closest(".course-keys");
    for (const handle of root ? root.querySelectorAll("[role=slider]:not([aria-label])") : []) {
      const text = handle.closest(".jupyter-widgets.widget-inline-hbox")?.querySelector(".widget-label")?.textContent;
      if (text) handle.setAttribute("aria-label", text);
    }
  };
  window.addEventListener("keydown", pressed, true);
  document.addEventListener("focusin", label);
  const later = setTimeout(label, 1000);
  return () => {
    clearTimeout(later);
    window.removeEventListener("keydown", pressed, true);
    document.removeEventListener("focusin", label);
  };
}

export default { render };
