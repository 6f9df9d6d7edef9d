"""ShortestFirst: by hand, what it gains over the order of arrival, and what a poor guess costs."""

from math import nan

import numpy as np
import pytest

from course import KVCache, Workload, lengths, policies, serve, steptime
from course.engine.serving import Engine
from course.policies import Request, ShortestFirst
from tests.helpers.asking import serve_asking

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def at_once(prompts, output=2, **more):
    return Workload([0.0] * len(prompts), prompts, [output] * len(prompts), **more)


def test_by_prompt():
    # One slot, two steps a request: the prompts of 3, 5, 7 and 9 tokens end at 2, 4, 6 and 8 s.
    assert serve(at_once([9, 3, 7, 5]), ShortestFirst(1, 64), SECOND).e2e.tolist() == [8, 2, 6, 4]
    # Two slots: 3 and 5 run first, then 7 and 9.
    assert serve(at_once([9, 3, 7, 5]), ShortestFirst(2, 64), SECOND).e2e.tolist() == [4, 2, 4, 2]


def test_by_guess_whatever_the_prompt():
    load = at_once([9, 3, 7, 5], guess=[1, 40, 30.5, 2])
    assert serve(load, ShortestFirst(1, 64, by="guess"), SECOND).e2e.tolist() == [2, 8, 6, 4]
    assert serve(load, ShortestFirst(1, 64), SECOND).e2e.tolist() == [8, 2, 6, 4]


def test_equal_ones_keep_their_order_and_those_without_a_guess_come_last():
    load = at_once([5] * 5, guess=[nan, 3, nan, 3, 1])
    assert serve(load, ShortestFirst(1, 64, by="guess"), SECOND).e2e.tolist() == [8, 4, 10, 6, 2]
    without = at_once([5] * 3)
    assert serve(without, ShortestFirst(1, 64, by="guess"), SECOND).e2e.tolist() == [2, 4, 6]


def test_nobody_who_runs_is_sent_away_for_a_shorter_one():
    # 0 runs until 4 s; by then 1 and 2 wait, and the shorter one, which came later, is next.
    load = Workload([0.0, 1.0, 2.0], [9, 7, 3], [4, 2, 2])
    run = serve(load, ShortestFirst(1, 64), SECOND)
    assert run.response.tolist() == [4, 8, 6] and not run.preempted.any()


def test_the_budget_goes_to_the_shortest_first():
    # Budget of 8 tokens: first step 3 and 5; second step their decodes and 6 of the 9 tokens, third step the other 3.
    run = serve(at_once([9, 3, 5]), ShortestFirst(4, 8), SECOND)
    assert run.ttft.tolist() == [3, 1, 1]


def test_requests_given_one_by_one_carry_their_guess():
    engine = Engine(ShortestFirst(1, 64, by="guess"), SECOND)
    for guess in (30, 10, None):
        engine.submit(Request(0.0, 5, guess=guess), output_tokens=2)
    log = engine.run()
    assert log.tokens[:, 1].tolist() == [2, 0, 4]  # the step of each one's first token
    for bad in (0.5, nan, "many", True):
        with pytest.raises(ValueError, match="guess must be a"):
            Engine(ShortestFirst(1, 64), SECOND).submit(Request(0.0, 5, guess=bad), output_tokens=2)


def test_an_answer_that_holds_is_the_answer_of_every_step():
    load = Workload.poisson(6, 150, lengths.geometric(40), lengths.geometric(20), seed=5).with_guesses("exact")
    law = steptime.PowerLaw(t0=5e-3, c=2e-3, alpha=0.9, prefill=1e-4, context=1e-6)
    for by in ("prompt", "guess"):
        for cache in (None, KVCache(20)):
            policy = ShortestFirst(6, 64, by=by)
            run, asked = serve(load, policy, law, cache), serve_asking(load, policy, law, cache)
            assert np.array_equal(run.e2e, asked.e2e) and np.array_equal(run.steps.end, asked.steps.end)


# What it is for

# Four slots, 10 ms a step, answers of 100 tokens on average: at most 4 requests/s. At 3.6 a queue is always there.
LOAD = Workload.poisson(3.6, 4_000, 64, lengths.lognormal(100, 1.5), seed=2)
STEP = steptime.PowerLaw(t0=0.01, c=0, alpha=1)


def mean_e2e(load, policy):
    return float(serve(load, policy, STEP).e2e.mean())


def test_exact_guesses_beat_the_order_of_arrival_and_noise_costs_a_part_of_it():
    in_order = mean_e2e(LOAD, policies.Continuous(4, 512))
    shortest = ShortestFirst(4, 512, by="guess")
    best = mean_e2e(LOAD.with_guesses("exact"), shortest)
    noisy, noisier = (mean_e2e(LOAD.with_guesses("lognormal", error=error, seed=1), shortest) for error in (0.5, 2))
    # One seeded run each. The differences are far larger than the factors asked for here.
    assert 1.5 * best < in_order
    assert best < noisy < noisier < in_order
    assert noisier > 1.2 * best


def test_a_constant_guess_is_the_order_of_arrival():
    shortest = ShortestFirst(4, 512, by="guess")
    assert mean_e2e(LOAD.with_guesses("constant", tokens=200), shortest) == mean_e2e(LOAD, policies.Continuous(4, 512))


@pytest.mark.parametrize("bad", ["answer", None, 1])
def test_another_order_is_refused(bad):
    with pytest.raises(ValueError, match="by must be prompt or guess, not"):
        ShortestFirst(4, 512, by=bad)
