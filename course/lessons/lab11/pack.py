"""Exercises 2 and 3: two edges for buckets, a ragged batch from requests, and the wrong answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from course.lessons.lab11 import batch

Packed = tuple[list[int], list[int]]


def computed(lengths: Sequence[int], edges: Sequence[int]) -> int:
    """Tokens that are computed with buckets of these edges."""
    return batch.tokens(batch.padded(lengths, edges))


def two_edges(lengths: Sequence[int]) -> list[int]:
    """The two edges with the fewest tokens: one of the lengths, the smaller one of a tie, and the longest."""
    longest = max(lengths)
    return [min((computed(lengths, [edge, longest]), edge) for edge in set(lengths))[1], longest]


def at_half(lengths: Sequence[int]) -> list[int]:
    """Halves the longest, wherever the others are."""
    return [max(lengths) // 2, max(lengths)]


def as_many_in_each(lengths: Sequence[int]) -> list[int]:
    """Puts as many prompts in one bucket as in the other."""
    return [sorted(lengths)[(len(lengths) - 1) // 2], max(lengths)]


def at_the_mean(lengths: Sequence[int]) -> list[int]:
    """Ends the first bucket at the longest prompt that is no longer than the mean."""
    mean = sum(lengths) / len(lengths)
    return [max(one for one in lengths if one <= mean), max(lengths)]


def second_longest(lengths: Sequence[int]) -> list[int]:
    """Leaves the longest alone."""
    return [sorted(set(lengths))[-2:][0], max(lengths)]


def fewest(lengths: Sequence[int]) -> int:
    """Twin: the tokens that the best two edges compute."""
    return computed(lengths, two_edges(lengths))


def padding_alone(lengths: Sequence[int]) -> int:
    """What is padding of them."""
    return fewest(lengths) - sum(lengths)


def fewest_at_half(lengths: Sequence[int]) -> int:
    """The tokens with an edge at half of the longest, rounded up."""
    return computed(lengths, batch.halved(max(lengths), 2))


def pack(requests: Sequence[Sequence[int]]) -> Packed:
    """All tokens behind one another, and where each request begins; the last offset is the number of tokens."""
    tokens: list[int] = []
    offsets = [0]
    for request in requests:
        tokens.extend(request)
        offsets.append(len(tokens))
    return tokens, offsets


def off_by_one(requests: Sequence[Sequence[int]]) -> Packed:
    """Where each request begins, and not where the last one ends."""
    tokens, offsets = pack(requests)
    return tokens, offsets[:-1]


def last_rows(requests: Sequence[Sequence[int]]) -> Packed:
    """The last row of each in place of the first row of the next."""
    tokens, offsets = pack(requests)
    return tokens, [0, *(end - 1 for end in offsets[1:])]


def keeps_padding(requests: Sequence[Sequence[int]]) -> Packed:
    """All as long as the longest, behind one another."""
    longest = max(map(len, requests), default=0)
    tokens = [token for request in requests for token in [*request, *[0] * (longest - len(request))]]
    return tokens, [longest * i for i in range(len(requests) + 1)]


def drops_empty(requests: Sequence[Sequence[int]]) -> Packed:
    """Leaves out requests without a token, so that the offsets behind are those of others."""
    return pack([request for request in requests if request])


def lengths_for_offsets(requests: Sequence[Sequence[int]]) -> Packed:
    """Lengths in place of their sums."""
    return pack(requests)[0], [len(request) for request in requests]


def pack_last(requests: Sequence[Sequence[int]]) -> Packed:
    """Twin: the row of each request's last token in place of the offsets, -1 for one without tokens."""
    tokens, offsets = pack(requests)
    return tokens, [end - 1 if end > begin else -1 for begin, end in pairwise(offsets)]


def last_of_nothing(requests: Sequence[Sequence[int]]) -> Packed:
    """Gives a request without tokens the last row of the one before."""
    tokens, offsets = pack(requests)
    return tokens, [end - 1 for end in offsets[1:]]


LENGTHS = [
    [[100, 120, 900, 110]],
    [[16, 16, 16, 512]],
    [[300, 310, 320, 640, 660, 1_000]],
    [[40, 80, 160, 320, 640]],
    [[50, 700, 710, 720]],
    [[200, 210, 220, 230, 240, 900, 950, 1_000]],
]
REQUESTS = [
    [[[5, 6], [7], [8, 9, 10]]],
    [[[1, 2, 3], [], [4]]],
    [[[3], [4, 5, 6, 7]]],
    [[[], [2, 2]]],
    [[[9, 8, 7], [6, 5, 4], []]],
]
