"""Exercise "slots" of lab 08: as many slots as the pool holds with room to spare, and the usual wrong ways."""

from math import ceil, sqrt

import numpy as np

from course.exercises.spec import Exercise, Mistake
from course.lessons.lab08 import kv_pool


def slots(num_blocks, block_size, tokens):
    """The most slots whose sequences need at most `num_blocks`, two standard deviations above their mean."""
    blocks = np.ceil(np.asarray(tokens) / block_size)
    mean, deviation, n = blocks.mean(), blocks.std(), 1
    while (n + 1) * mean + 2 * sqrt(n + 1) * deviation <= num_blocks:
        n += 1
    return n


def _forgets_the_spread(num_blocks, block_size, tokens):
    return int(num_blocks / np.ceil(np.asarray(tokens) / block_size).mean())


def _without_the_root(num_blocks, block_size, tokens):
    blocks = np.ceil(np.asarray(tokens) / block_size)
    return int(num_blocks / (blocks.mean() + 2 * blocks.std()))


def _for_the_longest(num_blocks, block_size, tokens):
    return max(1, int(num_blocks / ceil(max(tokens) / block_size)))


def _without_rounding(num_blocks, block_size, tokens):
    parts = np.asarray(tokens) / block_size
    n = 1
    while (n + 1) * parts.mean() + 2 * sqrt(n + 1) * parts.std() <= num_blocks:
        n += 1
    return n


def _rounds_down(num_blocks, block_size, tokens):
    blocks = np.asarray(tokens) // block_size
    n = 1
    while (n + 1) * blocks.mean() + 2 * sqrt(n + 1) * blocks.std() <= num_blocks:
        n += 1
    return n


def _one_too_many(num_blocks, block_size, tokens):
    return slots(num_blocks, block_size, tokens) + 1


def three_deviations(num_blocks, block_size, tokens):
    """The same with three standard deviations to spare: the twin."""
    blocks = np.ceil(np.asarray(tokens) / block_size)
    n = 1
    while (n + 1) * blocks.mean() + 3 * sqrt(n + 1) * blocks.std() <= num_blocks:
        n += 1
    return n


PROBES = (
    (kv_pool.BLOCKS, 16, kv_pool.tokens_held().tolist()),
    (500, 64, [10, 20, 70, 130] * 25),
    (200, 16, [33, 33, 33, 40]),
)

SLOTS = Exercise(
    "slots",
    "as many slots as the pool holds",
    solution=slots,
    probes=PROBES,
    rtol=1e-6,
    mistakes=(
        Mistake(
            _forgets_the_spread,
            "That many fit on average, so half of the time they do not. Leave two standard deviations.",
        ),
        Mistake(
            _without_the_root,
            "You give every sequence two standard deviations. Long and short ones make up for each other: the "
            "deviation of a sum of n grows with the root of n.",
        ),
        Mistake(_for_the_longest, "That is the worst case: every sequence as long as the longest."),
        Mistake(_without_rounding, "A sequence takes whole blocks: round each one up to blocks before you average."),
        Mistake(_rounds_down, "The last block of a sequence is taken even if it is not full: round up."),
        Mistake(_one_too_many, "One too many: that number no longer fits the inequality."),
    ),
    hint="Turn each length into blocks, then find the largest n by trying.",
    plain="Start with n = 1. While n + 1 still fits the inequality, add 1 to n. Mean and standard deviation are those "
    "of the blocks, rounded up for each sequence, and the deviation is multiplied by the square root of the count.",
    twin=Exercise(
        "slots",
        "slots with three standard deviations",
        solution=three_deviations,
        probes=PROBES,
        rtol=1e-6,
        mistakes=(
            Mistake(slots, "That leaves two standard deviations. Leave three."),
            Mistake(_forgets_the_spread, "That many fit on average, so half of the time they do not."),
        ),
        hint="The same search, with a larger margin.",
        plain="Change the factor before the square root, and nothing else.",
        question="Write `slots` so that it leaves three standard deviations instead of two.",
    ),
)
