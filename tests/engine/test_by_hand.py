"""Small runs by hand: the token budget to the token, and a step time of one's own to the bit."""

import numpy as np
import pytest

from course import Workload, policies, serve, steptime

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def test_decodes_count_in_the_budget():
    """One decode leaves 7 of 8 tokens: a prompt of 7 runs whole, one of 8 takes two steps."""
    for prompt, first in ((7, 4.0), (8, 5.0)):
        load = Workload(arrival=[0.0, 2.5], prompt_tokens=[4, prompt], output_tokens=[10, 1])
        assert serve(load, policies.Continuous(4, 8), SECOND).first_computed.tolist() == [1.0, first]


def test_one_token_above_the_budget_is_refused():
    def everybody(state):
        return {request: request.remaining for request in (*state.running, *state.waiting)}

    for prompts, fine in (([4, 4], True), ([4, 5], False)):
        load = Workload([0.0, 0.0], prompts, [1, 1])
        policy = policies.FromFunction(everybody, 4, max_num_batched_tokens=8)
        if fine:
            assert serve(load, policy, SECOND).response.tolist() == [1, 1]
        else:
            with pytest.raises(ValueError, match="it runs 9 tokens, and max_num_batched_tokens is 8"):
                serve(load, policy, SECOND)


def test_a_callable_and_a_model_of_the_same_seconds_give_the_same_times():
    """Steps of 0.1 s, which no float holds exactly, added one after the other."""
    load = Workload.fixed(rate=0.5, num_requests=20, prompt_tokens=3, output_tokens=70)
    model, mine = (serve(load, policies.Continuous(4, 64), t) for t in (steptime.PowerLaw(0.1, 0, 1), lambda step: 0.1))
    assert np.array_equal(model.response, mine.response) and np.array_equal(model.steps.end, mine.steps.end)
    alone = serve(load.head(1), policies.Continuous(4, 64), lambda step: 0.1)
    assert np.array_equal(alone.steps.end, np.add.accumulate([load.arrival[0], *[0.1] * 70])[1:])
