"""A board as text: for everybody without the widgets, for screen readers, and for nbval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course.base.settings import quote
from course.explore.board import Board, Game, Move, Refused
from course.explore.scores import kind, values


class Told(str):
    """Text that a cell shows as it is, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def card(game: Game, row: int) -> list[str]:
    """What a card says of a request besides its number."""
    ask, words = game.asks[row], []
    if "tenant" in game.shows and ask.tenant:
        words.append(f"of {ask.tenant}")
    if "prompt" in game.shows:
        words.append(f"prompt {ask.prompt}")
    if "guess" in game.shows and ask.guess is not None:
        words.append(f"answer of {ask.guess:g}")
    if "due" in game.shows and ask.due is not None:
        words.append(f"due at {game.time(ask.arrival + ask.due).partition(' ')[0]}")
    return words


def rules(game: Game) -> str:
    """The game and how to play it: no score, no length of an answer that is not on a card, no rival's schedule."""
    limits = [f"{game.max_num_seqs} slots"]
    if game.max_num_batched_tokens < 1e9:
        limits.append(f"at most {game.max_num_batched_tokens:,.0f} tokens a step")
    if game.cache:
        limits.append(f"{game.cache.num_blocks} KV blocks of {game.cache.block_size} tokens")
    cards = [", ".join([f"request {row + 1} comes at {game.time(ask.arrival)}", *card(game, row)])
             for row, ask in enumerate(game.asks)]  # fmt: skip
    example = "[{1: 8, 2: 8}, {1: 1, 2: 1}, ...]" if "tokens" in game.hand else "[[1, 2], [], ...]"
    away = "; -1 sends request 1 away" if "preempt" in game.hand else ""
    return "\n".join(
        [
            f"{game.title}{'' if game.title.endswith('?') else '.'} {game.goal}",
            f"{len(game.asks)} requests, {', '.join(limits)}.",
            *(f"  {line}" for line in cards),
            f"Scored by {', '.join(score.name for score in game.scores)}, the less the better; "
            f"afterwards compared with {', '.join(game.rivals)}.",
            f"Without the board: .play({example}) says what joins in each step{away}.",
        ]
    )


def watched_verdict(name: str, board: Board, refused: Refused | None) -> str:
    """How a learner's function came out, in one sentence."""
    if refused is not None:
        return f"{name[:1].upper()}{name[1:]} breaks off in step {len(board.frames) + 1}: {refused}."
    scores = zip(board.game.scores, values(board), strict=True)
    said = ", ".join(score.said(value) for score, value in scores)
    return f"{name[:1].upper()}{name[1:]} has answered everybody: {said}."


def watched(name: str, board: Board, refused: Refused | None) -> str:
    """The same with a line for each step: who was in which slot, and who waited."""
    lines = [watched_verdict(name, board, refused)]
    for number, frame in enumerate(board.frames, start=1):
        slots = [f"slot {part.lane + 1}: request {part.row + 1}{_did(part)}" for part in frame.parts]
        line = " ".join(str(row + 1) for row in frame.waiting)
        lines.append(f"  step {number}: {'; '.join(slots) or 'nobody runs'}{f'; in line: {line}' if line else ''}")
    return "\n".join(lines)


def _did(part: Any) -> str:
    what = kind(part)
    return (
        f" prefill {part.prefill}"
        if what == "prefill"
        else {"padding": " padding", "idle": " stands still"}.get(what, "")
    )


def move_of(step: Any, board: Board) -> Move:
    """A step as somebody types it, as a move of the board. Raises Refused for what is none."""
    if isinstance(step, Mapping):
        pairs = list(step.items())
    elif isinstance(step, Sequence) and not isinstance(step, str):
        pairs = [(name, None) for name in step]
    else:
        raise Refused(f"write a list of requests, or {{request: tokens}}, not {quote(step)}", "move")
    tokens, preempt = [], []
    for name, count in pairs:
        if type(name) is not int or not 1 <= abs(name) <= len(board.requests):
            raise Refused(f"there is no request {quote(name)}", "move")
        if name < 0:
            preempt.append(-name - 1)
        else:
            tokens.append([name - 1, board.requests[name - 1].remaining if count is None else count])
    return {"tokens": tokens, "preempt": preempt}
