"""Operations on rows: RMSNorm, RoPE, append, SiLU, gather, fill and the read probe."""

from __future__ import annotations

import numpy as np
import pytest

from course.gpu.ops import (
    append,
    fill,
    gather,
    most_likely,
    numbers,
    packing,
    read_probe,
    rms_norm,
    rope,
    rope_append,
    silu,
)
from course.gpu.ops.numbers import KINDS, roundoff
from course.gpu.ops.queue import Queue
from tests.helpers.gpu_draws import close, fetched, normal, on_device, poisoned

# A few float32 operations stand between input and the one rounding of the output; exp2 and rsqrt of a GPU are good to
# 2 units in the last place.
SINGLE = 16 * 2.0**-24


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 8), (3, 264), (2, 4096)])
def test_rms_norm(on: Queue, kind: str, rows: int, columns: int) -> None:
    rng = np.random.default_rng([1, rows, columns])
    x, weight = normal(rng, rows, columns, kind=kind, scale=3), normal(rng, columns, kind=kind)
    out = poisoned(on, rows, columns, kind=kind)
    rms_norm.prepare(on, *on_device(on, x, weight), out, epsilon=1e-5, kind=kind)()
    right = rms_norm.reference(numbers.decode(x, kind), numbers.decode(weight, kind), 1e-5)
    # The sum of squares has at most columns / 256 + 10 additions in a row.
    bound = (roundoff(kind) + SINGLE + columns / 256 * 2.0**-24) * np.abs(right)
    close(fetched(on, out, kind), right, bound + (6e-8 if kind == "fp16" else 1e-30))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("heads", "rotated", "width"), [(3, 2, 32), (12, 10, 128), (40, 40, 64)])
def test_rope(on: Queue, kind: str, heads: int, rotated: int, width: int) -> None:
    rng = np.random.default_rng([2, heads, width])
    positions = rng.integers(0, 500, 5).astype(np.int32)
    x, table = normal(rng, 5, heads, width, kind=kind), rope.turns(500, width)
    given, turns, where = on_device(on, x, table, positions)
    rope.prepare(on, given, turns, where, rotated=rotated, kind=kind)()
    right = numbers.decode(x, kind).astype(np.float64)
    right[:, :rotated] = rope.reference(right[:, :rotated], positions, 500_000.0)
    # Cosine and sine are rounded to float32, and two products of up to |x| are added.
    size = np.abs(numbers.decode(x, kind)).max(-1, keepdims=True)
    close(fetched(on, given, kind), right, roundoff(kind) * np.abs(right) + 2 * SINGLE * size)


@pytest.mark.parametrize("kind", KINDS)
def test_append_writes_where_the_slots_say_and_nowhere_else(on: Queue, kind: str) -> None:
    rng = np.random.default_rng(3)
    heads, kv_heads, width, blocks = 4, 2, 64, 5
    qkv = normal(rng, 6, heads + 2 * kv_heads, width, kind=kind)
    slots = np.array([79, 0, -1, 17, 31, 16], np.int32)
    given, k, v, where = on_device(on, qkv, *(normal(rng, blocks, kv_heads, 16, width, kind=kind),) * 2, slots)
    before = fetched(on, k, kind)
    append.prepare(on, given, k, v, where, kind=kind)()
    right_k, right_v = before.copy(), before.copy()
    for token, slot in enumerate(slots):
        if slot >= 0:
            right_k[slot // 16, :, slot % 16] = numbers.decode(qkv[token, heads : heads + kv_heads], kind)
            right_v[slot // 16, :, slot % 16] = numbers.decode(qkv[token, heads + kv_heads :], kind)
    assert np.array_equal(fetched(on, k, kind), right_k)
    assert np.array_equal(fetched(on, v, kind), right_v)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("heads", "kv_heads", "width"), [(4, 1, 32), (8, 2, 128), (4, 4, 64)])
def test_rope_append_is_rope_then_append(on: Queue, kind: str, heads: int, kv_heads: int, width: int) -> None:
    rng = np.random.default_rng([4, heads, width])
    tokens, blocks = 5, 4
    qkv = normal(rng, tokens, heads + 2 * kv_heads, width, kind=kind)
    positions, slots = rng.integers(0, 300, tokens).astype(np.int32), np.array([3, 20, -1, 63, 4], np.int32)
    given, turns, where, to = on_device(on, qkv, rope.turns(300, width), positions, slots)
    q = poisoned(on, tokens, heads, width, kind=kind)
    caches = [poisoned(on, blocks, kv_heads, 16, width, kind=kind) for _ in range(4)]
    rope_append.prepare(on, given, q, *caches[:2], turns, where, to, kind=kind)()
    rope.prepare(on, given, turns, where, rotated=heads + kv_heads, kind=kind)()
    append.prepare(on, given, *caches[2:], to, kind=kind)()
    together, apart = (fetched(on, one, kind) for one in (q, given))
    assert np.array_equal(together, apart[:, :heads])
    for one, two in zip(caches[:2], caches[2:], strict=True):
        assert np.array_equal(fetched(on, one, kind), fetched(on, two, kind), equal_nan=True)
    assert np.isnan(fetched(on, caches[0], kind)).sum() == (64 - 4) * kv_heads * width


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 8), (3, 1032), (2, 14336)])
def test_silu(on: Queue, kind: str, rows: int, columns: int) -> None:
    rng = np.random.default_rng([5, rows, columns])
    gate_up = normal(rng, rows, 2 * columns, kind=kind, scale=4)
    gate_up[0, :1] = numbers.encode([-100.0], kind)  # exp(100) overflows, and the gate is closed
    out = poisoned(on, rows, columns, kind=kind)
    silu.prepare(on, *on_device(on, gate_up), out, kind=kind)()
    right = silu.reference(numbers.decode(gate_up, kind))
    # The exponent, up to 100 in size, is rounded before exp2 is taken; fp16 has nothing between 0 and 6e-8.
    bound = (roundoff(kind) + 100 * SINGLE) * np.abs(right) + (6e-8 if kind == "fp16" else 1e-37)
    close(fetched(on, out, kind), right, bound)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_rows_are_normed_by_what_takes_them(on: Queue, kind: str) -> None:
    rng = np.random.default_rng(10)
    rows, hidden, columns, heads, kv_heads, width = 3, 4104, 2_056, 4, 2, 32
    x = normal(rng, rows, hidden, kind=kind, scale=0.3)
    norm = (on_device(on, x)[0], 1e-5)
    factor = rms_norm.reference(numbers.decode(x, kind), np.ones(hidden), 1e-5)[:, :1] / numbers.decode(x, kind)[:, :1]

    gate_up, out = normal(rng, rows, 2 * columns, kind=kind), poisoned(on, rows, columns, kind=kind)
    silu.prepare(on, *on_device(on, gate_up), out, norm=norm, kind=kind)()
    right = silu.reference(numbers.decode(gate_up, kind) * factor)
    # Float32 sums of 4,104 squares and of an exponent of up to 30, and one rounding.
    bound = (roundoff(kind) + 300 * SINGLE) * np.abs(right) + (6e-8 if kind == "fp16" else 1e-37)
    close(fetched(on, out, kind), right, bound)

    qkv = normal(rng, rows, heads + 2 * kv_heads, width, kind=kind)
    three = np.arange(3, dtype=np.int32)
    given, turns, where, to = on_device(on, qkv, rope.turns(9, width), three, three)
    q, k, v = (poisoned(on, *shape, kind=kind) for shape in ((rows, heads, width), *[(1, kv_heads, 16, width)] * 2))
    rope_append.prepare(on, given, q, k, v, turns, where, to, norm=norm, kind=kind)()
    whole = rope.reference(numbers.decode(qkv, kind) * factor[:, :, None], three, 500_000.0)
    size = np.abs(numbers.decode(qkv, kind) * factor[:, :, None]).max()
    found = [fetched(on, q, kind), *(fetched(on, one, kind)[0, :, :3].swapaxes(0, 1) for one in (k, v))]
    values = numbers.decode(qkv, kind)[:, heads + kv_heads :] * factor[:, :, None]
    for one, exact in zip(found, (whole[:, :heads], whole[:, heads : heads + kv_heads], values), strict=True):
        # Both terms of a turn may be as large as the largest number; the twin rounds before it turns, too.
        more = 4 * roundoff(kind) if on.plain else 600 * SINGLE
        close(one, exact, roundoff(kind) * np.abs(exact) + more * size)
    with pytest.raises(ValueError, match=r"x must have the shape \(3, any\)"):
        silu.prepare(on, *on_device(on, gate_up), out, norm=(norm[0][:2], 1e-5), kind=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [8, 4104])
def test_most_likely_is_the_first_of_the_largest(on: Queue, kind: str, columns: int) -> None:
    rng = np.random.default_rng(8)
    values = np.round(rng.normal(0, 3, (6, columns)))  # many are equal
    values[1], values[2], values[3, : columns // 2] = -np.inf, -7.0, np.nan
    values[4, [columns - 3, columns - 1]] = 50.0
    values[5] = -5.0 - np.arange(columns) % 7
    (given,) = on_device(on, numbers.encode(values, kind))
    out = on.device.to_device(np.full(6, -1, np.int32))
    most_likely.prepare(on, given, out, kind=kind)()
    on.wait()
    rows = [[(value, -i) for i, value in enumerate(row.tolist()) if value == value] for row in values]
    assert on.device.to_numpy(out).tolist() == [-max(row)[1] for row in rows]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_gather_takes_rows_as_they_are(on: Queue, kind: str, groups: int) -> None:
    rng = np.random.default_rng([6, groups])
    table, ids = normal(rng, 50, 96, kind=kind), rng.integers(0, 50, 7).astype(np.int32)
    if groups and kind == "fp32":
        pytest.skip("packed activations are 16-bit")
    out = poisoned(on, *(packing.shape(groups, 96) if groups else (7, 96)), kind=kind)
    gather.prepare(on, *on_device(on, table, ids), out, groups=groups, kind=kind)()
    on.wait()
    found = on.device.to_numpy(out)
    found = packing.rows_of(found, 7) if groups else found
    assert np.array_equal(found, table[ids])


@pytest.mark.parametrize("kind", KINDS)
def test_fill_gives_the_same_bits_everywhere(on: Queue, kind: str) -> None:
    out = poisoned(on, 3, 1001, kind=kind)
    fill.prepare(on, out, bound=0.5, seed=7, first=100, kind=kind)()
    on.wait()
    right = fill.twin(3003, bound=0.5, seed=7, first=100, kind=kind)
    assert np.array_equal(on.device.to_numpy(out).reshape(-1), right)
    values = numbers.decode(right, "bf16" if kind == "bf16" else kind)
    # 3003 uniform draws: their mean is within 4 standard errors of 0, their spread near 1 / sqrt(12).
    assert abs(values.mean()) < 4 * 0.289 / 3003**0.5
    assert 0.27 < values.std() < 0.31


@pytest.mark.parametrize("pattern", [0, 1])
@pytest.mark.parametrize("words", [4, 4096, 9000])
def test_the_read_probe_reads_everything_once(on: Queue, pattern: int, words: int) -> None:
    rng = np.random.default_rng([8, words])
    data = rng.integers(0, 2**32, words, dtype=np.uint32)
    given, out = on_device(on, data, np.full(3, 0xDEADBEEF, np.uint32))
    read_probe.prepare(on, given, out, pattern=pattern)()
    on.wait()
    assert np.bitwise_xor.reduce(on.device.to_numpy(out)) == read_probe.reference(data)


def test_numbers_round_to_nearest_even() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5, 3.4e38, np.inf, np.nan, 1e-40], np.float32)
    found = numbers.decode(numbers.encode(values, "bf16"), "bf16")
    # Halfway between 1 and 1.0078125 goes to the even 1; between 1.0078125 and 1.015625 up to the even one.
    assert found[:4].tolist() == [1.0, 1.0, 1.015625, -2.5]
    assert np.isinf(found[5])
    assert np.isnan(found[6])


def test_arrays_that_do_not_fit_are_refused(on: Queue) -> None:
    rng = np.random.default_rng(9)
    x, weight = on_device(on, normal(rng, 4, 64), normal(rng, 64))
    out = poisoned(on, 4, 64)
    with pytest.raises(ValueError, match=r"weight must have the shape \(64\)"):
        rms_norm.prepare(on, x, x, out, epsilon=1e-5)
    with pytest.raises(ValueError, match="x must hold fp32 as float32, not uint16"):
        rms_norm.prepare(on, x, weight, out, epsilon=1e-5, kind="fp32")
    with pytest.raises(ValueError, match="contiguous"):
        rms_norm.prepare(on, x[:, ::2], weight[:32], out[:, :32], epsilon=1e-5)
    with pytest.raises(ValueError, match="columns must be a multiple of 8"):
        rms_norm.prepare(on, x[:, :7], weight[:7], out[:, :7], epsilon=1e-5)
    with pytest.raises(ValueError, match="slot 90 is outside a cache of 5 blocks"):
        append.checked_slots(np.array([3, 90]), 5)
    with pytest.raises(ValueError, match="the same slot"):
        append.checked_slots(np.array([3, 3]), 5)
