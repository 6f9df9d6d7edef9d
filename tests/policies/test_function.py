"""A policy made of a function, one without its method, and how policies show themselves."""

import math

import numpy as np
import pytest

from course import Workload, policies, serve, steptime
from course.policies.base import Policy, Schedule
from tests.helpers.own_policies import OneAtATime

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
LOAD = Workload([0.0, 0.0, 1.0], [5, 6, 7], [3, 4, 1])


def test_a_policy_from_a_function():
    def one_at_a_time(state):
        return {request: request.remaining for request in (state.running or state.waiting)[:1]}

    made = policies.FromFunction(one_at_a_time, max_num_seqs=8)
    assert made.max_num_batched_tokens == math.inf
    assert repr(made) == "FromFunction(one_at_a_time, max_num_seqs=8)"
    want = serve(LOAD, OneAtATime(), SECOND)
    assert np.array_equal(serve(LOAD, made, SECOND).e2e, want.e2e)
    whole = policies.FromFunction(lambda state: Schedule(one_at_a_time(state)), 8, 64)
    assert np.array_equal(serve(LOAD, whole, SECOND).e2e, want.e2e)


def test_a_policy_without_its_method():
    class Unfinished(Policy):
        max_num_seqs = 2

    with pytest.raises(NotImplementedError):
        serve(LOAD, Unfinished(), SECOND)


def test_settings_that_are_not_usual_are_shown():
    assert repr(policies.Continuous(2, 8, False, 0, False)) == (
        "Continuous(max_num_seqs=2, max_num_batched_tokens=8, enable_chunked_prefill=False, "
        "scheduler_reserve_full_isl=False)"
    )
    assert "long_prefill_token_threshold=4" in repr(policies.ShortestFirst(2, 8, True, 4))
    with pytest.raises(ValueError, match="by must be prompt or guess, not 'luck'"):
        policies.ShortestFirst(2, 8, by="luck")
