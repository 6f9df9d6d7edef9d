"""One notebook in JupyterLab, used through its page: menus, cells, keys. What the browser complains of is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, ElementHandle, Locator, Page

from tests.browser.lab_server import HEIGHT, WIDTH, Server

PROBE = Path(__file__).parent / "probe.js"
SECOND = 1000  # playwright counts in milliseconds
SETTLE = 1.5 * SECOND
"""JupyterLab goes on drawing for about a second after the kernel has become idle."""

LOCAL = re.compile(r"(https?|wss?)://127\.0\.0\.1[:/]|(data|blob|about):")
IDLE = "document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'"
KERNEL = "document.querySelector('.jp-Toolbar-kernelName')?.textContent.includes('Python')"
RUNNING = "[...document.querySelectorAll('.jp-Notebook .jp-InputPrompt')].some(p => p.textContent.includes('[*]'))"

EXCUSED = {"[anywidget] Failed to initialize model."}
"""What a machine says that needs two seconds to load a widget: explorers work all the same (test_slow_machine.py)."""

PAGES: WeakKeyDictionary[Browser, Page] = WeakKeyDictionary()
"""The page of each browser that shows one notebook after the other."""

FAULTS = ("application/vnd.jupyter.error", "application/vnd.jupyter.stderr")


class LabPage:
    """A notebook open in JupyterLab.

    Attributes:
        complaints: console errors and uncaught exceptions of the page, as texts, but for those in EXCUSED.
        outside: addresses asked for that are not on 127.0.0.1.
        sources: the source of each cell, as the file had it.
    """

    def __init__(self, page: Page, server: Server, name: str) -> None:
        self.page, self.server, self.name = page, server, name
        self.complaints: list[str] = []
        self.outside: list[str] = []
        notebook = json.loads((server.labs / name).read_text(encoding="utf-8"))
        self.cells = notebook["cells"]
        self.sources = ["".join(cell["source"]) for cell in self.cells]
        self._listeners = {
            "console": lambda said: said.type == "error" and self.complaints.append(f"{said.text} {said.location}"),
            "pageerror": lambda error: str(error) in EXCUSED or self.complaints.append(str(error)),
            "request": lambda request: self._asked(request.url),
            "websocket": lambda socket: self._asked(socket.url),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def _asked(self, url: str) -> None:
        if not LOCAL.match(url):
            self.outside.append(url)

    @property
    def address(self) -> str:
        """Where JupyterLab opens without what was open before."""
        return f"{self.server.url}lab?token={self.server.token}&reset"

    def leave(self) -> None:
        """Listen no more to the page."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def open(self, address: str = "") -> None:
        """Open JupyterLab if an address is given, then the notebook from its list of files; wait for its kernel."""
        if address:
            self.page.goto(address)
        self.page.locator(".jp-DirListing-item", has_text=re.compile(f"^{re.escape(self.name)}")).dblclick()
        count = f"document.querySelectorAll('.jp-Notebook .jp-Cell').length === {len(self.cells)}"
        self.page.wait_for_function(f"{count} && {KERNEL} && {IDLE}")

    def menu(self, menu: str, entry: str) -> None:
        """Choose an entry of the menu bar."""
        self.page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{menu}$")).click()
        self.page.locator(".lm-Menu-item", has_text=re.compile(f"^{re.escape(entry)}")).first.click()

    def run_all(self) -> None:
        """Run every cell from the menu and wait until the page is at rest."""
        self.page.locator(".jp-Notebook").evaluate("(notebook) => courseProbe.watch(notebook)")
        self.menu("Run", "Run All Cells")
        self._ran(minutes=3)
        self.page.wait_for_timeout(SETTLE)

    def _ran(self, minutes: float) -> None:
        """Wait until what `courseProbe.watch` was told to watch has begun to run and no cell waits any more."""
        done = f"courseProbe.began && !({RUNNING}) && {IDLE}"
        self.page.wait_for_function(done, timeout=minutes * 60 * SECOND, polling=50)

    def restart_kernel(self) -> None:
        """Restart the kernel from the menu and wait until it is idle again."""
        self.menu("Kernel", "Restart Kernel…")
        self.page.locator(".jp-Dialog button", has_text=re.compile("^Restart$")).click()
        self.page.wait_for_function(f"!document.querySelector('.jp-Dialog') && !({IDLE})")
        self.page.wait_for_function(IDLE)

    def find(self, part: str) -> int:
        """Return the position of the code cell whose source contains `part`.

        Raises:
            LookupError: not exactly one code cell does.
        """
        code = [cell["cell_type"] == "code" for cell in self.cells]
        found = [index for index, source in enumerate(self.sources) if part in source and code[index]]
        if len(found) != 1:
            raise LookupError(f"{len(found)} code cells of {self.name} contain {part!r}: the test needs exactly one")
        return found[0]

    def cell(self, index: int) -> Locator:
        """Return a cell, scrolled into sight."""
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(index)
        show(cell)
        return cell

    def run_cell(self, where: int | str) -> Locator:
        """Run one cell, by position or by a part of its source, and return its output area when it has ended."""
        cell = self.cell(self.find(where) if isinstance(where, str) else where)
        cell.evaluate("(cell) => courseProbe.watch(cell)")
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        self._ran(minutes=1)
        show(cell)
        return cell.locator(".jp-OutputArea").first

    def type_at(self, index: int, line: str, *keys: str, text: str) -> None:
        """Click on the line of a cell that reads `line` (whatever its indentation), press the keys, type the text."""
        editor = self.cell(index).locator(".cm-line")
        editor.filter(has_text=re.compile(rf"^\s*{re.escape(line)}\s*$")).last.click()
        for key in keys:
            self.page.keyboard.press(key)
        self.page.keyboard.type(text)

    def room(self) -> float:
        """Return how many pixels of the notebook can be seen at a time."""
        return self.page.locator(".jp-WindowedPanel-outer").first.evaluate("(panel) => panel.clientHeight")

    def count(self, call: str) -> int:
        """Return how often the code of the notebook contains the call that the pattern `call` describes."""
        return sum(
            len(re.findall(call, source))
            for source, cell in zip(self.sources, self.cells, strict=True)
            if cell["cell_type"] == "code"
        )

    def faults(self) -> list[str]:
        """Return the error outputs and everything on stderr, each with the number of its cell."""
        return self.page.evaluate(
            """(faults) => [...document.querySelectorAll('.jp-Notebook .jp-Cell')].flatMap((cell, index) =>
                 [...cell.querySelectorAll('.jp-OutputArea-output')]
                   .filter((output) => faults.includes(output.dataset.mimeType))
                   .map((output) => `cell ${index + 1}: ${output.textContent.trim().slice(-400)}`))""",
            list(FAULTS),
        )


def show(element: Locator | ElementHandle) -> None:
    """Bring an element to the top of what is seen, and wait until it stays there."""
    element.evaluate("(element) => courseProbe.show(element)")


@contextmanager
def opened(browser: Browser, server: Server, name: str, script: str = "") -> Iterator[LabPage]:
    """Open a notebook in a fresh profile; afterwards close the page and end the kernels. `script` runs before it."""
    page = new_page(browser, script)
    try:
        lab = LabPage(page, server, name)
        lab.open(lab.address)
        yield lab
    finally:
        page.context.close()
        server.stop_kernels()


@contextmanager
def opened_next(browser: Browser, server: Server, name: str) -> Iterator[LabPage]:
    """Open a notebook in the JupyterLab that showed the one before; afterwards close the notebook and end the kernels.

    To load JupyterLab takes more CPU time than to run most labs. Its workspace is not the one of a fresh profile.
    """
    page = PAGES.get(browser)
    if page is None or page.is_closed():
        page = PAGES[browser] = new_page(browser)
        page.goto(f"{server.url}lab/workspaces/tests?token={server.token}&reset")
        page.wait_for_function("window.jupyterapp?.restored.then(() => true)")
    lab = LabPage(page, server, name)
    page.evaluate("jupyterapp.commands.execute('filebrowser:refresh')")
    try:
        lab.open()
        yield lab
        page.evaluate("[...jupyterapp.shell.widgets('main')].forEach((widget) => widget.dispose())")
    except BaseException:  # whatever stands there, the next one begins afresh
        page.context.close()
        raise
    finally:
        lab.leave()
        server.stop_kernels()


def new_page(browser: Browser, script: str = "") -> Page:
    """Return a page in a fresh profile. `script` runs before everything else on it."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    context.set_default_timeout(60 * SECOND)
    context.add_init_script(path=PROBE)
    context.add_init_script(script)
    return context.new_page()
