"""Distributions of lengths: somebody's own that draw what no length can be, and the course's built by hand."""

from math import inf, nan

import numpy as np
import pytest

from course.workload import Workload, lengths


class Draws:
    """A distribution that draws what it is told to."""

    mean = 3.0

    def __init__(self, answer):
        self.answer = answer

    def __repr__(self):
        return "Draws(...)"

    def sample(self, rng, n):
        return self.answer(n) if callable(self.answer) else self.answer


WITH_LENGTHS = {
    "poisson": (Workload.poisson, {"rate": 5, "num_requests": 6, "prompt_tokens": 3, "output_tokens": 3}),
    "closed_loop": (
        Workload.closed_loop,
        {"users": 2, "think_time": 1, "requests_per_user": 3, "prompt_tokens": 3, "output_tokens": 3},
    ),
    "turns": (
        Workload.turns,
        {"rate": 1, "num_conversations": 3, "turns": 2, "prompt_tokens": 3, "output_tokens": 3},
    ),
}
LENGTH_SETTINGS = [
    (name, setting) for name, (_, given) in WITH_LENGTHS.items() for setting in given if "tokens" in setting
] + [("turns", "turns")]


@pytest.mark.parametrize(("name", "setting"), LENGTH_SETTINGS)
@pytest.mark.parametrize("bad", [0, -2, 1.5, nan, inf, 10**30, "3", None, True])
def test_an_own_distribution_that_draws_no_lengths(name, setting, bad):
    build, given = WITH_LENGTHS[name]
    with pytest.raises(
        ValueError, match=rf"what Draws\(...\) draws impossible lengths: {setting} of request 1 must be"
    ):
        build(**{**given, setting: Draws(lambda n: [3, bad, *[3] * (n - 2)])})


@pytest.mark.parametrize(("name", "setting"), LENGTH_SETTINGS)
@pytest.mark.parametrize("bad", [None, 5, "333", [], [3], np.ones((3, 3))])
def test_an_own_distribution_that_draws_too_few_or_no_list(name, setting, bad):
    build, given = WITH_LENGTHS[name]
    with pytest.raises(
        ValueError, match=rf"Draws\(...\) (draws impossible lengths|was asked for \d lengths for {setting} and)"
    ):
        build(**{**given, setting: Draws(bad)})


@pytest.mark.parametrize(("name", "setting"), LENGTH_SETTINGS)
def test_an_own_distribution_that_draws_a_plain_list_will_do(name, setting):
    build, given = WITH_LENGTHS[name]
    same = {**given, setting: 4}
    assert build(**{**given, setting: Draws(lambda n: [4] * n)}) == build(**same)


def test_an_error_of_the_distribution_itself_passes():
    with pytest.raises(ZeroDivisionError):
        Workload.poisson(5, 3, 3, Draws(lambda n: 1 / 0))


@pytest.mark.parametrize("bad", [0, -1, 2.5, nan, inf, 10**30, "5", None, True])
def test_distributions_built_by_hand_are_checked(bad):
    for build in (lengths.Fixed, lambda bad: lengths.Uniform(bad, 9), lambda bad: lengths.Uniform(1, bad)):
        with pytest.raises(ValueError, match="must be a whole number"):
            build(bad)
    for build in (lambda bad: lengths.Lognormal(5, 1, bad), lambda bad: lengths.Lognormal(5, 1, 1, bad)):
        with pytest.raises(ValueError, match=r"(low|high) must be a whole number"):
            build(bad)
    with pytest.raises(ValueError, match="the length of request 1 must be"):
        lengths.Empirical([5, bad])
    if bad != 2.5:
        with pytest.raises(ValueError, match="the mean length must be a"):
            lengths.Geometric(bad)
        with pytest.raises(ValueError, match="the mean length must be a"):
            lengths.Lognormal(bad, 1)
    if bad not in (0, 2.5):
        with pytest.raises(ValueError, match="the coefficient of variation of the length must be a"):
            lengths.Lognormal(5, bad)


def test_distributions_built_by_hand_that_contradict_themselves():
    for build in (lambda: lengths.Uniform(9, 2), lambda: lengths.Lognormal(5, 1, 9, 2)):
        with pytest.raises(ValueError, match="low must not be above high, but low is 9 and high is 2"):
            build()
    with pytest.raises(ValueError, match="the mean length must be a finite number from 6 to 9"):
        lengths.Lognormal(5, 1, 6, 9)
    with pytest.raises(ValueError, match="empirical lengths need at least one value"):
        lengths.Empirical([])


def test_measured_lengths_do_not_change_with_the_array_they_came_from():
    measured = np.array([5, 6])
    drawn = lengths.Empirical(measured)
    measured[:] = -1
    assert drawn.values.tolist() == [5, 6]
