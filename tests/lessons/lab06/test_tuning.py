"""Lab 06's decision, ticket and tasks, served at rates around the lab's: what is accepted holds, the rest breaks."""

import itertools

import pytest

from course.lessons.lab06 import agents, decision, tasks, two_orders
from course.lessons.lab06.decision import BUSY, GAP, GAP_TWIN, TTFT, TTFT_TWIN
from course.lessons.lab06.two_orders import BUDGET, FIRST, MIXED, RATE, SLOTS

OTHERS = list(itertools.product((0.9, 1.0, 1.1), (0, 3)))
"""Of the rate, and seeds; the decision itself was judged on the seeds 0 to 2."""
MANY = 1_200


def day(rule, budget, rate, seed, slots=SLOTS):
    return two_orders.served(rule, budget, slots, rate, seed, MANY)


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_the_decision_holds_both_promises_and_a_larger_budget_or_the_other_order_breaks_one(times, seed):
    found = day(MIXED, 2_048, times * RATE, seed)
    assert found.gap <= GAP and found.ttft_p99 <= TTFT
    assert day(MIXED, 4_096, times * RATE, seed).gap > GAP
    assert day(MIXED, BUDGET, times * RATE, seed).gap > 2 * GAP
    for budget in (512, decision.NOW):
        assert day(FIRST, budget, times * RATE, seed).gap > 5 * GAP


@pytest.mark.parametrize("seed", decision.DAYS)
def test_with_half_the_budget_first_tokens_come_too_late_on_every_busy_day(seed):
    late = two_orders.served(MIXED, 1_024, SLOTS, BUSY, seed, decision.MANY)
    assert late.gap <= GAP and late.ttft_p99 > TTFT
    # The twin takes it; half of it again does not do there.
    assert late.gap <= GAP_TWIN and late.ttft_p99 <= TTFT_TWIN
    half = two_orders.served(MIXED, 512, SLOTS, BUSY, seed, decision.MANY)
    assert half.ttft_p99 > 2 * TTFT_TWIN
    assert two_orders.served(MIXED, 2_048, SLOTS, BUSY, seed, decision.MANY).gap > GAP_TWIN


def test_more_slots_change_nothing():
    assert day(FIRST, BUDGET, RATE, 0, 2 * SLOTS).gap == day(FIRST, BUDGET, RATE, 0).gap


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_the_repair_of_the_ticket_ends_the_stops_and_smaller_chunks_or_more_slots_do_not(times, seed):
    now, repaired = (agents.run(rule, faster=times, seed=seed) for rule in (FIRST, MIXED))
    assert now.itl.max() > 1 > agents.ENOUGH > repaired.itl.max()
    assert agents.run(FIRST, 2_048, faster=times, seed=seed).itl.max() > 1
    # What it costs: hardly a first token.
    assert repaired.ttft.mean() < 1.05 * now.ttft.mean()


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_what_the_tasks_accept_holds(times, seed):
    for rule, budget in ((MIXED, 2_048), ("1/4", BUDGET)):
        found = day(rule, budget, times * RATE, seed)
        assert found.gap <= tasks.SHORT and found.ttft <= 1.4 * tasks.EARLY  # 10% more requests cost a third of it
    turns = day("every 4th step", BUDGET, times * RATE, seed)
    mixed = day(MIXED, BUDGET, times * RATE, seed)
    assert turns.ttft > 1.3 * mixed.ttft and turns.gap > 0.95 * mixed.gap
