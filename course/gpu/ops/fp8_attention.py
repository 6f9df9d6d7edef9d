"""Attention of one new token a sequence over a paged KV cache of 8-bit numbers, with a scale for each KV head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.ops import e4m3, numbers, work_list
from course.gpu.ops.decode_attention import check_heads
from course.gpu.ops.queue import Launch, Queue, array

BLOCK = work_list.BLOCK


class Fp8Attention:
    """Workspace and launches for up to `max_sequences` sequences in up to `max_items` items of work.

    heads, kv_heads, width: of the model; at most 8 query heads share a KV head, and a head has 32, 64 or 128 numbers.
    kind: of queries and results. tensor: with tensor cores, which need heads of 128 numbers, or without; None: where
    they help. warps: of a thread block, 4 or 8; None: as `plan` says.

    Raises ValueError for shapes that the kernel does not have.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        heads: int,
        kv_heads: int,
        width: int,
        kind: str = "bf16",
        max_sequences: int = 256,
        max_items: int = 2_048,
        tensor: bool | None = None,
        warps: int | None = None,
    ) -> None:
        check_heads(heads, kv_heads, width)
        if tensor and (width != 128 or kind == "fp32"):
            raise ValueError(f"tensor cores are for heads of 128 16-bit numbers, not for {width} of {kind}")
        self.queue, self.heads, self.kv_heads, self.width, self.kind = queue, heads, kv_heads, width, kind
        self.max_sequences, self.max_items, self.warps = max_sequences, max_items, warps
        self.tensor = (queue.tensor_cores and kind != "fp32" and width == 128) if tensor is None else tensor
        group, device = heads // kv_heads, queue.device
        self.sums = device.empty((max_items, kv_heads, group * width), np.float32)
        self.weights = device.empty((max_items, kv_heads, group, 2), np.float32)
        self.counters = device.to_device(np.zeros((max_sequences, kv_heads), np.uint32))

    def resident(self, warps: int) -> int:
        """Thread blocks of so many warps that a multiprocessor holds: as many as leave registers enough to each."""
        return max(1, (16 if self.tensor else 8) // warps)

    def plan(self, lengths: Any) -> tuple[int, int]:
        """(warps of a thread block, blocks of 16 tokens to cut sequences into) that should be fastest."""
        block_seconds = 2 * BLOCK * self.width / self.queue.read_bandwidth
        most, found = max(1, self.max_items // max(1, len(lengths))), []
        # Seconds a block of 16 tokens by warps when no other thread block competes for memory, and a little more:
        # measured are .27 and .15 on an H200, with which some launches leave a part of the card without work.
        latencies = {4: 0.30e-6, 8: 0.19e-6} if self.tensor else {4: 0.65e-6}
        for warps, latency in latencies.items():
            if self.warps in (None, warps):
                card = work_list.Card(self.queue.multiprocessors * self.resident(warps), block_seconds, latency)
                blocks, seconds = work_list.best_blocks(lengths, self.kv_heads, card, min(64, most))
                found.append((seconds, warps, blocks))
        return min(found)[1:]

    def prepare(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any,
        scales: Any,
        table: Any,
        lengths: Any,
        items: Any,
        spans: Any,
        out: Any,
        *,
        warps: int | None = None,
        chained: bool = False,
    ) -> Launch:
        """q, out: (sequences, heads, width). caches: (blocks, KV heads, 16, width) uint8.

        scales: (2, KV heads) float32, of keys and of values. table: (sequences, max_blocks) int32. lengths:
        (sequences,) int32, the new token included. items, spans: as `work_list.cut` makes them. Raises ValueError for
        arrays that do not fit together.
        """
        sequences, places = int(q.shape[0]), int(items.shape[0])
        if sequences > self.max_sequences or places > self.max_items:
            raise ValueError(
                f"{sequences} sequences in {places} items: prepared for {self.max_sequences} in {self.max_items}"
            )
        heads, kv_heads, width = self.heads, self.kv_heads, self.width
        array("q", q, (sequences, heads, width), self.kind)
        array("k_cache", k_cache, (None, kv_heads, BLOCK, width), np.uint8)
        array("v_cache", v_cache, k_cache.shape, np.uint8)
        if int(k_cache.shape[0]) * kv_heads * BLOCK * width >= 2**36:
            raise ValueError(f"a cache of {int(k_cache.shape[0]):,} blocks is too large: 64 GiB of keys are the most")
        array("scales", scales, (2, kv_heads), np.float32)
        array("table", table, (sequences, None), np.int32)
        array("lengths", lengths, (sequences,), np.int32)
        array("items", items, (places, 3), np.int32)
        array("spans", spans, (sequences, 2), np.int32)
        array("out", out, (sequences, heads, width), self.kind)
        if self.queue.plain:
            return lambda: np.copyto(out, twin(q, k_cache, v_cache, scales, table, lengths, self.kind))
        warps = whole("warps", warps or self.warps or 4, high=8)
        kernel = self.queue.kernel(
            "fp8_attention",
            self.kind,
            HEAD_DIM=width,
            G=heads // kv_heads,
            KV_HEADS=kv_heads,
            WARPS=warps,
            RESIDENT=self.resident(warps),
            TENSOR=int(self.tensor),
        )
        arrays = q, k_cache, v_cache, scales, table, lengths, items, spans, out, self.sums, self.weights, self.counters
        args = (*arrays, int(table.shape[1]), math.log2(math.e) / math.sqrt(width))
        return self.queue.prepare(kernel, (places, kv_heads), 32 * warps, args, chained=chained)


def scales_of(keys: Any, values: Any) -> np.ndarray:
    """Scales (2, KV heads) with which the largest number of each head becomes the largest of e4m3.

    keys, values: float (..., KV heads, width). A head of zeros has the scale 1.
    """
    most = [np.abs(np.asarray(part, np.float32)).max((*range(np.ndim(part) - 2), -1)) for part in (keys, values)]
    return np.where(np.array(most) > 0, np.array(most) / e4m3.MOST, 1.0).astype(np.float32)


def twin(
    q: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray, scales: np.ndarray, table: Any, lengths: Any, kind: str
) -> np.ndarray:
    """The kernel in NumPy: float32 inside, rounded once at the end."""
    return numbers.encode(_attend(q, k_cache, v_cache, scales, table, lengths, kind, np.float32), kind)


def reference(
    q: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray, scales: np.ndarray, table: Any, lengths: Any, kind: str
) -> np.ndarray:
    """The definition in float64, from the numbers as they are stored, shape (sequences, heads, width)."""
    return _attend(q, k_cache, v_cache, scales, table, lengths, kind, np.float64)


def _attend(
    q: Any, k_cache: Any, v_cache: Any, scales: Any, table: Any, lengths: Sequence[int], kind: str, precision: Any
) -> np.ndarray:
    queries = numbers.decode(q, kind).astype(precision)
    sequences, heads, width = queries.shape
    kv_heads = k_cache.shape[1]
    found = np.zeros(queries.shape, precision)
    for s in range(sequences):
        if not lengths[s]:
            continue
        keys, values = (
            (e4m3.decode(cache[table[s, : -(-int(lengths[s]) // BLOCK)]]).astype(precision) * scale[:, None, None])
            .swapaxes(1, 2)
            .reshape(-1, kv_heads, width)[: lengths[s]]
            for cache, scale in ((k_cache, scales[0].astype(precision)), (v_cache, scales[1].astype(precision)))
        )
        grouped = queries[s].reshape(kv_heads, heads // kv_heads, width)
        scores = np.einsum("hgd,thd->hgt", grouped, keys) / math.sqrt(width)
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        found[s] = np.einsum("hgt,thd->hgd", share, values).reshape(heads, width)
    return found
