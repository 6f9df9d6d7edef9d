"""From a key press to the changed figure, and pictures a second of words that appear: `make bench-browser`.

Each press asks for a run of 2,000 requests that was not made before, so that none is answered from a cache alone. It
counts from the time stamp of its keydown event to the first animation frame after plotly has changed the figure's DOM.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Locator

from tests.browser.explorer_page import Control, ExplorerPage, explorers
from tests.browser.lab_page import SECOND, opened
from tests.browser.lab_server import Server, chromium, jupyterlab

WARM_UP = 8
PAUSE = 0.3 * SECOND
"""Between single presses, so that each finds everything at rest."""
REPEAT = 30
"""Milliseconds between rapid presses: about what a key held down sends."""
RAPID = 40
GOAL_MS = 150
LAB_02_MS, LIVE = 120, 2 * SECOND
"""Of a move in lab 02; how long it may measure afterwards, where it launches something."""

# pressed: time stamps of the keydown events on a slider; drawn: animation frames that follow a change of the figure.
STOPWATCH = """(plot) => {
  const watch = window.courseWatch = { pressed: [], drawn: [] };
  window.addEventListener("keydown", (event) => watch.pressed.push(event.timeStamp), true);
  let waiting = false;
  new MutationObserver(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; watch.drawn.push(performance.now()); });
  }).observe(plot, { subtree: true, childList: true, attributes: true, characterData: true });
}"""

# The same for a board: a step is answered by the kernel, and a card is laid down by the page alone.
OF_BOARD = """(board) => {
  const watch = window.courseWatch = { pressed: [], drawn: [] };
  window.addEventListener("keydown", (event) => watch.pressed.push(event.timeStamp), true);
  new MutationObserver(() => requestAnimationFrame(() => watch.drawn.push(performance.now())))
    .observe(board, { subtree: true, attributes: true, attributeFilter: ["data-moves", "aria-pressed"] });
}"""
BOARD, GAME, GAMES = "04_static_dynamic_continuous.ipynb", "12nn3nnn4nn5n6nnn", 10
STEP_MS, LAID_MS = 100, 16

WORDS = "01_the_first_token.ipynb"
PICTURES = 20
"""A second: fewer look like a slide show."""
# While it plays: how many pictures were drawn, and in how many seconds.
COUNT = """async (view, milliseconds) => {
  const stage = view.querySelector(".course-stage");
  const [began, first] = [performance.now(), Number(stage.dataset.drawn ?? 0)];
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
  return (Number(stage.dataset.drawn) - first) / ((performance.now() - began) / 1000);
}"""


@dataclass(frozen=True)
class Case:
    """An explorer: its lab, its title, and the slider that is pressed.

    presses: up and down again on a slider of few stops, so many in all; 0: once through all stops, each of which is a
    run of 2,000 requests that was not made before, and then many at once. pause: milliseconds after each press, in
    which an explorer that measures comes to its end.
    """

    lab: str
    explorer: str
    slider: str
    goal: float = GOAL_MS
    presses: int = 0
    pause: float = PAUSE


CASES = (
    Case("02_the_memory_wall.ipynb", "A step on the roofline", "Decodes (sequences)", LAB_02_MS, 60),
    Case("02_the_memory_wall.ipynb", "Weights for all, K and V for each", "Batch (sequences)", LAB_02_MS, 40, LIVE),
    Case("03_littles_law.ipynb", "One engine under load", "Arrival rate (requests/s)"),
    Case("04b_static_dynamic_continuous.ipynb", "The chat under load, 32 slots", "Arrival rate (requests/s)"),
)


@dataclass(frozen=True)
class Measured:
    """Milliseconds. `single` holds one number for each press, `settle` one for each burst of rapid presses."""

    case: Case
    single: list[float]
    settle: list[float]
    rapid_pictures: list[int]
    """How many figures were drawn for each burst of 40 presses."""

    def text(self) -> str:
        """Return the result as sentences."""
        p50, p95 = np.percentile(self.single, (50, 95))
        return (
            f"{self.case.explorer} (lab {self.case.lab[:2]}): {len(self.single)} single presses, p50 {p50:.0f} ms, "
            f"p95 {p95:.0f} ms, longest {max(self.single):.0f} ms (goal: p95 at most {self.case.goal:g} ms)"
        ) + (self._rapid() if self.settle else "")

    def _rapid(self) -> str:
        return (
            f"\n  {RAPID} presses, {REPEAT} ms apart: the last one is shown {max(self.settle):.0f} ms after it "
            f"at the latest ({len(self.settle)} times), with {min(self.rapid_pictures)} to "
            f"{max(self.rapid_pictures)} figures on the way"
        )


class Stopwatch:
    """Key presses on one slider, timed inside the page."""

    def __init__(self, explorer: ExplorerPage, control: Control, pause: float) -> None:
        self.explorer, self.page, self.control, self.pause = explorer, explorer.page, control, pause
        explorer.root.locator(".js-plotly-plot").evaluate(STOPWATCH)

    def _times(self) -> tuple[list[float], list[float]]:
        watch = self.page.evaluate("courseWatch")
        return watch["pressed"], watch["drawn"]

    def _clear(self) -> None:
        self.page.evaluate("courseWatch.pressed.length = courseWatch.drawn.length = 0")

    def single(self, key: str) -> float:
        """Press once and return the milliseconds until the figure has changed."""
        before = self.explorer.picture()
        self.control.target.focus()
        self._clear()
        self.page.keyboard.press(key)
        # Looking at the figure itself would keep the page from drawing it.
        self.page.wait_for_function("courseWatch.drawn.length > 0", polling=100)
        (pressed,), drawn = self._times()
        if self.explorer.picture() == before:
            raise RuntimeError(f"{key} on {self.control.label!r} changes nothing")
        self.page.wait_for_timeout(self.pause)
        return drawn[0] - pressed

    def rapid(self, key: str, back: str) -> tuple[float, int]:
        """Press 40 times and return the milliseconds from the last press to the last change, and the changes in all.

        Raises:
            RuntimeError: what is shown then does not belong to the last setting.
        """
        self._clear()
        self.control.target.focus()
        for _ in range(RAPID):
            self.page.keyboard.press(key)
            self.page.wait_for_timeout(REPEAT)
        self.page.wait_for_timeout(SECOND)
        self.explorer.settle()
        pressed, drawn = self._times()
        shown = self.explorer.numbers()
        self.explorer.press(self.control, back)
        self.explorer.press(self.control, key)
        if self.explorer.numbers() != shown:
            raise RuntimeError(f"after {RAPID} rapid presses {self.control.label!r} shows an older setting")
        return drawn[-1] - pressed[-1], len(drawn)


def up_and_down(watch: Stopwatch, presses: int) -> Iterator[float]:
    """Milliseconds of each press, from one end of the slider to the other and back."""
    key, ends = "ArrowRight", {"Min": "ArrowRight", "Max": "ArrowLeft"}
    for _ in range(WARM_UP + presses):
        for end, away in ends.items():
            if watch.control.target.evaluate(f"(e) => Number(e.ariaValueNow) === Number(e.ariaValue{end})"):
                key = away
        yield watch.single(key)


def measure(browser: Browser, server: Server, case: Case) -> Measured:
    """Run a whole lab, then time one of its explorers."""
    with opened(browser, server, case.lab) as lab:
        lab.run_all()
        explorer = next(found for found in explorers(lab) if found.title == case.explorer)
        explorer.settle()
        controls = {control.label: control for control in explorer.controls()}
        slider = controls[case.slider]
        if case.presses:
            watch = Stopwatch(explorer, slider, case.pause)
            return Measured(case, list(up_and_down(watch, case.presses))[WARM_UP:], [], [])
        other = explorer.controls()[1]
        explorer.press(other, "ArrowRight")
        explorer.press(slider, "Home")
        explorer.page.wait_for_timeout(PAUSE)  # plotly follows marks that moved, which is no answer to the next press
        watch = Stopwatch(explorer, slider, case.pause)
        for _ in range(WARM_UP):
            watch.single("ArrowRight")
        single = []
        while slider.target.evaluate("(e) => Number(e.ariaValueNow) < Number(e.ariaValueMax)"):
            single.append(watch.single("ArrowRight"))
        settle, pictures = [], []
        # Another setting of the next control makes every setting of the slider new again.
        for key, back in (("ArrowLeft", "ArrowRight"), ("ArrowRight", "ArrowLeft")) * 2:
            explorer.press(other, "ArrowRight")
            milliseconds, drawn = watch.rapid(key, back)
            settle.append(milliseconds)
            pictures.append(drawn)
        return Measured(case, single, settle, pictures)


def a_board(browser: Browser, server: Server) -> dict[str, list[float]]:
    """Milliseconds from a key to the board: of steps, and of cards that are laid down."""
    found: dict[str, list[float]] = {"step": [], "laid down": []}
    with opened(browser, server, BOARD) as lab:
        lab.run_all()
        board = lab.page.locator(".course-board").first
        board.evaluate(OF_BOARD)
        for _ in range(GAMES):
            board.focus()
            for key in GAME:
                lab.page.evaluate("courseWatch.pressed.length = courseWatch.drawn.length = 0")
                lab.page.keyboard.press(key)
                lab.page.wait_for_function("courseWatch.drawn.length > 0", polling=50)
                watch = lab.page.evaluate("courseWatch")
                found["step" if key == "n" else "laid down"].append(watch["drawn"][0] - watch["pressed"][0])
            board.get_by_role("button", name="From the start").click()
            lab.page.wait_for_function("(board) => board.dataset.moves === '0'", arg=board.element_handle())
    return found


def pictures_a_second(view: Locator, milliseconds: int = 1_500) -> float:
    """Of a live view that plays; the kernel computes steps beside it until the run is complete."""
    return float(view.evaluate(COUNT, milliseconds))


def words(browser: Browser, server: Server) -> list[float]:
    """Play the live view of lab 01 under each of its policies, and count the pictures."""
    found = []
    with opened(browser, server, WORDS) as lab:
        lab.run_all()
        view = lab.page.locator(".course-words").first
        for policy in ("static", "continuous"):
            view.locator("select").first.select_option(policy)
            view.get_by_role("button", name="Play").click()
            found.append(pictures_a_second(view))
    return found


def machine(browser: Browser) -> dict[str, object]:
    """Return what a reader needs to compare: processor, cores, load before the start, versions."""
    found = Path("/proc/cpuinfo")
    lines = found.read_text().splitlines() if found.exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    packages = ("jupyterlab", "ipywidgets", "anywidget", "plotly", "ipykernel", "numpy")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "chromium": browser.version,
        **{name: version(name) for name in packages},
    }


def main() -> int:
    """Measure every case, print the result, and return 1 if a p95 or the pictures miss the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single number there")
    parser.add_argument("--lab", metavar="NUMBER", default="", help="only this one, and no words")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        about = machine(browser)
        print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)
        if about["load"] > 1.5:
            print("This machine is busy with something else: do not keep these numbers.")
        with jupyterlab(Path(folder)) as server:
            results = []
            for case in (case for case in CASES if case.lab.startswith(options.lab)):
                results.append(measure(browser, server, case))
                print(results[-1].text(), flush=True)
            board = a_board(browser, server) if BOARD.startswith(options.lab) else {}
            for (what, took), goal in zip(board.items(), (STEP_MS, LAID_MS), strict=False):
                p50, p95 = np.percentile(took, (50, 95))
                print(f"Board of lab 04, {what}: {len(took)} keys, p50 {p50:.1f} ms, p95 {p95:.1f} ms, longest "
                      f"{max(took):.1f} ms (goal: p95 at most {goal} ms)")  # fmt: skip
            rates = words(browser, server) if not options.lab else [PICTURES]
            if not options.lab:
                shown = " and ".join(f"{rate:.0f}" for rate in rates)
                print(f"Words on the screen: {shown} pictures a second (goal: at least {PICTURES})")
    report = {
        "machine": about,
        "results": [asdict(result) for result in results],
        "board": board,
        "pictures_a_second": rates,
    }
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return int(any(np.percentile(result.single, 95) > result.case.goal for result in results) or min(rates) < PICTURES)


if __name__ == "__main__":
    sys.exit(main())
