"""Lab 10's decision, ticket and tasks, served at other loads: what is accepted holds, the rest breaks or costs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from course.lessons.lab10 import chats, decision, evening, facts, one_prompt, tasks
from course.lessons.lab10.chats import AGENTS

OTHERS = list(itertools.product((0.9, 1.0, 1.1), (0, 1)))
"""Of the rate, and seeds."""


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_with_the_blocks_of_the_decision_the_hits_are_back_and_with_less_they_are_not(times, seed):
    rate = decision.hit_rate(decision.served(decision.NEEDED, times, seed))
    assert rate > 0.8
    for blocks in (decision.BLOCKS + 1, facts.facts()["decide_histories"], facts.facts()["decide_slots"]):
        assert decision.hit_rate(decision.served(blocks, times, seed)) < 0.1
    # Twice as many bring no more.
    assert decision.hit_rate(decision.served(2 * decision.NEEDED, times, seed)) == pytest.approx(rate, abs=0.002)


@pytest.mark.parametrize("seed", range(3))
def test_two_replicas_whose_balancer_does_not_look_at_prefixes_do_not_bring_them_back(seed):
    """Each gets half of the questions, about all conversations."""
    which = np.arange(400) % decision.CHATS
    mine = np.random.default_rng(seed).random(400) < 0.5
    run = decision.served(decision.BLOCKS + 1, 0.5, seed, which[mine])
    assert decision.hit_rate(run) < 0.4


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_the_ticket_with_memory_back_nobody_is_preempted_and_the_rate_falls_with_the_waits(times, seed):
    before, since = (evening.evening(share, times, seed) for share in (evening.BEFORE, evening.SINCE))
    assert before.preemptions == 0 < 50 < since.preemptions
    assert since.rates[0] > before.rates[0] + 0.05 and since.rates[1] == pytest.approx(before.rates[1], abs=1e-9)
    assert since.run.ttft.mean() > 20 * before.run.ttft.mean()


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_the_knee_moves_with_the_rate_as_the_formula_says(times, seed):
    rate = times * chats.RATE
    needed = chats.blocks_needed(rate, chats.PAUSE, chats.TURNS, chats.A_TURN, chats.SHARED)
    found = chats.returned(int(1.1 * needed), chats.PAUSE, AGENTS, rate, seed).hit_rate
    assert found > tasks.ENOUGH
    alone = chats.blocks_of_who_returns(rate, chats.PAUSE, chats.TURNS, chats.A_TURN, chats.SHARED)
    assert chats.returned(int(alone), chats.PAUSE, AGENTS, rate, seed).hit_rate < 0.65


def test_half_or_twice_the_requests_at_once_gain_as_much():
    """And at the slots of a smaller card: what the first prediction says is no matter of 600 or 1,024."""
    from course import policies
    from course.engine.serving import serve
    from course.memory.kvcache import KVCache
    from course.workload import Workload

    for many, slots, budget in ((300, 1_024, 8_192), (1_200, 1_024, 8_192), (600, 256, 2_048)):
        load = Workload.fixed(num_requests=many, prompt_tokens=104, output_tokens=200, interval=0)
        load = load.with_system_prompt(2_000)
        spans = [serve(load, policies.Continuous(slots, budget), one_prompt.STEP,
                       KVCache(one_prompt.pool(), 16, prefix_caching=on)).makespan for on in (False, True)]  # fmt: skip
        assert 2.8 < spans[0] / spans[1] < 4.2
