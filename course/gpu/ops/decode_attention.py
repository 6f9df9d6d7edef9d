"""Attention of the newest tokens of each sequence over its paged KV cache: one launch, however unequal they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from course.base.settings import quote, whole
from course.gpu.ops import e4m3, numbers, packing, work_list
from course.gpu.ops.queue import Launch, Queue, array

BLOCK = work_list.BLOCK


def uses_tensor_cores(queue: Queue, kind: str, width: int) -> bool:
    """Whether the form with tensor cores serves this: not for fp32, nor for heads below 64."""
    return queue.tensor_cores and kind != "fp32" and width in (64, 128)


CACHE_KINDS = ("auto", "fp8_e4m3")
MOST_LINES = 32
"""Queries that share a KV head and a launch: new tokens a sequence times query heads a KV head."""
CLUSTERS = (16, 8, 4, 2)
CLUSTERED = ((1, 8, 8), (3, 4, 8), (8, 2, 8))
"""(sequences at most, blocks of a cluster, warps of each): what was fastest in whole steps on an H200."""
MOST_IN_CLUSTERS = CLUSTERED[-1][0]
"""Sequences up to which parts that merge as a cluster are faster than items that merge through memory."""
LONGEST_OF_FEW, UNEQUAL = 2_048, 2.0
"""Tokens above which clusters that leave multiprocessors idle lose, and how many times the mean the longest may have:
a cluster reads its own sequence alone, while items are shared out."""
MOST_SHARED = 48 * 1_024
"""Bytes of shared memory that a kernel may declare."""


def check_heads(heads: int, kv_heads: int, width: int) -> None:
    """Raises ValueError for heads that no attention of decodes here takes."""
    if heads % kv_heads or heads // kv_heads > 8:
        raise ValueError(
            f"{heads} query heads over {kv_heads} KV heads: the kernel takes 1 to 8 per KV head, the same "
            f"number for each"
        )
    if width not in (32, 64, 128):
        raise ValueError(f"heads of {width} numbers: the kernel takes 32, 64 or 128")


class DecodeAttention:
    """Workspace and launches for up to `max_sequences` sequences in up to `max_items` items of work.

    Where drafts are verified each sequence has `newest` new tokens, whose keys and values are in the cache and are read
    once; it then counts for as many sequences, and an item for as many.

    heads, kv_heads, width: of the model; at most 8 query heads share a KV head, and a head has 32, 64 or 128 numbers.
    kv_cache_dtype: "auto": the cache has numbers of `kind`; "fp8_e4m3": of 8 bits, with a scale for each head.
    tensor: with tensor cores or without; None: where they help. warps: of a thread block, 4 or 8; None: as `plan` says.

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
        kv_cache_dtype: str = "auto",
        max_sequences: int = 256,
        max_items: int = 1_024,
        tensor: bool | None = None,
        warps: int | None = None,
    ) -> None:
        check_heads(heads, kv_heads, width)
        self.queue, self.heads, self.kv_heads, self.width, self.kind = queue, heads, kv_heads, width, kind
        if kv_cache_dtype not in CACHE_KINDS:
            raise ValueError(f"kv_cache_dtype must be {' or '.join(CACHE_KINDS)}, not {quote(kv_cache_dtype)}")
        self.scaled = kv_cache_dtype == "fp8_e4m3"
        self.cached = np.dtype(np.uint8) if self.scaled else numbers.dtype(kind)
        self.token_bytes = 2 * kv_heads * width * self.cached.itemsize
        self.max_sequences, self.max_items, self.warps = max_sequences, max_items, warps
        fits = not self.scaled or width == 128
        self.tensor = fits and uses_tensor_cores(queue, kind, width) if tensor is None else tensor
        if self.tensor and self.scaled and (width != 128 or kind == "fp32"):
            raise ValueError(
                f"tensor cores and 8-bit numbers are for heads of 128 16-bit numbers, not for {width} of {kind}"
            )
        group = heads // kv_heads
        device = queue.device
        self.sums = device.empty((max_items, kv_heads, group * width), np.float32)
        self.weights = device.empty((max_items, kv_heads, group, 2), np.float32)
        self.counters = device.to_device(np.zeros((max_sequences, kv_heads), np.uint32))

    def resident(self, warps: int, newest: int = 1) -> int:
        """Thread blocks of so many warps that a multiprocessor holds: as many as leave registers enough to each."""
        few = newest * self.heads // self.kv_heads <= (8 if self.tensor else 4)
        room = (16 if self.scaled and self.tensor else 8 if self.scaled else 12) if few else 8
        return max(1, room // warps)

    def cluster(self, lengths: Any, newest: int = 1) -> tuple[int, int, int]:
        """(thread blocks of a cluster that should share each sequence, warps of each, such clusters a sequence).

        (1, 0, 1) where items that merge through memory are faster, or there are no clusters.
        """
        if not self.tensor or self.queue.merging_cluster == 1 or not 0 < len(lengths) <= MOST_IN_CLUSTERS:
            return 1, 0, 1
        blocks, warps = next((blocks, warps) for most, blocks, warps in CLUSTERED if len(lengths) <= most)
        if newest == 1 and len(lengths) == 4:
            blocks, warps = 8, 4
        if self.scaled and len(lengths) > 1:
            return 1, 0, 1
        longest = int(np.max(lengths))
        few = self.kv_heads * len(lengths) * blocks < 0.75 * self.queue.multiprocessors
        if longest > UNEQUAL * np.mean(lengths) or (few and longest > LONGEST_OF_FEW):
            return 1, 0, 1
        lines = newest * self.heads // self.kv_heads
        if self.shared_bytes(lines, warps, blocks) > MOST_SHARED:
            blocks, warps = 2 * blocks if blocks < 8 else blocks, 4
        # Where that leaves one octet of lines of two, or two of four.
        shared = lines > 16 if len(lengths) == 1 else 8 < lines <= 16 and len(lengths) == 4
        return blocks, warps, 2 if shared and newest % 2 == 0 else 1

    def shared_bytes(self, lines: int, warps: int, cluster: int) -> int:
        """What a block declares: room for eight lines of each warp, for all lines in a cluster, for many queries."""
        held = 4 * min(lines, 8) * (self.width + 2) * warps
        whole_lines = 4 * lines * (self.width + 2) if cluster > 1 else 0
        queries = 32 * self.width * numbers.dtype(self.kind).itemsize if lines > 16 and self.tensor else 0
        return held + whole_lines + queries + 16

    def plan(self, lengths: Any, warps: Sequence[int] = (), newest: int = 1) -> tuple[int, int]:
        """(warps of a thread block, blocks of 16 tokens to cut sequences into) that should be fastest.

        warps: to choose from; all that the form has by default. newest: new tokens a sequence.
        """
        block_seconds = BLOCK * self.token_bytes / self.kv_heads / self.queue.read_bandwidth
        most = max(1, self.max_items // max(1, newest * len(lengths)))
        # Seconds a block of 16 tokens by warps when no other thread block competes for memory.
        latencies = {4: 0.52e-6, 8: 0.23e-6} if self.tensor else {4: 0.65e-6}
        if self.tensor and self.scaled:  # a little more than the .27 and .15 measured, which leave a part idle at times
            latencies = {4: 0.30e-6, 8: 0.19e-6}
        lines = newest * self.heads // self.kv_heads
        if self.tensor and lines > 8:  # two and more octets of lines are more to compute
            latencies[8] *= 1.17
        if lines > 16:
            latencies.pop(8, None)  # their sums have no room in shared memory
        found = []
        for many in [self.warps] if self.warps else warps or latencies:
            latency = latencies.get(many, latencies[max(latencies)])
            card = work_list.Card(self.queue.multiprocessors * self.resident(many, newest), block_seconds, latency)
            blocks, seconds = work_list.best_blocks(lengths, self.kv_heads, card, min(64, most))
            found.append((seconds, many, blocks))
        return min(found)[1:]

    def prepare(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any,
        table: Any,
        lengths: Any,
        items: Any,
        spans: Any,
        out: Any,
        *,
        groups: int = 0,
        scales: Any = None,
        warps: int | None = None,
        newest: int = 1,
        cluster: int = 1,
        sharers: int = 1,
        chained: bool = False,
    ) -> Launch:
        """A launch over all places of `items`, of which any may be empty.

        q: (sequences x newest, heads, width), the rows of a sequence side by side, its last token in the last. caches:
        (blocks, KV heads, 16, width). table: (sequences, most blocks) int32. lengths: (sequences,) int32, the new
        tokens included: `newest` at least. items, spans: of a WorkList, on the device. out: as q, or packed with room
        for 8 x groups rows. scales: of 8-bit numbers, (2, KV heads) float32, of keys and of values. cluster: blocks
        that share a sequence and merge in shared memory, whatever the items are; see `cluster`. sharers: such clusters
        that share the new tokens of a sequence, each with as many of them and its own reading of the cache.
        Raises ValueError for arrays that do not fit together, and for too many new tokens.
        """
        args = self.arguments(q, k_cache, v_cache, table, lengths, items, spans, out, groups, newest, scales)
        if self.queue.plain:
            return lambda: _twin_into(out, q, k_cache, v_cache, table, lengths, self.kind, groups, newest, scales)
        warps = whole("warps", warps or self.warps or 4, high=8)
        if cluster > 1 and (cluster not in CLUSTERS or cluster > self.queue.merging_cluster):
            raise ValueError(f"{cluster} blocks cannot be a cluster: 2, 4, 8 or 16 on a card of compute capability 9.0")
        if newest % whole("sharers", sharers) or (sharers > 1 and cluster == 1):
            raise ValueError(f"{newest} new tokens cannot be shared by {sharers} clusters of {cluster} blocks")
        newest //= sharers  # of each
        shared = self.shared_bytes(newest * self.heads // self.kv_heads, warps, cluster)
        if shared > MOST_SHARED:
            raise ValueError(
                f"{newest} new tokens a sequence in thread blocks of {warps} warps need {shared:,} bytes of shared "
                f"memory, of which there are {MOST_SHARED:,}: take 4 warps"
            )
        macros = {"NEWEST": newest} if newest > 1 else {}
        macros |= {"CLUSTER": cluster} if cluster > 1 else {}
        macros |= {"SHARERS": sharers} if sharers > 1 else {}
        macros |= {"E4M3": 1} if self.scaled else {}
        kernel = self.queue.kernel(
            "decode_attention",
            self.kind,
            HEAD_DIM=self.width,
            G=self.heads // self.kv_heads,
            KV_HEADS=self.kv_heads,
            WARPS=warps,
            RESIDENT=self.resident(warps, newest),
            TENSOR=int(self.tensor),
            OUT_GROUPS=groups,
            **macros,
        )
        places = cluster * sharers * int(lengths.shape[0]) if cluster > 1 else int(items.shape[0])
        return self.queue.prepare(kernel, (places, self.kv_heads), 32 * warps, args, chained=chained)

    def arguments(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any,
        table: Any,
        lengths: Any,
        items: Any,
        spans: Any,
        out: Any,
        groups: int = 0,
        newest: int = 1,
        scales: Any = None,
    ) -> tuple:
        """What the kernel takes, with the workspace. Raises ValueError for arrays that do not fit together."""
        heads, kv_heads, width = self.heads, self.kv_heads, self.width
        most = MOST_LINES * kv_heads // heads
        if not 1 <= newest <= most:
            raise ValueError(
                f"{newest} new tokens a sequence: the kernel takes 1 to {most} with {heads // kv_heads} query heads a "
                "KV head"
            )
        rows, sequences, places = int(q.shape[0]), int(lengths.shape[0]), int(items.shape[0])
        if rows > self.max_sequences or places * newest > self.max_items:
            of = f" of {newest} new tokens" if newest > 1 else ""
            raise ValueError(
                f"{sequences} sequences{of} in {places} items: prepared for {self.max_sequences // newest} in "
                f"{self.max_items // newest}"
            )
        array("q", q, (sequences * newest, heads, width), self.kind)
        array("k_cache", k_cache, (None, kv_heads, BLOCK, width), self.cached if self.scaled else self.kind)
        array("v_cache", v_cache, k_cache.shape, self.cached if self.scaled else self.kind)
        if self.scaled:
            array("scales", scales, (2, kv_heads), np.float32)
        elif scales is not None:
            raise ValueError("scales are for a cache of 8-bit numbers")
        array("table", table, (sequences, None), np.int32)
        array("lengths", lengths, (sequences,), np.int32)
        array("items", items, (places, 3), np.int32)
        array("spans", spans, (sequences, 2), np.int32)
        array("out", out, packing.shape(groups, heads * width) if groups else q.shape, self.kind)
        scales = self.sums if scales is None else scales  # a pointer of the right type, which is not followed
        args = (q, k_cache, v_cache, scales, table, lengths, items, spans, out, self.sums, self.weights, self.counters)
        return (*args, int(table.shape[1]), math.log2(math.e) / math.sqrt(width))


def _twin_into(out, q, k_cache, v_cache, table, lengths, kind, groups, newest, scales) -> None:
    found = twin(q, k_cache, v_cache, table, lengths, kind, newest, scales)
    if groups:
        packing.put_rows(out, found.reshape(len(q), -1))
    else:
        out[...] = found


def twin(q, k_cache, v_cache, table, lengths, kind, newest=1, scales=None) -> np.ndarray:
    """The kernel in NumPy: float32 inside, rounded once at the end; a sequence of length 0 gives zeros."""
    return numbers.encode(_attend(q, k_cache, v_cache, table, lengths, kind, newest, scales, np.float32), kind)


def reference(q, k_cache, v_cache, table, lengths, kind, newest=1, scales=None) -> np.ndarray:
    """The definition in float64, from the numbers as they are stored, shape of q: (sequences x newest, heads, width).

    Row r of a sequence attends to its first length - newest + 1 + r tokens. scales: of caches of 8-bit numbers.
    """
    return _attend(q, k_cache, v_cache, table, lengths, kind, newest, scales, np.float64)


def _attend(q, k_cache, v_cache, table, lengths, kind, newest, scales, precision) -> np.ndarray:
    def read(cache: np.ndarray, blocks: np.ndarray, scale: Any) -> np.ndarray:
        if scale is None:
            return numbers.decode(cache[blocks], kind).astype(precision)
        return e4m3.decode(cache[blocks]).astype(precision) * np.asarray(scale, precision)[:, None, None]

    queries = numbers.decode(q, kind).astype(precision)
    rows, heads, width = queries.shape
    kv_heads = k_cache.shape[1]
    table = np.repeat(table, newest, axis=0)
    lengths = (np.asarray(lengths)[:, None] - np.arange(newest)[::-1]).ravel()
    found = np.zeros(queries.shape, precision)
    for s in range(rows):
        if lengths[s] < 1:
            continue
        keys, values = (
            read(cache, table[s, : -(-int(lengths[s]) // BLOCK)], scale)
            .swapaxes(1, 2)
            .reshape(-1, kv_heads, width)[: lengths[s]]
            for cache, scale in zip((k_cache, v_cache), (None, None) if scales is None else scales, strict=True)
        )
        grouped = queries[s].reshape(kv_heads, heads // kv_heads, width)
        scores = np.einsum("hgd,thd->hgt", grouped, keys) / math.sqrt(width)
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        found[s] = np.einsum("hgt,thd->hgd", share, values).reshape(heads, width)
    return found
