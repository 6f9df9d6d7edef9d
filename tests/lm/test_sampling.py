"""How the next token is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.lm import Sampling
from course.lm.sampling import cumulate, uniform

NUMBERS = st.integers(0, 2**40)


@given(st.integers(0, 2**64 - 1), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_a_random_number_depends_on_seed_request_and_position_alone(seed: int, pairs: list[tuple[int, int]]):
    requests, positions = map(np.array, zip(*pairs, strict=True))
    together = uniform(seed, requests, positions)
    assert ((together >= 0) & (together < 1)).all()
    for i, (request, position) in enumerate(pairs):
        assert uniform(seed, np.array([request]), np.array([position]))[0] == together[i]


def test_random_numbers_are_even_and_without_neighbours():
    """A million numbers: mean, spread, and correlation along each argument within five standard errors of chance."""
    seed, request, position = np.meshgrid(np.arange(10), np.arange(100), np.arange(1_000), indexing="ij")
    drawn = np.array([uniform(int(s), request[s].ravel(), position[s].ravel()) for s in range(10)]).reshape(seed.shape)
    number = drawn.size
    assert abs(drawn.mean() - 0.5) < 5 * (1 / 12 / number) ** 0.5
    assert abs((drawn**2).mean() - 1 / 3) < 5 * (4 / 45 / number) ** 0.5
    assert len(np.unique(drawn)) == number
    for axis in range(3):
        one, two = np.moveaxis(drawn, axis, 0)[:-1].ravel(), np.moveaxis(drawn, axis, 0)[1:].ravel()
        assert abs(np.corrcoef(one, two)[0, 1]) < 5 / one.size**0.5


def test_tokens_are_drawn_with_their_probabilities():
    logits, number = np.log(np.array([0.5, 0.0625, 0.25, 0.1875], np.float32)), 100_000
    chosen = Sampling(temperature=1, seed=1).choose(np.tile(logits, (number, 1)), np.zeros(number), np.arange(number))
    shares = np.bincount(chosen, minlength=4) / number
    assert np.abs(shares - np.exp(logits)).max() < 5 * (0.25 / number) ** 0.5


def test_temperature_zero_is_greedy_and_a_low_one_nearly():
    logits = np.random.default_rng(0).normal(size=(50, 30)).astype(np.float32)
    rows = np.arange(50)
    assert np.array_equal(Sampling().choose(logits, rows, rows), logits.argmax(-1))
    assert np.array_equal(Sampling(temperature=1e-4).choose(logits, rows, rows), logits.argmax(-1))


def test_top_k_leaves_the_k_most_likely():
    logits = np.random.default_rng(0).normal(size=(1, 30)).repeat(5_000, 0)
    chosen = Sampling(temperature=5, top_k=3).choose(logits, np.arange(5_000), np.zeros(5_000))
    assert set(chosen) == set(np.argsort(logits[0])[-3:])


@pytest.mark.parametrize("bad", [{"temperature": -1}, {"temperature": float("nan")}, {"top_k": -1}, {"seed": -1}])
def test_what_is_out_of_range_gets_a_sentence(bad: dict):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        Sampling(**bad)


@pytest.mark.parametrize("temperature", [5e-324, 1e-308, 1e-300, 1e-30])
def test_a_temperature_near_0_is_greedy(temperature):
    """At 1e-308 a logit of 5 over the temperature is infinite, and infinite less infinite is no number."""
    logits = np.array([[5.0, -np.inf, 7.0, 6.999], [-3.0, -2.0, -9.0, -2.5]], np.float32)
    edges = cumulate(logits, temperature)
    assert np.isfinite(edges).all() and (edges[:, -1] == 1).all()
    chosen = Sampling(temperature).choose(logits, np.arange(2), np.arange(2))
    assert (chosen == logits.argmax(-1)).all()


def test_top_p_leaves_the_most_likely_tokens_that_have_that_probability_together():
    logits = np.log(np.array([[0.1, 0.5, 0.05, 0.35]]))
    for top_p, left in ((0.4, [1]), (0.49, [1]), (0.51, [1, 3]), (0.84, [1, 3]), (0.9, [0, 1, 3]), (1.0, [0, 1, 2, 3])):
        edges = cumulate(logits, 1.0, top_p=top_p)[0]
        weights = np.diff(edges, prepend=0.0)
        assert np.flatnonzero(weights > 1e-12).tolist() == left, top_p
        # What is left keeps its proportions.
        assert weights[left] == pytest.approx(np.exp(logits[0, left]) / np.exp(logits[0, left]).sum())


@pytest.mark.parametrize("top_p", [0, -0.1, 1.1, "x", float("nan")])
def test_a_top_p_that_leaves_nothing_is_refused(top_p):
    with pytest.raises((ValueError, TypeError), match="top_p"):
        Sampling(1.0, top_p=top_p)
