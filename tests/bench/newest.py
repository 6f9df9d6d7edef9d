"""Verification, clusters and products of up to 64 rows on this GPU: what `kernels.py` times as `newest`, `clusters`,
`split` and `ways`, each beside the form that it replaces."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from course.gpu import step_profile
from course.gpu.ops import packing, product, rope, rope_append, skinny_gemm, split_gemm, work_list
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.transformer import Llama, Shape, Step
from course.models import model
from tests.bench.cards import Caches

BLOCK = work_list.BLOCK
SIZES: dict[str, Any] = {"heads": 32, "kv_heads": 8, "width": 128}
TOKENS = 1_024
DRAFTED = ((1, 1), (1, 3), (4, 1), (4, 3), (8, 1), (8, 3), (16, 1), (16, 3), (32, 1), (64, 1), (64, 3), (64, 7))
STEPS = ((1, 1), (1, 3), (4, 1), (4, 3), (8, 2), (64, 1), (8, 3), (16, 1), (1, 7), (32, 1), (64, 3))
SHAPES = {"qkv": (6144, 4096), "o": (4096, 4096), "gate-up": (28672, 4096), "down": (4096, 14336)}
ROWS = (1, 8, 16, 24, 32, 64)
BEST: dict[tuple[int, int, int], tuple[float, tuple[int, int, int]]] = {}
"""Of the products that `split` has timed, by (groups, tiles, columns): seconds, and what `split_gemm.variant` gives."""


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
        for cluster in sorted({1, max(1, min(8, 264 // blocks)), max(1, min(8, 528 // blocks))}):
            if not 96 <= blocks * cluster <= 600 or (warps == 7 and tiles % 7):
                continue
            for pieces in (4, 2) if groups > 2 else (8, 4):
                if columns // 32 % pieces == 0:
                    yield {"cluster": cluster, "warps": warps, "pieces": pieces}


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
                key = "c{cluster}w{warps}p{pieces}".format(**how)
                if isinstance(launches, str):
                    row[key] = launches
                    continue
                seconds = b.each(launches)
                row[key] = 1e6 * seconds
                at = groups, many // 16, columns
                BEST[at] = min(BEST.get(at, (1.0, (0, 0, 0))), (seconds, (how["cluster"], how["warps"], how["pieces"])))
            floor = 2e6 * many * columns / b.bandwidth
            b.keep("split", shape=name, rows=count, floor=floor, best=BEST[groups, many // 16, columns][1], **row)
        del plain, packed


def chosen(queue: Any, groups: int, tiles: int, columns: int) -> tuple[int, int, int]:
    """What was fastest alone, in place of `split_gemm.variant`."""
    if (groups, tiles, columns) in BEST:
        return BEST[groups, tiles, columns][1]
    near = [at for at in BEST if at[1:] == (tiles, columns)]
    if near:
        return BEST[min(near, key=lambda at: abs(at[0] - groups))][1]
    return 1, 8, 4


@contextmanager
def form(clusters: bool | int, rows: Callable[[int], bool], heads: bool = False) -> Iterator[None]:
    """Steps with clusters in attention or without, with split products for some numbers of rows; heads: for any qkv."""
    given = skinny_gemm.prepare

    def prepare(queue: Any, *args: Any, finish: str = "rows", **more: Any) -> Any:
        return (split_gemm.prepare if finish == "heads" else given)(queue, *args, finish=finish, **more)

    own = DecodeAttention.cluster
    with (
        patch.object(DecodeAttention, "cluster", own if clusters is True else lambda *args: int(clusters) or 1),
        patch.object(split_gemm, "serves", lambda queue, count: rows(count)),
        patch.object(split_gemm, "variant", chosen),
        patch.object(skinny_gemm, "prepare", prepare if heads else given),
    ):
        yield


def ways(b: Any, limit: float = 115.0) -> None:
    """Whole steps of an 8B: as they were, with clusters, with split products; and steps that verify."""
    sizes = Shape.of(model("llama-3.1-8b"))
    llama = Llama(b.q, sizes, blocks=8_192, max_tokens=2_048, max_sequences=512, max_positions=8_192)
    llama.fill_cache()

    def timed(make: Callable[[], Step]) -> tuple[float, np.ndarray, str]:
        step = make()
        step.run()
        logits = step.logits()
        return 1e3 * float(np.median(b.q.seconds(step.captured(), repeats=15, warm=3))), logits, step.form

    def plain(batch: int) -> Callable[[], Step]:
        return lambda: step_profile.step_at(llama, (batch, 1_024, 0, 0), np.random.default_rng(0))

    def apart(sequences: int, drafts: int) -> Step:
        rng, rows = np.random.default_rng(0), drafts + 1
        step = Step(llama, lengths=[1_024 - drafts + row for _ in range(sequences) for row in range(rows)])
        tables = step_profile._tables(llama, [64] * sequences, rng)
        step.write(rng.integers(0, sizes.vocabulary, step.tokens), [one for one in tables for _ in range(rows)])
        return step

    forms = {
        "before": (False, lambda rows: False, False),
        "clusters": (True, lambda rows: False, False),
        "clusters of 8": (8, lambda rows: False, False),
        "split": (True, lambda rows: 2 < rows <= 64, False),
        "split qkv": (True, lambda rows: rows > 16, True),
    }
    for batch in (1, 4, 8, 16, 17, 32, 64):
        floor = 1e3 * (sizes.step_weight_bytes("bf16") + batch * 1_024 * sizes.kv_bytes_per_token("bf16")) / b.bandwidth
        first = None
        for name, how in forms.items():
            if (batch > 16 and name in ("clusters", "clusters of 8", "split qkv")) or (batch == 1 and name == "split"):
                continue
            try:
                with form(*how):
                    ms, logits, kind = timed(plain(batch))
            except Exception as error:
                b.say("ways", batch, name, str(error)[:300])
                continue
            first = logits if first is None else first
            apart_by = float(np.linalg.norm(logits - first) / np.linalg.norm(first))
            b.keep("ways", batch=batch, form=name, kind=kind, ms=ms, ratio=ms / floor, logits=apart_by)
    some: tuple[bool, Callable[[int], bool]] = (True, lambda rows: 16 < rows <= 64)
    for sequences, drafts in STEPS:
        if time.perf_counter() - b.began > limit:
            b.say("no time is left for", sequences, drafts)
            continue

        def verifying(sequences: int = sequences, drafts: int = drafts) -> Step:
            return step_profile.verify_step_at(llama, (sequences, drafts, 1_024), np.random.default_rng(0))

        with form(False, lambda rows: False):
            row = {"plain_before": timed(plain(sequences))[0]}
            row["apart"], right, _ = timed(partial(apart, sequences, drafts))
        with form(*some):
            row["plain"] = timed(plain(sequences))[0]
        for name, how in (("clusters", some), ("items", (False, some[1])), ("no split", (True, lambda rows: False))):
            try:
                with form(*how):
                    row[name], logits, _ = timed(verifying)
            except Exception as error:
                b.say("verify", sequences, drafts, name, str(error)[:300])
                continue
            row[f"{name}_logits"] = float(np.linalg.norm(logits - right) / np.linalg.norm(right))
        b.keep("verify", sequences=sequences, drafts=drafts, **row)
