"""What an engine writes down while it serves: who did what in which steps. All times and columns follow from it."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from course.base.settings import MAX_CHUNKS, MAX_STEPS
from course.memory.block_pool import BlockPool
from course.policies.request import Request

ANSWERED, REJECTED, GAVE_UP, CANCELLED = "answered", "rejected", "gave up", "cancelled"


class Left(NamedTuple):
    """Of a request that went without its whole answer. outcome: REJECTED, GAVE_UP or CANCELLED.

    seconds: when. step: it went before this one. tokens: of it in the cache then, computed for nobody.
    """

    outcome: str
    seconds: float
    step: int
    tokens: int


@dataclass(frozen=True)
class Log:
    """The raw record of a run of n requests in m steps. Rows are int64; step ranges include both ends.

    arrival: (n,) seconds. lengths: (n,) prompt and output tokens. clock: (m,) seconds, when each step ended.
    idle: steps that began later than the step before them ended; step 0 always.
    idle_start: seconds, when those steps began.
    tokens: (request, first step, last step, each): `each` tokens of it left in each of these steps. Sorted.
    decodes: (request, first step, last step, known): it computed one token in each, attending to `known` tokens in the
        first and to one more in each later step. In a padded batch, padding too.
    chunks: (request, step, tokens, cached): prompt tokens it computed, and what was in the cache before.
    stays: (request, first step, last step): it held a slot.
    preemptions: (request, step, tokens): it lost this many computed tokens before this step.
    brought: (request, step, tokens): K and V of so many came from elsewhere when it got its slot in this step.
    more: (request, step, cached, tokens): so many tokens besides its decode left in this step, and are in the cache
        after it, behind `cached` others.
    drafts: (request, step, tokens): so many were drafted for it in this step, accepted ones included.
    blocks: (m,) KV blocks held in each step, if the pool counted them; else they follow from the other rows.
    shared: (m,) blocks that requests would hold besides if each had its own; None where none are shared.
    lookups: (request, tokens known, tokens of these in the cache) of each admission, in order; of a prefix cache only.
    evicted: blocks of a prefix cache whose text others may have known, taken for something else; None of others.
    debt: (m,) free blocks outside the largest hole; of contiguous pieces only.
    budgets: (step, tokens): the token budget from this step on.
    retries: how often a request was told to come again, by row, if it was.
    left: of each request that went without its whole answer, by row: why, when [s], before which step, and how many
        tokens of it were in the cache.
    """

    arrival: np.ndarray
    lengths: np.ndarray
    clock: np.ndarray
    idle: np.ndarray
    idle_start: np.ndarray
    tokens: np.ndarray
    decodes: np.ndarray
    chunks: np.ndarray
    stays: np.ndarray
    preemptions: np.ndarray
    more: np.ndarray
    drafts: np.ndarray
    brought: np.ndarray = field(default_factory=lambda: np.empty((0, 3), np.int64))
    blocks: np.ndarray | None = None
    shared: np.ndarray | None = None
    lookups: np.ndarray | None = None
    evicted: int | None = None
    debt: np.ndarray | None = None
    budgets: tuple[tuple[int, float], ...] = ()
    left: Mapping[int, Left] = field(default_factory=dict)
    retries: Mapping[int, int] = field(default_factory=dict)

    def start_of(self, steps: np.ndarray) -> np.ndarray:
        """When these steps began, in seconds."""
        starts = self.clock[steps - 1]  # of step 0, which is always among the idle ones, overwritten below
        place = np.searchsorted(self.idle, steps)
        place[place == len(self.idle)] = 0
        late = self.idle[place] == steps
        starts[late] = self.idle_start[place[late]]
        return starts


class Notes:
    """The rows of a Log while they are being written, as flat arrays of int64: little memory, and quick to add to.

    A plain life is that of a request whose prompt was computed whole, in the step of its first token, and which then
    emitted one token a step to the end: (request, first step, last step) says all of it.
    """

    def __init__(self):
        self.plain, self.tokens, self.decodes, self.chunks, self.stays, self.preemptions, self.more, self.drafts = (
            array("q") for _ in range(8)
        )
        self.brought = array("q")
        self.budgets: list[tuple[int, float]] = []
        self.left: dict[int, Left] = {}
        self.retries: dict[int, int] = {}

    # Of the plain loop, which writes down each step of each request.

    def computed(self, request: Request, step: int, tokens: int, decodes: bool) -> None:
        """It computes so many tokens in this step, which has not ended.

        The last one of a prompt that is computed again, or that came from elsewhere, decodes.
        """
        life = request.life
        if decodes or (request.remaining == 1 and (life.emitted_before or life.elsewhere)):
            self.decodes.extend((life.row, step, step, life.computed_before + 1))
        else:
            self.chunks.extend((life.row, step, tokens, life.computed_before))

    def emitted(self, request: Request, step: int, tokens: int, drafted: int) -> None:
        """So many tokens of it leave at the end of this step. drafted: for it; 0: only what leaves besides, if any."""
        life, drafted = request.life, drafted or tokens - 1
        if drafted:
            self.drafts.extend((life.row, step, drafted))
        self.tokens.extend((life.row, step, step, tokens))
        if tokens > 1:
            self.more.extend((life.row, step, life.computed_before, tokens - 1))

    def brings(self, request: Request, pool: BlockPool, step: int) -> None:
        """It is about to get a slot in this step, perhaps with K and V from elsewhere."""
        if request in pool.coming:
            self.brought.extend((request.life.row, step, pool.coming[request]))

    def stay(self, request: Request, last: int) -> None:
        """It held a slot up to this step."""
        self.stays.extend((request.life.row, request.life.admitted, last))

    def preempted(self, request: Request, step: int, lost: int) -> None:
        """It loses its slot before this step, and so many tokens that it has computed."""
        self.stay(request, step - 1)
        self.preemptions.extend((request.life.row, step, lost))

    def log(
        self, arrival: list[float], prompt: list[int], clock: array, idle: list[tuple[int, float]], pool: BlockPool
    ) -> Log:
        """The Log of a run that is over.

        idle: (step, seconds); if two are given for one step, the later one counts. pool: what it counted of its blocks.
        Raises ValueError if the clock stood still.
        """
        check_length(clock, self.chunks)
        if not clock:
            raise ValueError(
                f"no step ran: all {len(arrival):,} requests were rejected, or left before anything was computed for "
                "them; a Run needs a step"
            )
        ends = np.frombuffer(clock, dtype=np.float64)
        # Whoever was waited for may have been given up.
        begun = {step: seconds for step, seconds in idle if step < len(clock)}
        steps, starts = np.array(list(begun), dtype=np.int64), np.array(list(begun.values()))
        _check_moves(ends, steps, starts)
        prompts = np.array(prompt, dtype=np.int64)
        request, first, last = _rows(self.plain, 3).T
        one, none = np.ones_like(request), np.zeros_like(request)
        tokens = _both((request, first, last, one), self.tokens)
        tokens = _joined(tokens[np.lexsort((tokens[:, 1], tokens[:, 0]))])
        emitted = np.zeros(len(prompts), dtype=np.int64)
        np.add.at(emitted, tokens[:, 0], (tokens[:, 2] - tokens[:, 1] + 1) * tokens[:, 3])
        decodes = _both((request, first + 1, last, prompts[request] + 1), self.decodes)
        return Log(
            arrival=np.array(arrival, dtype=np.float64),
            lengths=prompts + emitted,
            clock=ends,
            idle=steps,
            idle_start=starts,
            tokens=tokens,
            decodes=decodes[decodes[:, 1] <= decodes[:, 2]],
            chunks=_both((request, first, prompts[request], none), self.chunks),
            stays=_both((request, first, last), self.stays),
            preemptions=_rows(self.preemptions, 3),
            more=_rows(self.more, 4),
            drafts=_rows(self.drafts, 3),
            brought=_rows(self.brought, 3),
            blocks=None if pool.column is None else np.array(pool.column, dtype=np.int64),
            shared=None if pool.shared is None else np.array(pool.shared, dtype=np.int64),
            lookups=None if pool.lookups is None else _rows(pool.lookups, 3).copy(),
            evicted=pool.evicted,
            debt=None if pool.debt is None else np.array(pool.debt, dtype=np.int64),
            budgets=tuple(self.budgets),
            left=dict(self.left),
            retries=dict(self.retries),
        )


def _rows(values: array, width: int) -> np.ndarray:
    return np.frombuffer(values, dtype=np.int64).reshape(-1, width) if values else np.empty((0, width), np.int64)


def _both(plain: tuple[np.ndarray, ...], noted: array) -> np.ndarray:
    """The rows of plain lives, and those that were noted."""
    return np.concatenate([np.stack(plain, axis=1), _rows(noted, len(plain))])


def _joined(tokens: np.ndarray) -> np.ndarray:
    """Sorted rows (request, first step, last step, each); one that begins at the end of another is joined to it."""
    before, after = tokens[:-1], tokens[1:]
    goes_on = (before[:, 0] == after[:, 0]) & (before[:, 2] + 1 == after[:, 1]) & (before[:, 3] == after[:, 3])
    if not goes_on.any():
        return tokens
    first, last = np.append(True, ~goes_on), np.append(~goes_on, True)
    return np.stack([tokens[first, 0], tokens[first, 1], tokens[last, 2], tokens[first, 3]], axis=1)


def _check_moves(ends: np.ndarray, idle: np.ndarray, idle_start: np.ndarray) -> None:
    stuck = [*ends[:-1][~(ends[1:] > ends[:-1])], *idle_start[~(ends[idle] > idle_start)]]
    if stuck:
        when = stuck[0]
        raise ValueError(
            f"the clock stands still at {when:.6g} s: floats are {np.spacing(when):.1g} s apart there, more than a "
            "step takes; give larger step times, or arrivals closer to 0"
        )


def check_length(clock: array, chunks: Sequence[int] = ()) -> None:
    """Raises ValueError if a run has become too long to keep in memory. chunks: four numbers each."""
    if len(chunks) > 4 * MAX_CHUNKS:
        raise ValueError(
            f"the prompts are computed in more than {MAX_CHUNKS:,} chunks, too many to keep: raise "
            "max_num_batched_tokens or long_prefill_token_threshold, or shorten the prompts"
        )
    if len(clock) > MAX_STEPS:
        raise ValueError(
            f"the run takes more than {MAX_STEPS:,} steps, too many to keep: serve fewer requests at a time (`head`), "
            "or shorter answers"
        )
