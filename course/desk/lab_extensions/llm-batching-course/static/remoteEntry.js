// Two things: figures follow the theme, in a notebook that was opened and not run too; and the start page stays fresh.
// The course writes its start page again when a lab is saved (course/desk/pages.py). JupyterLab does not look at a file
// that is open; this loads the page again when a lab was saved, and when somebody comes back to it.
(() => {
  const figures = document.createElement("link");
  Object.assign(figures, { id: "course-figures", rel: "stylesheet", href: new URL("figures.css", document.currentScript.src) });
  document.head.append(figures);

  const PAGE = /(^|\/)START(-\d+)?\.md$/;

  async function refresh(app) {
    for (const widget of app.shell.widgets("main")) {
      const context = widget.context;
      if (!context || !PAGE.test(context.path) || context.model.dirty) continue;
      try {
        const file = await app.serviceManager.contents.get(context.path, { content: false });
        if (file.last_modified !== context.contentsModel?.last_modified) await context.revert();
      } catch {
        // The server is away, or the page is gone: what is shown stays.
      }
    }
  }

  const plugin = {
    id: "llm-batching-course:start-page",
    description: "Shows the start page of the course as it was last written.",
    autoStart: true,
    activate: (app) => {
      const again = () => void refresh(app);
      app.shell.currentChanged?.connect(again);
      app.serviceManager.contents.fileChanged.connect((_, change) => {
        if (change.type === "save" && !PAGE.test(change.newValue?.path ?? "")) again();
      });
      window.addEventListener("focus", again);
    },
  };

  // What JupyterLab asks of a module that was built apart from it (webpack's module federation); nothing is shared.
  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB["llm-batching-course"] = { init: () => {}, get: async () => () => ({ __esModule: true, default: plugin }) };
})();
