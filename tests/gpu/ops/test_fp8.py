"""A cache of 8-bit numbers: their rounding, appending to it, and attention over it against float64."""

from __future__ import annotations

import numpy as np
import pytest

from course.gpu.ops import e4m3, fp8_append, numbers, packing, work_list
from course.gpu.ops.decode_attention import DecodeAttention, reference
from course.gpu.ops.e4m3 import scales_of
from course.gpu.ops.numbers import KINDS, roundoff
from course.gpu.ops.queue import Queue
from tests.helpers.gpu_draws import BLOCK, close, fetched, normal, on_device, poisoned
from tests.helpers.sizes import size

LENGTHS = [1, 17, 100, 16, 150]


def test_e4m3_has_the_numbers_of_its_definition() -> None:
    # OCP 8-bit Floating Point Specification 1.0, table 2: largest 1.75 x 2^8, smallest normal 2^-6, smallest 2^-9.
    codes = np.array([0x7E, 0x08, 0x01, 0x00, 0x38, 0xB8, 0xFE], np.uint8)
    assert e4m3.decode(codes).tolist() == [448, 2**-6, 2**-9, 0, 1, -1, -448]
    assert np.isnan(e4m3.decode(np.array([0x7F, 0xFF], np.uint8))).all()
    every = np.delete(np.arange(256, dtype=np.uint8), [127, 255])
    assert np.array_equal(e4m3.encode(e4m3.decode(every)), every)


def test_e4m3_rounds_to_the_nearest_and_ties_to_even() -> None:
    values = [1.0625, 1.1875, 1.06, 1.07, 500, -1e9, 2**-10, 3 * 2**-10, 464]
    assert e4m3.decode(e4m3.encode(values)).tolist() == [1, 1.25, 1, 1.125, 448, -448, 0, 2 * 2**-9, 448]


@pytest.mark.parametrize("kind", KINDS)
def test_append_rounds_and_writes_where_the_slots_say(on: Queue, kind: str) -> None:
    rng = np.random.default_rng(31)
    tokens, heads, kv_heads, width, blocks = 6, 4, 2, 32, 3
    values = rng.normal(size=(tokens, heads + 2 * kv_heads, width)) * 10.0 ** rng.integers(-3, 3, (tokens, 8, width))
    values[2, -1, :3] = np.nan, 1e30, -1e30
    # Ties: halves, quarters and so on between two numbers, times a power of two.
    values[3, -1] = np.repeat([1.0625, 1.1875, 17.0, 2**-10], 8)
    qkv = numbers.encode(values, kind)
    scales = np.array([[0.5, 1.0], [2.0, 1.0]], np.float32)
    slots = np.array([40, 3, 17, 0, -1, 31], np.int32)
    caches = [np.full((blocks, kv_heads, BLOCK, width), 0x55, np.uint8) for _ in range(2)]
    given, k, v, there, where = on_device(on, qkv, *caches, scales, slots)
    fp8_append.prepare(on, given, k, v, there, where, kind=kind)()
    on.wait()
    new = numbers.decode(qkv, kind)
    for cache, first, found in ((0, heads, on.device.to_numpy(k)), (1, heads + kv_heads, on.device.to_numpy(v))):
        right = np.full(found.shape, 0x55, np.uint8)
        for token, slot in enumerate(slots):
            if slot >= 0:
                for head in range(kv_heads):
                    right[slot // BLOCK, head, slot % BLOCK] = e4m3.encode(
                        new[token, first + head] / scales[cache, head]
                    )
        # A NaN is one whatever its sign.
        same = (found == right) | (np.isnan(e4m3.decode(found)) & np.isnan(e4m3.decode(right)))
        assert same.all()


def attend(
    queue: Queue,
    blocks: int,
    *,
    kind: str,
    width: int,
    group: int,
    newest: int = 1,
    cluster: int = 1,
    sharers: int = 1,
    groups: int = 0,
    **how,
):
    """(what the device computes, the same in float64, the bound of the error)."""
    lengths = [max(length, newest) for length in LENGTHS]
    rng = np.random.default_rng([32, 0, width, group])
    kv_heads, need, rows = 2, [-(-length // BLOCK) for length in lengths], newest * len(lengths)
    heads, many = kv_heads * group, sum(need) + 3
    keys, values = (rng.normal(size=(many, kv_heads, BLOCK, width)) * size for size in (1.5, 0.7))
    scales = scales_of(keys.swapaxes(1, 2), values.swapaxes(1, 2))
    caches = [e4m3.encode(part / one[:, None, None]) for part, one in zip((keys, values), scales, strict=True)]
    order, table = iter(rng.permutation(many)), np.zeros((len(lengths), max(need) + 1), np.int32)
    for s, length in enumerate(lengths):
        for i in range(need[s]):
            table[s, i] = next(order)
            for cache in caches:  # behind the end is what a token before left there: no number at worst
                cache[table[s, i], :, min(BLOCK, length - i * BLOCK) :] = 0x7F
    for cache in caches:
        cache[list(order)] = 0x7F
    q = normal(rng, rows, heads, width, kind=kind)
    cut = work_list.cut(lengths, blocks)
    given = [q, *caches, table, np.array(lengths, np.int32), cut.padded(len(cut.items) + 2), cut.spans]
    out = poisoned(queue, *(packing.shape(groups, heads * width) if groups else q.shape), kind=kind)
    attention = DecodeAttention(
        queue, heads=heads, kv_heads=kv_heads, width=width, kind=kind, kv_cache_dtype="fp8_e4m3", max_sequences=40,
        max_items=640, **how,
    )  # fmt: skip
    forms = {"newest": newest, "cluster": cluster, "sharers": sharers, "groups": groups}
    launch = attention.prepare(*on_device(queue, *given), out, scales=on_device(queue, scales)[0], **forms)
    launch()
    first = fetched(queue, out, kind)
    launch()  # counters are back at zero, so a second launch gives the same
    found = fetched(queue, out, kind)
    assert np.array_equal(first, found, equal_nan=True)
    if groups:
        found = packing.rows_of(found, rows).reshape(q.shape)
    right = reference(q, *caches, table, lengths, kind, newest, scales)
    # The output is rounded once. With tensor cores each weight is rounded to fp16 while their sum is not: a weighted
    # mean of values up to `most` moves by at most twice that share of it. bf16 queries of this size are exact in fp16.
    # Float32 sums of a term a token and an exponent of up to about 30 add 50 units of 2^-24 and one a token.
    most = 448 * scales[1].max()
    tensor = roundoff("fp16") if attention.tensor else 0.0
    return found, right, roundoff(kind) * np.abs(right) + (2 * tensor + (50 + max(lengths)) * 2.0**-24) * most + 6e-8


PLAIN = size(
    small=[("bf16", 32, 1, 1), ("fp16", 64, 3, 3), ("fp32", 128, 8, 100)],
    whole=[
        (kind, width, group, blocks)
        for kind in ("bf16", "fp16", "fp32")
        for width, group in ((32, 1), (64, 3), (128, 8))
        for blocks in (1, 3, 100)
    ],
)
TENSOR = [("bf16", 4, 1, 4), ("fp16", 8, 3, 4), ("bf16", 1, 100, 8)]


@pytest.mark.parametrize(("kind", "width", "group", "blocks"), PLAIN)
def test_attention_without_tensor_cores(on: Queue, kind: str, width: int, group: int, blocks: int) -> None:
    found, right, bound = attend(on, blocks, kind=kind, width=width, group=group, tensor=False)
    close(found, right, bound)


@pytest.mark.parametrize(("kind", "group", "blocks", "warps"), TENSOR)
def test_attention_with_tensor_cores(compiled: Queue, kind: str, group: int, blocks: int, warps: int) -> None:
    if not compiled.tensor_cores:
        pytest.skip("this device has no tensor cores that the kernel can use")
    found, right, bound = attend(compiled, blocks, kind=kind, width=128, group=group, tensor=True, warps=warps)
    close(found, right, bound)


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("bf16", {"newest": 3, "groups": 2, "warps": 8}),
        ("fp16", {"newest": 8, "sharers": 2, "cluster": 4}),
        ("bf16", {"newest": 2, "cluster": 2, "groups": 2, "tensor": False}),
    ],
)
def test_drafts_clusters_and_packed_results(compiled: Queue, kind: str, how: dict) -> None:
    if compiled.device.is_gpu and how.get("cluster", 1) > compiled.largest_cluster:
        pytest.skip(f"this card has clusters of {compiled.largest_cluster} blocks")
    close(*attend(compiled, 3, kind=kind, width=128, group=4, **how))


def test_scales_reach_the_largest_number_and_a_head_of_zeros_has_one() -> None:
    keys = np.zeros((5, 2, 4), np.float32)
    keys[3, 1, 2] = -896
    assert scales_of(keys, keys * 0).tolist() == [[1, 2], [1, 1]]


def test_what_does_not_fit_is_refused(on: Queue) -> None:
    fp8 = {"kv_cache_dtype": "fp8_e4m3"}
    with pytest.raises(ValueError, match="kv_cache_dtype must be auto or fp8_e4m3, not 'fp8'"):
        DecodeAttention(on, heads=4, kv_heads=4, width=64, kv_cache_dtype="fp8")
    with pytest.raises(ValueError, match="8-bit numbers are for heads of 128"):
        DecodeAttention(on, heads=4, kv_heads=4, width=64, tensor=True, **fp8)
    attention = DecodeAttention(on, heads=2, kv_heads=2, width=32, max_sequences=1, **fp8)
    q, cache, ints, scales = on_device(
        on, np.zeros((1, 2, 32), np.uint16), np.zeros((1, 2, 16, 32), np.uint8), np.zeros((1, 1), np.int32),
        np.ones((2, 2), np.float32),
    )  # fmt: skip
    items, spans = on_device(on, np.zeros((1, 3), np.int32), np.zeros((1, 2), np.int32))
    given = ints, ints[0], items, spans, q
    with pytest.raises(ValueError, match=r"scales must have the shape \(2, 2\)"):
        attention.prepare(q, cache, cache, *given, scales=scales[:1])
    with pytest.raises(ValueError, match="scales must be an array of the device, not None"):
        attention.prepare(q, cache, cache, *given)
    with pytest.raises(ValueError, match="v_cache must hold uint8 as uint8, not int8"):
        attention.prepare(q, cache, cache.view(np.int8), *given, scales=scales)
    usual = DecodeAttention(on, heads=2, kv_heads=2, width=32, max_sequences=1)
    with pytest.raises(ValueError, match="scales are for a cache of 8-bit numbers"):
        usual.prepare(q, *[cache.astype(np.uint16)] * 2, *given, scales=scales)
    with pytest.raises(ValueError, match="width must be a multiple of 4"):
        fp8_append.prepare(on, np.zeros((1, 6, 30), np.uint16), cache, cache, scales, ints[0])
