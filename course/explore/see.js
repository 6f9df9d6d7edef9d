// Words light up what they name: over [request 5](#see:request-5) in a text, or over an entry of a legend, every figure
// of the page dims all but request 5, by hover and by focus. A mark says what it is in data-see="request-5 prefill"; a
// trace of plotly in its `meta.see`, or else by its name in the legend. This text stands in front of each component that
// has figures.

const SEE = 'a[href*="#see:"], [data-lights], .js-plotly-plot .legend .traces';

// "KV blocks" is called kv-blocks.
function seeNames(trace) {
  const said = trace?.meta?.see ?? trace?.name;
  if (typeof said !== "string") return [];
  return trace.meta?.see ? said.split(" ") : [said.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")];
}

function seeWords() {
  if (globalThis.courseSees) return;
  globalThis.courseSees = true;
  const style = document.createElement("style");
  style.textContent = ".course-dim { opacity: 0.2 !important; } .course-lights { cursor: help; }";
  document.head.append(style);
  const linkOf = (event) => event.target.closest?.(SEE);
  const wanted = (link) => link.dataset.lights ?? link.getAttribute("href")?.split("#see:")[1] ?? seeNames(link.__data__?.[0]?.trace)[0];
  // [element, the names it goes by] of every mark, figure by figure
  const figures = () => [
    ...[...document.querySelectorAll(".course-figure")].map((figure) =>
      [...figure.querySelectorAll("[data-see]")].map((mark) => [mark, mark.dataset.see.split(" ")])),
    ...[...document.querySelectorAll(".js-plotly-plot")].map((plot) =>
      [...plot.querySelectorAll(".cartesianlayer .trace")].map((mark) => [mark, seeNames(mark.__data__?.[0]?.trace)])),
  ];
  const dark = () => document.querySelectorAll(".course-dim").forEach((mark) => mark.classList.remove("course-dim"));
  const lit = (event) => {
    const link = linkOf(event);
    if (!link) return;
    dark();
    const name = wanted(link);
    for (const marks of figures()) {
      if (!marks.some(([, names]) => names.includes(name))) continue;
      for (const [mark, names] of marks) mark.classList.toggle("course-dim", !names.includes(name));
    }
  };
  const unlit = (event) => linkOf(event) && dark();
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, lit);
  for (const kind of ["mouseout", "focusout"]) document.addEventListener(kind, unlit);
  // A link to a mark leads nowhere: neither the page nor its address moves.
  document.addEventListener("click", (event) => {
    if (!linkOf(event)?.matches("a")) return;
    event.preventDefault();
    event.stopPropagation();
  }, true);
}

