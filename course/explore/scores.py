"""What a game on a board is scored by, and how two that played it compare. Functions of a board that is over."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from course.engine.frame import Part
from course.engine.step import Step
from course.explore.board import Board, Game

CLOSE = 1e-9
"""Two scores that differ by less, relatively, are equal: they are means of times added up in another order."""


def kind(part: Part) -> str:
    """What a slot did: "prefill", "padding", "decode", or "idle" if its request got no token."""
    if part.prefill:
        return "prefill"
    return "padding" if part.padding else "decode" if part.emitted else "idle"


def mean_answer(board: Board) -> float:
    """Mean time from the arrival to the whole answer [s]."""
    return _mean(board, board.answered)


def mean_first(board: Board) -> float:
    """Mean time from the arrival to the first token [s]."""
    return _mean(board, board.first)


def _mean(board: Board, times: dict[int, float]) -> float:
    return sum(times[row] - ask.arrival for row, ask in enumerate(board.game.asks)) / len(board.game.asks)


def longest_gap(board: Board) -> float:
    """The longest time that a reader waited between two tokens [s]."""
    return max((b - a for times in board.emitted_at.values() for a, b in pairwise(times)), default=0.0)


def gap_ms(board: Board) -> float:
    """The longest gap between two tokens [ms]."""
    return 1e3 * longest_gap(board)


def ttft_ms(board: Board) -> float:
    """The mean TTFT [ms]."""
    return 1e3 * mean_first(board)


def by_tokens(step: Step) -> float:
    """A step time: 20 ms, and 1 ms for each token of a prompt."""
    return 0.020 + 0.001 * step.prefill_tokens


def wasted(board: Board) -> float:
    """Slot-steps that were padding, or free or idle while somebody waited."""
    total = 0
    for frame in board.frames:
        kinds = [kind(part) for part in frame.parts]
        unused = board.game.max_num_seqs - len(kinds) + kinds.count("idle")
        total += kinds.count("padding") + min(unused, len(frame.waiting) + kinds.count("idle"))
    return total


def late(board: Board) -> float:
    """Answers that came after they were due."""
    return sum(_due(board, row) < at - CLOSE for row, at in board.answered.items())


def _due(board: Board, row: int) -> float:
    ask = board.game.asks[row]
    return ask.arrival + (float("inf") if ask.due is None else ask.due)


def worst_tenant(board: Board) -> float:
    """Mean time to an answer of the tenant that waits longest [s]."""
    by_tenant: dict[str, list[float]] = {}
    for row, ask in enumerate(board.game.asks):
        by_tenant.setdefault(ask.tenant, []).append(board.answered[row] - ask.arrival)
    return max(sum(times) / len(times) for times in by_tenant.values())


def recomputed(board: Board) -> float:
    """Tokens whose K and V were lost by preemption, and computed again."""
    return board.recomputed


def steps(board: Board) -> float:
    """Steps until all had their answers, those without work too."""
    return len(board.frames)


def values(board: Board) -> list[float]:
    """The scores of a board that is over, in the order of its game."""
    return [score.of(board) for score in board.game.scores]


def verdict(game: Game, mine: Sequence[float], theirs: Sequence[float], rival: str) -> str:
    """One sentence about all scores: as good, better, worse, or a trade with its price."""
    better: list[str] = []
    worse: list[str] = []
    for score, own, other in zip(game.scores, mine, theirs, strict=True):
        if abs(own - other) > CLOSE * max(abs(own), abs(other)):
            (better if own < other else worse).append(f"{score.said(own)} for {score.words(other)}")
    if not better and not worse:
        return f"Just as {rival}."
    if not worse:
        return f"Better than {rival}: {', '.join(better)}."
    if not better:
        return f"Not as good as {rival}: {', '.join(worse)}."
    return f"A trade against {rival}: better in {', '.join(better)}; worse in {', '.join(worse)}."
