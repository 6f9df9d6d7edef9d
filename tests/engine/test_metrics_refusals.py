"""Percentiles and Little's law of plain lists; what is no list of numbers is refused with a sentence."""

import math

import numpy as np
import pytest

from course.engine import metrics

NAMES = ("mean", "p50", "p90", "p95", "p99", "max")
NO_LIST = [None, 5, "abc", {1: 2}, [[1, 2]], [[1], [2, 3]], ["a"], [True], [None], [1j], [10**400], {1, 2}]


@pytest.mark.parametrize("values", [[], (), np.empty(0), [math.nan], [math.nan] * 3])
def test_no_values_have_no_percentiles(values):
    found = metrics.percentiles(values)
    assert tuple(found) == NAMES and all(math.isnan(value) for value in found.values())


def test_a_list_and_an_array_are_the_same():
    # Ranks run from 0 to 4: p90 lies 0.6 of the way from the fourth value to the fifth.
    for values in (
        [5, 1, 2, 4, 3],
        (5.0, 1.0, 2.0, 4.0, 3.0),
        np.array([5, 1, 2, 4, 3], np.uint8),
        [1, 2, 3, 4, 5, math.nan],
    ):
        found = metrics.percentiles(values)
        assert (found["mean"], found["p50"], found["max"]) == (3, 3, 5)
        assert found["p90"] == pytest.approx(4.6, rel=1e-12)


@pytest.mark.parametrize("bad", NO_LIST, ids=str)
def test_percentiles_of_something_else(bad):
    with pytest.raises(ValueError, match="values must be one list of numbers, not "):
        metrics.percentiles(bad)
    with pytest.raises(ValueError, match="weights must be one list of numbers, not "):
        metrics.percentiles([1.0, 2.0], "abc" if bad is None else bad)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, 1e308])
def test_a_value_beyond_all_times(bad):
    with pytest.raises(ValueError, match=r"values\[1\] must be a number within 1e\+200 of 0, not "):
        metrics.percentiles([1.0, bad])


@pytest.mark.parametrize("bad", [-1, 0.5, math.nan, 1e13])
def test_a_weight_that_counts_nothing(bad):
    with pytest.raises(ValueError, match="weight 1 must be a whole number from 0 to 1e12, not "):
        metrics.percentiles([1.0, 2.0], [1, bad])


def test_weights_of_another_length_and_of_nothing():
    with pytest.raises(ValueError, match="there are 2 values and 3 weights: give one for each"):
        metrics.percentiles([1.0, 2.0], [1, 1, 1])
    assert all(math.isnan(value) for value in metrics.percentiles([1.0, 2.0], [0, 0]).values())
    # A value that counts 0 times is not there.
    assert metrics.percentiles([1.0, 2.0, 9.0], [3, 1, 0]) == metrics.percentiles([1.0, 1.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("arrival", "response", "sentence"),
    [
        ([1.0], [0.5], "request 0 arrives at 1 s and is answered at 0.5 s: the answer must not come before"),
        ([1.0, math.nan], [2.0, 3.0], "request 1 arrives at nan s"),
        ([1.0, 2.0], [2.0, math.nan], "request 1 arrives at 2 s and is answered at nan s"),
        ([1.0, 2.0], [3.0], "there are 2 arrivals and 1 responses: give one of each"),
        ([1.0], [math.inf], r"response\[0\] must be a number within"),
        (None, [1.0], "arrival must be one list of numbers, not None"),
        ([1.0], "a", "response must be one list of numbers, not 'a'"),
    ],
)
def test_stays_that_cannot_be(arrival, response, sentence):
    with pytest.raises(ValueError, match=sentence):
        metrics.number_in_system(arrival, response)
    with pytest.raises(ValueError, match=sentence):
        metrics.littles_law(arrival, response, 0.0, 10.0)


@pytest.mark.parametrize("window", [(-1e308, 1e308), (math.nan, 1.0), (0.0, math.inf), (None, 1.0), (0.0, "1")])
def test_a_window_that_cannot_be(window):
    with pytest.raises(ValueError, match=r"(start|end) must be a (finite )?number"):
        metrics.littles_law([1.0], [2.0], *window)


def test_littles_law_of_plain_lists_and_of_nobody():
    # Two stays of 2 s and 1 s in 4 s: L = 3 / 4 = 0.5/s x 1.5 s.
    found = metrics.littles_law([0, 1], [2, 2], 0, 4)
    assert (found.L, found.arrival_rate, found.W, found.residual) == (0.75, 0.5, 1.5, 0.0)
    assert metrics.littles_law([], [], 0, 4).L == 0
    times, counts = metrics.number_in_system([], [])
    assert len(times) == len(counts) == 0
