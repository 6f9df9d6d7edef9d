"""A prompt in chunks, ready to launch: one matrix product and one layer's attention for each of its chunks.

On a GPU the course's own attention and the vendor's product; on a CPU a smaller pair in NumPy, on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.device import Device, Stopwatch
from course.gpu.one_layer import BLOCK, GPU_KIND, HEADS, WIDTH
from course.gpu.ops import numbers, product
from course.gpu.ops.prefill_attention import PrefillAttention, checked_chunks
from course.gpu.queues import queue

ROWS_AT_ONCE = 32
"""Queries whose scores NumPy computes at a time: as many in every chunk, so that none computes more that is masked."""


def attention(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, cached: int) -> np.ndarray:
    """Causal attention of a chunk behind `cached` tokens, in NumPy: shape of the queries.

    queries: (heads, tokens, width). keys, values: (cached + tokens, width), which all heads share.
    """
    out = np.empty_like(queries)
    for first in range(0, queries.shape[1], ROWS_AT_ONCE):
        rows = queries[:, first : first + ROWS_AT_ONCE]
        last = first + rows.shape[1]
        visible = cached + last  # by the last of these rows
        scores = rows @ keys[:visible].T / queries.shape[-1] ** 0.5
        hidden = np.arange(visible) > cached + np.arange(first, last)[:, None]
        scores[:, hidden] = -np.inf
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        out[:, first:last] = weights / weights.sum(axis=2, keepdims=True) @ values[:visible]
    return out


class OnACpu:
    """float32 in NumPy. tokens: of the prompt. MATRIX: outputs and inputs of the product."""

    MATRIX, HEADS, WIDTH = (1_024, 1_024), 2, 64

    def __init__(self, device: Device, tokens: int) -> None:
        self.device, self.tokens = device, whole("tokens", tokens)
        rng = np.random.default_rng(0)

        def random_array(*shape: int) -> np.ndarray:
            return rng.standard_normal(shape, dtype=np.float32)

        self._w, self._x = random_array(*self.MATRIX), random_array(tokens, self.MATRIX[1])
        self._out = np.empty((tokens, self.MATRIX[0]), np.float32)
        self._q, self._k, self._v = random_array(self.HEADS, tokens, self.WIDTH), *random_array(2, tokens, self.WIDTH)

    def stopwatch(self) -> Stopwatch:
        """A stopwatch for these launches."""
        return self.device.stopwatch()

    def steps(self, chunk: int) -> list[Callable[[], Any]]:
        """A launch for each chunk of the prompt, in their order. Raises ValueError for a chunk of no token."""
        chunk = whole("chunk", chunk)
        return [self._step(cached, cached + chunk) for cached in range(0, self.tokens, chunk)]

    def _step(self, cached: int, end: int) -> Callable[[], Any]:
        def launch() -> None:
            np.matmul(self._x[cached:end], self._w.T, out=self._out[cached:end])
            attention(self._q[:, cached:end], self._k[:end], self._v[:end], cached)

        return launch


class OnAGpu:
    """bf16 by kernels, with the sizes of an 8B model. tokens: of the prompt. Raises KernelError."""

    MATRIX, KV_HEADS = (28_672, 4_096), 8

    def __init__(self, device: Device, tokens: int) -> None:
        self.device, self.tokens = device, whole("tokens", tokens)
        self._queue = queue(device)
        rng = np.random.default_rng(0)

        def random_array(*shape: int) -> Any:
            """Random numbers, the same in every eighth of the array: to draw all would take seconds."""
            some = rng.standard_normal((-(-shape[0] // 8), *shape[1:]), dtype=np.float32)
            return device.to_device(np.concatenate([numbers.encode(some, GPU_KIND)] * 8)[: shape[0]])

        blocks, heads = -(-tokens // BLOCK), (self.KV_HEADS, BLOCK, WIDTH)
        self._w, self._k, self._v = (
            random_array(*self.MATRIX),
            random_array(blocks, *heads),
            random_array(blocks, *heads),
        )
        self._random_array, self._blocks = random_array, blocks
        self._table = device.to_device(rng.permutation(blocks)[None].astype(np.int32))
        self._op = PrefillAttention(
            self._queue, heads=HEADS, kv_heads=self.KV_HEADS, width=WIDTH, kind=GPU_KIND, max_parts=128
        )

    def stopwatch(self) -> Stopwatch:
        """A stopwatch for these launches."""
        return self._queue.stopwatch()

    def steps(self, chunk: int) -> list[Callable[[], Any]]:
        """See OnACpu. Raises KernelError."""
        chunk = whole("chunk", chunk)
        rows = min(chunk, self.tokens)
        x, q = self._random_array(rows, self.MATRIX[1]), self._random_array(rows, HEADS, WIDTH)
        room = self.device.empty((rows, self.MATRIX[0]), numbers.dtype(GPU_KIND)), self.device.empty(q.shape, q.dtype)
        return [
            self._step(cached, min(chunk, self.tokens - cached), x, q, *room) for cached in range(0, self.tokens, chunk)
        ]

    def _step(self, cached: int, count: int, x: Any, q: Any, out: Any, attended: Any) -> Callable[[], Any]:
        listed, op = [(0, count, cached, 0)], self._op
        slabs = op.slabs(listed)
        chunks = self.device.to_device(checked_chunks(listed, count, self._blocks))
        tiles = self.device.to_device(op.tiles(listed, slabs))
        multiply = product.prepare(self._queue, x[:count], self._w, out[:count], kind=GPU_KIND)
        attend = op.prepare(
            q[:count], self._k, self._v, self._table, chunks, tiles, attended[:count],
            slabs=slabs, splits=op.splits(listed, slabs),
        )  # fmt: skip

        def launch() -> None:
            multiply()
            attend()

        return launch


def one_prompt(device: Device, tokens: int) -> OnACpu | OnAGpu:
    """What launches a prompt of so many tokens on this device. Raises KernelError."""
    return (OnAGpu if device.is_gpu else OnACpu)(device, tokens)
