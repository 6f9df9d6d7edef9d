"""One batch in three shapes: what each computes, reads and keeps in a step of Llama-3.1-8B over its prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from course.base.settings import whole
from course.lessons.lab11 import batch
from course.lessons.lab11.batch import EDGES, HALVED, MEAN, SEED, SPREAD, Lengths
from course.models import model

MODEL = model("llama-3.1-8b")
PRODUCTS = 2 * MODEL.layer_parameters
"""FLOPs of the matrix products of all layers, a token; those of the head are once a prompt."""
PAIR = MODEL.attention_flops_per_pair
"""FLOPs of attention in all layers, a pair of tokens."""
MOST_BUCKETS = 12


@dataclass(frozen=True)
class Shape:
    """The lengths that are computed, a list for each launch."""

    groups: tuple[tuple[int, ...], ...]

    @cached_property
    def tokens(self) -> int:
        """Tokens that are computed, padding included."""
        return batch.tokens(self.groups)

    @cached_property
    def pairs(self) -> int:
        """Pairs of causal attention."""
        return batch.pairs(self.groups)

    @property
    def flops(self) -> float:
        """Of a step over all layers: products and attention."""
        return PRODUCTS * self.tokens + PAIR * self.pairs

    @property
    def weight_bytes(self) -> float:
        """Weights that are read: once for each launch."""
        return MODEL.step_weight_bytes * len(self.groups)

    @property
    def kv_bytes(self) -> float:
        """Keys and values that are written, those of padding too."""
        return MODEL.kv_bytes_per_token * self.tokens


@dataclass(frozen=True)
class OneBatch:
    """The same prompts as a rectangle, in buckets, and packed."""

    mix: str
    spread: float
    buckets: int
    edges: str
    prompts: Lengths

    @property
    def packed(self) -> Shape:
        """One behind the other."""
        return Shape((self.prompts,))

    @property
    def rectangle(self) -> Shape:
        """All as long as the longest."""
        return self.bucketed([max(self.prompts)])

    @property
    def in_buckets(self) -> Shape:
        """Each as long as the edge above it."""
        return self.bucketed(self.limits)

    @property
    def limits(self) -> list[int]:
        """The edges of the buckets."""
        return EDGES[self.edges](max(self.prompts), self.buckets)

    def bucketed(self, edges: Sequence[int]) -> Shape:
        """In buckets with these edges."""
        return Shape(tuple(map(tuple, batch.padded(self.prompts, edges))))


def one_batch(mix: str = SPREAD, spread: float = 1.0, buckets: int = 4, edges: str = HALVED,
              seed: int = SEED) -> OneBatch:  # fmt: skip
    """32 prompts of MEAN tokens on average. buckets: 1 to 12. edges: a key of EDGES."""
    prompts = batch.lengths(mix, spread, MEAN, seed)
    return OneBatch(mix, spread, whole("buckets", buckets, high=MOST_BUCKETS), edges, prompts)


def rows(found: OneBatch) -> list[tuple[str, ...]]:
    """What is computed, read and written."""
    shapes = (found.rectangle, found.in_buckets, found.packed)
    return [
        ("", "rectangle", "buckets", "ragged"),
        ("tokens computed", *(f"{one.tokens:,}" for one in shapes)),
        ("products [TFLOP]", *(f"{PRODUCTS * one.tokens / 1e12:,.0f}" for one in shapes)),
        ("attention [TFLOP]", *(f"{PAIR * one.pairs / 1e12:,.1f}" for one in shapes)),
        ("weights read [GB]", *(f"{one.weight_bytes / 1e9:,.0f}" for one in shapes)),
        ("K and V written [GB]", *(f"{one.kv_bytes / 1e9:,.1f}" for one in shapes)),
    ]
