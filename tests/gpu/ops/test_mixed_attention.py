"""Chunks and decodes in one launch: the same rows as from a launch each, and bad sizes refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from course.gpu.ops import decode_attention as of_decodes
from course.gpu.ops import numbers, work_list
from course.gpu.ops import prefill_attention as of_chunks
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.mixed_attention import MixedAttention
from course.gpu.ops.numbers import roundoff
from course.gpu.ops.prefill_attention import PrefillAttention, checked_chunks
from course.gpu.ops.queue import Queue
from tests.helpers.gpu_draws import close, fetched, normal, on_device, paged, poisoned


def made(queue: Queue, *, kind: str = "bf16", width: int = 64, group: int = 2, tensor: bool | None = None) -> Any:
    sizes = {"heads": 2 * group, "kv_heads": 2, "width": width, "kind": kind, "tensor": tensor}
    return MixedAttention(
        DecodeAttention(queue, max_sequences=8, max_items=64, **sizes), PrefillAttention(queue, **sizes)
    )


def inputs(chunks: list[tuple[int, int]], lengths: list[int], blocks: int, *, kind: str, width: int, group: int):
    """q, caches, table, chunks as listed, items and spans, on the host."""
    rng = np.random.default_rng([6, width, group, len(chunks)])
    ends = [tokens + cached for tokens, cached in chunks]
    k, v, table = paged(rng, [*ends, *lengths], 2, width, kind)
    firsts = np.cumsum([0] + [tokens for tokens, _ in chunks])
    listed = [(int(first), *chunk, i) for i, (first, chunk) in enumerate(zip(firsts, chunks, strict=False))]
    q = normal(rng, int(firsts[-1]) + len(lengths), 2 * group, width, kind=kind)
    return q, k, v, table, listed, work_list.cut(lengths, blocks)


def attend(queue: Queue, chunks: Any, lengths: Any, *, blocks: int = 3, slabs: int = 1, splits: int = 1, **how: Any):
    """(what one launch computes, the same in float64, the bound of the error)."""
    both = made(queue, **how)
    kind, width, group = both.chunks.kind, both.chunks.width, both.chunks.heads // 2
    q, k, v, table, listed, cut = inputs(chunks, lengths, blocks, kind=kind, width=width, group=group)
    rows = len(q) - len(lengths)
    given = on_device(
        queue, q, k, v, table, checked_chunks(listed, rows, table.shape[1]), both.chunks.tiles(listed, slabs),
        np.array(lengths, np.int32), cut.padded(len(cut.items) + 3), cut.spans,
    )  # fmt: skip
    out = poisoned(queue, *q.shape, kind=kind)
    launch = both.prepare(*given, out, slabs=slabs, splits=splits)
    launch()
    first = fetched(queue, out, kind)
    launch()  # counters are back at zero, so a second launch gives the same
    found = fetched(queue, out, kind)
    assert np.array_equal(first, found)
    right = of_chunks.reference(q, k, v, table, np.array(listed), kind)
    right[rows:] = of_decodes.reference(q[rows:], k, v, table[len(chunks) :], lengths, kind)
    # As for each alone: one rounding of the output, with tensor cores one of each weight, float32 sums between.
    size = np.nanmax(np.abs(numbers.decode(v, kind)))
    tensor = roundoff(kind) if both.chunks.tensor else 0.0
    return found, right, roundoff(kind) * np.abs(right) + (2 * tensor + 400 * 2.0**-24) * size + 6e-8


MIXES = [([(1, 0)], [1]), ([(33, 0)], [17, 100]), ([(5, 40), (18, 0)], [150, 16, 1])]


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize(("chunks", "lengths"), MIXES)
def test_plain(on: Queue, kind: str, chunks: list, lengths: list) -> None:
    close(*attend(on, chunks, lengths, kind=kind, width=32, tensor=False))


@pytest.mark.parametrize(("chunks", "lengths"), MIXES)
@pytest.mark.parametrize(("slabs", "splits"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize(("kind", "width", "group"), [("bf16", 128, 4), ("fp16", 64, 3)])
def test_tensor_cores(
    compiled: Queue, kind: str, width: int, group: int, slabs: int, splits: int, chunks: list, lengths: list
) -> None:
    how = {"kind": kind, "width": width, "group": group, "slabs": slabs, "splits": splits}
    close(*attend(compiled, chunks, lengths, tensor=True, **how))


def test_two_attentions_of_different_models_are_refused(on: Queue) -> None:
    sizes = {"kv_heads": 2, "width": 64}
    with pytest.raises(ValueError, match="heads is 4 and 8"):
        MixedAttention(DecodeAttention(on, heads=4, **sizes), PrefillAttention(on, heads=8, **sizes))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": np.ones(0, np.int32)}, "0 decodes of 3 sequences in 7 rows"),
        ({"lengths": np.ones(7, np.int32)}, "7 decodes of 3 sequences in 7 rows"),
        ({"spans": np.zeros((1, 2), np.int32)}, r"spans must have the shape \(2, 2\)"),
        ({"tiles": np.zeros((1, 3), np.int32)}, r"tiles must have the shape \(1, 2\)"),
        ({"items": np.zeros((65, 3), np.int32)}, "2 sequences in 65 items: prepared for 8 in 64"),
        ({"splits": 65}, "splits must be"),
    ],
)
def test_what_does_not_fit_is_refused(compiled: Queue, change: dict, message: str) -> None:
    both = made(compiled, tensor=True)
    q, k, v, table, listed, cut = inputs([(5, 11)], [20, 30], 1, kind="bf16", width=64, group=2)
    given = {
        "q": q, "k_cache": k, "v_cache": v, "table": table, "chunks": checked_chunks(listed, 5, table.shape[1]),
        "tiles": both.chunks.tiles(listed, 1), "lengths": np.array([20, 30], np.int32), "items": cut.items,
        "spans": cut.spans,
    }  # fmt: skip
    splits = change.get("splits", 1)
    given |= {name: value for name, value in change.items() if name != "splits"}
    given = dict(zip(given, on_device(compiled, *given.values()), strict=True))
    out = poisoned(compiled, *q.shape)
    with pytest.raises(ValueError, match=message):
        both.prepare(**given, out=out, splits=splits)
