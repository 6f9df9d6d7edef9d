"""Whatever a policy decides by, an answer that holds is the answer of every step: 1,000 policies made at random."""

import math
import random
from operator import attrgetter

import numpy as np
import pytest

from course import KVCache, Workload, serve, steptime
from course.policies import Continuous, Order
from tests.helpers.asking import serve_asking
from tests.helpers.own_policies import FairShare

# Orders of the queue. Each is a function of the request and of the time [s]; and until when it stays as it is.


def drawn(request, salt):
    """A number from 0 to 1 that depends on the request alone."""
    return random.Random(7919 * request.index + salt).random()


def by_prompt(request, now):
    return request.prompt_tokens


def by_deadline(request, now):
    return request.due


def newest(request, now):
    return -request.arrival, -request.index


def ageing(request, now):
    """Priority by tag, of which a second of waiting makes up for one; never said to hold, since ties are rounded."""
    return request.tags["priority"] - (now - request.arrival)


def hopeless_last(request, now):
    return now > request.due, request.due


def each_second_another(request, now):
    return drawn(request, math.floor(now))


NEVER_CHANGES = (by_prompt, by_deadline, newest)
IN_TIME = (ageing, hopeless_last, each_second_another)


class AtRandom(Continuous):
    """Continuous with an order, a filter, a budget and a victim that were drawn; some say until when they hold."""

    def __init__(self, draw, slots, budget, cap, reserve):
        super().__init__(slots, budget, long_prefill_token_threshold=cap, scheduler_reserve_full_isl=reserve)
        self.key = draw.choice([*NEVER_CHANGES, *IN_TIME, *IN_TIME, each_second_another])
        self.says_until = draw.random() < 0.5 and self.key is not ageing
        self.releases = draw.random() < 0.3 and self.key is not ageing  # some are held back for a while after they came
        self.most, self.budget_of = budget, draw.choice(["fixed", "fixed", "time", "queue", "decodes", "below decodes"])
        self.has_no_rule_of_its_own = draw.choice([True, True, None])
        self.gives_way = draw.choice([None, "first", "latest due", "in time"])

    def schedule(self, state):
        if self.budget_of != "fixed":
            self.max_num_batched_tokens = self.budget(state)
        return super().schedule(state, holds=self.has_no_rule_of_its_own)

    def budget(self, state):
        least = max(1, self.max_num_seqs)
        if self.budget_of == "time":
            return least + math.floor(state.now * 3) % (self.most - least + 1)
        if self.budget_of == "queue":
            return max(least, self.most // (1 + len(state.waiting)))
        if self.budget_of == "decodes":
            return max(least, self.most - 2 * state.decodes)
        return 1 + math.floor(state.now * 2) % self.most

    def queue(self, state, waiting):
        now = state.now
        ready = [r for r in waiting if not self.releases or now >= r.arrival + self.held_back(r)]
        requests = sorted(ready, key=lambda request: self.key(request, now))
        if self.key is by_prompt and not self.releases:
            requests = waiting.sorted_by(attrgetter("prompt_tokens"))
        return Order(requests, self.until(now, waiting)) if self.says_until or self.releases else requests

    def held_back(self, request):
        return drawn(request, 3) if request.index % 2 else 0

    def until(self, now, waiting):
        changes = [math.inf]
        if self.releases:
            changes += [r.arrival + self.held_back(r) for r in waiting]
        if self.key is each_second_another:
            changes.append(math.floor(now) + 1)
        if self.key is hopeless_last:
            changes += [math.nextafter(r.due, math.inf) for r in waiting]  # the first moment after it
        return min(change for change in changes if change > now)

    def victim(self, state, running):
        if self.gives_way is None:
            return super().victim(state, running)
        if self.gives_way == "first":
            return running[0]
        if self.gives_way == "latest due":
            return max(running, key=lambda request: (request.due, request.index))
        return running[math.floor(7 * state.now) % len(running)]


STEP_TIMES = (
    steptime.PowerLaw(t0=0.125, c=0.125, alpha=1, prefill=0.125, context=0.125 / 8),
    steptime.PowerLaw(t0=5e-3, c=2e-2, alpha=0.5, prefill=2e-2, context=5e-5),
)


def a_load(draw):
    """Up to ten requests, many at once; times on a grid that floats hold exactly, so that they meet the steps' ends."""
    n = draw.randint(4, 12)
    gaps = [draw.choice([0, 0, 0, 0.125, 0.5, 2.5]) for _ in range(n)]
    return Workload(
        np.cumsum(gaps),
        [draw.choice([1, 5, 20, 60, 60]) for _ in range(n)],
        [draw.choice([1, 8, 40, 90]) for _ in range(n)],
        tenant=[draw.choice("ABC") for _ in range(n)],
        tags=[{"priority": draw.randint(0, 3)} for _ in range(n)],
        deadline=[draw.choice([math.nan, 0.5, 2.0, 7.25]) for _ in range(n)],
    )


def a_case(seed):
    """A load, a policy, a step time and a cache. Often a long prompt finds no room where a short one would."""
    draw = random.Random(seed)
    load, slots = a_load(draw), draw.choice([1, 3, 8, 8, 8])
    budget = slots + draw.choice([0, 12, 60, 200])
    longest = int((load.prompt_tokens + load.output_tokens).max())
    size = draw.choice([1, 1, 4])
    cache = draw.choice([None, *[KVCache((longest + draw.randint(0, 50)) // size + 1, size)] * 3])
    if draw.random() < 0.15:
        return load, FairShare(slots, budget), draw.choice(STEP_TIMES), cache
    policy = AtRandom(draw, slots, budget, draw.choice([0, 0, 20]), draw.random() < 0.8)
    return load, policy, draw.choice(STEP_TIMES), cache


def outcome(served_by, case):
    """When all tokens left and how often each was preempted; or the sentence of a policy that cannot go on."""
    load, policy, step_time, cache = case
    try:
        run = served_by(load, policy, step_time, cache)
    except ValueError as error:
        return str(error).split(":")[-1]
    return [run.token_times(row).tolist() for row in range(len(load))], run.preempted.tolist(), run.steps.end.tolist()


@pytest.mark.parametrize("hundred", range(10))
def test_until_honoured_and_ignored_give_the_same_run(hundred):
    refused, preempted = 0, 0
    for seed in range(100 * hundred, 100 * hundred + 100):
        case = a_case(seed)
        honoured, asked = outcome(serve, case), outcome(serve_asking, case)
        assert honoured == asked, f"seed {seed}: {case}"
        refused += isinstance(honoured, str)
        preempted += not isinstance(honoured, str) and any(honoured[1])
    assert refused <= 10 and preempted >= 10  # else hardly anything is compared


def test_an_order_that_says_too_long_is_noticed():
    """The test above can fail: the same policies, all of which claim that nothing ever changes."""

    class Claims(AtRandom):
        def queue(self, state, waiting):
            order = super().queue(state, waiting)
            return Order(list(order))

    wrong = 0
    for seed in range(300):
        load, policy, step_time, cache = a_case(seed)
        if isinstance(policy, AtRandom):
            policy.__class__ = Claims
            case = load, policy, step_time, cache
            wrong += outcome(serve, case) != outcome(serve_asking, case)
    assert wrong >= 5
