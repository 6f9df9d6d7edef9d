// Texts that stand out too little from what is behind them (WCAG 2 asks for 4.5), each with its ratio.
(root) => {
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const over = ([r, g, b, alpha = 1], below) => [r, g, b].map((v, i) => v * alpha + below[i] * (1 - alpha));
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      layers.push(found);
      if (found.length === 3 || found[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  // In a picture, the box in the same group; in a figure of plotly, the bar of a number and the frame of a label.
  const paper = (element) => {
    const group = element.parentElement;
    if (element.matches(".bartext-outside")) return behind(element);
    const box = group.tagName === "g" && group.querySelector(":scope > rect, :scope > path");
    const look = box && getComputedStyle(box);
    if (!look?.fill?.startsWith("rgb")) return behind(element);
    return over([...parse(look.fill).slice(0, 3), look.opacity * look.fillOpacity * (parse(look.fill)[3] ?? 1)], behind(element));
  };
  const hidden = "[hidden], button:disabled, .course-dead, style, title";
  const poor = [];
  for (const element of root.querySelectorAll("*")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent).join("").trim();
    if (!text || element.closest(hidden) || !element.getClientRects().length) continue;
    const ink = parse(getComputedStyle(element)[element.closest("svg") ? "fill" : "color"]);
    const below = element.closest("svg") ? paper(element) : behind(element);
    const [a, b] = [light(over(ink, below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return poor;
}
