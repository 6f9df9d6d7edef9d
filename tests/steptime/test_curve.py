"""t0 + c b^alpha fitted to points that a known curve made: the constants come back, and the intervals hold them."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import steptime
from course.steptime import Curve, Step, fit
from tests.helpers.strategies import examples

BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)


@given(st.floats(1e-6, 1.0), st.floats(0.01, 10), st.floats(0.4, 1.6))
@examples(60)
def test_a_curve_without_noise_comes_back(t0, share, alpha):
    c = share * t0 / 32**alpha  # decodes of batch 32 cost this share of the step itself
    found = fit(BATCHES, [t0 + c * b**alpha for b in BATCHES])
    # The search stops where nothing moves by more than 1e-12; what it minimises is flat to the square root of that.
    assert [found.t0, found.c, found.alpha] == pytest.approx([t0, c, alpha], rel=1e-4)
    assert found.error < 1e-6
    assert found.seconds(np.array(BATCHES)) == pytest.approx(t0 + c * np.array(BATCHES) ** alpha, rel=1e-6)
    assert found.knee == pytest.approx(32 * share ** (-1 / alpha), rel=1e-3)


def test_no_other_curve_on_a_grid_is_nearer():
    rng = np.random.default_rng(4)
    b = np.array(BATCHES, float)
    for alpha in (0.6, 1.0, 1.3):
        y = (5e-3 + 4e-5 * b**alpha) * rng.normal(1, 0.02, len(b))
        found = fit(b, y)
        mine = ((found.seconds(b) / y - 1) ** 2).sum()
        for a in np.linspace(0.05, 2.5, 400):
            # For a given alpha the other two follow from a line; those below zero are no curve of this kind.
            line = np.stack([np.ones_like(b), b**a], 1) / y[:, None]
            (t0, c), *_ = np.linalg.lstsq(line, np.ones_like(b), rcond=None)
            if t0 >= 0 and c >= 0:
                assert mine <= ((line @ [t0, c] - 1) ** 2).sum() * (1 + 1e-9)
        assert found.error == pytest.approx(np.sqrt(mine / (len(b) - 3)))


def test_the_intervals_hold_the_truth_as_often_as_they_say():
    rng, b, draws = np.random.default_rng(5), np.array(BATCHES, float), 300
    true = {"t0": 5e-3, "c": 6e-5, "alpha": 0.95}
    held = dict.fromkeys(true, 0)
    for _ in range(draws):
        y = (true["t0"] + true["c"] * b ** true["alpha"]) * rng.normal(1, 0.01, len(b))
        found = fit(b, y, confidence=0.9)
        for name, value in true.items():
            low, high = getattr(found, f"{name}_interval")
            held[name] += low <= value <= high
    for name, count in held.items():
        # 90% of 300 with a standard deviation of 1.7%; three of them, and 4% for straight lines in place of curves.
        assert 0.81 < count / draws < 0.99, name


def test_a_higher_confidence_is_a_wider_interval_and_more_points_are_a_narrower_one():
    rng, b = np.random.default_rng(6), np.array(BATCHES, float)
    y = (5e-3 + 6e-5 * b) * rng.normal(1, 0.01, len(b))
    narrow, wide = fit(b, y, confidence=0.5), fit(b, y, confidence=0.99)
    many = np.repeat(b, 20)
    more = fit(many, (5e-3 + 6e-5 * many) * rng.normal(1, 0.01, len(many)), confidence=0.99)
    for name in ("t0", "c", "alpha"):
        spans = [np.diff(getattr(one, f"{name}_interval"))[0] for one in (narrow, wide, more)]
        assert spans[0] < spans[1] and spans[2] < spans[1], name
        low, high = getattr(wide, f"{name}_interval")
        assert low <= getattr(wide, name) <= high


def test_the_band_holds_the_true_curve_as_often_as_it_says():
    """Of 200 fits to drawn points; a share of them spreads by 0.015, and the estimate is a straight-line one."""
    rng, b = np.random.default_rng(7), np.array(BATCHES, float)
    truth = 5e-3 + 6e-5 * b
    inside = []
    for _ in range(200):
        low, high = fit(b, truth * rng.normal(1, 0.01, len(b))).band(b)
        inside.append((low <= truth) & (truth <= high))
    assert np.mean(inside) == pytest.approx(0.95, abs=0.03)


def test_the_band_is_around_the_curve_and_opens_beyond_the_points():
    rng, b = np.random.default_rng(8), np.array(BATCHES, float)
    y = (5e-3 + 6e-5 * b) * rng.normal(1, 0.01, len(b))
    narrow, wide = fit(b, y, confidence=0.5), fit(b, y, confidence=0.99)
    for found in (narrow, wide):
        low, high = found.band(b)
        assert (low < found.seconds(b)).all() and (found.seconds(b) < high).all()
        assert (low + high) / 2 == pytest.approx(found.seconds(b))
    spans = [np.diff(found.band(64))[0] for found in (narrow, wide)]
    assert spans[0] < spans[1] < np.diff(wide.band(512))[0]
    # At batch 1 it is the spread of t0 + c.
    spread = np.array(wide.spread)
    assert wide.band(1)[1] - wide.seconds(1) == pytest.approx(np.sqrt(spread[0, 0] + 2 * spread[0, 1] + spread[1, 1]))
    assert wide.t0_interval[1] - wide.t0 == pytest.approx(np.sqrt(spread[0, 0]))
    with pytest.raises(ValueError, match="was not fitted: make it with"):
        Curve(1.0, 0.0, 1.0, (1, 1), (0, 0), (1, 1), 0.9, 0.0).band(4)


def test_it_serves_as_a_step_time_and_fits_a_recording():
    recorded = steptime.recorded("h100-llama3-8b")
    found = fit(BATCHES, [recorded(Step(b, 1_024 * b, ())) for b in BATCHES])
    assert 4.5e-3 < found.t0 < 5.5e-3 and 0.5 < found.alpha < 1.5 and found.error < 0.06
    assert found.step_time()(Step(16, 999, ())) == pytest.approx(found.seconds(16))
    flat = Curve(1.0, 0.0, 1.0, (1, 1), (0, 0), (1, 1), 0.9, 0.0)
    assert flat.knee == inf


@pytest.mark.parametrize(
    ("batch", "seconds", "sentence"),
    [
        ([1, 2, 4], [1, 1, 1], "3 different batches cannot tell them apart: measure at least 4"),
        ([1, 1, 2, 2, 4], [1] * 5, "3 different batches"),
        ([1, 2, 3, 4], [1, 1, 1], "there are 4 batches and 3 times"),
        ([0, 2, 3, 4], [1] * 4, "batch must be a number from 1 to .*, not 0"),
        ([1, 2, 3, 4], [1, 1, 0, 1], "seconds must be a number from 1e-12"),
        ([1, 2, 3, 4], [1, 1, float("nan"), 1], "not nan"),
        ([1, 2, 3, float("inf")], [1] * 4, "not inf"),
        (["a", 2, 3, 4], [1] * 4, "a curve is two lists of numbers"),
        (7, [1] * 4, "a curve is two lists of numbers"),
    ],
)
def test_refusals(batch, seconds, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit(batch, seconds)


def test_a_confidence_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="confidence"):
        fit(BATCHES, BATCHES, confidence=1.0)
