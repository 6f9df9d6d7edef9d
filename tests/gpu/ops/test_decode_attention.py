"""Paged decode attention against float64: ragged lengths, every head size and kind, cut in every way."""

from __future__ import annotations

import numpy as np
import pytest

from course.gpu.ops import numbers, packing, work_list
from course.gpu.ops.decode_attention import DecodeAttention, reference
from course.gpu.ops.numbers import roundoff
from course.gpu.ops.queue import Queue
from tests.gpu.conftest import queue_on
from tests.helpers.gpu_draws import close, fetched, normal, on_device, paged, poisoned
from tests.helpers.sizes import size

LENGTHS = [1, 17, 100, 16, 150]


def attend(
    queue: Queue,
    lengths: list[int],
    blocks: int,
    *,
    kind: str,
    width: int,
    group: int,
    seed: int,
    newest: int = 1,
    cluster: int = 1,
    groups: int = 0,
    sharers: int = 1,
    **how,
):
    """(what the device computes, the same in float64, the bound of the error)."""
    rng = np.random.default_rng([seed, width, group])
    kv_heads = 2
    heads, rows = kv_heads * group, newest * len(lengths)
    k, v, table = paged(rng, lengths, kv_heads, width, kind)
    q = normal(rng, rows, heads, width, kind=kind)
    cut = work_list.cut(lengths, blocks)
    given = on_device(queue, q, k, v, table, np.array(lengths, np.int32), cut.padded(len(cut.items) + 2), cut.spans)
    shape = packing.shape(groups, heads * width) if groups else (rows, heads, width)
    out = poisoned(queue, *shape, kind=kind)
    attention = DecodeAttention(
        queue, heads=heads, kv_heads=kv_heads, width=width, kind=kind, max_sequences=40, max_items=640, **how
    )
    launch = attention.prepare(*given, out, groups=groups, newest=newest, cluster=cluster, sharers=sharers)
    launch()
    first = fetched(queue, out, kind)
    launch()  # counters are back at zero, so a second launch gives the same
    found = fetched(queue, out, kind)
    assert np.array_equal(first, found, equal_nan=True)
    assert not np.any(queue.device.to_numpy(attention.counters))
    if groups:
        found = packing.rows_of(found, rows).reshape(rows, heads, width)
    right = reference(q, k, v, table, lengths, kind, newest)
    # The output is rounded once. With tensor cores each weight is rounded to `kind` too, while their sum is not: a
    # weighted mean of values up to `size` moves by at most twice that share of it. Float32 sums of a term a token, and
    # an exponent of up to about 30 in size, add 50 units of 2^-24 and one a token.
    size = np.nanmax(np.abs(numbers.decode(v, kind)))
    tensor = roundoff(kind) if attention.tensor else 0.0
    return found, right, roundoff(kind) * np.abs(right) + (2 * tensor + (50 + max(lengths)) * 2.0**-24) * size + 6e-8


# In the small form each value is met, and not each with each.
PLAIN = size(
    small=[("bf16", 32, 1, 1), ("fp16", 64, 3, 3), ("fp32", 128, 8, 100), ("bf16", 64, 3, 100)],
    whole=[
        (kind, width, group, blocks)
        for kind in ("bf16", "fp16", "fp32")
        for width, group in ((32, 1), (64, 3), (128, 8))
        for blocks in (1, 3, 100)
    ],
)
TENSOR = size(
    small=[("bf16", 64, 1, 1, 4), ("fp16", 64, 8, 4, 8), ("bf16", 128, 5, 100, 4)],
    whole=[
        (kind, width, group, blocks, warps)
        for kind in ("bf16", "fp16")
        for width, group in ((64, 1), (64, 8), (128, 5))
        for blocks, warps in ((1, 4), (4, 8), (100, 4))
    ],
)


@pytest.mark.parametrize(("kind", "width", "group", "blocks"), PLAIN)
def test_plain(on: Queue, kind: str, width: int, group: int, blocks: int) -> None:
    close(*attend(on, LENGTHS, blocks, kind=kind, width=width, group=group, seed=1, tensor=False))


@pytest.mark.parametrize(("kind", "width", "group", "blocks", "warps"), TENSOR)
def test_tensor_cores(compiled: Queue, kind: str, width: int, group: int, blocks: int, warps: int) -> None:
    close(*attend(compiled, LENGTHS, blocks, kind=kind, width=width, group=group, seed=2, tensor=True, warps=warps))


@pytest.mark.parametrize(("kind", "tensor"), [("fp32", False), ("bf16", True)])
def test_many_parts_are_added_up(compiled: Queue, kind: str, tensor: bool) -> None:
    # 16 parts are fetched side by side: one that is full, one part more, and more than twice as many.
    lengths = [256, 270, 1, 560]
    close(*attend(compiled, lengths, 1, kind=kind, width=64, group=2, seed=5, tensor=tensor))


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_packed_output(compiled: Queue, groups: int, tensor: bool) -> None:
    close(*attend(compiled, LENGTHS, 2, kind="bf16", width=64, group=4, seed=3, tensor=tensor, groups=groups))


# What verifies drafts: two octets and more of lines, that end within an octet or not; new tokens that reach over the
# end of a block (150 and 33) or begin the sequence (8).
NEWEST_LENGTHS = [8, 33, 100, 17, 150]
VERIFIED = size(
    small=[(2, 4, 3, True), (3, 4, 1, True), (8, 4, 100, True), (5, 5, 2, True), (4, 1, 1, False), (3, 4, 2, False)],
    whole=[
        (newest, group, blocks, tensor)
        for newest, group in ((2, 1), (2, 4), (2, 8), (3, 4), (4, 4), (6, 4), (8, 4), (5, 5), (4, 8), (8, 1))
        for blocks in (1, 3, 100)
        for tensor in (True, False)
    ],
)


@pytest.mark.parametrize(("newest", "group", "blocks", "tensor"), VERIFIED)
@pytest.mark.parametrize(("kind", "width"), size([("bf16", 64)], whole=[("bf16", 128), ("fp16", 64)]))
def test_new_tokens_attend_up_to_themselves(
    on: Queue, kind: str, width: int, newest: int, group: int, blocks: int, tensor: bool
) -> None:
    how = {"kind": kind, "width": width, "group": group, "newest": newest}
    close(*attend(on, NEWEST_LENGTHS, blocks, seed=6, tensor=tensor, **how))
    if newest * group > 16:
        close(*attend(on, NEWEST_LENGTHS, blocks, seed=7, tensor=tensor, groups=5, **how))


@pytest.mark.parametrize(
    ("cluster", "newest", "sharers", "group", "tensor"),
    size(
        small=[(2, 1, 1, 4, True), (4, 8, 1, 4, True), (8, 2, 2, 5, True), (2, 8, 4, 4, True), (4, 3, 3, 4, False)],
        whole=[
            (cluster, newest, sharers, group, tensor)
            for cluster in (2, 4, 8, 16)
            for newest, sharers, group in ((1, 1, 4), (2, 2, 5), (4, 1, 4), (8, 1, 4), (8, 4, 4), (1, 1, 1))
            for tensor in (True, False)
        ],
    ),
)
def test_the_parts_of_a_cluster_are_added_up(
    compiled: Queue, cluster: int, newest: int, sharers: int, group: int, tensor: bool
) -> None:
    """Of sequences that have fewer blocks than the cluster, as many, and more; new tokens shared by clusters or not."""
    if compiled.device.is_gpu and cluster > compiled.largest_cluster:
        pytest.skip(f"this card has clusters of {compiled.largest_cluster} blocks")
    lengths = [16, 128, 8, 560, 270]
    how = {
        "kind": "bf16",
        "width": 64,
        "group": group,
        "newest": newest,
        "sharers": sharers,
        "seed": 8,
        "tensor": tensor,
    }
    close(*attend(compiled, lengths, 4, cluster=cluster, **how))


def test_lists_cover_every_block_once() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        lengths = rng.integers(1, 3_000, rng.integers(1, 20))
        cut = work_list.cut(lengths, int(rng.integers(1, 40)))
        for s, length in enumerate(lengths):
            first, parts = cut.spans[s]
            mine = cut.items[first : first + parts]
            assert np.all(mine[:, 0] == s)
            assert mine[0, 1] == 0
            assert np.array_equal(mine[1:, 1], (mine[:, 1] + mine[:, 2])[:-1])
            assert mine[-1, 1] + mine[-1, 2] == -(-length // 16)
            assert mine[:, 2].min() >= 1
            assert np.ptp(mine[:, 2]) <= 1
        assert len(cut.items) == cut.spans[:, 1].sum()


def test_one_long_sequence_is_cut_however_many_short_ones_there_are() -> None:
    card = work_list.Card(slots=396, block_seconds=2.7e-9, latency=0.4e-6)
    lengths = np.array([512] * 63 + [32_768])
    blocks, seconds = work_list.best_blocks(lengths, 8, card)
    assert len(work_list.cut(lengths, blocks).items) > 64 + 8
    # Uncut, the long one alone takes 2,048 blocks x 0.4 us.
    assert seconds < 2_048 * 0.4e-6 / 3
    even = np.full(128, 1_024)  # enough sequences for all slots twice over: a merge would only cost
    assert work_list.best_blocks(even, 8, card)[0] == 64


def test_bad_input_is_refused(on: Queue) -> None:
    with pytest.raises(ValueError, match="sequence 1 has a length of 0 tokens"):
        work_list.cut([5, 0], 4)
    with pytest.raises(ValueError, match="whole numbers of tokens"):
        work_list.cut([5.5], 4)
    with pytest.raises(ValueError, match="block 9 of sequence 0 is outside the cache of 9 blocks"):
        work_list.table_of([[3, 9]], 4, 9)
    with pytest.raises(ValueError, match="5 blocks, and its table has room for 4"):
        work_list.table_of([[0] * 5], 4, 9)
    with pytest.raises(ValueError, match="9 query heads over 1 KV heads"):
        DecodeAttention(on, heads=9, kv_heads=1, width=64)
    with pytest.raises(ValueError, match="heads of 96 numbers"):
        DecodeAttention(on, heads=4, kv_heads=1, width=96)
    with pytest.raises(ValueError, match="do not fit into the 1 places"):
        work_list.cut([100, 100], 4).padded(1)
    how = {"kind": "bf16", "width": 64, "group": 4, "seed": 9}
    with pytest.raises(
        ValueError, match="9 new tokens a sequence: the kernel takes 1 to 8 with 4 query heads a KV head"
    ):
        attend(on, [20], 1, newest=9, **how)
    with pytest.raises(ValueError, match=r"6 sequences of 8 new tokens in 8 items: prepared for 5 in 80"):
        attend(on, [20] * 6, 9, newest=8, **how)
    if not on.plain:
        with pytest.raises(
            ValueError, match=r"8 new tokens a sequence in thread blocks of 8 warps need .* take 4 warps"
        ):
            attend(on, [20], 1, newest=8, warps=8, cluster=2, **(how | {"width": 128}))
        for how_shared in ({"newest": 3, "sharers": 2, "cluster": 2}, {"newest": 2, "sharers": 2}):
            with pytest.raises(ValueError, match="new tokens cannot be shared by 2 clusters of"):
                attend(on, [20], 1, **how_shared, **how)
        with pytest.raises(ValueError, match="3 blocks cannot be a cluster"):
            attend(on, [20], 1, cluster=3, **how)


def test_few_sequences_are_shared_by_clusters_and_many_are_cut_into_items() -> None:
    queue = queue_on("cpu-shim")
    attention = DecodeAttention(queue, heads=8, kv_heads=2, width=128)
    assert [attention.cluster([1_024] * many)[0] for many in (1, 2, 8, 9)] == [8, 4, 2, 1]
    assert attention.cluster([512] * 7 + [16_384])[0] == 1  # nobody would help with the long one
    # Every form that is chosen has room for its sums: 8 new tokens of 4 heads are 32 lines.
    for many in range(1, 9):
        for newest in range(1, 9):
            cluster, warps, sharers = attention.cluster([1_024] * many, newest)
            assert attention.shared_bytes(4 * newest // sharers, warps, cluster) <= 48 * 1_024
            assert newest % sharers == 0
    # There are none without tensor cores.
    assert DecodeAttention(queue, heads=8, kv_heads=2, width=128, tensor=False).cluster([1_024]) == (1, 0, 1)
