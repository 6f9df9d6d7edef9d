"""Length distributions: their moments, their bounds, and what they refuse."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.workload import lengths

N = 100_000


def drawn(distribution, n=N, seed=1):
    return distribution.sample(np.random.default_rng(seed), n)


def within(sample, mean, extra=0.0):
    """Five standard errors: an honest sample fails this once in two million seeds, and the seed is fixed."""
    return abs(sample.mean() - mean) <= 5 * sample.std() / sqrt(len(sample)) + extra


@settings(max_examples=30, deadline=None)
@given(mean=st.floats(16, 5_000), cv=st.floats(0.01, 2))
def test_lognormal_keeps_its_mean_within_one_percent_after_rounding(mean, cv):
    sample = drawn(lengths.lognormal(mean, cv))
    assert sample.dtype == np.int64
    assert sample.min() >= 1
    assert within(sample, mean, extra=0.01 * mean)


def test_lognormal_has_the_coefficient_of_variation_asked_for():
    sample = drawn(lengths.lognormal(512, 1))
    # A lognormal of CV 1 has kurtosis 41, so the CV of 100,000 draws has a standard error of about 1%; 5% is five.
    assert sample.std() / sample.mean() == pytest.approx(1, rel=0.05)


def test_lognormal_without_variation_is_fixed():
    assert lengths.lognormal(100.4, 0) == lengths.fixed(100)
    assert set(drawn(lengths.lognormal(100, 0), 50)) == {100}


@given(low=st.integers(1, 400), high=st.integers(600, 2_000))
@settings(max_examples=20, deadline=None)
def test_lognormal_is_clipped_to_low_and_high(low, high):
    sample = drawn(lengths.lognormal(500, 3, low=low, high=high), 1_000)
    assert low <= sample.min() and sample.max() <= high


def test_uniform_includes_both_ends():
    sample = drawn(lengths.uniform(3, 6), 1_000)
    assert set(sample.tolist()) == {3, 4, 5, 6}
    assert lengths.uniform(3, 6).mean == 4.5


@pytest.mark.parametrize("mean", [1, 2, 128.5])
def test_geometric_has_its_mean_and_starts_at_one(mean):
    sample = drawn(lengths.geometric(mean))
    assert sample.min() == 1
    assert within(sample, mean)
    # CV^2 = 1 - 1 / mean. Five standard errors of the CV of an exponential (kurtosis 9): 5 x sqrt(2 / n) = 2.2%.
    assert sample.std() / sample.mean() == pytest.approx(sqrt(1 - 1 / mean), rel=0.022, abs=1e-12)


def test_empirical_draws_only_what_was_measured_and_copies_it():
    measured = np.array([5, 7, 7, 900])
    distribution = lengths.empirical(measured)
    measured[:] = 1
    sample = drawn(distribution)
    assert set(sample.tolist()) == {5, 7, 900}
    assert within(sample, distribution.mean) and distribution.mean == 229.75


@pytest.mark.parametrize(
    "distribution",
    [
        lengths.fixed(9),
        lengths.lognormal(50, 1),
        lengths.uniform(1, 9),
        lengths.geometric(20),
        lengths.empirical([1, 2, 3]),
    ],
)
def test_the_same_stream_gives_the_same_lengths(distribution):
    assert drawn(distribution, 100).tolist() == drawn(distribution, 100).tolist()
    assert isinstance(distribution, lengths.Lengths)


NOT_A_COUNT = [0, -3, 1.5, float("nan"), float("inf"), 1e30, 10**30, "512", None, True, [512]]


@pytest.mark.parametrize("value", NOT_A_COUNT)
def test_a_number_of_tokens_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="number of tokens must be a whole number from 1 to"):
        lengths.fixed(value)
    with pytest.raises(ValueError, match=r"prompt_tokens must be a whole number from 1 to .* or a distribution"):
        lengths.as_lengths("prompt_tokens", value)


@pytest.mark.parametrize("mean", [0, 0.5, -1, float("nan"), float("inf"), 1e30, "512", True])
def test_a_mean_that_no_length_can_have_is_refused(mean):
    with pytest.raises(ValueError, match="the mean length must be"):
        lengths.lognormal(mean, 1)
    with pytest.raises(ValueError, match="the mean length must be"):
        lengths.geometric(mean)


@pytest.mark.parametrize("cv", [-0.1, float("nan"), float("inf"), 1e30, "1", False])
def test_an_impossible_variation_is_refused(cv):
    with pytest.raises(ValueError, match="coefficient of variation of the length must be"):
        lengths.lognormal(512, cv)


def test_bounds_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="low must not be above high, but low is 9 and high is 3"):
        lengths.uniform(9, 3)
    with pytest.raises(ValueError, match="low must not be above high"):
        lengths.lognormal(5, 1, low=9, high=3)
    with pytest.raises(ValueError, match="mean length must be a finite number from 1 to 512, not 600"):
        lengths.lognormal(600, 1, high=512)


def test_empirical_refuses_no_values_and_names_a_broken_one():
    with pytest.raises(ValueError, match="at least one value"):
        lengths.empirical([])
    with pytest.raises(ValueError, match=r"request 2 must be a whole number from 1 to .* not 0"):
        lengths.empirical([4, 5, 0])
