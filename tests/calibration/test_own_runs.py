"""A run of our own that took real time: as a Result, and fitted like anybody's."""

import numpy as np
import pytest

from course import KVCache, Workload, calibration, policies, serve, steptime
from course.calibration.runs import engine_of_run
from course.engine.live import Emitted, Live, serve_live
from course.engine.step import Step
from course.lm.processor import spec
from course.models.gpus import GPU

LOAD = Workload.gamma(rate=12, cv=1, num_requests=60, prompt_tokens=40, output_tokens=20, seed=1)
TRUTH = steptime.PowerLaw(2e-3, 2e-4, 1, prefill=1e-4, context=2e-7)
CARD = GPU("a card of the test", read_bandwidth=4e9, matrix_flops=2e10, seconds_per_kernel=0, source="as given")


class Paced(Live):
    """Each step lasts as a law says, on a clock of its own; each answer 20 tokens."""

    def __init__(self):
        self.time = 0.0
        super().__init__(clock=lambda: self.time, sleep=self.rest)

    def rest(self, seconds):
        self.time += seconds

    def compute(self, work):
        context = sum(request.known for request in work.decodes)
        step = Step(len(work.decodes), context, tuple((tokens, request.computed) for request, tokens in work.chunks))
        self.time += TRUTH(step)
        complete = [request for request, tokens in work.chunks if tokens == request.remaining]
        return Emitted([request for request in (*work.decodes, *complete) if request.emitted + 1 == 20])


@pytest.fixture(scope="module")
def run():
    return serve_live(LOAD, policies.Continuous(8, 64), Paced(), KVCache(200))


def test_as_a_result(run):
    result = calibration.result_of(run, "mine")
    assert result.name == "mine" and len(result.requests) == 60
    for metric in ("ttft", "tpot", "e2e"):
        assert np.array_equal(getattr(result.requests, metric), getattr(run, metric))
        assert result.ours[metric]["p50"] == pytest.approx(np.nanmedian(getattr(run, metric)), rel=1e-12)
    assert np.allclose(np.sort(np.concatenate(result.requests.itl)), np.sort(run.itl), rtol=1e-12)
    assert result.totals["requests_per_second"] == 60 / run.makespan
    assert result.workload() == Workload(run.arrival - run.arrival[0], LOAD.prompt_tokens, np.full(60, 20))
    engine = engine_of_run(run)
    assert engine.policy is run.policy and engine.cache == KVCache(200)
    with pytest.raises(ValueError, match="takes a Run"):
        calibration.result_of(result)


def test_a_padded_run_has_no_gaps():
    run = serve(LOAD, policies.Static(8), TRUTH)
    result = calibration.result_of(run)
    assert result.requests.itl is None and not np.isfinite(result.requests.tpot).any()
    assert "tpot" not in result.summary and result.ours["ttft"] == result.ours["e2e"]


def test_the_fit_makes_the_same_times(run):
    fit = calibration.fit_run(run, spec(), CARD, weight_bytes=8e6)
    again = serve(run.workload, run.policy, fit.step_time, run.cache)
    for metric in ("ttft", "tpot", "e2e"):
        for p in (50, 95):
            found, wanted = (np.nanpercentile(getattr(one, metric), p) for one in (again, run))
            assert found == pytest.approx(wanted, rel=0.05)  # the law is of the form that is fitted; 1% is noise to it
