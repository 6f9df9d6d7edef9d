// A figure is drawn when its slide is shown, and a full slide gets smaller letters, 16 px at the least.
const LARGEST = 30, LEAST = 16, HEIGHT = 690;
function show(slide) {
  for (const place of slide.querySelectorAll(".figure:empty")) {
    const figure = JSON.parse(place.dataset.figure);
    figure.layout.autosize = true;
    delete figure.layout.width;
    delete figure.layout.height;
    Plotly.newPlot(place, figure.data, figure.layout, { staticPlot: true, responsive: false });
  }
  for (let size = LARGEST; size >= LEAST; size--) {
    slide.style.fontSize = size + "px";
    if (slide.scrollHeight <= HEIGHT && slide.scrollWidth <= slide.clientWidth + 1) break;
  }
}
Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", slideNumber: "c/t", controls: false,
});
Reveal.on("ready", (event) => show(event.currentSlide));
Reveal.on("slidechanged", (event) => show(event.currentSlide));
Reveal.on("pdf-ready", () => document.querySelectorAll(".slides section:not(.stack)").forEach(show));
