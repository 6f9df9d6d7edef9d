"""The attention of one layer, which labs launch: right in NumPy, and with arguments that the kernel takes."""

from __future__ import annotations

import numpy as np
import pytest

from course import gpu
from course.gpu.one_layer import HEADS, attention, in_numpy, on_a_gpu
from course.gpu.queues import queue

KV_HEADS = (32, 8, 4)


@pytest.mark.parametrize("kv_heads", KV_HEADS)
def test_the_attention_is_right(kv_heads: int) -> None:
    """Against a softmax over each query head by itself; float32 sums of 64 terms leave about 1e-6 of the values."""
    rng = np.random.default_rng(1)
    pool = rng.standard_normal((2, 4, 16, kv_heads, 128), dtype=np.float32)
    table, queries = rng.permutation(4), rng.standard_normal((kv_heads, 32 // kv_heads, 128), dtype=np.float32)
    found = attention(pool, table, queries, np.empty_like(pool))
    keys, values = (one[table].reshape(64, kv_heads, 128).astype(float) for one in pool)
    for kv in range(kv_heads):
        for query, got in zip(queries[kv].astype(float), found[kv], strict=True):
            weights = np.exp(keys[:, kv] @ query / 128**0.5)
            assert got == pytest.approx(weights @ values[:, kv] / weights.sum(), abs=1e-5)


def test_each_sequence_gets_its_own_attention() -> None:
    found = in_numpy(32, 8, sequences=3)()
    assert [each.shape for each in found] == [(8, HEADS // 8, 128)] * 3
    assert len({round(float(each.sum()), 4) for each in found}) == 3


def test_blocks_that_lie_together_are_read_as_they_lie() -> None:
    """Of one sequence whose blocks are in order the two ways read the same; of several each reads its own piece."""
    together = in_numpy(16, 8, sequences=1, scattered=False)()[0]
    assert together == pytest.approx(in_numpy(16, 8, sequences=1)()[0], abs=1e-6)  # one block has one order
    assert len({round(float(each.sum()), 4) for each in in_numpy(32, 8, sequences=3, scattered=False)()}) == 3
    on_a_gpu(queue(gpu.device("numpy")), 64, 8, 4, scattered=False)()


@pytest.mark.parametrize("sequences", [1, 32])
def test_what_a_gpu_is_given_is_the_attention_of_a_batch(sequences: int) -> None:
    """The course's kernel takes these arguments; where there is no GPU its NumPy form does."""
    for kv_heads in KV_HEADS:
        on_a_gpu(queue(gpu.device("numpy")), 64, kv_heads, sequences)()


@pytest.mark.parametrize("context", [0, -16, 15, 20, 16.5])
def test_a_context_that_does_not_fill_its_blocks(context: float) -> None:
    """Its last tokens would have no block, and a kernel would read behind the table."""
    with pytest.raises(ValueError, match="context must be"):
        in_numpy(context, 8)
    with pytest.raises(ValueError, match="context must be"):
        on_a_gpu(queue(gpu.device("numpy")), context, 8, 4)
