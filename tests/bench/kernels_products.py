"""Products and the small operations, for `kernels.py`."""

from __future__ import annotations

import numpy as np

from course.gpu.ops import append, gather, packing, product, rms_norm, rope, rope_append, silu, skinny_gemm
from tests.bench.cards import Bench

VARIANTS = ((4, 2, 1), (2, 3, 1), (2, 2, 1), (4, 1, 2), (2, 2, 2), (1, 3, 2), (1, 2, 4))
"""(depth, resident, tiles a block)"""
VARIANT: dict[tuple[int, str], tuple[int, int, int]] = {}
"""The fastest of them, by groups of rows and name, once `gemm` has run."""
SHAPES = {"qkv": (6144, 4096), "o": (4096, 4096), "gate-up": (28672, 4096), "down": (4096, 14336)}


def nodes(b: Bench) -> None:
    for name, chained in (("empty", False), ("empty chained", True)):
        kernel = b.q.device.kernel("empty")
        launch = b.q.prepare(kernel, (1,), 32, (), chained=chained)
        b.keep("nodes", node=name, us=1e6 * b.each([launch] * 400))


def rows(b: Bench) -> None:
    """The small operations at 8,192 tokens of Llama-3-8B."""
    tokens, hidden, inner, heads, kv = 8192, 4096, 14336, 32, 8
    x, weight, y = b.random(tokens, hidden), b.random(hidden), b.random(tokens, hidden)
    gate_up, gated = b.random(tokens, 2 * inner), b.random(tokens, inner)
    qkv, q = b.random(tokens, heads + 2 * kv, 128), b.random(tokens, heads, 128)
    k, v = b.random(tokens // 16, kv, 16, 128), b.random(tokens // 16, kv, 16, 128)
    put = b.q.device.to_device
    turns, where = put(rope.turns(tokens, 128)), put(np.arange(tokens, dtype=np.int32))
    slots, ids = put(np.random.default_rng(0).permutation(tokens).astype(np.int32)), where
    cases = {
        "rms_norm": (rms_norm.prepare(b.q, x, weight, y, epsilon=1e-5), 2 * tokens * hidden * 2),
        "silu": (silu.prepare(b.q, gate_up, gated), 3 * tokens * inner * 2),
        "rope": (rope.prepare(b.q, qkv, turns, where, rotated=heads + kv), 2 * tokens * (heads + kv) * 256),
        "append": (append.prepare(b.q, qkv, k, v, slots), 2 * tokens * 2 * kv * 256),
        "rope_append": (
            rope_append.prepare(b.q, qkv, q, k, v, turns, where, slots), 2 * tokens * (heads + 2 * kv) * 256,
        ),
        "gather": (gather.prepare(b.q, x, ids, y), 2 * tokens * hidden * 2),
    }  # fmt: skip
    for name, (launch, moved) in cases.items():
        seconds = b.each([launch] * 10)
        b.keep("rows", operation=name, us=1e6 * seconds, share=moved / seconds / b.bandwidth)


def gemm(b: Bench) -> None:
    for name, (many, columns) in SHAPES.items():
        copies = max(2, int(400e6 / (2 * many * columns)))
        plain = [b.random(many, columns, bound=0.05, seed=s) for s in range(copies)]
        packed = [packing.packed_weights(one) for one in plain]
        moved = 2 * many * columns
        for count in (1, 8, 16, 24, 32, 64):
            x, out = b.random(count, columns), b.random(count, many)
            seconds = b.each([product.prepare(b.q, x, w, out) for w in plain])
            row = {"cublaslt": 1e6 * seconds}
            if count <= 32:
                groups = skinny_gemm.groups_for(count)
                px = b.random(*packing.shape(groups, columns))
                norm = 1e-5 if name in ("qkv", "gate-up") else None
                for depth, resident, tiles in VARIANTS:
                    if (columns // 32) % depth or (groups < 2 and tiles > 1) or groups * tiles > 8:
                        continue
                    how = {"depth": depth, "resident": resident, "tiles_a_block": tiles}
                    launches = [
                        skinny_gemm.prepare(b.q, px, w, out, count, norm=norm, chained=True, **how) for w in packed
                    ]
                    row[f"d{depth}r{resident}t{tiles}"] = 1e6 * b.each(launches)
                    if row[f"d{depth}r{resident}t{tiles}"] <= min(v for k, v in row.items() if k[0] == "d"):
                        VARIANT[groups, name] = depth, resident, tiles
                launches = [skinny_gemm.prepare(b.q, px, w, out, count) for w in packed]
                row["unchained"] = 1e6 * b.each(launches)
            if count in (1, 8):
                px = b.random(*packing.shape(1, columns))
                launches = [skinny_gemm.prepare(b.q, px, w, out, count, tensor=False) for w in packed]
                row["plain"] = 1e6 * b.each(launches)
            b.keep("gemm", shape=name, rows=count, floor=1e6 * moved / b.bandwidth, **row)
        del plain, packed
