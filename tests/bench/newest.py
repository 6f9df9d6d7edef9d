"""Verification, clusters and products of up to 64 rows on this GPU: what `kernels.py` times as `newest`, `clusters`,
`split` and `ways`, each beside the form that it replaces."""

from __future__ import annotations

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
STEPS = (
    *((many, drafts) for many in (1, 2, 4) for drafts in (1, 2, 3)),
    *((1, 7), (8, 1), (8, 2), (8, 3), (16, 1), (16, 3), (32, 1), (64, 1), (64, 3)),
)
SHAPES = {"qkv": (6144, 4096), "o": (4096, 4096), "gate-up": (28672, 4096), "down": (4096, 14336)}
ROWS = (8, 16, 24, 32, 64)
BEST: dict[tuple[int, int, int], tuple[float, dict[str, int]]] = {}
"""Of the products that `split` has timed, by (groups, tiles, columns): seconds, and in which form."""
FASTER: set[tuple[int, int, str]] = set()
"""(groups, columns, name) of those that were faster than `skinny_gemm`."""
NAMES = {"heads": "qkv", "silu": "gate-up", "rows": "gate-up"}


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
                at = groups, many // 16, columns
                if seconds < BEST.get(at, (1.0, {}))[0]:
                    BEST[at] = seconds, how
            found_best = BEST[groups, many // 16, columns]
            if count <= 32 and 1e6 * found_best[0] < row["skinny"]:
                FASTER.add((groups, columns, name))
            row = {"best_us": 1e6 * found_best[0], "best": str(list(found_best[1].values()))} | row
            b.keep("split", shape=name, rows=count, floor=2e6 * many * columns / b.bandwidth, **row)
        del plain, packed


def best(groups: int, tiles: int, columns: int) -> dict[str, int]:
    """The fastest form of this product alone, or of one that is like it."""
    near = [at for at in BEST if at[2] == columns]
    if not near:
        return {}
    return BEST[min(near, key=lambda at: (abs(at[0] - groups), abs(np.log(at[1] / tiles))))][1]


@contextmanager
def form(plan: Any = None, cluster: Any = None, faster: Callable[..., bool] | None = None) -> Iterator[None]:
    """Steps in another form: what DecodeAttention's `plan` and `cluster` return, and where split products are taken."""
    given = split_gemm.prepare

    def prepare(queue: Any, x: Any, w: Any, *args: Any, **more: Any) -> Any:
        how = best(int(x.shape[1]), int(w.shape[0]), 32 * int(x.shape[0]))
        return given(queue, x, w, *args, **{**how, **more})

    own = DecodeAttention.plan, DecodeAttention.cluster, split_gemm.faster
    with (
        patch.object(DecodeAttention, "plan", (lambda *args, **more: plan) if plan else own[0]),
        patch.object(DecodeAttention, "cluster", (lambda *args: cluster) if cluster else own[1]),
        patch.object(split_gemm, "faster", faster or own[2]),
        patch.object(split_gemm, "prepare", prepare if BEST else given),
    ):
        yield


def never(*args: Any) -> bool:
    """No split product at all."""
    return False


def some(queue: Any, rows: int, finish: str, columns: int) -> bool:
    """Those that were faster alone."""
    name = NAMES.get(finish) or ("o" if columns == 4_096 else "down")
    return rows > 32 or (-(-rows // 8), columns, name) in FASTER


def timed(b: Any, make: Callable[[], Step]) -> tuple[float, np.ndarray, str]:
    """(milliseconds, logits, form) of a step."""
    step = make()
    step.run()
    logits = step.logits()
    return 1e3 * float(np.median(b.q.seconds(step.captured(), repeats=15, warm=3))), logits, step.form


def loaded(b: Any) -> Llama:
    """An 8B with random weights, once."""
    if not hasattr(b, "llama"):
        sizes = Shape.of(model("llama-3.1-8b"))
        b.llama = Llama(b.q, sizes, blocks=8_192, max_tokens=2_048, max_sequences=512, max_positions=8_192)
        b.llama.fill_cache()
    return b.llama


def verifying(llama: Llama, sequences: int, drafts: int) -> Step:
    """The step that verifies drafts; a plain one without."""
    return step_profile.verify_step_at(llama, (sequences, drafts, 1_024), np.random.default_rng(0))


def apart(llama: Llama, sequences: int, drafts: int) -> Step:
    """The same with each row a decode of its own."""
    rng, rows = np.random.default_rng(0), drafts + 1
    step = Step(llama, lengths=[1_024 - drafts + row for _ in range(sequences) for row in range(rows)])
    tables = step_profile._tables(llama, [64] * sequences, rng)
    step.write(rng.integers(0, llama.shape.vocabulary, step.tokens), [one for one in tables for _ in range(rows)])
    return step


def merges(b: Any) -> None:
    """Whole steps whose parts of a sequence merge in one way or another: cNwM, N blocks of M warps; iMbK, items."""
    llama = loaded(b)
    for sequences in (1, 2, 3, 4, 6, 8, 12):
        for rows in (1, 2, 4) if sequences <= 8 else (1,):
            row: dict[str, Any] = {}
            first = None
            for cluster, warps in ((1, 0), (2, 8), (4, 4), (4, 8), (8, 4), (8, 8), (16, 4), (1, 0)):
                if cluster > 1 and not 128 <= 8 * cluster * warps * sequences <= 1_600:
                    continue
                with form(cluster=(cluster, warps), faster=never):
                    step = partial(verifying, llama, sequences, rows - 1)
                    ms, logits, _ = timed(b, step)
                first = logits if first is None else first
                name = f"c{cluster}w{warps}" if cluster > 1 else "items" if "items" not in row else "again"
                row[name] = ms
                row["apart"] = max(row.get("apart", 0.0), float(np.linalg.norm(logits - first) / np.linalg.norm(first)))
            b.keep("merges", sequences=sequences, newest=rows, **row)


def ways(b: Any) -> None:
    """Whole steps of an 8B: as they were, as they are, and with the split products that were faster alone."""
    llama = loaded(b)
    weights, kv = llama.shape.step_weight_bytes("bf16"), llama.shape.kv_bytes_per_token("bf16")
    forms: dict[str, dict[str, Any]] = {
        "before": {"cluster": (1, 0), "faster": never},
        "now": {"faster": some},
        "split": {"faster": lambda queue, rows, *args: rows > 8},
    }
    for batch in (1, 2, 4, 8, 16, 17, 24, 32, 48, 64):
        floor = 1e3 * (weights + batch * 1_024 * kv) / b.bandwidth
        first = None
        for name, how in forms.items():
            if name == "split" and not 8 < batch <= 32:
                continue
            with form(**how), patch.object(split_gemm, "serves", split_gemm.serves if name != "before" else never):
                try:
                    ms, logits, kind = timed(b, partial(verifying, llama, batch, 0))
                except Exception as error:
                    b.say("ways", batch, name, str(error)[:300])
                    continue
            first = logits if first is None else first
            apart_by = float(np.linalg.norm(logits - first) / np.linalg.norm(first))
            b.keep("ways", batch=batch, form=name, kind=kind, ms=ms, ratio=ms / floor, logits=apart_by)


def drafted(b: Any) -> None:
    """Steps that verify, beside a plain one of as many sequences and beside rows that are decodes of their own."""
    llama = loaded(b)
    for sequences, drafts in STEPS:
        with form(cluster=(1, 0), faster=never), patch.object(split_gemm, "serves", never):
            before = timed(b, partial(verifying, llama, sequences, 0))[0]
            rows, right, _ = timed(b, partial(apart, llama, sequences, drafts))
        with form(faster=some):
            plain = timed(b, partial(verifying, llama, sequences, 0))[0]
            now, logits, kind = timed(b, partial(verifying, llama, sequences, drafts))
        b.keep(
            "drafted", sequences=sequences, drafts=drafts, kind=kind, plain_before=before, apart=rows, plain=plain,
            now=now, ratio_before=rows / before, ratio=now / plain,
            logits=float(np.linalg.norm(logits - right) / np.linalg.norm(right)),
        )  # fmt: skip
