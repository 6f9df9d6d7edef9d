"""Lab 09's decision, ticket and tasks at other draws and with fewer or more questions: what is accepted holds there."""

import itertools

import pytest

from course.engine.serving import serve
from course.lessons.lab09 import decision, facts, pool, tasks, victims
from course.lessons.lab09.decision import MAX_NUM_SEQS, WATERMARK
from tests.helpers.sizes import size

OTHERS = list(itertools.product((900, 1_000, 1_100), (0, 1)))[:: size(2, 1)]
"""Questions, and seeds."""
ANSWER = (MAX_NUM_SEQS, 80)


@pytest.mark.parametrize(("count", "seed"), OTHERS)
def test_the_slots_of_the_decision_keep_the_promise_and_the_rest_breaks_it_or_costs(count, seed):
    found = {one: decision.served(*one, seed=seed, count=count) for one in decision.OFFERED}
    best = found.pop(ANSWER)
    assert best.longest_gap <= decision.PROMISE
    for one, run in found.items():
        breaks, costs = run.longest_gap > decision.PROMISE, run.tokens_per_second < 0.97 * best.tokens_per_second
        assert breaks or costs, one
    assert found[MAX_NUM_SEQS, 72].longest_gap <= facts.PROMISE_TWIN < best.longest_gap  # the twin
    assert found[WATERMARK, 0.05].longest_gap > 1


@pytest.mark.parametrize(("count", "seed"), OTHERS)
def test_what_the_tasks_accept(count, seed):
    start = pool.out_of_blocks(seed=seed, count=count)
    calm = pool.out_of_blocks(slots=80, seed=seed, count=count)
    assert calm.longest_gap <= tasks.SHORT_GAP < start.longest_gap and calm.tokens_per_second > start.tokens_per_second
    above, below = tasks.break_even(), max(b for b in tasks.BANDWIDTHS if b < tasks.break_even())
    speeds = [pool.out_of_blocks(bandwidth=b, seed=seed, count=count).tokens_per_second for b in (below, above)]
    assert speeds[0] < start.tokens_per_second < speeds[1]
    mark = pool.out_of_blocks(watermark=0.05, seed=seed, count=count)
    assert mark.preemptions < 0.1 * start.preemptions and mark.longest_gap > 1


@pytest.mark.parametrize("seed", [1, 2])
def test_the_tickets_rule_sends_one_request_away_again_and_again(seed):
    """In other draws as well, and neither a larger budget nor more slots helps it."""
    cache = pool.out_of_blocks().cache
    for more in ({}, {"max_num_batched_tokens": 16_384}, {"max_num_seqs": 2_048}):
        settings = {"max_num_seqs": pool.SLOTS, "max_num_batched_tokens": pool.BUDGET, "engine_version": pool.VERSION}
        policy = victims.Ruled(victims.most, **(settings | more))
        run = pool.Served(serve(pool.requests(seed), policy, pool.STEP, cache), cache)
        repaired = pool.out_of_blocks(seed=seed)
        assert run.most > 40 > 2 * repaired.most and run.tokens_per_second < repaired.tokens_per_second


@pytest.mark.parametrize("seed", range(1, size(3, 5)))
def test_the_surprises_in_other_draws(seed):
    ways = [pool.placed(how, seed=seed) for how in (pool.MAX, pool.POW2, pool.TRUE, pool.PAGED)]
    speeds = [one.tokens_per_second for one in ways]
    assert (
        speeds == sorted(speeds) and 2.2 < speeds[3] / speeds[0] < 2.6 and 4.9 < ways[3].running / ways[0].running < 5.6
    )
    again = pool.out_of_blocks(seed=seed)
    free = pool.out_of_blocks(bandwidth=pool.FREE, seed=seed)
    assert 0.4 < again.again < 0.47 and 0.12 < 1 - again.tokens_per_second / free.tokens_per_second < 0.15
    fewest = pool.out_of_blocks(victim=pool.FEWEST, seed=seed)
    assert fewest.preemptions > 2 * again.preemptions and fewest.again < again.again
    assert fewest.tokens_per_second > again.tokens_per_second
