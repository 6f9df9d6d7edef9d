"""Exercises 2 and 3: two edges for buckets, the offsets of a ragged batch, and the wrong answers."""

from __future__ import annotations

from collections.abc import Sequence


def rounded(length: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-length // step) * step


def computed(lengths: Sequence[int], edge: int, longest: int) -> int:
    """Tokens that two buckets with these edges compute."""
    return sum(edge if length <= edge else longest for length in lengths)


def two_edges(lengths: Sequence[int], step: int) -> list[int]:
    """The two edges, multiples of step, with the fewest tokens; the smallest of those that are as good."""
    longest = -(-max(lengths) // step) * step

    def tokens(edge: int) -> int:
        return sum(edge if length <= edge else longest for length in lengths)

    return [min(range(step, longest + 1, step), key=tokens), longest]


def at_half(lengths: Sequence[int], step: int) -> list[int]:
    """Halves the longest, wherever the others are."""
    longest = rounded(max(lengths), step)
    return [rounded(-(-longest // 2), step), longest]


def as_many_in_each(lengths: Sequence[int], step: int) -> list[int]:
    """Puts as many prompts in one bucket as in the other."""
    return [rounded(sorted(lengths)[(len(lengths) - 1) // 2], step), rounded(max(lengths), step)]


def at_a_prompt(lengths: Sequence[int], step: int) -> list[int]:
    """Takes lengths of prompts for edges, which are no multiples."""
    longest = max(lengths)
    return [min(sorted(set(lengths)), key=lambda edge: computed(lengths, edge, longest)), longest]


def second_longest(lengths: Sequence[int], step: int) -> list[int]:
    """Leaves the longest alone."""
    return [rounded(sorted(lengths)[-2], step), rounded(max(lengths), step)]


def fewest(lengths: Sequence[int], step: int) -> int:
    """Twin: the tokens that the best two edges compute."""
    longest = -(-max(lengths) // step) * step
    edges = range(step, longest + 1, step)
    return min(sum(edge if length <= edge else longest for length in lengths) for edge in edges)


def padding_alone(lengths: Sequence[int], step: int) -> int:
    """What is padding of them."""
    return fewest(lengths, step) - sum(lengths)


def fewest_at_half(lengths: Sequence[int], step: int) -> int:
    """The tokens with an edge at half of the longest."""
    return computed(lengths, *at_half(lengths, step))


def pack(decodes: int, prompts: Sequence[int]) -> list[int]:
    """The first row of each request, decodes first with a row each, and last the number of rows."""
    offsets = [0]
    for tokens in [1] * decodes + list(prompts):
        offsets.append(offsets[-1] + tokens)
    return offsets


def off_by_one(decodes: int, prompts: Sequence[int]) -> list[int]:
    """Where each request begins, and not where the last one ends."""
    return pack(decodes, prompts)[:-1]


def last_rows(decodes: int, prompts: Sequence[int]) -> list[int]:
    """The last row of each in place of the first row of the next."""
    return [0, *(end - 1 for end in pack(decodes, prompts)[1:])]


def keeps_padding(decodes: int, prompts: Sequence[int]) -> list[int]:
    """All prompts as long as the longest."""
    return pack(decodes, [max(prompts, default=0)] * len(prompts))


def drops_empty(decodes: int, prompts: Sequence[int]) -> list[int]:
    """Leaves out prompts without a token, so that the offsets behind are those of others."""
    return pack(decodes, [tokens for tokens in prompts if tokens])


def forgets_decodes(decodes: int, prompts: Sequence[int]) -> list[int]:
    """The prompts alone."""
    return pack(0, prompts)


def lengths_for_offsets(decodes: int, prompts: Sequence[int]) -> list[int]:
    """Lengths in place of their sums."""
    return [1] * decodes + list(prompts)


def pack_last(decodes: int, prompts: Sequence[int]) -> list[int]:
    """Twin: the row of each request's last token, -1 for one without tokens."""
    rows, end = [], 0
    for tokens in [1] * decodes + list(prompts):
        end += tokens
        rows.append(end - 1 if tokens > 0 else -1)
    return rows


def last_of_nothing(decodes: int, prompts: Sequence[int]) -> list[int]:
    """Gives a request without tokens the last row of the one before."""
    return [end - 1 for end in pack(decodes, prompts)[1:]]


LENGTHS = [
    [[100, 120, 900, 110], 64],
    [[16, 16, 16, 512], 16],
    [[300, 310, 320, 640, 660, 1_000], 16],
    [[40, 80, 160, 320, 640], 8],
    [[50, 700, 710, 720], 32],
    [[200, 210, 220, 230, 240, 900, 950, 1_000], 128],
    [[33, 65, 129, 257], 1],
    [[64, 128, 128, 640], 64],
    [[60, 62, 64], 64],
    [[1, 1, 2], 1],
    [[7, 8, 9, 10, 11, 12], 4],
    [[5, 30, 31, 90], 1],
]
STEPS = [[0, [3, 1, 2]], [2, [4, 0, 3]], [3, [7]], [1, [0, 5]], [0, [6, 6, 0]], [4, []], [1, [2, 9, 2, 1]]]
