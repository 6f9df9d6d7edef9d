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
    """An explorer that serves 2,000 requests at every move: its lab, its title, and the slider that is pressed."""

    lab: str
    explorer: str
    slider: str


CASES = (
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
            f"p95 {p95:.0f} ms, longest {max(self.single):.0f} ms (goal: p95 at most {GOAL_MS} ms)\n"
            f"  {RAPID} presses, {REPEAT} ms apart: the last one is shown {max(self.settle):.0f} ms after it "
            f"at the latest ({len(self.settle)} times), with {min(self.rapid_pictures)} to "
            f"{max(self.rapid_pictures)} figures on the way"
        )


class Stopwatch:
    """Key presses on one slider, timed inside the page."""

    def __init__(self, explorer: ExplorerPage, control: Control) -> None:
        self.explorer, self.page, self.control = explorer, explorer.page, control
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
        self.page.wait_for_timeout(PAUSE)
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


def measure(browser: Browser, server: Server, case: Case) -> Measured:
    """Run a whole lab, then time one of its explorers."""
    with opened(browser, server, case.lab) as lab:
        lab.run_all()
        explorer = next(found for found in explorers(lab) if found.title == case.explorer)
        explorer.settle()
        controls = {control.label: control for control in explorer.controls()}
        slider = controls[case.slider]
        other = explorer.controls()[1]
        explorer.press(other, "ArrowRight")
        explorer.press(slider, "Home")
        explorer.page.wait_for_timeout(PAUSE)  # plotly follows marks that moved, which is no answer to the next press
        watch = Stopwatch(explorer, slider)
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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        about = machine(browser)
        print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)
        if about["load"] > 1.5:
            print("This machine is busy with something else: do not keep these numbers.")
        with jupyterlab(Path(folder)) as server:
            results = []
            for case in CASES:
                results.append(measure(browser, server, case))
                print(results[-1].text(), flush=True)
            rates = words(browser, server)
            shown = " and ".join(f"{rate:.0f}" for rate in rates)
            print(f"Words on the screen: {shown} pictures a second (goal: at least {PICTURES})")
    report = {"machine": about, "results": [asdict(result) for result in results], "pictures_a_second": rates}
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return int(any(np.percentile(result.single, 95) > GOAL_MS for result in results) or min(rates) < PICTURES)


if __name__ == "__main__":
    sys.exit(main())
