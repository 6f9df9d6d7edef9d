"""The game of lab 10: questions about two manuals, a cache that holds one of them, and a hand that says who is next."""

from __future__ import annotations

from course import policies
from course.engine.step import Step
from course.explore import scores
from course.explore.board import Ask, Board, Game, Score
from course.memory.kvcache import KVCache

SLOTS, BLOCKS, BLOCK_SIZE = 2, 8, 10
MANUAL, QUESTION = 40, 10  # tokens
SIX = (("A", 0, 3), ("B", 0, 3), ("A", 0, 4), ("B", 45, 3), ("A", 95, 3), ("B", 145, 3))
"""Which manual, when it comes [ms], and tokens of its answer."""


def by_tokens(step: Step) -> float:
    """10 ms, and 1 ms for each token of a prompt that is computed."""
    return 0.010 + 0.001 * step.prefill_tokens


def longest_ttft(board: Board) -> float:
    """The longest TTFT [ms]."""
    return 1e3 * max(board.first[row] - ask.arrival for row, ask in enumerate(board.game.asks))


def computed(board: Board) -> float:
    """Prompt tokens that were computed."""
    return sum(part.prefill for frame in board.frames for part in frame.parts)


def _ask(manual: str, at_ms: int, answer: int) -> Ask:
    full = MANUAL // BLOCK_SIZE
    prefix = tuple(100 * ord(manual) + place for place in range(full))
    return Ask(at_ms / 1e3, MANUAL + QUESTION, answer, tenant=manual, prefix=prefix)


PREFIXES = Game(
    id="prefixes",
    title="Two manuals",
    goal=f"A prompt is manual A or B ({MANUAL} tokens) and a question ({QUESTION}). {BLOCKS} blocks of {BLOCK_SIZE} "
    "tokens keep what is in them until others need them. A step takes 10 ms, and 1 ms for each prompt token.",
    asks=tuple(_ask(*one) for one in SIX),
    step_time=by_tokens,
    max_num_seqs=SLOTS,
    cache=KVCache(BLOCKS, BLOCK_SIZE, prefix_caching=True),
    scores=(
        Score("mean TTFT [ms]", scores.ttft_ms, "{:.0f}"),
        Score("longest TTFT [ms]", longest_ttft, "{:.0f}"),
        Score("prompt tokens computed", computed, "{:.0f}"),
    ),
    rivals={
        "in order": lambda: policies.Continuous(SLOTS, 1_000),
        "longest prefix first": lambda: policies.LongestPrefixFirst(SLOTS, 1_000),
    },
    shows=frozenset({"tenant"}),
    unit="ms",
    span=0.4,
    best=107.5,
)
