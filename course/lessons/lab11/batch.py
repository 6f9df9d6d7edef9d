"""32 prompts of unequal length, and the shapes in which they are launched: rectangle, buckets, packed, each alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from course.base.settings import quote, real, whole

REQUESTS = 32
SPREAD, ONE_LONG = MIXES = ("many lengths", "one long")
RECTANGLE, BUCKETS, PACKED, ALONE = LAYOUTS = ("rectangle", "four buckets", "packed", "each alone")
HALVED, EQUAL = "halved", "equal steps"
MEAN, SEED = 256, 1
"""Tokens of a prompt on average: together 8,192, a whole step at vLLM's default on this card."""
SPREADS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""Coefficients of variation that were recorded."""
MEANS = (128, 256, 512, 1_024)

Lengths = tuple[int, ...]


@cache
def lengths(mix: str = SPREAD, spread: float = 1.0, mean: int = MEAN, seed: int = SEED) -> Lengths:
    """Tokens of each prompt; together REQUESTS x mean, whatever the spread.

    spread: the coefficient of variation, standard deviation over mean; of the lognormal that a spread of lengths is
    drawn from, exactly with one long prompt. seed: of that draw. Raises ValueError for a mix that there is not.
    """
    mix, spread, mean = _known("mix", mix, MIXES), real("spread", spread, low=0, high=5), whole("mean", mean)
    if mix == ONE_LONG:
        more = spread * mean * REQUESTS / (REQUESTS - 1) ** 0.5  # what the long one has more than each of the others
        shares = np.full(REQUESTS, mean - more / REQUESTS)
        shares[0] += more
    else:
        drawn = np.random.default_rng(seed).standard_normal(REQUESTS)
        shares = np.exp(np.sqrt(np.log1p(spread**2)) * drawn)
        shares *= REQUESTS * mean / shares.sum()
    return _whole(shares, REQUESTS * mean)


def _known(name: str, value: str, there: Sequence[str]) -> str:
    if value not in there:
        raise ValueError(f"{name} is one of {', '.join(there)}, not {quote(value)}")
    return value


def _whole(shares: np.ndarray, total: int) -> Lengths:
    """Whole tokens, at least one each, that add up to the total: the largest remainders are rounded up."""
    found = np.maximum(np.floor(shares), 1).astype(int)
    order = np.argsort(found - shares, kind="stable")
    while (missing := total - int(found.sum())) > 0:
        found[order[:missing]] += 1
    if missing < 0:  # what lengths below one token took
        found[np.argmax(found)] += missing
    return tuple(int(one) for one in found)


def halved(longest: int, buckets: int) -> list[int]:
    """Edges of which each is half of the next: longest, longest / 2, longest / 4, ..., rounded up."""
    return [-(-longest // 2**i) for i in reversed(range(buckets))]


def equal_steps(longest: int, buckets: int) -> list[int]:
    """Edges at equal distances up to the longest, rounded up."""
    return [-(-longest * i // buckets) for i in range(1, buckets + 1)]


EDGES: dict[str, Callable[[int, int], list[int]]] = {HALVED: halved, EQUAL: equal_steps}


def padded(prompts: Sequence[int], edges: Sequence[int]) -> list[list[int]]:
    """The lengths that are computed, bucket by bucket: each prompt as long as the smallest edge that holds it.

    A bucket that nobody needs is left out. Raises ValueError for a prompt that no edge holds.
    """
    if max(prompts) > max(edges):
        raise ValueError(f"a prompt of {max(prompts):,} tokens is longer than the largest bucket, of {max(edges):,}")
    edges = sorted(edges)
    groups: dict[int, list[int]] = {}
    for length in prompts:
        edge = next(edge for edge in edges if edge >= length)
        groups.setdefault(edge, []).append(edge)
    return [groups[edge] for edge in edges if edge in groups]


def launches(prompts: Sequence[int], layout: str) -> list[list[int]]:
    """The lengths that a layout computes, a list for each launch. Raises ValueError for a layout that there is not."""
    layout = _known("layout", layout, LAYOUTS)
    if layout == PACKED:
        return [list(prompts)]
    if layout == ALONE:
        return [[length] for length in prompts]
    return padded(prompts, halved(max(prompts), 4 if layout == BUCKETS else 1))


def tokens(groups: Sequence[Sequence[int]]) -> int:
    """Tokens that are computed, padding included."""
    return sum(map(sum, groups))


def pairs(groups: Sequence[Sequence[int]]) -> int:
    """Query-key pairs of causal attention that are computed: n (n + 1) / 2 for a prompt of n tokens."""
    return sum(n * (n + 1) // 2 for group in groups for n in group)
