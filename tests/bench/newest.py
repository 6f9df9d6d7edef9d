"""Attention that verifies, clusters and products of up to 64 rows, each beside what it replaces: for `kernels.py`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from course.gpu.ops import packing, product, rope, rope_append, skinny_gemm, split_gemm, work_list
from course.gpu.ops.decode_attention import DecodeAttention
from tests.bench.cards import Caches

BLOCK = work_list.BLOCK
SIZES: dict[str, Any] = {"heads": 32, "kv_heads": 8, "width": 128}
TOKENS = 1_024
DRAFTED = ((1, 1), (1, 3), (4, 1), (4, 3), (8, 1), (8, 3), (16, 1), (16, 3), (32, 1), (64, 1), (64, 3), (64, 7))
SHAPES = {"qkv": (6144, 4096), "o": (4096, 4096), "gate-up": (28672, 4096), "down": (4096, 14336)}
ROWS = (8, 16, 24, 32, 64)


def attend(
    b: Any,
    caches: Any,
    one: DecodeAttention,
    lengths: np.ndarray,
    plan: tuple[int, int],
    *,
    newest: int = 1,
    cluster: int = 1,
    rows_apart: int = 1,
    in_step: bool = True,
) -> float:
    """Seconds of a launch. in_step: with RoPE before it and dependent launch, as a step has both; then of both.

    rows_apart: rows of each sequence as decodes of their own, that share its blocks.
    """
    put = b.q.device.to_device
    warps, blocks = plan
    each = np.repeat(lengths, rows_apart) - np.tile(np.arange(rows_apart)[::-1], len(lengths))
    rows = len(each) * newest
    q, out = (b.random(rows, 32, 128, seed=s) for s in (5, 6))
    cut = work_list.cut(each, blocks)
    given = [put(one) for one in (each.astype(np.int32), cut.items, cut.spans)]
    qkv = b.random(rows, 48, 128)
    last = (each[:, None] - 1 - np.arange(newest)[::-1]).ravel()
    turns = put(rope.turns(int(lengths.max()), 128))
    launches: list = []
    for table in caches.tables(lengths):
        tables = np.repeat(b.q.device.to_numpy(table), rows_apart, 0)
        at = np.repeat(tables, newest, 0)[np.arange(rows), last // 16] * 16 + last % 16
        before = (q, caches.k, caches.v, turns, put(last.astype(np.int32)), put(at.astype(np.int32)))
        own = one.prepare(
            q,
            caches.k,
            caches.v,
            put(tables),
            *given,
            out,
            warps=warps,
            newest=newest,
            cluster=cluster,
            chained=in_step,
        )
        launches += [rope_append.prepare(b.q, qkv, *before, chained=True), own] if in_step else [own]
    return b.each(launches * max(1, 4 // len(launches))) * (1 + in_step)


def newest(b: Any) -> None:
    """Attention that verifies, beside a plain decode and beside rows that are decodes of their own."""
    caches = Caches(b, 8)
    one = DecodeAttention(b.q, max_sequences=1_024, max_items=8_192, **SIZES)
    for sequences, drafts in DRAFTED:
        lengths, rows = np.full(sequences, TOKENS), drafts + 1
        found = {"plain": attend(b, caches, one, lengths, one.plan(lengths))}
        found["apart"] = attend(b, caches, one, lengths, one.plan(np.repeat(lengths, rows)), rows_apart=rows)
        plans = {one.plan(lengths, (), rows)} | {
            (warps, -(-TOKENS // BLOCK // parts))
            for warps in ((4, 8) if 4 * rows <= 16 else (4,))
            for parts in (1, 2, 4, 8)
            if 32 <= 8 * sequences * parts <= 2_048
        }
        for warps, blocks in sorted(plans):
            found[f"w{warps}b{blocks}"] = attend(b, caches, one, lengths, (warps, blocks), newest=rows)
        for cluster, warps in ((4, 4), (8, 4)) if sequences <= 16 else ():
            found[f"c{cluster}w{warps}"] = attend(b, caches, one, lengths, (warps, 64), newest=rows, cluster=cluster)
        floor = sequences * TOKENS * 4_096 / b.bandwidth
        b.keep(
            "newest", sequences=sequences, drafts=drafts, floor=1e6 * floor, plan=one.plan(lengths, (), rows),
            **{name: 1e6 * seconds for name, seconds in found.items()},
        )  # fmt: skip


def clusters(b: Any) -> None:
    """Decode attention whose parts merge as a cluster, beside items that merge through memory."""
    caches = Caches(b, 8)
    one = DecodeAttention(b.q, max_items=4_096, **SIZES)
    for sequences, length in (
        (1, 1024),
        (2, 1024),
        (4, 1024),
        (8, 1024),
        (12, 1024),
        (16, 1024),
        (1, 8192),
        (8, 8192),
        (4, 256),
    ):
        lengths = np.full(sequences, length)
        found = {"items": attend(b, caches, one, lengths, one.plan(lengths))}
        for cluster in (2, 4, 8, 16):
            for warps in (4, 8):
                if 32 <= 8 * cluster * sequences * warps / 4 <= 1_024:
                    found[f"c{cluster}w{warps}"] = attend(b, caches, one, lengths, (warps, 64), cluster=cluster)
        b.keep(
            "clusters", sequences=sequences, length=length, floor=1e6 * sequences * length * 4_096 / b.bandwidth,
            **{name: 1e6 * seconds for name, seconds in found.items()},
        )  # fmt: skip


def variants(groups: int, tiles: int, columns: int) -> Iterator[dict[str, int]]:
    """Ways to share a product that are worth a try."""
    for warps in (8, 7, 4):
        blocks = -(-tiles // warps)
        for cluster in (1, 2, 3, 4, 5, 8):
            if not 120 <= blocks * cluster * warps / 8 <= 290 or (warps == 7 and tiles % 7):
                continue
            for pieces in (8, 4) if groups < 3 else (4, 2):
                for stages in (3, 4) if pieces < 8 else (3,):
                    yield {
                        "cluster": cluster,
                        "warps": warps,
                        "pieces": pieces,
                        "stages": stages,
                        "resident": 16 // warps,
                    }
            if groups <= 4 and warps == 8 and blocks * cluster > 264:
                yield {"cluster": cluster, "warps": warps, "pieces": 2, "stages": 3, "resident": 3}


def split(b: Any) -> None:
    """Products of up to 64 rows: the library's, `skinny_gemm`'s, and `split_gemm`'s in some forms."""
    for name, (many, columns) in SHAPES.items():
        copies = max(2, int(400e6 / (2 * many * columns)))
        plain = [b.random(many, columns, bound=0.05, seed=s) for s in range(copies)]
        packed = [packing.packed_weights(one) for one in plain]
        b.q.wait()
        norm = 1e-5 if name in ("qkv", "gate-up") else None
        for count in ROWS:
            groups = skinny_gemm.groups_for(count)
            x, out = b.random(count, columns), b.random(count, many)
            px = b.random(*packing.shape(groups, columns))
            row = {"cublaslt": 1e6 * b.each([product.prepare(b.q, x, w, out) for w in plain])}
            if count <= 32:
                launches = [skinny_gemm.prepare(b.q, px, w, out, count, norm=norm, chained=True) for w in packed]
                row["skinny"] = 1e6 * b.each(launches)
            ways = list(variants(groups, many // 16, columns))

            def prepared(how: dict, px=px, out=out, count=count, norm=norm, packed=packed) -> Any:
                b.q.cupy.cuda.Device(0).use()
                try:
                    return [split_gemm.prepare(b.q, px, w, out, count, norm=norm, chained=True, **how) for w in packed]
                except Exception as error:
                    return str(error)[:60]

            with ThreadPoolExecutor(12) as pool:
                found = list(pool.map(prepared, ways))
            for how, launches in zip(ways, found, strict=True):
                key = "c{cluster}w{warps}p{pieces}s{stages}r{resident}".format(**how)
                if isinstance(launches, str):
                    row[key] = launches
                    continue
                seconds = b.each(launches)
                row[key] = 1e6 * seconds
            b.keep("split", shape=name, rows=count, floor=2e6 * many * columns / b.bandwidth, **row)
        del plain, packed
