"""Products with packed weights and what is folded into them, and the library's, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from course.gpu.ops import numbers, packing, product, rope, silu, skinny_gemm
from course.gpu.ops.numbers import roundoff
from course.gpu.ops.queue import Queue
from tests.helpers.gpu_draws import close, fetched, normal, on_device, poisoned
from tests.helpers.sizes import size

KINDS = ["bf16", "fp16"]
CASES = [
    (1, 1, False),
    (8, 1, False),
    (3, 1, True),
    (8, 1, True),
    (13, 2, True),
    (32, 4, True),
    (17, 3, True),
    (30, 4, True),
]
# Each form once, and both kinds of numbers on a plain and a tensor-core form.
FORMS = size(
    small=[*(("bf16", case) for case in CASES[1::2]), *(("fp16", case) for case in CASES[0:3:2])],
    whole=[(kind, case) for kind in KINDS for case in CASES],
)


class Drawn:
    """Inputs of one product: rows x in packed form (the places of no row are NaN) and weights."""

    def __init__(self, queue: Queue, rows: int, groups: int, many: int, columns: int, kind: str, finish: str, width=0):
        rng = np.random.default_rng([rows, many, columns])
        self.x, self.w = (
            normal(rng, rows, columns, kind=kind),
            normal(rng, many, columns, kind=kind, scale=columns**-0.5),
        )
        packed = numbers.encode(np.full(packing.shape(groups, columns), np.nan), kind)
        packing.put_rows(packed, self.x)
        weights = packing.packed_weights(self.w, skinny_gemm.ORDERS[finish], width)
        self.on_device = on_device(queue, packed, weights)
        self.exact = [numbers.decode(one, kind).astype(np.float64) for one in (self.x, self.w)]
        # Sums of `columns` products in float32, in any order: columns x 2^-24 of the sum of their sizes at most.
        self.noise = columns * 2.0**-24 * (np.abs(self.exact[0]) @ np.abs(self.exact[1]).T)


def squares_on(queue: Queue, x: np.ndarray, groups: int, kind: str) -> np.ndarray:
    """The squares of rows x in parts, as who wrote x leaves them; the places of no row are NaN."""
    whole = np.full(packing.squares_shape(groups, x.shape[1]), np.nan, np.float32)
    whole[:, : len(x)] = packing.squares_of(x, kind)
    return on_device(queue, whole)[0]


def place(case: tuple, queue: Queue) -> None:
    if queue.device.kind == "numpy" and case[2]:
        pytest.skip("NumPy has one form")


@pytest.mark.parametrize(("kind", "case"), FORMS)
@pytest.mark.parametrize("norm", [None, 1e-5])
def test_rows(on: Queue, kind: str, case: tuple, norm: float | None) -> None:
    place(case, on)
    rows, groups, tensor = case
    drawn = Drawn(on, rows, groups, 48, 1056, kind, "rows")
    out = poisoned(on, rows, 48, kind=kind)
    how = {"kind": kind, "tensor": tensor}
    if norm and rows % 2:  # the squares are given, or computed
        how["squares"] = squares_on(on, drawn.x, groups, kind)
    skinny_gemm.prepare(on, *drawn.on_device, out, rows, norm=norm, **how)()
    right = skinny_gemm.reference(*drawn.exact, norm)
    scale = 1.0 if norm is None else 1 / np.sqrt((drawn.exact[0] ** 2).mean(-1, keepdims=True) + norm)
    close(fetched(on, out, kind), right, (roundoff(kind) + 1e-6) * np.abs(right) + 2 * drawn.noise * scale + 6e-8)


@pytest.mark.parametrize(("kind", "case"), FORMS)
def test_residual(on: Queue, kind: str, case: tuple) -> None:
    place(case, on)
    rows, groups, tensor = case
    drawn = Drawn(on, rows, groups, 64, 256, kind, "residual")
    before = normal(np.random.default_rng(7), rows, 64, kind=kind)
    packed = numbers.encode(np.full(packing.shape(groups, 64), np.nan), kind)
    packing.put_rows(packed, before)
    (out,) = on_device(on, packed)
    how = {"kind": kind, "tensor": tensor}
    if rows % 2:
        (how["squares"],) = on_device(on, np.full(packing.squares_shape(groups, 64), np.nan, np.float32))
    skinny_gemm.prepare(on, *drawn.on_device, out, rows, finish="residual", **how)()
    right = numbers.decode(before, kind) + skinny_gemm.reference(*drawn.exact)
    found = packing.rows_of(fetched(on, out, kind), rows)
    close(found, right, (roundoff(kind) + 1e-6) * np.abs(right) + drawn.noise + 6e-8)
    if rows % 2:
        left = on.device.to_numpy(how["squares"])[:, :rows]
        its = packing.squares_of(packing.rows_of(on.device.to_numpy(out), rows), kind)
        assert np.allclose(left, its, rtol=16 * 2.0**-24)  # 16 squares, in any order


@pytest.mark.parametrize(("kind", "case"), FORMS)
def test_silu(on: Queue, kind: str, case: tuple) -> None:
    place(case, on)
    rows, groups, tensor = case
    drawn = Drawn(on, rows, groups, 128, 128, kind, "silu")
    out = poisoned(on, *packing.shape(groups, 64), kind=kind)
    skinny_gemm.prepare(on, *drawn.on_device, out, rows, finish="silu", norm=1e-5, kind=kind, tensor=tensor)()
    right = silu.reference(skinny_gemm.reference(*drawn.exact, 1e-5))
    found = packing.rows_of(fetched(on, out, kind), rows)
    # The gate's slope is at most 1.1, and factors are below 10 here: ten times the noise of the sums.
    noise = 10 * drawn.noise.max(-1, keepdims=True)
    close(found, right, (roundoff(kind) + 1e-5) * np.abs(right) + noise + 6e-8)


@pytest.mark.parametrize(("kind", "case"), FORMS)
@pytest.mark.parametrize("width", [32, 128])
def test_heads(on: Queue, kind: str, case: tuple, width: int) -> None:
    place(case, on)
    rows, groups, tensor = case
    heads, kv_heads, blocks = 4, 2, 6
    rng = np.random.default_rng([8, rows, width])
    drawn = Drawn(on, rows, groups, (heads + 2 * kv_heads) * width, 64, kind, "heads", width)
    positions = rng.integers(0, 100, rows).astype(np.int32)
    slots = rng.permutation(16 * blocks)[:rows].astype(np.int32)
    slots[0] = -1
    q = poisoned(on, rows, heads, width, kind=kind)
    caches = [poisoned(on, blocks, kv_heads, 16, width, kind=kind) for _ in range(2)]
    needs = skinny_gemm.Heads(*caches, *on_device(on, rope.turns(100, width), positions, slots))
    skinny_gemm.prepare(
        on, *drawn.on_device, q, rows, finish="heads", norm=1e-5, heads=needs, kind=kind, tensor=tensor
    )()
    right = skinny_gemm.reference(*drawn.exact, 1e-5).reshape(rows, -1, width)
    right[:, : heads + kv_heads] = rope.reference(right[:, : heads + kv_heads], positions, 500_000.0)
    size = 4 * drawn.noise.max() + 1e-5 * np.abs(right).max()
    bound = roundoff(kind) * np.abs(right) + size + 6e-8
    close(fetched(on, q, kind), right[:, :heads], bound[:, :heads])
    k, v = (fetched(on, cache, kind) for cache in caches)
    for token in range(1, rows):
        at = slots[token] // 16, slice(None), slots[token] % 16
        close(k[at], right[token, heads : heads + kv_heads], bound[token, heads : heads + kv_heads])
        close(v[at], right[token, heads + kv_heads :], bound[token, heads + kv_heads :])
    assert np.isnan(k).sum() == (16 * blocks - rows + 1) * kv_heads * width


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("rows", "many", "columns"), [(1, 64, 64), (37, 96, 256), (200, 512, 128)])
def test_library_products(on: Queue, kind: str, add: bool, rows: int, many: int, columns: int) -> None:
    rng = np.random.default_rng([9, rows])
    x, w = normal(rng, rows, columns, kind=kind), normal(rng, many, columns, kind=kind)
    before = normal(rng, rows, many, kind=kind)
    out = on_device(on, before)[0] if add else poisoned(on, rows, many, kind=kind)
    product.prepare(on, *on_device(on, x, w), out, add=add, kind=kind)()
    exact = [numbers.decode(one, kind).astype(np.float64) for one in (x, w, before)]
    right = exact[0] @ exact[1].T + (exact[2] if add else 0)
    # TF32 would be wrong by 2^-11 of each product: far outside of this. cuBLASLt rounds a product before it adds it to
    # what was there, so then there are two roundings.
    noise = columns * 2.0**-24 * (np.abs(exact[0]) @ np.abs(exact[1]).T)
    rounded = np.abs(right) + (np.abs(right - exact[2]) if add else 0)
    close(fetched(on, out, kind), right, (roundoff(kind) + 1e-6) * rounded + noise + 1e-6)


@pytest.mark.parametrize(("tiles", "finish"), [(1, "rows"), (2, "rows"), (2, "silu")])
@pytest.mark.parametrize(("depth", "resident"), [(1, 3), (2, 2), (4, 1)])
def test_variants_give_the_same(compiled: Queue, tiles: int, finish: str, depth: int, resident: int) -> None:
    drawn = Drawn(compiled, 25, 4, 64, 256, "bf16", finish)
    found = []
    for how in ({}, {"depth": depth, "resident": resident, "tiles_a_block": tiles}):
        out = poisoned(compiled, *((25, 64) if finish == "rows" else packing.shape(4, 32)))
        skinny_gemm.prepare(compiled, *drawn.on_device, out, 25, finish=finish, norm=1e-5, **how)()
        one = fetched(compiled, out, "bf16")
        found.append(one if finish == "rows" else packing.rows_of(one, 25))
    # Another depth adds up in another order, which may move the last bit of a rounded number.
    close(found[0], found[1], 2 * roundoff("bf16") * np.abs(found[1]) + 20 * drawn.noise.max())


def test_packing_is_undone_by_its_inverse() -> None:
    rng = np.random.default_rng(10)
    w = rng.integers(0, 60_000, (96, 64)).astype(np.uint16)
    for order, width in (("rows", 0), ("gate-up", 0), ("heads", 32)):
        rows = packing.tile_rows(96, order, width).reshape(-1)
        assert sorted(rows) == list(range(96))
        assert np.array_equal(skinny_gemm.unpacked_weights(packing.packed_weights(w, order, width)), w[rows])


def test_bad_input_is_refused(on: Queue) -> None:
    drawn = Drawn(on, 8, 1, 64, 64, "bf16", "rows")
    out = poisoned(on, 8, 64)
    with pytest.raises(ValueError, match="9 rows: x has room for 8"):
        skinny_gemm.prepare(on, *drawn.on_device, out, 9)
    with pytest.raises(ValueError, match="fp32 is multiplied by `product`"):
        skinny_gemm.prepare(on, *drawn.on_device, out, 8, kind="fp32")
    with pytest.raises(ValueError, match=r"out must have the shape \(8, 64\)"):
        skinny_gemm.prepare(on, *drawn.on_device, poisoned(on, 8, 32), 8)
    with pytest.raises(ValueError, match="cannot be packed"):
        packing.packed_weights(np.zeros((17, 64)))
    with pytest.raises(ValueError, match="w must have the shape"):
        product.prepare(
            on, *on_device(on, np.zeros((3, 4), np.float32), np.zeros((5, 6), np.float32)), out, kind="fp32"
        )
