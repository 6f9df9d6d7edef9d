"""Causal attention of chunks against float64: with and without a context, several chunks at once, split over keys."""

from __future__ import annotations

import numpy as np
import pytest

from course.gpu.ops import numbers
from course.gpu.ops.numbers import roundoff
from course.gpu.ops.prefill_attention import PrefillAttention, checked_chunks, reference
from course.gpu.ops.queue import Queue
from tests.helpers.gpu_draws import close, fetched, normal, on_device, paged, poisoned


def attend(
    queue: Queue, chunks: list[tuple[int, int]], *, kind: str, width: int, group: int, slabs=1, splits=1, empty=0, **how
):
    """(what the device computes, the same in float64, the bound of the error) for chunks of (tokens, cached).

    empty: tiles more, in front, that begin behind the end of the first chunk.
    """
    rng = np.random.default_rng([5, width, group, len(chunks)])
    kv_heads = 2 if group < 4 else 1
    heads = kv_heads * group
    k, v, table = paged(rng, [tokens + cached for tokens, cached in chunks], kv_heads, width, kind)
    firsts = np.cumsum([2] + [tokens + 1 for tokens, _ in chunks])  # a row of nobody's before each chunk and behind
    rows = int(firsts[-1])
    listed = [(int(first), *chunk, i) for i, (first, chunk) in enumerate(zip(firsts, chunks, strict=False))]
    q = normal(rng, rows, heads, width, kind=kind)
    attention = PrefillAttention(queue, heads=heads, kv_heads=kv_heads, width=width, kind=kind, **how)
    tiles = attention.tiles(listed, slabs)
    tiles = np.concatenate([np.full((empty, 2), (0, chunks[0][0] + 60), np.int32), tiles])
    given = on_device(queue, q, k, v, table, checked_chunks(listed, rows, table.shape[1]), tiles)
    out = poisoned(queue, rows, heads, width, kind=kind)
    launch = attention.prepare(*given, out, slabs=slabs, splits=splits)
    launch()
    launch()
    found, right = fetched(queue, out, kind), reference(q, k, v, table, np.array(listed), kind)
    used = np.zeros(rows, bool)
    for first, tokens, _, _ in listed:
        used[first : first + tokens] = True
    assert np.all(np.isnan(found[~used]))
    assert not np.any(queue.device.to_numpy(attention.counters))
    # As in decode attention: one rounding of the output, with tensor cores one of each weight, float32 sums between.
    size = np.nanmax(np.abs(numbers.decode(v, kind)))
    tensor = roundoff(kind) if attention.tensor else 0.0
    bound = roundoff(kind) * np.abs(right) + (2 * tensor + 400 * 2.0**-24) * size + 6e-8
    return found[used], right[used], bound[used]


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize(("width", "group"), [(32, 2), (64, 1), (128, 4)])
@pytest.mark.parametrize("chunks", [[(1, 0)], [(33, 0)], [(5, 40), (18, 0), (1, 31)]])
def test_plain(on: Queue, kind: str, width: int, group: int, chunks: list) -> None:
    close(*attend(on, chunks, kind=kind, width=width, group=group, tensor=False))


@pytest.mark.parametrize(
    ("kind", "width", "group", "chunks", "slabs"),
    [
        ("bf16", 64, 2, [(1, 0)], 1),
        ("fp16", 128, 4, [(70, 0)], 1),
        ("bf16", 128, 4, [(130, 70)], 2),
        ("fp16", 64, 2, [(5, 200), (70, 0), (64, 63)], 2),
        ("bf16", 128, 1, [(5, 200), (64, 64)], 1),
    ],
)
def test_tensor_cores(compiled: Queue, kind: str, width: int, group: int, chunks: list, slabs: int) -> None:
    close(*attend(compiled, chunks, kind=kind, width=width, group=group, tensor=True, slabs=slabs))


@pytest.mark.parametrize("splits", [2, 3])
def test_split_over_keys(compiled: Queue, splits: int) -> None:
    close(*attend(compiled, [(70, 130), (3, 5)], kind="bf16", width=64, group=2, tensor=True, splits=splits))


def test_empty_tiles_do_nothing(on: Queue, compiled: Queue) -> None:
    how = {"kind": "bf16", "width": 64, "group": 2, "empty": 3}
    close(*attend(on, [(5, 40), (18, 0)], tensor=False, **how))
    for splits in (1, 2):
        close(*attend(compiled, [(70, 130), (3, 5)], tensor=True, splits=splits, **how))


def test_bad_chunks_are_refused() -> None:
    with pytest.raises(ValueError, match="chunk 0 has 0 tokens"):
        checked_chunks([(0, 0, 5, 0)], 10, 4)
    with pytest.raises(ValueError, match="rows 5 to 11, and there are 10"):
        checked_chunks([(5, 7, 0, 0)], 10, 4)
    with pytest.raises(ValueError, match="chunk 0 ends at token 70: its table of 4 blocks is too short"):
        checked_chunks([(0, 10, 60, 0)], 10, 4)
