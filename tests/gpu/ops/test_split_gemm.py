"""Products of up to 64 rows whose K is shared by a cluster, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from course.gpu.ops import numbers, packing, rope, silu, skinny_gemm, split_gemm
from course.gpu.ops.numbers import roundoff
from course.gpu.ops.queue import Queue
from tests.gpu.ops.test_products import Drawn, squares_on
from tests.helpers.gpu_draws import close, fetched, normal, on_device, poisoned
from tests.helpers.sizes import size

# (rows, groups, cluster, warps, tensor): one block and several, groups that warps look after in turn, tiles that do not
# fit evenly.
FORMS = size(
    small=[(64, 8, 3, 4, True), (23, 3, 1, 2, True), (33, 5, 8, 1, True), (11, 2, 2, 3, False)],
    whole=[
        (rows, groups, cluster, warps, tensor)
        for rows, groups in ((64, 8), (57, 8), (33, 5), (32, 4), (17, 3), (9, 2), (1, 1))
        for cluster, warps in ((1, 8), (3, 4), (8, 2), (2, 1))
        for tensor in (True, False)
        if tensor or groups <= 4
    ],
)


def form(queue: Queue, cluster: int, warps: int, tensor: bool) -> dict[str, int]:
    """What to say to `prepare`; skips what this card does not have."""
    if queue.device.is_gpu and cluster > queue.largest_cluster:
        pytest.skip(f"this card has clusters of {queue.largest_cluster} blocks")
    return {"cluster": cluster, "warps": warps, "stages": 2 + cluster % 2, "tensor": tensor}


@pytest.mark.parametrize(("rows", "groups", "cluster", "warps", "tensor"), FORMS)
@pytest.mark.parametrize("norm", [None, 1e-5])
def test_rows(on: Queue, rows: int, groups: int, cluster: int, warps: int, tensor: bool, norm: float | None) -> None:
    drawn = Drawn(on, rows, groups, 48, 1056, "bf16", "rows")
    out = poisoned(on, rows, 48)
    how = form(on, cluster, warps, tensor)
    if norm and rows % 2:
        how["squares"] = squares_on(on, drawn.x, groups, "bf16")
    split_gemm.prepare(on, *drawn.on_device, out, rows, norm=norm, pieces=3, **how)()
    right = skinny_gemm.reference(*drawn.exact, norm)
    scale = 1.0 if norm is None else 1 / np.sqrt((drawn.exact[0] ** 2).mean(-1, keepdims=True) + norm)
    close(fetched(on, out, "bf16"), right, (roundoff("bf16") + 1e-6) * np.abs(right) + 2 * drawn.noise * scale + 6e-8)


@pytest.mark.parametrize(("rows", "groups", "cluster", "warps", "tensor"), FORMS)
def test_residual(on: Queue, rows: int, groups: int, cluster: int, warps: int, tensor: bool) -> None:
    drawn = Drawn(on, rows, groups, 64, 512, "fp16", "residual")
    before = normal(np.random.default_rng(7), rows, 64, kind="fp16")
    packed = numbers.encode(np.full(packing.shape(groups, 64), np.nan), "fp16")
    packing.put_rows(packed, before)
    (out,) = on_device(on, packed)
    how = form(on, cluster, warps, tensor)
    split_gemm.prepare(on, *drawn.on_device, out, rows, finish="residual", kind="fp16", pieces=2, **how)()
    right = numbers.decode(before, "fp16") + skinny_gemm.reference(*drawn.exact)
    found = packing.rows_of(fetched(on, out, "fp16"), rows)
    close(found, right, (roundoff("fp16") + 1e-6) * np.abs(right) + drawn.noise + 6e-8)


@pytest.mark.parametrize(("rows", "groups", "cluster", "warps", "tensor"), FORMS)
def test_silu(on: Queue, rows: int, groups: int, cluster: int, warps: int, tensor: bool) -> None:
    drawn = Drawn(on, rows, groups, 128, 1024, "bf16", "silu")
    out = poisoned(on, *packing.shape(groups, 64))
    split_gemm.prepare(on, *drawn.on_device, out, rows, finish="silu", norm=1e-5, **form(on, cluster, warps, tensor))()
    right = silu.reference(skinny_gemm.reference(*drawn.exact, 1e-5))
    found = packing.rows_of(fetched(on, out, "bf16"), rows)
    # The gate's slope is at most 1.1, and factors are below 10 here: ten times the noise of the sums.
    noise = 10 * drawn.noise.max(-1, keepdims=True)
    close(found, right, (roundoff("bf16") + 1e-5) * np.abs(right) + noise + 6e-8)


@pytest.mark.parametrize(("rows", "groups", "cluster", "warps", "tensor"), FORMS)
def test_heads(on: Queue, rows: int, groups: int, cluster: int, warps: int, tensor: bool) -> None:
    heads, kv_heads, blocks, width = 4, 2, 6, 32
    rng = np.random.default_rng([8, rows])
    drawn = Drawn(on, rows, groups, (heads + 2 * kv_heads) * width, 256, "bf16", "heads", width)
    positions = rng.integers(0, 100, rows).astype(np.int32)
    slots = rng.permutation(16 * blocks)[:rows].astype(np.int32)
    q = poisoned(on, rows, heads, width)
    caches = [poisoned(on, blocks, kv_heads, 16, width) for _ in range(2)]
    needs = skinny_gemm.Heads(*caches, *on_device(on, rope.turns(100, width), positions, slots))
    how = form(on, cluster, warps, tensor)
    split_gemm.prepare(on, *drawn.on_device, q, rows, finish="heads", norm=1e-5, heads=needs, pieces=1, **how)()
    right = skinny_gemm.reference(*drawn.exact, 1e-5).reshape(rows, -1, width)
    right[:, : heads + kv_heads] = rope.reference(right[:, : heads + kv_heads], positions, 500_000.0)
    bound = roundoff("bf16") * np.abs(right) + 4 * drawn.noise.max() + 1e-5 * np.abs(right).max() + 6e-8
    close(fetched(on, q, "bf16"), right[:, :heads], bound[:, :heads])
    for cache, first in zip(caches, (heads, heads + kv_heads), strict=True):
        found = fetched(on, cache, "bf16")[slots // 16, :, slots % 16]
        close(found, right[:, first : first + kv_heads], bound[:, first : first + kv_heads])


def test_bad_input_is_refused(on: Queue) -> None:
    drawn = Drawn(on, 8, 1, 64, 64, "bf16", "rows")
    out = poisoned(on, 8, 64)
    with pytest.raises(ValueError, match="9 rows: x has room for 8, and more than 64 are for `product`"):
        split_gemm.prepare(on, *drawn.on_device, out, 9)
    if on.plain:
        return
    with pytest.raises(ValueError, match="K = 64 is not a multiple of 32 x pieces 4"):
        split_gemm.prepare(on, *drawn.on_device, out, 8, pieces=4)
    with pytest.raises(ValueError, match=r"cluster must be .* 8"):
        split_gemm.prepare(on, *drawn.on_device, out, 8, cluster=9)
    with pytest.raises(ValueError, match="33 rows: the form without tensor cores takes 32 at most"):
        many = Drawn(on, 33, 5, 16, 64, "bf16", "rows")
        split_gemm.prepare(on, *many.on_device, poisoned(on, 33, 16), 33, tensor=False)
    wide = Drawn(on, 64, 8, 16, 512, "bf16", "rows")
    with pytest.raises(ValueError, match="8 stages of 16 pieces need 524288 bytes of shared memory"):
        split_gemm.prepare(on, *wide.on_device, poisoned(on, 64, 16), 64, pieces=16, stages=8)
