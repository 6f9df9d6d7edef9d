"""The steps of a run as columns, added up from who did what in which of them."""

from functools import cached_property

import numpy as np

from course.engine.log import Log
from course.memory import held
from course.memory.kvcache import KVCache


class Steps:
    """One entry a step in each column; seconds, sequences, tokens, blocks."""

    def __init__(self, cache: KVCache | None, log: Log, response: np.ndarray, padded: bool):
        self._cache, self._log, self._response, self._padded = cache, log, response, padded

    def __len__(self) -> int:
        return len(self._log.clock)

    def __repr__(self) -> str:
        return f"Steps({len(self)} steps, {self.start[0]:.6g} s to {self.end[-1]:.6g} s)"

    @property
    def end(self) -> np.ndarray:
        """When it ended."""
        return self._log.clock

    @cached_property
    def start(self) -> np.ndarray:
        """When it began."""
        return self._log.start_of(np.arange(len(self)))

    @cached_property
    def seconds(self) -> np.ndarray:
        """How long it took."""
        return self.end - self.start

    @cached_property
    def running(self) -> np.ndarray:
        """Sequences that held a slot."""
        return self._covered(self._log.stays)

    @cached_property
    def useful(self) -> np.ndarray:
        """Tokens that left."""
        return self._covered(self._log.tokens, self._log.tokens[:, 3])

    @cached_property
    def wasted(self) -> np.ndarray:
        """Slots that computed padding for an answer already complete."""
        return self.running - self._covered(self._log.tokens) if self._padded else np.zeros(len(self), dtype=np.int64)

    @cached_property
    def decodes(self) -> np.ndarray:
        """Sequences that computed one token; in a padded batch, finished ones too."""
        return self._covered(self._log.decodes)

    @cached_property
    def decode_context(self) -> np.ndarray:
        """Tokens that the decodes attended to."""
        # A decode that attends to k tokens in step f attends to k - f + s in step s.
        offset = self._covered(self._log.decodes, self._log.decodes[:, 3] - self._log.decodes[:, 1])
        return offset + self.decodes * np.arange(len(self))

    @cached_property
    def budget(self) -> np.ndarray:
        """The most tokens that it could have computed, infinite without a limit."""
        budget = np.empty(len(self))
        for step, tokens in self._log.budgets:
            budget[step:] = tokens
        return budget

    @cached_property
    def drafted(self) -> np.ndarray:
        """Tokens that were drafted and verified, accepted or not: each was computed."""
        return self._summed(self._log.drafts[:, 1], self._log.drafts[:, 2])

    @cached_property
    def accepted(self) -> np.ndarray:
        """Drafted tokens that left: those besides the one of each decode."""
        return self._summed(self._log.more[:, 1], self._log.more[:, 3])

    @cached_property
    def prefill_tokens(self) -> np.ndarray:
        """Prompt tokens computed, padding too."""
        return self._summed(self._log.chunks[:, 1], self._log.chunks[:, 2])

    @cached_property
    def preemptions(self) -> np.ndarray:
        """Requests that lost their blocks before it."""
        return self._summed(self._log.preemptions[:, 1])

    @cached_property
    def dropped(self) -> np.ndarray:
        """Tokens that those lost: what they had computed, unless it was copied to the host."""
        return self._summed(self._log.preemptions[:, 1], self._log.preemptions[:, 2])

    @cached_property
    def queue(self) -> np.ndarray:
        """Requests that had arrived by its start and held no slot; those told to come again are among them."""
        arrived = np.searchsorted(np.sort(self._log.arrival), self.start, side="right")
        answered = np.searchsorted(np.sort(self._response), self.start, side="right")
        return arrived - answered - self.running

    @cached_property
    def blocks(self) -> np.ndarray:
        """KV blocks held, 0 without a cache."""
        log, many = self._log, len(self)
        if self._cache is None:
            return np.zeros(many, dtype=np.int64)
        if log.blocks is not None:
            return log.blocks
        if self._padded:  # every slot reserves the longest prompt and answer: one row of chunks a stay
            stays = log.stays
            tokens = log.chunks[:, 2] + stays[:, 2] - stays[:, 1]
            return held.reserved(many, stays, tokens, self._cache.block_size)
        computed = self._computed_at_end()
        brought = np.insert(log.brought, 3, 0, axis=1)  # like chunks, with nothing in the cache before
        chunks = np.concatenate([log.chunks, brought])
        return held.one_by_one(many, chunks, log.decodes, log.more, log.stays, computed, self._cache.block_size)

    @cached_property
    def free(self) -> np.ndarray:
        """KV blocks that nobody held, infinite without a cache."""
        return (np.inf if self._cache is None else self._cache.num_blocks) - self.blocks

    @cached_property
    def compaction_debt(self) -> np.ndarray:
        """Free KV blocks outside the largest hole between contiguous pieces; 0 in pages, of which any serves."""
        return np.zeros(len(self), dtype=np.int64) if self._log.debt is None else self._log.debt

    @cached_property
    def shared(self) -> np.ndarray:
        """KV blocks that sequences would hold besides if each had its own; 0 where no prefixes are shared."""
        return np.zeros(len(self), dtype=np.int64) if self._log.shared is None else self._log.shared

    def _computed_at_end(self) -> np.ndarray:
        """Tokens in the cache at the end of each stay."""
        lost = {(request, step - 1): tokens for request, step, tokens in self._log.preemptions.tolist()}
        lost |= {(request, left.step - 1): left.tokens for request, left in self._log.left.items() if left.tokens}
        tokens = self._log.lengths[self._log.stays[:, 0]] - 1
        for row, (request, _, last) in enumerate(self._log.stays.tolist() if lost else ()):
            tokens[row] = lost.get((request, last), tokens[row])
        return tokens

    def _covered(self, spans: np.ndarray, weight: np.ndarray | int = 1) -> np.ndarray:
        """For each step, the weights of the (request, first, last, ...) rows that cover it, added up."""
        change = np.zeros(len(self) + 1, dtype=np.int64)
        np.add.at(change, spans[:, 1], weight)
        np.subtract.at(change, spans[:, 2] + 1, weight)
        return np.cumsum(change)[:-1]

    def _summed(self, steps: np.ndarray, weight: np.ndarray | int = 1) -> np.ndarray:
        """For each step, the weights of the rows that name it, added up."""
        total = np.zeros(len(self), dtype=np.int64)
        np.add.at(total, steps, weight)
        return total
