"""Blocks held in each step, from what was written down of a run: for a pool that kept no count of its own."""

import numpy as np

from course.memory.block_pool import blocks_for


def reserved(steps: int, stays: np.ndarray, tokens: np.ndarray, block_size: int) -> np.ndarray:
    """Of `steps` steps, shape (steps,): each stay (request, first step, last step) holds blocks for so many tokens."""
    change = np.zeros(steps + 1, dtype=np.int64)
    np.add.at(change, stays[:, 1], blocks_for(tokens, block_size))
    np.subtract.at(change, stays[:, 2] + 1, blocks_for(tokens, block_size))
    return np.cumsum(change)[:-1]


def one_by_one(
    steps: int,
    chunks: np.ndarray,
    decodes: np.ndarray,
    more: np.ndarray,
    stays: np.ndarray,
    computed: np.ndarray,
    block_size: int,
) -> np.ndarray:
    """Of `steps` steps, shape (steps,): blocks are taken token by token, and come home in the step after a stay.

    chunks, decodes, more, stays: rows of a Log. computed: tokens in the cache at the end of each stay.
    """
    change = np.zeros(steps + 1, dtype=np.int64)
    _, step, tokens, cached = chunks.T
    np.add.at(change, step, blocks_for(cached + tokens, block_size) - blocks_for(cached, block_size))
    # A decode takes a block in each step that finds its last one full: known - 1 + j a multiple of the size.
    _, first, last, known = decodes.T
    wait = (1 - known) % block_size
    many = np.maximum(0, (last - first - wait) // block_size + 1)
    each = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    np.add.at(change, np.repeat(first + wait, many) + each * block_size, 1)
    # What left besides, with accepted drafts, is held from the next step on.
    _, step, cached, tokens = more.T
    np.add.at(change, step + 1, blocks_for(cached + tokens, block_size) - blocks_for(cached, block_size))
    np.subtract.at(change, stays[:, 2] + 1, blocks_for(computed, block_size))
    return np.cumsum(change)[:-1]
