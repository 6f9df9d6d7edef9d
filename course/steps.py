"""The steps of a run as columns, spread out from the stretches that the loop wrote down."""

from functools import cached_property

import numpy as np

from .kvcache import KVCache
from .loops.log import Log
from .workload import Workload


class Steps:
    """One entry a step in each column.

    start, seconds: when it began and how long it took. decodes: sequences that computed one token (in a padded batch,
    finished ones too). decode_context: tokens those attended to. prefill_tokens: prompt tokens computed (padding too).
    running: sequences that hold a slot. queue: requests that had arrived by its start and held none. blocks: KV blocks
    held during it, 0 without a cache. preemptions: requests that lost their blocks before it. dropped: tokens those had
    computed. wasted: slots that computed padding for an answer already complete.
    """

    def __init__(self, workload: Workload, cache: KVCache | None, log: Log, response: np.ndarray, padded: bool):
        self._workload, self._cache, self._log, self._response, self._padded = workload, cache, log, response, padded
        stretches, count = log.stretches, len(log.clock)
        self._lengths = np.diff(stretches["first_step"], append=count)
        self._within = np.arange(count) - np.repeat(stretches["first_step"], self._lengths)
        self.end = log.clock
        self.start = np.empty(count)
        self.start[1:] = log.clock[:-1]
        self.start[stretches["first_step"]] = stretches["start"]

    def __len__(self) -> int:
        return len(self._log.clock)

    def __repr__(self) -> str:
        return f"Steps({len(self)} steps, {self.start[0]:.6g} s to {self.end[-1]:.6g} s)"

    def _spread(self, column: str) -> np.ndarray:
        return np.repeat(self._log.stretches[column], self._lengths)

    @cached_property
    def seconds(self) -> np.ndarray:
        return self.end - self.start

    @cached_property
    def decodes(self) -> np.ndarray:
        return self._spread("decodes")

    @cached_property
    def decode_context(self) -> np.ndarray:
        return self._spread("decode_context") + self._within * self.decodes

    @cached_property
    def prefill_tokens(self) -> np.ndarray:
        return self._only_first("prefill_tokens")

    @cached_property
    def preemptions(self) -> np.ndarray:
        return self._only_first("preemptions")

    @cached_property
    def dropped(self) -> np.ndarray:
        return self._only_first("dropped")

    def _only_first(self, column: str) -> np.ndarray:
        values = np.zeros(len(self), dtype=np.int64)
        values[self._log.stretches["first_step"]] = self._log.stretches[column]
        return values

    @cached_property
    def running(self) -> np.ndarray:
        return self._spread("running")

    @cached_property
    def queue(self) -> np.ndarray:
        arrived = np.searchsorted(np.sort(self._log.arrival), self.start, side="right")
        answered = np.searchsorted(np.sort(self._response), self.start, side="right")
        return arrived - answered - self.running

    @cached_property
    def useful(self) -> np.ndarray:
        """Slots whose token somebody wanted: those that emitted one in this step."""
        runs, change = self._log.runs, np.zeros(len(self) + 1, dtype=np.int64)
        np.add.at(change, runs[:, 1], 1)
        np.add.at(change, runs[:, 2] + 1, -1)
        return np.cumsum(change)[:-1]

    @cached_property
    def wasted(self) -> np.ndarray:
        if not self._padded:
            return np.zeros(len(self), dtype=np.int64)
        return self.running - self.useful

    @cached_property
    def blocks(self) -> np.ndarray:
        blocks = self._spread("blocks")
        if self._cache is None or self._padded:
            return blocks
        # Within a stretch a sequence takes a block in each step that finds its last one full. A run of tokens that
        # begins at step f with c tokens computed at its end has c + j - 1 computed before step f + j.
        taken, size = np.zeros(len(self) + 1, dtype=np.int64), self._cache.block_size
        runs = self._log.runs
        emitted_before = np.zeros(len(runs), dtype=np.int64)
        lengths = runs[:, 2] - runs[:, 1] + 1
        total = np.cumsum(lengths) - lengths
        first_row = np.searchsorted(runs[:, 0], runs[:, 0])
        emitted_before = total - total[first_row]
        computed = self._workload.prompt_tokens[runs[:, 0]] + emitted_before
        first = (-computed) % size + 1  # the first j at which c + j - 1 is a multiple of the block size
        many = np.maximum(0, (lengths - 1 - first) // size + 1)
        steps = np.repeat(runs[:, 1] + first, many)
        order = np.arange(len(steps)) - np.repeat(np.cumsum(many) - many, many)
        np.add.at(taken, steps + order * size, 1)
        since = np.cumsum(taken)[:-1]
        return blocks + since - np.repeat(since[self._log.stretches["first_step"]], self._lengths)
