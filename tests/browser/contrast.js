// Texts that stand out too little from what is behind them (WCAG 2 asks for 4.5), each with its ratio.
(root) => {
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] > 0.5) return found;
    }
    return [255, 255, 255];
  };
  // In a picture, the box in the same group.
  const paper = (element) => {
    const box = element.parentElement.tagName === "g" && element.parentElement.querySelector("rect");
    const fill = box ? getComputedStyle(box).fill : "";
    return fill.startsWith("rgb") ? parse(fill) : behind(element);
  };
  const hidden = "[hidden], button:disabled, .course-dead, style, title";
  const poor = [];
  for (const element of root.querySelectorAll("*")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent).join("").trim();
    if (!text || element.closest(hidden) || !element.getClientRects().length) continue;
    const ink = parse(getComputedStyle(element)[element.closest("svg") ? "fill" : "color"]);
    const [a, b] = [light(ink), light(paper(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return poor;
}
