"""Lab 11: a prompt gets the same rows in every layout, on every device of the machine."""

from __future__ import annotations

import numpy as np
import pytest

from course.gpu import discover
from course.gpu.ops import numbers
from course.gpu.ops.queue import Queue
from course.gpu.queues import queue
from course.lessons.lab11 import batch
from course.lessons.lab11.batch import LAYOUTS
from course.lessons.lab11.on_device import Card, attend, in_numpy, offsets

SMALL = {"heads": 4, "kv_heads": 2, "width": 64}
UNEQUAL = (9, 33, 2, 17)


@pytest.fixture(scope="module", params=["cpu", "numpy", pytest.param("cuda", marks=pytest.mark.gpu)])
def work(request) -> Queue:
    try:
        found = discover.device(request.param)
    except Exception as error:
        pytest.skip(str(error))
    if request.param == "cpu" and found.kind == "numpy":
        pytest.skip("no compiler")
    return queue(found)


def places(here: Card, groups: list[list[int]]) -> list[tuple[int, int, np.ndarray]]:
    """First row, tokens with padding, and blocks of each prompt, in the order in which they are launched."""
    rows = offsets([sum(group) for group in groups])
    blocks = offsets([sum(-(-n // 16) for n in group) for group in groups])
    return [
        (row + first, n, on_it)
        for group, row, block in zip(groups, rows, blocks, strict=False)
        for first, n, on_it in zip(offsets(group), group, here.table(group, block), strict=False)
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_prompt_gets_the_same_rows_in_every_layout(work, layout):
    """Against float64 of each prompt alone, whatever stands in the padding around it."""
    here, groups, rng = Card(work, 4 * max(UNEQUAL), SMALL), batch.launches(UNEQUAL, layout), np.random.default_rng(3)
    q = rng.standard_normal((4 * max(UNEQUAL), 4, 64))
    k, v = rng.standard_normal((2, here.blocks, 2, 16, 64))
    q, k, v = (numbers.decode(numbers.encode(one.astype(np.float32), "bf16"), "bf16") for one in (q, k, v))
    own = {n: rng.standard_normal((3, n, 4, 64)).astype(np.float32) for n in UNEQUAL}
    own = {n: numbers.decode(numbers.encode(one, "bf16"), "bf16") for n, one in own.items()}
    free, mine = places(here, groups), {}
    for n in sorted(UNEQUAL):  # a padded prompt takes the first place that holds it
        mine[n] = min((place for place in free if place[1] >= n), key=lambda place: (place[1], place[0]))
        free = [place for place in free if place[0] != mine[n][0]]
        first, _, on_it = mine[n]
        q[first : first + n] = own[n][0]
        for token in range(n):
            k[on_it[token // 16], :, token % 16] = own[n][1, token, :2]
            v[on_it[token // 16], :, token % 16] = own[n][2, token, :2]
    here.write(*(numbers.encode(one.astype(np.float32), "bf16") for one in (q, k, v)))
    here.prompts(groups)()
    out = here.out(batch.tokens(groups))
    for n, (first, _, _) in mine.items():
        queries, keys, values = own[n].astype(np.float64).swapaxes(1, 2)
        exact = attend(queries, keys[:2].repeat(2, 0), values[:2].repeat(2, 0)).swapaxes(0, 1)
        # bf16 rounds the output and, on tensor cores, each weight: two halves of 2^-8
        assert np.abs(out[first : first + n] - exact).max() < 2**-7 * np.abs(values).max()


@pytest.mark.parametrize("layout", LAYOUTS[:3])
def test_a_decode_gets_the_same_row_in_every_layout_that_does_not_pad(work, layout):
    here, groups = Card(work, 4 * max(UNEQUAL), SMALL), batch.launches(UNEQUAL, layout)
    here.decodes(groups)()
    out = here.out(sum(len(group) for group in groups))
    assert np.isfinite(out).all() and np.abs(out).max() <= 3**0.5 and len(out) == 4  # means of numbers in +-sqrt 3


def test_numpy_computes_each_token_over_itself_and_those_before_it():
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 7, 5))
    found = attend(q, k, v)
    for i in range(7):
        weights = np.exp(k[: i + 1] @ q[i] / 5**0.5)
        assert found[i] == pytest.approx(weights @ v[: i + 1] / weights.sum(), rel=1e-5)  # the root is float32


def test_a_cpu_computes_as_many_scores_as_the_layout_says():
    for layout in LAYOUTS[:3]:
        groups = batch.launches(UNEQUAL, layout)
        squares = sum(part.args[0].size // 64 * part.args[0].shape[-2] for part in in_numpy(groups, layout))
        assert squares == sum(n * n for group in groups for n in group)
