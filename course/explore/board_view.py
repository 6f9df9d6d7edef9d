"""A game in a notebook: cards that are laid into slots, a step at a time, and afterwards the table of who did how well.

    Match(GAME)                                      # to be played by hand
    Match(GAME, own=played(GAME, policy), name=...)  # a learner's policy has played, and is watched

The browser's half is board.js. What nobody knows yet never leaves the kernel: lengths of answers, requests that are
still to come, and rivals before the first finished game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import anywidget
import ipywidgets as widgets
import traitlets

from course.engine.frame import Frame
from course.explore import board_text
from course.explore.board import MOST_STEPS, Board, Game, Refused, played
from course.explore.component import script
from course.explore.scores import kind, values, verdict
from course.explore.style import EXPLORER, dead
from course.explore.turn import in_turn

HERE = Path(__file__).parent
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
BEGIN = "Click, drag, or press the number of a waiting request to lay it into a free slot; then take the step."


Played = tuple[Board, Refused | None]


class Record(Protocol):
    """Where a game is kept. `course.exercises.GameRecord` keeps it in a learner's progress."""

    def read(self) -> Any:
        """Return what was kept last, or None."""

    def keep(self, entry: dict[str, Any]) -> None:
        """Keep this, made of plain JSON values."""


class Memory:
    """A record that lasts as long as the game's object."""

    def __init__(self) -> None:
        self._entry: Any = None

    def read(self) -> Any:
        """See Record."""
        return self._entry

    def keep(self, entry: dict[str, Any]) -> None:
        """See Record."""
        self._entry = entry


class BoardState(widgets.Widget):
    """What lies on the board (apart from the widget that draws it, see `Drawing` in plot.py)."""

    board: traitlets.Dict = traitlets.Dict().tag(sync=True)


class BoardCanvas(anywidget.AnyWidget):
    """Draws a BoardState, and says what was laid down."""

    _esm = script("see", "drawn", "board_picture", "board")
    _css = HERE / "board.css"
    state_id = traitlets.Unicode().tag(sync=True)


class Match:
    """A game to be shown. End a cell with one.

    game: what is played. record: where it is kept. own: how a policy of the learner's played it, as `played` returns
    it; then nobody plays by hand. name: what that policy is called.
    """

    def __init__(
        self, game: Game, record: Record | None = None, own: Played | None = None, name: str = "yours"
    ) -> None:
        self.game, self.record, self.own, self.name = game, record or Memory(), own, name
        self.board, self.best = self._left_off()
        self.said = ""
        self._count = 0
        self._played: dict[str, Played] = {name: own} if own else {}

    def _left_off(self) -> tuple[Board, Board | None]:
        """The board as it was left, and the best finished one; fresh ones for what cannot be read."""
        kept = self.record.read()
        kept = kept if isinstance(kept, dict) else {}
        now, best = (_replayed(self.game, kept.get(name)) for name in ("moves", "best"))
        return now or Board(self.game), best if best is not None and best.over else None

    def text(self) -> str:
        """The game in words, the same whatever was played; of a function that plays, what it did."""
        if self.own is None:
            return board_text.rules(self.game)
        return board_text.watched(self.name, *self._of(self.name))

    __repr__ = text

    @cached_property
    def _state(self) -> BoardState:
        """One for all displays, so that they show the same."""
        state = BoardState(board=self._described())
        state.on_msg(self._asked)
        return state

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        self._state.board = self._described()
        canvas = BoardCanvas(state_id=self._state.model_id or "")
        self.root = widgets.VBox([widgets.HTML(EXPLORER + dead("play nothing")), canvas])
        self.root.add_class("course-explorer")
        view = {"version_major": 2, "version_minor": 0, "model_id": self.root.model_id}
        return {"text/plain": self.text(), WIDGET_VIEW: view}

    # What is played

    @in_turn
    def play(self, steps: Sequence[Sequence[int] | Mapping[int, int]]) -> board_text.Told:
        """A game from its start, without the board: what is laid down in each step. Returns what happened, as text.

        A step is a list of requests, by the numbers on their cards, that get what they need, or {request: tokens}; one
        with a minus sign is sent away. What follows a step that cannot be is not played.
        """
        self.board, told = Board(self.game), []
        for number, step in enumerate(steps, start=1):
            try:
                self.board.play(board_text.move_of(step, self.board))
            except Refused as refused:
                told.append(f"Step {number} cannot be: {refused}.")
                break
            told.append(self._happened(self.board.frames[-1]))
            if self.board.over:
                told.append(self._ended())
                break
        self._keep()
        self.said = told[-1] if told else ""
        self._state.board = self._described()
        return board_text.Told("\n".join(told))

    @in_turn
    def _asked(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Do what the browser asks for; anything else is answered with the board as it stands."""
        content, broken = content if isinstance(content, dict) else {}, None
        moves = len(self.board.moves)
        try:
            if "play" in content and not self.board.over and self.own is None:
                frame = self.board.play(content["play"])
                self.said = self._ended() if self.board.over else self._happened(frame)
            elif content.get("undo") is True and moves:
                self.board.undo()
                self.said = "One step back."
            elif content.get("again") is True:
                self.board, self.said = Board(self.game), BEGIN
        except Refused as refused:
            why = f"nobody would run in it: {self._instead(content['play'])}" if refused.rule == "idle" else refused
            self.said = f"That step cannot be: {why}."
            broken = {"rule": refused.rule, "rows": list(refused.rows)}
        if len(self.board.moves) != moves:
            self._keep()
        self._state.board = self._described(broken)

    def _instead(self, move: Any) -> str:
        """What to do where nobody would run."""
        away = ", or keep one" if move.get("preempt") else ""
        return "give tokens to somebody" if "tokens" in self.game.hand else f"lay a request into a slot first{away}"

    def _keep(self) -> None:
        if self.board.over and (self.best is None or values(self.board) < values(self.best)):
            self.best = Board(self.game, moves=self.board.moves)
        best = self.best.moves if self.best else None
        self.record.keep({"moves": list(self.board.moves), "best": best})

    def _of(self, name: str) -> Played:
        """A rival, or the learner's policy, from the first to the last step."""
        if name not in self._played:
            self._played[name] = played(self.game, self.game.rivals[name]())
        return self._played[name]

    # What is said

    def _happened(self, frame: Frame) -> str:
        """One step in words."""
        game, board = self.game, self.board
        count = len(board.frames)
        words = [f"Step {count}, until {game.time(frame.end)}."]
        if game.unit == "steps" and frame.end == int(frame.end):  # those in which nobody ran count as well
            first, last = int(frame.start) + 1, int(frame.end)
            words = [f"Step {last}." if first == last else f"Steps {first} to {last}: nobody ran."]
        answered = [row for row, at in board.answered.items() if at == frame.end]
        came = [row for row, ask in enumerate(game.asks) if frame.start < ask.arrival <= frame.end]
        for rows, one, many in ((answered, "is answered", "are answered"), (came, "has come", "have come")):
            if rows:
                names = " and ".join(str(row + 1) for row in rows)
                words.append(f"Request{'s' if len(rows) > 1 else ''} {names} {many if len(rows) > 1 else one}.")
        free, line = game.max_num_seqs - len(board.lanes), len(board.waiting)
        words.append(f"{free or 'No'} slot{'s' if free != 1 else ''} free, {line or 'nobody'} in line.")
        return " ".join(words)

    def _ended(self) -> str:
        """How the board that is over compares with each rival, in all scores."""
        mine, game = values(self.board), self.game
        said = [verdict(game, mine, values(board), name) for name in game.rivals for board, _ in [self._of(name)]]
        if game.best is not None and mine[0] <= game.best * (1 + 1e-9):
            said.append(f"No schedule is better in {game.scores[0].name.partition(' [')[0]}.")
        return " ".join(["All are answered.", *said])

    def _where(self) -> str:
        if self.said:
            return self.said
        if self.board.over:
            return self._ended()
        moves = len(self.board.moves)
        return f"You left off here, after {moves} step{'s' if moves != 1 else ''}." if moves else BEGIN

    # What the browser gets

    def _described(self, broken: dict[str, Any] | None = None) -> dict[str, Any]:
        """All that is needed to draw the board, and to look at a move while it is laid down."""
        game, board = self.game, self.board
        self._count += 1
        names = [*([self.name] if self.own else []), *(game.rivals if self.own or self.best else [])]
        others = {name: self._other(*self._of(name)) for name in names}
        requests = [self._request(row) for row, ask in enumerate(game.asks) if ask.arrival <= board.now]
        end = max([board.now, *(one["end"] for one in others.values())])
        return {
            "count": self._count, "id": game.id, "title": game.title, "goal": game.goal, "unit": game.unit,
            "slots": game.max_num_seqs, "hand": sorted(game.hand), "own": self.name if self.own else "",
            "budget": game.max_num_batched_tokens if game.max_num_batched_tokens < 1e9 else 0,
            "blocks": [game.cache.num_blocks, int(board.engine.pool.free)] if game.cache else None,
            "horizon": _horizon(game.span, end), "now": board.now, "over": board.over, "moves": len(board.moves),
            "coming": len(game.asks) - len(requests), "requests": requests,
            "frames": [packed(frame) for frame in board.frames], "lanes": board.lanes,
            "said": board_text.watched_verdict(self.name, *self._of(self.name)) if self.own else self._where(),
            "broken": broken, "others": others, "heads": [score.name for score in game.scores],
            "rows": self._rows(others),
        }  # fmt: skip

    def _request(self, row: int) -> dict[str, Any]:
        board, request = self.board, self.board.requests[row]
        return {
            "row": row, "waits": row in board.waiting, "card": board_text.card(self.game, row),
            "tenant": self.game.asks[row].tenant if "tenant" in self.game.shows else "",
            "since": self.game.asks[row].arrival, "emitted": len(board.emitted_at[row]),
            "remaining": request.remaining if row not in board.answered else 0,
            "blocks": request.blocks if row in board.lanes else 0, "answered": row in board.answered,
        }  # fmt: skip

    def _other(self, board: Board, refused: Refused | None) -> dict[str, Any]:
        return {
            "frames": [packed(frame) for frame in board.frames], "end": board.now, "over": board.over,
            "refused": str(refused or ""), "rows": list(refused.rows) if refused else [],
            "asked": board.asked() if refused else [], "lanes": board.lanes,
        }  # fmt: skip

    def _rows(self, others: Mapping[str, Any]) -> list[list[Any]]:
        """The table: who, and the scores as texts."""
        mine = [] if self.own else [("you", self.board)] + ([("you, best game", self.best)] if self.best else [])
        rows = [*mine, *((name, self._of(name)[0]) for name in others)]
        dashes = ["-" for _ in self.game.scores]
        return [
            [who, [score.words(value) for score, value in zip(self.game.scores, values(board), strict=True)]
             if board.over else dashes]
            for who, board in rows
        ]  # fmt: skip


def packed(frame: Frame) -> list[Any]:
    """A frame as the browser gets it."""
    parts = [[part.lane, part.row, kind(part), part.prefill or part.padding or part.emitted] for part in frame.parts]
    return [frame.start, frame.end, parts, list(frame.waiting), list(frame.preempted)]


def _replayed(game: Game, moves: Any) -> Board | None:
    """The board after these moves; None if they are none, or belong to another version of the game."""
    if not isinstance(moves, list) or len(moves) > MOST_STEPS:
        return None
    try:
        return Board(game, moves=moves)
    except Refused:
        return None


def _horizon(span: float, end: float) -> float:
    """The end of the time axis: as the game says, and half as much again whenever a schedule reaches it."""
    while end > 0.98 * span:
        span *= 1.5
    return span
