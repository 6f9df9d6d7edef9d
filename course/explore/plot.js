// The browser's half of plot.py: draw a plotly figure, and redraw it whenever the kernel sends another.
// plotly.js (5 MB) is loaded once for a page, however many figures it shows. The first figure of a kernel brings it along;
// a figure that finds it missing asks for it.

function library(version) {
  const key = `course-plotly-${version}`;
  if (!globalThis[key]) {
    const entry = { started: false };
    entry.ready = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
    globalThis[key] = entry;
  }
  return globalThis[key];
}

async function load(entry, bytes) {
  if (entry.started) return;
  entry.started = true;
  const url = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
  try {
    await import(url);
    entry.resolve(globalThis.Plotly);
  } catch (error) {
    entry.reject(error);
  } finally {
    URL.revokeObjectURL(url);
  }
}

// What to draw, and plotly.js itself, are in a plain widget without a view (see plot.py for the reason).
function drawingOf(model) {
  return model.widget_manager.get_model(model.get("drawing_id"));
}

const CONFIG = {
  displaylogo: false,
  // Named one by one: plotly's own set has a button that sends the figure to a web site.
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};

async function plotly(drawing) {
  const entry = library(drawing.get("version"));
  const take = () => {
    const bytes = drawing.get("plotlyjs");
    if (bytes?.byteLength) load(entry, bytes);
  };
  take();
  drawing.on("change:plotlyjs", take);
  const asking = setTimeout(() => entry.started || drawing.send({ want: "plotly" }), 300);
  try {
    return await entry.ready;
  } finally {
    clearTimeout(asking);
    drawing.off("change:plotlyjs", take);
  }
}

// The room that plotly leaves around the axes, as a text; nothing before the first drawing.
function margins(box) {
  const { l, r, t, b } = box._fullLayout?._size ?? {};
  return l === undefined ? "" : `${l} ${r} ${t} ${b}`;
}

async function render({ model, el }) {
  const drawing = await drawingOf(model);
  const box = document.createElement("div");
  box.style.width = "100%";
  box.style.height = `${drawing.get("plot_layout").height || 380}px`; // the page must not jump when the figure arrives
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", drawing.get("label"));
  el.style.width = "100%";
  el.appendChild(box);
  const Plotly = await plotly(drawing);

  let busy = false;
  let stale = true;
  const draw = async () => {
    stale = true;
    if (busy) return;
    busy = true;
    try {
      while (stale) {
        stale = false;
        const layout = structuredClone(drawing.get("plot_layout"));
        box.style.height = `${layout.height || 380}px`;
        const before = margins(box);
        await Plotly.react(box, structuredClone(drawing.get("traces")), layout, CONFIG);
        // Plotly measures labels of the old figure when it makes room for those of the new one.
        if (before && margins(box) !== before) await Plotly.redraw(box);
      }
    } finally {
      busy = false;
    }
  };
  drawing.on("change", draw); // once, when traces and layout come together
  await draw();
  // A cell that is drawn out of sight has no width yet, and side bars change it without the window changing.
  const width = new ResizeObserver(() => box.clientWidth && box.clientWidth !== box._fullLayout?.width && draw());
  width.observe(box);
  return () => {
    width.disconnect();
    drawing.off("change", draw);
    Plotly.purge(box);
  };
}

export default { render };
