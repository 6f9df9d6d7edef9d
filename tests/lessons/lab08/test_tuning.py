"""Lab 08's decision and ticket, served at rates around the lab's: what is accepted holds, the rest breaks or costs."""

import itertools

import numpy as np
import pytest

from course.engine.serving import serve
from course.lessons.lab08 import decision, facts, kv_pool, tasks
from course.policies import Continuous
from course.workload import Workload

OTHERS = list(itertools.product((0.9, 1.0, 1.1), (0, 1)))
"""Of the rate, and seeds."""
TOMORROW = 12.0  # requests/s of the decision: more than its four slots answer on any of these steps
REQUESTS = 400


def lost(slots: int, load: Workload) -> int:
    return int(decision.served(slots, load).preempted.sum())


@pytest.mark.parametrize("together", [360, 400, 440])
def test_with_the_slots_of_the_decision_nobody_is_preempted_when_all_come_at_once_and_with_one_more_some_are(together):
    burst = Workload(np.zeros(together), *(np.full(together, n) for n in (decision.PROMPT, decision.ANSWER)))
    assert lost(decision.SLOTS, burst) == 0
    rejected = {"the log's blocks": decision.SLOTS + 1, "on average": decision.ON_AVERAGE,
                "prompts": decision.TOKENS // decision.PROMPT}  # fmt: skip
    assert all(lost(slots, burst) > 0 for slots in rejected.values())
    # The same slots as before, which a longer max_model_len or a larger pool leaves as they are: all wait far longer.
    waits = [np.percentile(decision.served(slots, burst).queue_wait, 95) for slots in (4, decision.SLOTS)]
    assert waits[0] > 3 * waits[1]


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_nor_is_anybody_when_they_come_one_by_one(times, seed):
    load = Workload.poisson(times * TOMORROW, REQUESTS, decision.PROMPT, decision.ANSWER, seed)
    runs = [decision.served(slots, load) for slots in (4, decision.SLOTS)]
    assert runs[1].preempted.sum() == 0
    assert np.percentile(runs[1].ttft, 99) < 0.2 and np.percentile(runs[0].ttft, 99) > 5 * 0.2


def evening(times: float, seed: int, slots: int, budget: int = kv_pool.BUDGET) -> kv_pool.UnderLoad:
    load = kv_pool.requests(times * tasks.BUSY, kv_pool.SHORT, seed)
    run = serve(load, Continuous(slots, budget), kv_pool.step_time(), kv_pool.cache())
    return kv_pool.UnderLoad(kv_pool.GQA, times * tasks.BUSY, slots, run)


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_fewer_slots_end_the_stops_of_the_ticket_and_a_larger_budget_does_not(times, seed):
    before, repaired, budget = (
        evening(times, seed, *settings) for settings in ((facts.ALL,), (facts.ROOM,), (facts.ALL, 4 * kv_pool.BUDGET))
    )
    # A gap below 0.3 s is a prompt computed beside the answers; longer ones are a sequence computed again.
    assert repaired.longest_gap < 0.3 and repaired.preemptions <= before.preemptions / 10
    for still in (before, budget):  # lower --max-model-len leaves pool and run as they are
        assert still.longest_gap > 3 * repaired.longest_gap and still.preemptions > 3
    # What it costs: hardly any output.
    assert repaired.arriving_tokens_per_second > tasks.NEARLY * before.arriving_tokens_per_second
