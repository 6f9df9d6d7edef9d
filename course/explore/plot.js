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

// anywidget gives a widget two seconds to load. On a busy machine that can be too short, and then it drops all that the
// kernel sends from there on: the figure would never move again. So the messages are read past it.
async function listen(model) {
  const own = await model.widget_manager.get_model(model.get("own_id"));
  const read = Object.getPrototypeOf(Object.getPrototypeOf(own))._handle_comm_msg;
  own.comm?.on_msg((message) => read.call(own, message));
}

function initialize({ model }) {
  listen(model);
  const entry = library(model.get("version"));
  const bytes = model.get("library");
  if (bytes && bytes.byteLength) load(entry, bytes);
  model.on("msg:custom", (message, buffers) => {
    if (message.plotly) load(entry, buffers[0]);
  });
}

const CONFIG = {
  displaylogo: false,
  // Named one by one: plotly's own set has a button that sends the figure to a web site.
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};

async function render({ model, el }) {
  const entry = library(model.get("version"));
  const box = document.createElement("div");
  box.style.width = "100%";
  box.style.height = `${model.get("plot_layout").height || 380}px`; // the page must not jump when the figure arrives
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", model.get("label"));
  el.style.width = "100%";
  el.appendChild(box);
  const asking = setTimeout(() => entry.started || model.send({ want: "plotly" }), 300);
  const Plotly = await entry.ready;
  clearTimeout(asking);

  let drawing = false;
  let stale = true;
  const draw = async () => {
    stale = true;
    if (drawing) return;
    drawing = true;
    try {
      while (stale) {
        stale = false;
        const layout = structuredClone(model.get("plot_layout"));
        box.style.height = `${layout.height || 380}px`;
        await Plotly.react(box, structuredClone(model.get("traces")), layout, CONFIG);
      }
    } finally {
      drawing = false;
    }
  };
  model.on("change:traces", draw);
  model.on("change:plot_layout", draw);
  await draw();
  // A cell that is drawn out of sight has no width yet, and side bars change it without the window changing.
  const width = new ResizeObserver(() => box.clientWidth && box.clientWidth !== box._fullLayout?.width && draw());
  width.observe(box);
  return () => {
    width.disconnect();
    model.off("change:traces", draw);
    model.off("change:plot_layout", draw);
    Plotly.purge(box);
  };
}

export default { initialize, render };
