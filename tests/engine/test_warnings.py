"""What a run warns of, on both sides of each threshold."""

import pytest

from course import KVCache, Workload, policies, serve, steptime

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


@pytest.mark.parametrize(("early", "waiting"), [(20, 13), (24, 17)])
def test_a_queue_that_grew_to_the_end(early, waiting):
    """Eight slots. When the last one comes at 0.5 s, all but eight of the early ones wait, and it: above 16 is told."""
    load = Workload([0.0] * early + [0.5], [1] * (early + 1), [1] * (early + 1))
    told = serve(load, policies.Continuous(8, 64), SECOND).warnings
    if waiting > 16:
        (sentence,) = told
        assert f"{waiting} of {early + 1} were still waiting for a slot" in sentence
    else:
        assert told == ()


def test_preemptions_of_more_than_a_tenth_of_the_requests():
    load = Workload.fixed(interval=5, num_requests=20, prompt_tokens=16, output_tokens=40)
    run = serve(load, policies.Continuous(4, 64), SECOND, KVCache(42, 4))
    assert 2 < run.preempted.sum() == 8 < 10
    assert f"8 preemptions threw away {run.steps.dropped.sum()} computed tokens" in run.warnings[-1]
    assert not serve(load, policies.Continuous(4, 64), SECOND, KVCache(56, 4)).preempted.sum()
