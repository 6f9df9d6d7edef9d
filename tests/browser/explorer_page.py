"""An explorer (or a form) on the page: its controls moved by keyboard, its figure compared before and after."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator
from playwright.sync_api import TimeoutError as NotInTime

from tests.browser.lab_page import IDLE, SECOND, LabPage, show

PATIENCE = 3 * SECOND
"""How long a key press may take before the next one is tried; a move is drawn within a tenth of a second or so."""
BUSY = 10
"""So often a figure gets its patience again while the kernel still computes: some explorers measure the machine."""
POLLING = 50
"""Milliseconds between two looks at a figure; each takes a few."""


@dataclass(frozen=True)
class Control:
    """One control of an explorer: what it is called, its kind ("slider", "choice" or "toggle"), where the keys go."""

    label: str
    kind: str
    target: Locator


class ExplorerPage:
    """One displayed explorer."""

    def __init__(self, lab: LabPage, root: Locator) -> None:
        self.lab, self.page, self.root = lab, lab.page, root
        show(root)
        root.locator(".js-plotly-plot svg.main-svg").first.wait_for()
        self.title = root.locator(".course-head b").first.text_content()

    def controls(self) -> list[Control]:
        """Return the controls in the order of the page."""
        found = []
        for box in self.root.locator(".course-controls > *").all():
            for kind, inner in (("slider", "[role=slider]"), ("choice", "select"), ("toggle", "input[type=checkbox]")):
                if box.locator(inner).count():
                    found.append(Control(box.locator("label").last.text_content().strip(), kind, box.locator(inner)))
                    break
        return found

    def picture(self) -> str:
        """Return what the figure looks like, as a hash of the drawn SVG."""
        return self.root.evaluate("(root) => courseProbe.picture(root)")

    def numbers(self) -> str:
        """Return the table of the setting that is shown, without what stood before: unlike the figure, no ghost."""
        return self.root.evaluate(
            """(root) => [...root.querySelectorAll(".course-grid")].map((table) => {
              const copy = table.cloneNode(true);
              copy.querySelectorAll(".course-before").forEach((part) => part.remove());
              return copy.textContent;
            }).join(" ")"""
        )

    def value(self, control: Control) -> str:
        """Return where a control stands."""
        how = {"slider": "e.ariaValueNow", "choice": "e.value", "toggle": "String(e.checked)"}
        return control.target.evaluate(f"(e) => {how[control.kind]}")

    def press(self, control: Control, key: str) -> bool:
        """Press a key with the focus on a control; True if the control moved and the figure changed with it."""
        value, picture = self.value(control), self.picture()
        control.target.focus()
        self.page.keyboard.press(key)
        return self.value(control) != value and self.changed(picture)

    def changed(self, before: str, patience: float = PATIENCE) -> bool:
        """Wait until the figure differs from `before` and has come to rest; False if it stays as it was."""
        if not self._comes_to("([root, before]) => courseProbe.picture(root) !== before", before, patience):
            return False
        self.settle()
        return True

    def _comes_to(self, condition: str, picture: str, patience: float) -> bool:
        """Wait for what is said of the root and a picture, longer while the kernel computes; False if it stays out."""
        root = self.root.element_handle()
        for _ in range(BUSY):
            try:
                self.page.wait_for_function(condition, arg=[root, picture], timeout=patience, polling=POLLING)
                return True
            except NotInTime:
                if self.page.evaluate(IDLE):
                    return False
        return False

    def settle(self) -> None:
        """Wait until the kernel has answered everything and the figure looks the same for a few frames."""
        self.root.evaluate("(root) => courseProbe.settled(root)")

    def moves(self, control: Control) -> bool:
        """Move a control by keyboard as far as it takes until the figure changes; False if it never does."""
        keys = {
            "slider": ["ArrowRight"] * 2 + ["End", "Home"],
            "choice": ["ArrowDown"] * 2 + ["End", "Home"],
            "toggle": [" "],
        }[control.kind]
        return any(self.press(control, key) for key in keys)

    def reset(self) -> None:
        """Press Reset."""
        self.root.locator("button", has_text="Reset").click()
        self.settle()

    def becomes(self, picture: str) -> bool:
        """Wait until the figure looks like `picture`; False if it does not within the patience."""
        return self._comes_to("([root, wanted]) => courseProbe.picture(root) === wanted", picture, PATIENCE)

    def height(self) -> float:
        """Return the height of it in pixels, down to the sentence that says what changed; warnings stand below that."""
        return self.root.evaluate(
            """(root) => {
              const shown = [...root.querySelectorAll(".course-beside, .course-below, .course-changed")]
                .map((part) => part.getBoundingClientRect())
                .filter((box) => box.height > 0); // what is not displayed has no place, and lies at 0
              return Math.max(...shown.map((box) => box.bottom)) - root.getBoundingClientRect().top;
            }"""
        )

    def ghosts(self) -> Locator:
        """Return the marks of the setting before that are shown."""
        return self.root.locator(".course-ghost path")

    def hold(self) -> Locator:
        """Return the button that shows the picture before, where bars or tiles leave no room for a ghost."""
        return self.root.get_by_role("button", name="Hold to see before")

    def said_by_bars(self, within: str = "") -> list[str]:
        """Return what stands in the bars of the figure and above its panels."""
        return self.root.locator(f"{within} .bars text, {within} .annotation").all_text_contents()

    def tasks_by_show_me(self) -> dict[str, float]:
        """Go through all tasks, missing each twice before it is shown, and return the heights on the way."""
        heights = {}
        tasks = self.root.locator(".course-tasks")
        button = {name: tasks.get_by_role("button", name=name) for name in ("Check", "Show me", "Next task")}
        while tasks.count():
            name = tasks.locator(".widget-html-content b").first.text_content()
            heights[f"{name}, open"] = self.height()
            for miss in range(20):
                if button["Show me"].count() or tasks.locator(".course-right").count():
                    break
                self._miss(tasks, button["Check"], miss)
            heights[f"{name}, missed"] = self.height()
            if button["Show me"].count():
                button["Show me"].click()
                tasks.locator(".course-right").wait_for()
                self.settle()
            heights[f"{name}, answered"] = self.height()
            if not button["Next task"].count():
                return heights
            button["Next task"].click()
            self.page.wait_for_timeout(PATIENCE / 10)
        return heights

    def _miss(self, tasks: Locator, check: Locator, number: int) -> None:
        """Give a wrong answer, or rest where the task is not solved."""
        options = tasks.locator("input[type=radio]")
        if options.count():
            options.first.click()
            check.click()
        elif check.count():
            tasks.locator("input[type=text]").fill(f"{number + 123456}")
            check.click()
        else:
            self.press(self.controls()[-1], ("ArrowLeft", "ArrowRight")[number % 2])
            self.page.wait_for_timeout(PATIENCE / 3)
        self.page.wait_for_timeout(PATIENCE / 15)

    def failed(self) -> bool:
        """Whether the figure is faded because the last setting failed."""
        return self.root.locator(".course-stale").count() > 0

    def notices(self) -> list[str]:
        """Return the sentences the explorer shows: warnings of the run and failures."""
        return [text.strip() for text in self.root.locator(".course-notice[role=status]").all_text_contents()]


def explorers(lab: LabPage) -> list[ExplorerPage]:
    """Return the explorers of a notebook that has run, but for live views and boards, which have no figure."""
    shown = lab.page.locator(".course-explorer:not(.course-words):has(.course-controls)")
    return [ExplorerPage(lab, root) for root in shown.all()]
