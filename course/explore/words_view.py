"""The view of a live explorer: controls and tasks here, lanes and buttons in the browser (words.js).

The browser asks for steps while it shows a run that is not complete, and only then are some computed: a slice of
`SLICE` seconds a message or two, in whichever thread the kernel handles it. A cell that is cleared, a tab that is
hidden and a page that is closed ask for nothing, so nothing runs on, and no thread is left behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from course.explore.component import script
from course.explore.displayed import Displayed
from course.explore.ghost import Shown
from course.explore.table import html_table
from course.explore.turn import in_turn
from course.lm.watch import Frame

Spoken = Any  # course.explore.words.Spoken, which stands above
WordsExplorer = Any  # in the same file

HERE = Path(__file__).parent
SLICE = 0.025
"""Seconds of computing for one message; a slider that moves waits no longer than that and a step."""
AT_ONCE = 400
"""Frames in one message, if many are there already: a page that was loaded again asks for all."""


class Stage(widgets.Widget):
    """What is played. The browser asks it for frames (see `Drawing` in plot.py for why it is apart from the player)."""

    load: traitlets.Dict = traitlets.Dict().tag(sync=True)
    """run: its number, from 1; 0 if there is none. asked: the prompts. arrival: seconds. slots, padded, policy."""


class Player(anywidget.AnyWidget):
    """Lanes, line and buttons."""

    _esm = script("drawn", "words")
    _css = HERE / "words.css"
    stage_id = traitlets.Unicode().tag(sync=True)


class WordsView(Displayed):
    """One display of the live view. Its result is there once the run on the screen is complete."""

    idle = "move and play nothing"
    tooltip = "Go back to the settings at the start and measure again"

    def __init__(self, explorer: WordsExplorer) -> None:
        super().__init__(explorer)
        self._spoken: Spoken | None = None
        self._number = 0
        self.compared = widgets.HTML()
        self.compared.add_class("course-below")
        self.stage = Stage()
        self.stage.on_msg(self._asked)
        self.player = Player(stage_id=self.stage.model_id or "")
        self._assemble([self.player, self.compared], tasks=bool(explorer.prompts))
        self.root.add_class("course-words")
        self._run()

    def _touched(self) -> None:
        self._still = False

    def _run(self) -> None:
        """Start another run, of which nothing is computed yet; the one before it is dropped."""
        settings = {name: widget.value for name, widget in self.controls.items()}
        self.settings, self.result, self.error, self._spoken = settings, None, None, None
        self._number += 1
        try:
            self._spoken = spoken = self.explorer.begin(settings)
        except Exception as error:
            self._fail(error)
        else:
            self.notice.value = ""
            self.stage.load = {"run": self._number, **spoken.described}
        self._put_side_by_side()
        self._rest.moved()

    def _fail(self, error: Exception) -> None:
        super()._fail(error)
        self._spoken = None
        self.stage.load = {"run": 0}

    @in_turn
    def _asked(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Answer the browser, which has so many frames of a run and asks for more."""
        if not isinstance(content, dict) or content.get("run") != self._number or self._spoken is None:
            return
        has, watch = content.get("has"), self._spoken.watch
        if type(has) is not int or not 0 <= has <= len(watch.frames):
            return
        try:
            if has == len(watch.frames):
                watch.advance(SLICE)
            self._send(has)
            watch.advance(SLICE)  # while the answer is on its way
        except Exception as error:
            self._fail(error)
            return
        if watch.done and self.result is None:
            self._completed()

    def _send(self, has: int) -> None:
        assert self._spoken is not None
        watch = self._spoken.watch
        frames = watch.frames[has : has + AT_ONCE]
        whole = has + len(frames) == len(watch.frames)
        answer = {"run": self._number, "has": has, "frames": [packed(frame) for frame in frames]}
        self.stage.send(answer | {"done": watch.done and whole, "now": watch.now if whole else frames[-1].end})

    def _complete(self) -> None:
        """Compute what is left of the run at once."""
        try:
            while self._spoken is not None and not self._spoken.watch.done:
                self._spoken.watch.advance(SLICE)
        except Exception as error:
            self._fail(error)
        if self._spoken is not None and self.result is None:
            self._completed()

    def _completed(self) -> None:
        assert self._spoken is not None
        self.result = self._spoken
        self.explorer.remember(self.settings, self.result)
        self.explorer.keep_compared(self.settings)
        self._put_side_by_side()
        self._settle(moved=True)

    def _put_side_by_side(self) -> None:
        """The table of the policies at these settings, if the explorer has one."""
        try:
            self.compared.value = html_table(self.explorer.compared(self.settings), "Side by side")
        except Exception as error:
            self._fail(error)

    def _rested(self) -> None:
        moved, self._still = not self._still, True
        self._settle(moved)

    def _settle(self, moved: bool) -> None:
        """Say what changed, and judge the task, once the controls rest and the run is complete."""
        if self.result is None or not self._still or not moved:
            return
        now = Shown(self.settings, self.explorer.rows(self.result))
        first = self._before is None and self.settings == self.explorer.defaults
        self._judge(now, moved=not first)
        self._before = now


def packed(frame: Frame) -> dict[str, Any]:
    """A frame as the browser gets it."""
    return {
        "start": frame.start,
        "end": frame.end,
        "parts": [[part.lane, part.row, part.prefill, part.padding, part.text, part.ended] for part in frame.parts],
        "waiting": list(frame.waiting),
        "sent": list(frame.sent),
    }
