"""What a step is made of: the two lists of launches that it can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course.gpu.ops import gather, packing, product, rms_norm, rope_append, silu, skinny_gemm, split_gemm
from course.gpu.ops.queue import Launch
from course.gpu.transformer.llama import Llama


def fused(llama: Llama, there: dict[str, Any], rows: int, attend: Callable[..., Launch]) -> tuple[list[Launch], Any]:
    """Five launches a layer: products with norm, RoPE, append, residual and SiLU folded in, and attention; the logits.

    there: the step's inputs on the device, by name. rows: its tokens.
    attend: a function of (layer, queries, output) and what else `DecodeAttention.prepare` is told.
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

    table = llama.weights.arrays["embedding"]
    launches = [gather.prepare(queue, table, there["ids"], x, groups=groups, kind=llama.kind)]
    for i in range(shape.layers):
        heads = skinny_gemm.Heads(llama.k[i], llama.v[i], llama.turns, there["positions"], there["slots"])
        launches += [
            multiply(x, f"layers.{i}.qkv", q, "heads", norm=shape.epsilon, heads=heads),
            attend(i, q, attended, groups=groups, chained=True),
            multiply(attended, f"layers.{i}.o", x, "residual"),
            multiply(x, f"layers.{i}.gate_up", inner, "silu", norm=shape.epsilon),
            multiply(inner, f"layers.{i}.down", x, "residual"),
        ]
    return [*launches, multiply(x, "head", logits, "rows", norm=shape.epsilon)], logits


def library(
    llama: Llama, there: dict[str, Any], rows: int, attend: Callable[..., Launch], ends: int, chunks: bool
) -> tuple[list[Launch], Any]:
    """Nine launches a layer, and the logits.

    there, rows: see `fused`. attend: a function of (layer, queries, output). ends: how many sequences want logits;
    chunks: of some of them the last token alone.
    """
    shape, queue, kind, weights = llama.shape, llama.queue, llama.kind, llama.weights
    how: dict[str, Any] = {"kind": llama.kind, "chained": True}
    x, normed = (llama.room(name, rows, shape.hidden) for name in ("x", "normed"))
    qkv = llama.room("qkv", rows, shape.qkv_rows)
    q, attended = (llama.room(name, rows, shape.heads, shape.width) for name in ("q", "attended"))
    gate_up, inner = llama.room("gate_up", rows, 2 * shape.inner), llama.room("inner", rows, shape.inner)
    logits = llama.room("logits", ends, shape.vocabulary)
    launches = [gather.prepare(queue, weights.arrays["embedding"], there["ids"], x, kind=kind)]
    for i in range(shape.layers):
        norms = [weights.layer(i, name) for name in ("attention_norm", "mlp_norm")]
        launches += [
            rms_norm.prepare(queue, x, norms[0], normed, epsilon=shape.epsilon, **how),
            product.prepare(queue, normed, weights.layer(i, "qkv"), qkv, kind=kind),
            rope_append.prepare(
                queue, qkv.reshape(rows, -1, shape.width), q, llama.k[i], llama.v[i], llama.turns,
                there["positions"], there["slots"], **how,
            ),
            attend(i, q, attended),
            product.prepare(queue, attended.reshape(rows, -1), weights.layer(i, "o"), x, add=True, kind=kind),
            rms_norm.prepare(queue, x, norms[1], normed, epsilon=shape.epsilon, **how),
            product.prepare(queue, normed, weights.layer(i, "gate_up"), gate_up, kind=kind),
            silu.prepare(queue, gate_up, inner, **how),
            product.prepare(queue, inner, weights.layer(i, "down"), x, add=True, kind=kind),
        ]  # fmt: skip
    last, normed_ends = (llama.room(name, ends, shape.hidden) for name in ("ends", "normed_ends"))
    if chunks:  # of a chunk only the last token's logits are wanted
        launches.append(gather.prepare(queue, x, there["ends"], last, **how))
    else:
        last = x
    launches += [
        rms_norm.prepare(queue, last, weights.arrays["norm"], normed_ends, epsilon=shape.epsilon, **how),
        product.prepare(queue, normed_ends, weights.head, logits, kind=kind),
    ]
    return launches, logits
