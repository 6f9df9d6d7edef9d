"""Lab 16: what its two fits find, and how far their forecasts hold."""

import numpy as np
import pytest

from course import calibration, results, serve, steptime
from course.lessons.lab16 import load_test, own_log


def test_a_model_holds_where_it_was_fitted():
    def test_at(rate, step_time, seed=1):
        return serve(load_test.requests(rate, num_requests=500, seed=seed), load_test.engine(), step_time)

    run = test_at(20, load_test.STEP, seed=0)
    first, last = run.first_computed, run.response
    stay = np.clip(np.minimum.outer(last, last) - np.maximum.outer(first, first), 0, None)
    c, t0 = np.polyfit(stay.sum(axis=1) / (last - first), run.tpot, 1)
    model = steptime.PowerLaw(t0, c, 1)
    off = {
        rate: test_at(rate, model).e2e.mean() / test_at(rate, load_test.STEP).e2e.mean() - 1 for rate in (10, 20, 60)
    }
    assert max(abs(off[10]), abs(off[20])) < 0.03 and off[60] < -0.2
    assert test_at(20, model).ttft.mean() < 0.7 * test_at(20, load_test.STEP).ttft.mean()


def test_a_fit_finds_the_constants_behind_the_log():
    """Its own definition, and the loads and the 10% that the lab's cell asserts."""
    for path, text in own_log.files().items():
        assert path.read_text(encoding="utf-8") == text, "run python -m course.lessons.lab16.own_log"
    fit = calibration.fit_run(results.read(own_log.PATH), "llama-3.1-8b", "H100")
    found, true = fit.seconds, own_log.TRUE
    assert found["per_step"] == pytest.approx(true.t0, rel=0.02)
    assert found["per_prompt_token"] == pytest.approx(true.prefill, rel=0.02)
    assert {text.split()[0] for text in fit.unsettled} == {"per_sequence", "per_context_token"}
    # A sequence in the middle of its stay attends to some 600 tokens; the sum is what a step pays for it.
    assert found["per_sequence"] + 600 * found["per_context_token"] == pytest.approx(
        true.c + 600 * true.context, rel=0.05
    )
    for rate in (10, 40):
        load = load_test.requests(rate, num_requests=500, seed=1)
        real, other = (serve(load, own_log.engine(), step) for step in (true, fit.step_time))
        assert other.e2e.mean() == pytest.approx(real.e2e.mean(), rel=0.05)
        assert other.ttft.mean() == pytest.approx(real.ttft.mean(), rel=0.05)
