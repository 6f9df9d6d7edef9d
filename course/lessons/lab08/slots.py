"""Exercise "slots" of lab 08: as many slots as the pool holds with room to spare, and the usual wrong ways."""

from math import ceil, sqrt

import numpy as np

from course.lessons.lab08 import kv_pool


def _most(num_blocks, blocks, deviations=2, ddof=0):
    """The largest n, at least 1, whose n sequences fit with so many standard deviations to spare."""
    mean, deviation, n = blocks.mean(), blocks.std(ddof=ddof), 1
    while (n + 1) * mean + deviations * sqrt(n + 1) * deviation <= num_blocks:
        n += 1
    return n


def _blocks(block_size, tokens):
    return np.ceil(np.asarray(tokens) / block_size)


def slots(num_blocks, block_size, tokens):
    """The most slots whose sequences need at most `num_blocks`, two standard deviations above their mean."""
    return _most(num_blocks, _blocks(block_size, tokens))


def forgets_the_spread(num_blocks, block_size, tokens):
    """As many as fit on average."""
    return int(num_blocks / _blocks(block_size, tokens).mean())


def without_the_root(num_blocks, block_size, tokens):
    """Two deviations for every sequence."""
    blocks = _blocks(block_size, tokens)
    return int(num_blocks / (blocks.mean() + 2 * blocks.std()))


def for_the_longest(num_blocks, block_size, tokens):
    """As many as fit if all are as long as the longest."""
    return max(1, int(num_blocks / ceil(max(tokens) / block_size)))


def without_rounding(num_blocks, block_size, tokens):
    """Parts of blocks are counted."""
    return _most(num_blocks, np.asarray(tokens) / block_size)


def rounds_down(num_blocks, block_size, tokens):
    """The last block of a sequence is forgotten."""
    return _most(num_blocks, np.asarray(tokens) // block_size)


def one_too_many(num_blocks, block_size, tokens):
    """One more than fits."""
    return slots(num_blocks, block_size, tokens) + 1


def with_the_samples_deviation(num_blocks, block_size, tokens):
    """The deviation with the divisor n - 1."""
    return _most(num_blocks, _blocks(block_size, tokens), ddof=1)


def three_deviations(num_blocks, block_size, tokens):
    """The same with three standard deviations to spare: the twin."""
    return _most(num_blocks, _blocks(block_size, tokens), deviations=3)


PROBES = (
    (kv_pool.BLOCKS, 16, kv_pool.tokens_held().tolist()),
    (500, 64, [10, 20, 70, 130] * 25),
    (200, 16, [33, 33, 33, 40]),
    (120, 16, [20, 60, 200]),  # few and far apart: here every slip has a result of its own
    (6, 16, [32, 32]),  # three fit to the last block
    (229, 16, [37, 550]),
    (318, 64, [577, 501, 577, 86, 687, 35, 61, 20]),
    (3_167, 1, [121, 583, 766]),
    (10_304, 1, [833, 349]),
)
