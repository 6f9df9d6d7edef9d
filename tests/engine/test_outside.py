"""Seconds outside the engine: by hand, and that the parts add up."""

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.engine.outside import Outside

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def test_one_request_by_hand():
    """It waits for 0.5 s, its prompt of 10 takes a step, and 3 tokens more follow."""
    run = serve(Workload([0.0, 0.5], [10, 10], [1, 4]), policies.Continuous(2, 64), SECOND)
    outside = Outside(network=0.125, tokenize=0.01, detokenize=0.002)
    parts = {name: values[1] for name, values in outside.parts(run).items()}
    assert parts == pytest.approx({"network": 0.25, "tokenizer": 0.102, "queue": 0.5, "prompt": 1, "answer": 3})
    assert outside.e2e(run)[1] == pytest.approx(4.852) and outside.ttft(run)[1] == pytest.approx(1.852)


def test_parts_add_up_and_nothing_outside_is_the_run_itself():
    load = Workload.poisson(2, 60, 40, 30, seed=3)
    run = serve(load, policies.Continuous(8, 64), SECOND, KVCache(30))
    assert run.preempted.any()
    assert np.allclose(Outside().e2e(run), run.e2e) and np.allclose(Outside().ttft(run), run.ttft)
    outside = Outside(0.02, 1e-4, 1e-3)
    more = 0.04 + 1e-4 * load.prompt_tokens + 1e-3
    assert np.allclose(outside.e2e(run), run.e2e + more) and np.allclose(outside.ttft(run), run.ttft + more)


def test_who_went_without_an_answer_has_no_parts_and_what_cannot_be():
    load = Workload([0.0, 0.0], [5, 5], [30, 2], patience=[np.nan, 2])
    parts = Outside(0.1).parts(serve(load, policies.Continuous(1, 64), SECOND))
    assert all(np.isnan(values[1]) and not np.isnan(values[0]) for values in parts.values())
    with pytest.raises(ValueError, match="network must be"):
        Outside(network=-1)
