"""What happened in one run: when each request got its tokens, and what each step was made of."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from course.base import settings
from course.engine import metrics
from course.engine.executor import Executor, Simulated
from course.engine.log import ANSWERED, GAVE_UP, Log
from course.engine.step import StepTime, StepTimeModel
from course.engine.steps import Steps
from course.memory.kvcache import KVCache
from course.policies.base import Limits, Policy
from course.workload import SLO, Workload


class Run:
    """The result of `serve`. Arrays have one entry a request, in the order of the workload; times in seconds.

    TTFT is arrival to first token, E2E arrival to the whole answer, TPOT (E2E - TTFT) / (tokens - 1): NaN for an answer
    of one token. Request-level policies answer when the batch ends: their TTFT equals their E2E and there is no TPOT;
    `first_computed` says when the first token existed. Where the client has a cap (`Workload.max_concurrency`), a
    request arrives when it is sent; `client_wait` is how long it was due before, and part of no other time.

    Those who left without their answer have a row too (`outcome`, `answered`): TTFT, TPOT and E2E are NaN, and
    `response` is when they left.
    """

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        limits: Limits,
        step_time: StepTime | Executor,
        cache: KVCache | None,
        log: Log,
    ):
        self.workload, self.policy, self.limits = workload, policy, limits
        self.step_time, self.cache, self.log = step_time, cache, log
        rows, n = log.tokens, len(workload)
        place = np.searchsorted(rows[:, 0], np.arange(n + 1))
        self._first_row, self._end_row = place[:-1], place[1:]
        admitted = np.full(n, len(log.clock))
        np.minimum.at(admitted, log.stays[:, 0], log.stays[:, 1])
        self.arrival = _fixed(log.arrival)
        self.admitted = _fixed(log.start_of(admitted))
        some = rows if len(rows) else np.zeros((1, 4), dtype=np.int64)  # of no answer at all: overwritten below
        self.first_computed = _fixed(log.clock[some[np.minimum(self._first_row, len(some) - 1), 1]])
        self.last_computed = _fixed(log.clock[some[self._end_row - 1, 2]])
        self.preempted = _fixed(np.bincount(log.preemptions[:, 0], minlength=n))
        self.batch_answers = limits.padded
        if self.batch_answers:  # everybody stays until the batch ends, and is answered then
            leaves = np.zeros(n, dtype=np.int64)
            leaves[log.stays[:, 0]] = log.stays[:, 2]
            self.response = _fixed(log.clock[leaves])
        else:
            self.response = self.last_computed
        whole = self._leave_out(log) if log.left or workload.patience is not None else np.ones(n, dtype=bool)
        self.answered = _fixed(whole)
        self.e2e = _fixed(np.where(whole, self.response - self.arrival, np.nan))
        self.queue_wait = _fixed(self.admitted - self.arrival)
        due = self.arrival if workload.max_concurrency is None else workload.arrival
        self.client_wait = _fixed(self.arrival - due)
        tokens = workload.output_tokens
        if self.batch_answers:
            self.ttft = self.e2e
            self.tpot = _fixed(np.full(n, np.nan))
        else:
            self.ttft = _fixed(np.where(whole, self.first_computed - self.arrival, np.nan))
            gaps = np.where(tokens > 1, tokens - 1, 1)
            self.tpot = _fixed(np.where((tokens > 1) & whole, (self.response - self.first_computed) / gaps, np.nan))

    def _leave_out(self, log: Log) -> np.ndarray:
        """Who was answered whole, and in time for whoever asked. Of the others, what did not happen becomes NaN."""
        n, gone = len(self), np.array(sorted(log.left), dtype=np.int64)
        self.first_computed, self.last_computed = (
            _fixed(np.where(self._end_row > self._first_row, times, np.nan))
            for times in (self.first_computed, self.last_computed)
        )
        there = np.zeros(n, dtype=bool)
        there[log.stays[:, 0]] = True
        self.admitted = _fixed(np.where(there, self.admitted, np.nan))
        response = self.response.copy()
        left = np.maximum([log.left[row].seconds for row in gone.tolist()], self.arrival[gone])
        # Of a padded batch the slot goes on to its end.
        response[gone] = np.where(there[gone] & self.batch_answers, response[gone], left)
        self.response = _fixed(response)
        whole = np.ones(n, dtype=bool)
        whole[gone] = False
        if self.workload.patience is not None:  # a first and last token that came when nobody waited any more
            whole &= ~(self.first_computed > self.arrival + self.workload.patience)
        return whole

    def __len__(self) -> int:
        return len(self.workload)

    def __repr__(self) -> str:
        return (
            f"Run({len(self)} requests, {len(self.log.clock)} steps, {self.policy!r}, makespan {self.makespan:.6g} s)"
        )

    @property
    def makespan(self) -> float:
        """Seconds from the first arrival until the last answer."""
        return float(self.response.max() - self.arrival.min())

    @cached_property
    def steptime(self) -> str:
        """Where the seconds of its steps come from, as a badge says it: measured, modelled, or recorded on which card.

        A recording that does not reach as far as the steps adds beyond what they are modelled.
        """
        source = self.step_time.step_time if isinstance(self.step_time, Simulated) else self.step_time
        if not isinstance(source, StepTimeModel):
            return source.badge if isinstance(source, Executor) else "modelled"
        beyond = source.beyond(
            decodes=int(self.steps.decodes.max()),
            context=int(self.steps.decode_context.max()),
            sequence=int((self.workload.prompt_tokens + self.workload.output_tokens).max() - 1),
            prompt=int(self.steps.prefill_tokens.max()),
        )
        return f"{source.badge}; {beyond}" if beyond else source.badge

    @cached_property
    def steps(self) -> Steps:
        """One row a step (see Steps)."""
        return Steps(self.cache, self.log, self.response, self.batch_answers)

    @cached_property
    def outcome(self) -> np.ndarray:
        """What became of each request: "answered", "rejected", "gave up" or "cancelled".

        rejected: by the policy (`Schedule.reject`). gave up: its patience was over before its first token
        (`Workload.patience`). cancelled: while the engine was stepped.
        """
        found = np.where(self.answered, ANSWERED, GAVE_UP).astype("U9")
        for row, left in self.log.left.items():
            found[row] = left.outcome
        return _fixed(found)

    @cached_property
    def retries(self) -> np.ndarray:
        """How often each request was told to come again; its times count from when it came first."""
        return _fixed(np.array([self.log.retries.get(row, 0) for row in range(len(self))]))

    @cached_property
    def abandoned_tokens(self) -> int:
        """Tokens computed for those who left without an answer, and not lost before that by preemption."""
        late = ~self.answered
        late[list(self.log.left)] = False
        needed = self.workload.prompt_tokens + self.workload.output_tokens - 1
        return int(needed[late].sum()) + sum(left.tokens for left in self.log.left.values())

    def token_times(self, request: int) -> np.ndarray:
        """When each output token of the request was computed, in seconds; equal if several left in one step."""
        request = settings.whole("the number of a request", request, low=0, high=len(self) - 1)
        rows = self.log.tokens[self._first_row[request] : self._end_row[request]]
        times = [np.repeat(self.log.clock[first : last + 1], each) for _, first, last, each in rows]
        return np.concatenate([*times, np.empty(0)])

    @cached_property
    def itl(self) -> np.ndarray:
        """Every gap between two tokens of one request [s], in no special order. Empty for request-level policies."""
        gaps, weights = self.itl_weighted
        return _fixed(np.repeat(gaps, weights))

    @cached_property
    def itl_weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """The same as (gap in seconds, how many tokens saw it): one gap a step serves all that decode in it."""
        if self.batch_answers:
            return np.empty(0), np.empty(0, dtype=np.int64)
        clock, rows = self.log.clock, self.log.tokens
        emitting = np.zeros(len(clock) + 1, dtype=np.int64)
        np.add.at(emitting, rows[:, 1] + 1, 1)
        np.add.at(emitting, rows[:, 2] + 1, -1)
        weights = np.cumsum(emitting)[1 : len(clock)]
        gaps = np.diff(clock)
        # Between two runs of one request, a preemption or a step without a turn, lies one long gap.
        same = np.flatnonzero(rows[1:, 0] == rows[:-1, 0])
        stalls = clock[rows[same + 1, 1]] - clock[rows[same, 2]]
        seen = weights > 0
        together = int(((rows[:, 3] - 1) * (rows[:, 2] - rows[:, 1] + 1)).sum())  # left in one step with one before
        no_gap = np.zeros(min(together, 1))
        return (
            np.concatenate([no_gap, gaps[seen], stalls]),
            np.concatenate([np.full(len(no_gap), together), weights[seen], np.ones(len(same), dtype=np.int64)]),
        )

    def number_in_system(self) -> tuple[np.ndarray, np.ndarray]:
        """(times, counts): from times[i] on, counts[i] requests have arrived and are not answered yet."""
        return metrics.number_in_system(self.arrival, self.response)

    def little(self, start: float | None = None, end: float | None = None) -> "metrics.LittlesLaw":
        """L, arrival rate and W over [start, end), by default the whole run, with the edge terms a window needs."""
        begin = self.arrival.min() if start is None else start
        return metrics.littles_law(self.arrival, self.response, begin, self.response.max() if end is None else end)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what a reader of the numbers must know; empty if all is well."""
        return metrics.warnings(self)

    def summary(
        self,
        ttft_slo: float | None = None,
        tpot_slo: float | None = None,
        e2e_slo: float | None = None,
        warmup: float = 0.0,
        *,
        slo: SLO | Mapping[int | str, SLO] | None = None,
    ) -> dict[str, float]:
        """The run in numbers (see `metrics.summary`). SLOs and warm-up in seconds; slo: for all, or by class."""
        return metrics.summary(self, ttft_slo=ttft_slo, tpot_slo=tpot_slo, e2e_slo=e2e_slo, slo=slo, warmup=warmup)


def _fixed(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values
