"""What a step is made of: the two lists of launches that it can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from course.gpu.ops import gather, packing, product, rms_norm, rope_append, silu, skinny_gemm, split_gemm
from course.gpu.ops.queue import Launch
from course.gpu.transformer.llama import Llama

Attend = Callable[..., Launch]
FEW_ROWS = 128
"""Rows up to which sums of rows are normed by what takes them, and the norms of a layer need no launches."""


def fused(llama: Llama, there: Mapping[str, Any], rows: int, attend: Attend) -> tuple[list[Launch], Any]:
    """Five launches a layer: products with norm, RoPE, append, residual and SiLU folded in, and attention; the logits.

    there: the inputs on the device. rows: tokens. attend: makes the attention of a layer, a function of (layer,
    queries, output) and what else `DecodeAttention.prepare` is told.
    """
    shape, queue = llama.shape, llama.queue
    groups, packed = skinny_gemm.groups_for(rows), llama.weights.packed
    how: dict[str, Any] = {"kind": llama.kind, "chained": True}
    x = llama.room("x", *packing.shape(groups, shape.hidden))
    q = llama.room("q", rows, shape.heads, shape.width)
    attended = llama.room("attended", *packing.shape(groups, shape.heads * shape.width))
    inner = llama.room("inner", *packing.shape(groups, shape.inner))
    logits = llama.room("logits", rows, shape.vocabulary)

    def multiply(given: Any, name: str, out: Any, finish: str, **more: Any) -> Launch:
        multiplied = split_gemm if split_gemm.faster(queue, rows, finish) else skinny_gemm
        return multiplied.prepare(queue, given, packed[name], out, rows, finish=finish, **more, **how)

    table, sizes = llama.weights.arrays["embedding"], packing.squares_shape(groups, shape.hidden)
    # Of x: who adds to it leaves them for the next norm. One group's are computed on the way, which costs less.
    squares = llama.squares[: sizes[0] * sizes[1]].reshape(sizes) if groups > 1 else None
    launches = [gather.prepare(queue, table, there["ids"], x, groups=groups, squares=squares, kind=llama.kind)]
    for i in range(shape.layers):
        heads = skinny_gemm.Heads(
            llama.k[i], llama.v[i], llama.turns, there["positions"], there["slots"], llama.scales[i]
        )
        launches += [
            multiply(x, f"layers.{i}.qkv", q, "heads", norm=shape.epsilon, heads=heads, squares=squares),
            attend(i, q, attended, groups=groups, chained=True),
            multiply(attended, f"layers.{i}.o", x, "residual", squares=squares),
            multiply(x, f"layers.{i}.gate_up", inner, "silu", norm=shape.epsilon, squares=squares),
            multiply(inner, f"layers.{i}.down", x, "residual", squares=squares),
        ]
    return [*launches, multiply(x, "head", logits, "rows", norm=shape.epsilon, squares=squares)], logits


def library(
    llama: Llama, there: Mapping[str, Any], rows: int, attend: Attend, ends: int | None = None
) -> tuple[list[Launch], Any]:
    """Nine launches a layer, seven of few rows, and the logits. there, rows, attend: as in `fused`.

    ends: how many rows get logits, those that the input of this name lists; None: all of them.
    """
    shape, queue, kind, weights = llama.shape, llama.queue, llama.kind, llama.weights
    how: dict[str, Any] = {"kind": llama.kind, "chained": True}
    x, normed = (llama.room(name, rows, shape.hidden) for name in ("x", "normed"))
    qkv = llama.room("qkv", rows, shape.qkv_rows)
    q, attended = (llama.room(name, rows, shape.heads, shape.width) for name in ("q", "attended"))
    gate_up, inner = llama.room("gate_up", rows, 2 * shape.inner), llama.room("inner", rows, shape.inner)
    logits = llama.room("logits", ends or rows, shape.vocabulary)
    launches = [gather.prepare(queue, weights.arrays["embedding"], there["ids"], x, kind=kind)]
    later = rows <= FEW_ROWS and weights.folded
    norm, multiplied = ((x, shape.epsilon), x) if later else (None, normed)
    for i in range(shape.layers):
        norms = [
            rms_norm.prepare(queue, x, weights.layer(i, name), normed, epsilon=shape.epsilon, **how)
            for name in ("attention_norm", "mlp_norm")
            if not later
        ]
        launches += [
            *norms[:1],
            product.prepare(queue, multiplied, weights.layer(i, "qkv"), qkv, kind=kind),
            rope_append.prepare(
                queue, qkv.reshape(rows, -1, shape.width), q, llama.k[i], llama.v[i], llama.turns,
                there["positions"], there["slots"], norm=norm, scales=llama.scales[i], **how,
            ),
            attend(i, q, attended),
            product.prepare(queue, attended.reshape(rows, -1), weights.layer(i, "o"), x, add=True, kind=kind),
            *norms[1:],
            product.prepare(queue, multiplied, weights.layer(i, "gate_up"), gate_up, kind=kind),
            silu.prepare(queue, gate_up, inner, norm=norm, **how),
            product.prepare(queue, inner, weights.layer(i, "down"), x, add=True, kind=kind),
        ]  # fmt: skip
    last, normed_last = (llama.room(name, ends or rows, shape.hidden) for name in ("ends", "normed_ends"))
    if ends:  # of a chunk only the last token's logits are wanted
        launches.append(gather.prepare(queue, x, there["ends"], last, **how))
    else:
        last = x
    launches += [
        rms_norm.prepare(queue, last, weights.arrays["norm"], normed_last, epsilon=shape.epsilon, **how),
        product.prepare(queue, normed_last, weights.head, logits, kind=kind),
    ]
    return launches, logits
