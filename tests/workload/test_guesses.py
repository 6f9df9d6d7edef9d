"""Guesses of answer lengths: the truth with a named noise, carried by everything that is made of a workload."""

from math import exp, inf, nan, sqrt

import numpy as np
import pytest

from course.workload import Workload, lengths

LOAD = Workload.poisson(5, 20_000, 100, lengths.lognormal(200, 1), seed=4)


def small(**changes):
    return Workload(**{"arrival": [0.0, 1.0, 1.0], "prompt_tokens": [5, 6, 7], "output_tokens": [1, 2, 3], **changes})


def test_exact_and_constant():
    assert small().guess is None
    assert small().with_guesses("exact").guess.tolist() == [1, 2, 3]
    assert small().with_guesses("constant", tokens=200).guess.tolist() == [200, 200, 200]
    assert LOAD.with_guesses("exact").guess.dtype == np.float64


@pytest.mark.parametrize("error", [0, 0.5, 1.0])
def test_lognormal_noise_is_right_in_the_median_and_has_the_variation_it_says(error):
    log = np.log(LOAD.with_guesses("lognormal", error=error, seed=1).guess / LOAD.output_tokens)
    n = len(LOAD)
    # Few answers are so short that a guess is lifted to 1 token: they move the median not at all. Five standard errors,
    # of the median 1.2533 error / sqrt(n), of a standard deviation error / sqrt(2 n); and rounding.
    assert np.median(log) == pytest.approx(0, abs=5 * 1.2533 * error / sqrt(n) + 1e-12)
    assert log.std() == pytest.approx(error, abs=5 * error / sqrt(2 * n) + 0.005 * error + 1e-12)
    ratio = np.exp(log)
    # The mean of n draws varies by CV / sqrt(n): five of these.
    assert ratio.mean() == pytest.approx(exp(error**2 / 2), rel=5 * sqrt(exp(error**2) - 1) / sqrt(n) + 1e-12)


def test_guesses_are_seeded_and_drawn_apart_from_the_workload():
    one, same, other = (LOAD.with_guesses("lognormal", error=0.5, seed=seed) for seed in (1, 1, 2))
    assert one == same != other and one != LOAD
    assert np.array_equal(one.output_tokens, LOAD.output_tokens)
    assert abs(np.corrcoef(np.log(one.guess / LOAD.output_tokens), np.log(LOAD.output_tokens))[0, 1]) < 0.04  # 5 errors
    assert LOAD.head(10).with_guesses("lognormal", error=0.5, seed=1) == one.head(10)


def test_guesses_stay_between_1_and_a_billion():
    wild = LOAD.with_guesses("lognormal", error=10).guess
    assert wild.min() == 1 and wild.max() == 1e9


def test_guesses_go_where_the_requests_go():
    load = small().with_guesses("exact")
    assert load.head(2).guess.tolist() == [1, 2] and load.scaled(9).guess.tolist() == [1, 2, 3]
    merged = load.concat(small(arrival=[0.5, 1.0, 2.0]))
    assert np.array_equal(merged.guess, [1, nan, 2, 3, nan, nan], equal_nan=True)
    assert merged == load.concat(small(arrival=[0.5, 1.0, 2.0])) != small().concat(small(arrival=[0.5, 1.0, 2.0]))
    assert Workload.mix({"a": load, "b": load}).guess.tolist() == [1, 1, 2, 3, 2, 3]
    assert not load.guess.flags.writeable


@pytest.mark.parametrize("bad", [0, 0.5, -1, inf, 2e9, "7", None, True])
def test_a_bad_guess_is_refused_with_its_request(bad):
    with pytest.raises(ValueError, match="guess of request 1 must be a number"):
        small(guess=[4, bad, 5])


def test_a_bad_column_is_refused():
    with pytest.raises(ValueError, match="arrival has 3 requests but guess has 2"):
        small(guess=[1, 2])
    with pytest.raises(ValueError, match="guess must be a one-dimensional sequence"):
        small(guess=np.ones((1, 3)))
    assert np.isnan(small(guess=[nan, 1, 2]).guess[0])


@pytest.mark.parametrize(
    ("noise", "settings", "sentence"),
    [
        ("gaussian", {}, "the noise of guesses must be one of exact, lognormal, constant, not 'gaussian'"),
        (["exact"], {}, r"the noise of guesses must be one of .*, not \['exact'\]"),
        ("exact", {"seed": 1}, "noise 'exact' takes no setting, not {'seed': 1}"),
        ("lognormal", {}, "noise 'lognormal' takes error and seed, not {}: .*missing a required argument: 'error'"),
        ("lognormal", {"cv": 1}, "noise 'lognormal' takes error and seed"),
        ("lognormal", {"error": -1}, "error must be a finite number from 0 to 10, not -1"),
        ("lognormal", {"error": 1, "seed": 0.5}, "seed must be a whole number"),
        ("constant", {"tokens": 0}, "tokens must be a finite number from 1 to"),
    ],
)
def test_noise_that_there_is_not_is_refused(noise, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        small().with_guesses(noise, **settings)
