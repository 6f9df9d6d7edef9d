"""The small model in two halves, each with half of the heads and of the inner numbers; a sum is the all-reduce."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from course.figures.words import seconds
from course.lm.cache import Blocks, PagedKV
from course.lm.forward import Layer
from course.lm.loading import FOLDERS, ROOM
from course.lm.prompts import held_out_prompts
from course.lm.speaker import LanguageModel
from course.lm.threads import one_thread
from course.lm.tokenizer import Tokenizer

PARTS = 2
ALL = held_out_prompts()
TOKENS = 20  # of an answer, at most
SUM, NOTHING = "the sum", "nothing"


def _first(kind: str) -> int:
    return next(place for place, prompt in enumerate(ALL) if prompt.kind == kind)


PROMPTS = {"a story": _first("story"), "a dialogue": _first("dialogue"), "how many?": _first("how many"),
           "an addition": _first("add")}  # fmt: skip


class Whole(LanguageModel):
    """The model, its layers timed. seconds: of them since `start`."""

    def __init__(self) -> None:
        super().__init__(FOLDERS["model"], Tokenizer(ROOM / "tokenizer.json"))
        self.seconds = 0.0

    def start(self) -> None:
        """Time anew."""
        self.seconds = 0.0

    def attended(self, *given: Any) -> np.ndarray:
        """See Model."""
        return self._timed(super().attended, *given)

    def fed_forward(self, *given: Any) -> np.ndarray:
        """See Model."""
        return self._timed(super().fed_forward, *given)

    def _timed(self, function: Any, *given: Any) -> np.ndarray:
        begin = time.perf_counter()
        found: np.ndarray = function(*given)
        self.seconds += time.perf_counter() - begin
        return found


class Halves(LanguageModel):
    """The model on two ranks, which this CPU computes one after the other.

    forgets: leave out the second rank's half of each sum, as a missing all-reduce would. seconds: of each rank, and of
    the sums, since `start`. sums: how many there were.
    """

    def __init__(self, forgets: bool = False) -> None:
        super().__init__(FOLDERS["model"], Tokenizer(ROOM / "tokenizer.json"))
        self.forgets = forgets
        self.ranks = [[self.half(layer, rank) for layer in self.layers] for rank in range(PARTS)]
        self.seconds, self.sums = np.zeros(PARTS + 1), 0

    def start(self) -> None:
        """Count and time anew."""
        self.seconds, self.sums = np.zeros(PARTS + 1), 0

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
        self.sums += 1
        if self.forgets:
            return halves[0]
        return self._timed(PARTS, np.add, *halves)

    def _timed(self, place: int, function: Any, *given: Any) -> np.ndarray:
        begin = time.perf_counter()
        found: np.ndarray = function(*given)
        self.seconds[place] += time.perf_counter() - begin
        return found


@dataclass(frozen=True)
class Spoken:
    """How the whole model and its halves begin to answer, and what a step of one token takes on this machine [s].

    sums: all-reduces of a step. size: bytes of one of them. distance: the largest difference of a logit of the first
    token. layers: the whole model's. halves: each half's. adding: the sums. Medians of all steps.
    """

    whole: str
    words: str
    sums: int
    size: int
    distance: float
    layers: float
    halves: tuple[float, float]
    adding: float


@cache
def models(forgets: bool = False) -> tuple[Whole, Halves]:
    """The whole model and its halves."""
    return Whole(), Halves(forgets)


def speak(prompt: str = "a story", add: str = SUM) -> Spoken:
    """Both begin to answer one of PROMPTS. add: SUM, or NOTHING, which leaves out the other rank's half."""
    asked = models()[0].prompt(ALL[PROMPTS[prompt]].turns)
    with one_thread():
        (told, words, whole), (other, other_words, halves) = (_said(one, asked) for one in models(add == NOTHING))
    layers, first, second, adding = np.median(whole, axis=0).tolist() + np.median(halves, axis=0).tolist()
    two = models(add == NOTHING)[1]
    distance = float(np.abs(told - other).max())
    sums = 0 if add == NOTHING else two.sums
    return Spoken(words, other_words, sums, 4 * two.config.hidden_size, distance, layers, (first, second), adding)


def _said(model: Whole | Halves, asked: list[int]) -> tuple[np.ndarray, str, list[np.ndarray]]:
    """Logits of the first token, up to TOKENS tokens as words, and the seconds of the steps of one token."""
    blocks = [list(range(-(-(len(asked) + TOKENS) // 16)))]
    cache = model.paged_kv(len(blocks[0]))
    first = logits = model.forward(asked, [len(asked)], [0], blocks, cache)
    said, times, end = [int(logits.argmax())], list[np.ndarray](), model.tokenizer.end
    while said[-1] != end and len(said) < TOKENS:
        model.start()
        logits = model.forward(said[-1:], [1], [len(asked) + len(said) - 1], blocks, cache)
        times.append(np.atleast_1d(model.seconds).copy())
        said.append(int(logits.argmax()))
    text = model.tokenizer.decode([token for token in said if token != end])
    return first, text if said[-1] == end else f"{text} ...", times


def rows(found: Spoken) -> list[tuple[str, str]]:
    """The table beside the words."""
    return [
        ("", "here"),
        ("all-reduces a step", f"{found.sums}"),
        ("bytes of each", f"{found.size:,}"),
        ("layers, whole model", seconds(found.layers)),
        ("layers, slower half", seconds(max(found.halves))),
        ("the sums", seconds(found.adding)),
        ("the same words", "yes" if found.whole == found.words else "no"),
    ]
