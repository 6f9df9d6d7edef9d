"""The small model in two halves: each has half of the heads and half of the inner numbers, and a sum is the all-reduce."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from course import lm
from course.lm.cache import Blocks, PagedKV
from course.lm.forward import Layer
from course.lm.loading import FOLDERS, ROOM
from course.lm.prompts import held_out_prompts
from course.lm.speaker import LanguageModel
from course.lm.tokenizer import Tokenizer

PARTS = 2
ALL = held_out_prompts()
TOKENS = 24  # of an answer that are timed


def _first(kind: str) -> int:
    return next(place for place, prompt in enumerate(ALL) if prompt.kind == kind)


PROMPTS = {"a story": _first("story"), "a dialogue": _first("dialogue"), "how many?": _first("how many"),
           "an addition": _first("add")}  # fmt: skip


class Halves(LanguageModel):
    """The model on two ranks, which this CPU computes one after the other.

    forgets: leave out the second rank's half of each sum, as a wrong all-reduce would. seconds: of each rank, and of
    the sums, since `forget_times`. sums, bytes: how many sums there were, and of how many bytes in all.
    """

    def __init__(self, forgets: bool = False) -> None:
        super().__init__(FOLDERS["model"], Tokenizer(ROOM / "tokenizer.json"))
        self.forgets = forgets
        self.ranks = [[self.half(layer, rank) for layer in self.layers] for rank in range(PARTS)]
        self.forget_times()

    def forget_times(self) -> None:
        """Start counting anew."""
        self.seconds, self.sums, self.bytes = np.zeros(PARTS + 1), 0, 0

    def half(self, layer: Layer, rank: int) -> Layer:
        """What one rank keeps of a layer: columns of what comes first, rows of what comes last."""
        config = self.config
        q, kv = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
        queries, keys, values = np.split(layer.qkv, [q, q + kv], axis=1)
        gate, up = np.split(layer.gate_up, 2, axis=1)

        def own(weight: np.ndarray, axis: int) -> np.ndarray:
            return np.ascontiguousarray(np.split(weight, PARTS, axis=axis)[rank])

        return replace(
            layer,
            qkv=np.hstack([own(part, 1) for part in (queries, keys, values)]),
            output=own(layer.output, 0),
            gate_up=np.hstack([own(part, 1) for part in (gate, up)]),
            down=own(layer.down, 0),
        )

    def forward(
        self,
        tokens: Sequence[int] | np.ndarray,
        counts: Sequence[int] | np.ndarray,
        computed: Sequence[int] | np.ndarray,
        block_tables: Sequence[Sequence[int]] | np.ndarray,
        cache: Blocks,
        *,
        every: bool = False,
    ) -> np.ndarray:
        """See Model: the same step, from two halves of each layer."""
        assert isinstance(cache, PagedKV)
        tokens, rows = self._checked(tokens, counts, computed, block_tables, cache)
        x = self.embedding[tokens]
        for place, (keys, values) in enumerate(zip(cache.keys, cache.values, strict=True)):
            own = [(part[:, :, :1], part[:, :, 1:]) for part in (keys, values)]  # a KV head for each rank
            x = x + self.all_reduce(
                [self._timed(rank, self.attended, x, self.ranks[rank][place], own[0][rank], own[1][rank], rows)
                 for rank in range(PARTS)]
            )  # fmt: skip
            x = x + self.all_reduce(
                [self._timed(rank, self.fed_forward, x, self.ranks[rank][place]) for rank in range(PARTS)]
            )
        return self._normed(x if every else x[rows.ends - 1], self.norm) @ self.unembedding

    def all_reduce(self, halves: list[np.ndarray]) -> np.ndarray:
        """The sum of what the ranks add, which both need before they go on."""
        self.sums, self.bytes = self.sums + 1, self.bytes + halves[0].nbytes
        if self.forgets:
            return halves[0]
        return self._timed(PARTS, np.add, *halves)

    def _timed(self, place: int, function: Any, *given: Any) -> np.ndarray:
        start = time.perf_counter()
        found: np.ndarray = function(*given)
        self.seconds[place] += time.perf_counter() - start
        return found


@dataclass(frozen=True)
class Spoken:
    """Answers of the whole model and of its halves, and what the halves did. Seconds a token, on this machine."""

    whole: str
    halves: str
    sums: int
    """All-reduces of a step."""
    bytes: int
    """Of one of them, in a step of one token."""
    distance: float
    """Largest difference of a logit, of those of the last prompt token."""
    seconds: tuple[float, float, float, float]
    """The whole model's layers and head; each half's layers; the sums. The median of some tokens."""


@cache
def models(forgets: bool = False) -> tuple[LanguageModel, Halves]:
    """The whole model and its halves."""
    return lm.load(), Halves(forgets)


def speak(prompt: str = "a story", add: str = "all-reduce") -> Spoken:
    """Both answer one of PROMPTS. add: "all-reduce", or "nothing", which leaves out the other rank's half."""
    whole, halves = models(add == "nothing")
    turns = ALL[PROMPTS[prompt]].turns
    asked = whole.prompt(turns)
    blocks = [list(range(-(-(len(asked) + TOKENS + 1) // 16)))]
    caches = [model.paged_kv(len(blocks[0])) for model in (whole, halves)]
    logits = [model.forward(asked, [len(asked)], [0], blocks, own)
              for model, own in zip((whole, halves), caches, strict=True)]  # fmt: skip
    token, times = int(logits[0].argmax()), []
    for place in range(TOKENS):
        at = [[token], [1], [len(asked) + place], blocks]
        start = time.perf_counter()
        told = whole.forward(*at, caches[0])
        alone = time.perf_counter() - start
        halves.forget_times()
        halves.forward(*at, caches[1])
        times.append([alone, *halves.seconds])
        token = int(told.argmax())
    return Spoken(
        whole.answer(turns), halves.answer(turns), halves.sums, 0 if not halves.sums else whole.config.hidden_size * 4,
        float(np.abs(logits[0] - logits[1]).max()), tuple(np.median(times, axis=0).tolist()),
    )  # fmt: skip
