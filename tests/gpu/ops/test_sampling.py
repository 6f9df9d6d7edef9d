"""Tokens drawn on the device: those of the definition, with its frequencies, however the row is cut up."""

from __future__ import annotations

import numpy as np
import pytest

from course.gpu.ops import numbers, sampling
from course.gpu.ops.numbers import KINDS
from course.gpu.ops.queue import Queue
from course.lm.sampling import cumulate
from tests.helpers.gpu_draws import on_device

CLOSE = 1e-5
"""A draw so near to an edge may fall to either side: float32 sums of up to 4,096 numbers, as the search has them."""


def drawn(queue: Queue, logits: np.ndarray, given: np.ndarray, kind: str, **how) -> tuple[np.ndarray, np.ndarray]:
    """(tokens, rounds of the search)."""
    rows = len(logits)
    x, settings = on_device(queue, logits, given)
    out, rounds = on_device(queue, np.full(rows, -1, np.int32), np.full(rows, -1, np.int32))
    sampling.prepare(queue, x, settings, out, rounds, kind=kind, **how)()
    queue.wait()
    return queue.device.to_numpy(out), queue.device.to_numpy(rounds)


def check(tokens: np.ndarray, logits: np.ndarray, given: np.ndarray, kind: str) -> None:
    """Each token is the one in which the draw lies, in float64 and in the order of ids."""
    chances = sampling.reference(logits, given, kind)
    for row, (token, chance) in enumerate(zip(tokens, chances, strict=True)):
        assert chance[token] > 0, f"row {row}: token {token} is not left"
        upto = chance[: token + 1].sum()
        assert upto - chance[token] - CLOSE <= given[row, 2] < upto + CLOSE, f"row {row}: token {token}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("columns", "threads"), [(64, 64), (4_096, 128)])
@pytest.mark.parametrize("spread", [0.3, 3.0, 30.0])
def test_a_draw_falls_where_float64_has_it(on: Queue, kind: str, columns: int, threads: int, spread: float) -> None:
    rng = np.random.default_rng([21, columns])
    rows = 8
    logits = numbers.encode(rng.normal(size=(rows, columns)) * spread, kind)
    given = sampling.settings(
        rows, temperature=[0.7, 1, 1, 1, 2, 0, 1, 0.01], top_k=[50, 0, 0, 700, 5, 0, 1, 0],
        top_p=[0.9, 0.9, 1, 0.95, 0.5, 1, 1, 0.999], draws=rng.random(rows), columns=columns,
    )  # fmt: skip
    tokens, _ = drawn(on, logits, given, kind, threads=threads)
    check(tokens, logits, given, kind)
    assert tokens[5] == numbers.decode(logits, kind)[5].argmax()


def test_both_ways_are_taken_and_the_shares_of_a_row_may_be_of_any_size(compiled: Queue) -> None:
    rng = np.random.default_rng(22)
    logits = numbers.encode(rng.normal(size=(4, 8 * 1_003)) * 0.5, "bf16")
    given = sampling.settings(4, top_k=[20, 0, 0, 2_000], top_p=[0.9, 0.9, 1, 0.9], draws=rng.random(4), columns=8_024)
    for cluster in {1, min(2, compiled.largest_cluster), compiled.largest_cluster}:
        for threads in (128, 512):  # without top-k, a bound is found only if more than 256 threads have numbers
            tokens, rounds = drawn(compiled, logits, given, "bf16", threads=threads, cluster=cluster)
            check(tokens, logits, given, "bf16")
            assert rounds[0] == 0 and (rounds[1:] > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_equal_logits_are_left_together_or_not_at_all(on: Queue, kind: str) -> None:
    values = np.zeros((6, 1_536))
    values[0, ::2] = -0.0  # all are equal, and none is below another
    values[1] = np.arange(1_536) % 3  # 512 each of 0, 1 and 2
    values[2] = values[1]
    values[3], values[3, 7], values[3, 9] = -np.inf, 5.0, np.nan
    values[4, [3, 4]] = 6.0, 6.0
    values[5] = np.nan
    logits = numbers.encode(values, kind)
    given = sampling.settings(
        6, top_k=[1, 5, 0, 3, 1, 0], top_p=[1, 1, 0.7, 1, 0.4, 0.5], draws=[0.999, 0.5, 0.999, 0.5, 0.5, 0.999],
        columns=1_536,
    )  # fmt: skip
    tokens, _ = drawn(on, logits, given, kind)
    assert tokens[0] == int(0.999 * 1_536)  # of top-k 1, all tie with the first
    assert tokens[1] == 3 * 256 + 2  # of the 512 twos
    # Twos weigh e^2 of e^2 + e + 1, .67 of all: ones are left too.
    assert tokens[2] % 3 in (1, 2) and tokens[2] > 1_500
    assert tokens[3] == 7
    assert tokens[4] == 4  # both tie, half the sum is the second's
    assert tokens[5] == int(0.999 * 1_536)


def test_what_is_left_is_what_the_small_model_leaves() -> None:
    """course.lm.sampling, where no two logits are equal."""
    rng = np.random.default_rng(23)
    logits = rng.permutation(2_000).reshape(4, 500).astype(np.float32) / 150
    for top_k, top_p, heat in ((0, 0.9, 1.0), (40, 1.0, 0.5), (40, 0.8, 2.0), (1, 1.0, 1.0)):
        given = sampling.settings(4, temperature=heat, top_k=top_k, top_p=top_p, columns=500)
        edges = cumulate(logits, heat, top_k, top_p)
        right = np.diff(edges, axis=1, prepend=0)
        # log2(e) / temperature is kept as float32, and exponents are up to 40 in size.
        assert np.abs(sampling.reference(logits, given, "fp32") - right).max() < 40 * 2.0**-24


def test_frequencies_are_those_of_float64(compiled: Queue) -> None:
    rng = np.random.default_rng(24)
    rows = 500
    for spread, top_k, top_p in ((2.0, 12, 0.9), (0.2, 0, 0.6), (0.2, 5, 1.0), (3.0, 0, 0.8)):
        logits = np.repeat(numbers.encode(rng.normal(size=(1, 128)) * spread, "bf16"), rows, 0)
        given = sampling.settings(rows, top_k=top_k, top_p=top_p, draws=rng.random(rows), columns=128)
        tokens, _ = drawn(compiled, logits, given, "bf16", threads=32)
        chances = sampling.reference(logits[:1], given[:1], "bf16")[0]
        counts, expected = np.bincount(tokens, minlength=128), rows * chances
        assert not counts[chances == 0].any()
        often = expected > 2
        chi = ((counts - expected)[often] ** 2 / expected[often]).sum()
        # Chi-square of n freedoms has mean n and variance 2 n; five standard deviations.
        assert chi < often.sum() + 5 * (2 * often.sum()) ** 0.5


def test_bad_settings_and_arrays_are_refused(on: Queue) -> None:
    for change, said in (
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, not 0"),
        ({"top_p": 1.5}, "top_p must be"),
        ({"draws": 1.0}, "draws must be at least 0 and below 1, not 1"),
        ({"top_k": -1}, "top_k must be a whole number from 0, not -1"),
        ({"top_k": [1, 2, 3]}, "top_k must be a number, or one for each of 2 rows"),
        ({"temperature": 1e-9}, "temperature must be 0 or 0.001 to 100"),
        ({"temperature": np.nan}, "temperature must be"),
    ):
        with pytest.raises(ValueError, match=said):
            sampling.settings(2, columns=64, **change)
    x, given, out = on_device(
        on, np.zeros((2, 60), np.float32), sampling.settings(2, columns=60), np.zeros(2, np.int32)
    )
    with pytest.raises(ValueError, match=r"settings must have the shape \(2, 4\)"):
        sampling.prepare(on, x, given[:1], out, out, kind="fp32")
    with pytest.raises(ValueError, match="columns must be a multiple of 4"):
        sampling.prepare(on, x[:, :59], given, out, out, kind="fp32")
    if not on.plain:
        with pytest.raises(ValueError, match="cluster must be"):
            sampling.prepare(on, x, given, out, out, kind="fp32", cluster=16 if on.largest_cluster < 16 else 17)
        (long,) = on_device(on, np.zeros((1, 2_048 * 32 * 4 + 4), np.float32))
        with pytest.raises(ValueError, match="columns must be at most 262,144, not 262,148"):
            sampling.prepare(on, long, given[:1], out[:1], out[:1], kind="fp32", cluster=1)
        with pytest.raises(ValueError, match="threads must be a multiple of 32"):
            sampling.prepare(on, x, given, out, out, kind="fp32", threads=33)
