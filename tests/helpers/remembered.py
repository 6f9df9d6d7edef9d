"""The language model from memory: the same words and counted steps as the real one, which speaks each answer once.

Policies and views ask for the same few answers again and again. `make test-all` has the real model compute each.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from course import KVCache, lm
from course.lm.cache import Blocks
from course.lm.live import Speaking
from tests.helpers.sizes import WHOLE

Context = tuple[int, ...]
KEPT: dict[tuple[int, Context], np.ndarray] = {}
"""Logits by the number of layers, which tells the model from its draft, and by all tokens before."""


class Slots(Blocks):
    """A cache of the tokens themselves, in place of their keys and values."""

    def __init__(self, num_blocks: int, block_size: int = 16) -> None:
        super().__init__(num_blocks, block_size)
        self.tokens = np.zeros((self.num_blocks, self.block_size), np.int64)


class Remembered:
    """Stands in for a model in NumPy. Its logits are those of each sequence alone, whatever it is batched with."""

    def __init__(self, model: lm.LanguageModel) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def paged_kv(self, num_blocks: int, block_size: int = 16) -> Slots:
        return Slots(num_blocks, block_size)

    def forward(
        self,
        tokens: np.ndarray,
        counts: Sequence[int],
        computed: Sequence[int],
        block_tables: Sequence[Sequence[int]],
        cache: Slots,
        *,
        every: bool = False,
    ) -> np.ndarray:
        """As `course.lm.forward.Model.forward`, for rows that the engine asks for."""
        ends = np.cumsum(counts)
        rows = []
        for end, count, before, table in zip(ends, counts, computed, block_tables, strict=True):
            places = np.arange(before + count)
            at = np.asarray(table)[places // cache.block_size], places % cache.block_size
            cache.tokens[at[0][before:], at[1][before:]] = tokens[end - count : end]
            known = tuple(cache.tokens[at].tolist())
            rows += [self.after(known[:place]) for place in range(before + 1 if every else before + count, len(known))]
            rows.append(self.after(known))
        return np.stack(rows)

    def after(self, context: Context) -> np.ndarray:
        """The logits after these tokens; zeros where nobody asks: inside of a prompt, and in padding."""
        words, key = self.model.tokenizer, (self.model.config.num_hidden_layers, context)
        if key not in KEPT:
            turn = max((i for i, token in enumerate(context) if token in (words.user, words.assistant)), default=-1)
            if turn < 0 or context[turn] == words.user or words.end in context[turn:]:
                return np.zeros(len(self.model.embedding), np.float32)
            self.speak(context)
        return KEPT[key]

    def speak(self, context: Context) -> None:
        """Let the real model go on to the end of its answer, and keep the logits of each step."""
        model, longest = self.model, self.model.config.max_position_embeddings
        kv = model.paged_kv(-(-longest // 16))
        table, done = range(kv.num_blocks), 0
        while len(context) <= longest:
            logits = model.forward(context[done:], [len(context) - done], [done], [table], kv)[0]
            KEPT[model.config.num_hidden_layers, context] = logits
            done, context = len(context), (*context, int(logits.argmax()))
            if context[-1] == model.tokenizer.end:
                return


@pytest.fixture(autouse=True, scope="module")
def words_from_memory() -> Iterator[None]:
    """For a folder whose conftest.py imports it: no answer is computed twice, and views measure by counting steps.

    So no test there depends on how fast this machine speaks.
    """
    begin, watch = Speaking.__init__, lm.Watch.__init__

    def remembering(self: Speaking, model: Any, cache: KVCache, memory: Blocks | None = None, **how: Any) -> None:
        if memory is None and type(model) is lm.LanguageModel:  # a server brings a memory that is used again
            model = Remembered(model)
        begin(self, model, cache, memory, **how)

    def counting(self: lm.Watch, *given: Any, clock: Any = time.perf_counter, **how: Any) -> None:
        watch(self, *given, clock=lm.step_clock() if clock is time.perf_counter else clock, **how)

    with pytest.MonkeyPatch.context() as patch:
        if not WHOLE:
            patch.setattr(Speaking, "__init__", remembering)
            patch.setattr(lm.Watch, "__init__", counting)
        yield
