"""docs/policies.md: three policies written from it, its examples, and that it lists all that a policy sees."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from course import KVCache, Workload, lengths, policies, serve, steptime
from course.policies import Continuous, Order, Request, Schedule, State
from tests.helpers.asking import serve_asking

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
STEP = steptime.PowerLaw(t0=5e-3, c=5e-4, alpha=0.9, prefill=5e-5, context=1e-7)


class Ageing(Continuous):
    """The smallest priority first; a minute of waiting makes up for `60 / seconds` classes."""

    def __init__(self, max_num_seqs, max_num_batched_tokens, seconds=2.0):
        super().__init__(max_num_seqs, max_num_batched_tokens)
        self.seconds = seconds

    def queue(self, state, waiting):
        return sorted(waiting, key=lambda request: self.rank(request, state.now))

    def victim(self, state, running):
        return max(running, key=lambda request: self.rank(request, state.now))

    def rank(self, request, now):
        return max(0, request.tags["priority"] - math.floor((now - request.arrival) / self.seconds))


class Shrinking(Continuous):
    """The more requests decode, and the longer the queue, the fewer prompt tokens a step takes."""

    def __init__(self, max_num_seqs, most, least=32):
        super().__init__(max_num_seqs, max(most, max_num_seqs + least))
        self.most, self.least = most, least

    def schedule(self, state):
        room = self.most - 8 * state.decodes - 4 * len(state.waiting)
        self.max_num_batched_tokens = state.decodes + max(self.least, room)
        return super().schedule(state)


def due(request):
    return request.due, request.index


class EarliestDeadline(Continuous):
    """The earliest deadline first; without a free slot the latest of those that run gives way to an earlier one."""

    def queue(self, state, waiting):
        return Order(waiting.sorted_by(due))

    def victim(self, state, running):
        return max(running, key=due)

    def schedule(self, state):
        if state.waiting and not state.free_slots:
            first, last = next(iter(state.waiting.sorted_by(due))), max(state.running, key=due)
            if due(first) < due(last):
                plan, left, tokens = state.plan(decodes=False), self.max_num_batched_tokens, {}
                plan.release(last)
                for request in (first, *state.running):
                    chunk = min(request.remaining, left)
                    if request is not last and chunk and plan.take(request, chunk, if_fit=chunk):
                        tokens[request] = chunk
                        left -= chunk
                if first in tokens:
                    return Schedule(tokens, preempt=[last])
        return super().schedule(state)


def a_load(seed, rate=40):
    n, rng = 300, np.random.default_rng(seed)
    load = Workload.poisson(rate, n, lengths.lognormal(120, 1, 4, 900), lengths.lognormal(40, 1, 1, 300), seed=seed)
    return Workload(
        load.arrival,
        load.prompt_tokens,
        load.output_tokens,
        tags=[{"priority": int(one)} for one in rng.integers(0, 4, n)],
        deadline=rng.choice([0.3, 2.0, math.nan], n),
    )


MADE = {
    "ageing": lambda: Ageing(8, 256),
    "shrinking budget": lambda: Shrinking(8, 300),
    "earliest deadline": lambda: EarliestDeadline(8, 256),
}


@pytest.mark.parametrize("name", MADE)
def test_they_give_the_same_run_with_until_honoured_and_ignored(name):
    preempted = 0
    for seed in range(4):
        for cache in (None, KVCache(100, 16), KVCache(1_300, 1)):
            run = serve(a_load(seed), MADE[name](), STEP, cache)
            asked = serve_asking(a_load(seed), MADE[name](), STEP, cache)
            assert np.array_equal(run.e2e, asked.e2e) and np.array_equal(run.steps.end, asked.steps.end)
            assert np.array_equal(run.preempted, asked.preempted)
            preempted += int(run.preempted.sum())
    assert preempted > 10  # blocks are short in two of three


def test_they_do_what_they_are_for():
    load = a_load(7)
    plain = serve(load, Continuous(8, 256), STEP)
    priority = np.array([tags["priority"] for tags in load.tags])
    aged, strict = (serve(load, Ageing(8, 256, seconds), STEP) for seconds in (2.0, 1e9))
    assert aged.ttft[priority == 0].mean() < 0.8 * plain.ttft[priority == 0].mean()
    assert strict.ttft[priority == 3].max() > aged.ttft[priority == 3].max()  # nobody waits for ever
    shrinking = serve(load, Shrinking(8, 300), STEP).steps
    assert len(np.unique((shrinking.decodes + shrinking.prefill_tokens)[shrinking.prefill_tokens > 0])) > 20
    first = serve(load, EarliestDeadline(8, 256), STEP)
    late = [(run.ttft > load.deadline).sum() for run in (plain, first)]
    assert late[1] < 0.5 * late[0] and first.preempted.sum() > 0


@pytest.mark.parametrize("kind", [Ageing, Shrinking, EarliestDeadline])
def test_each_has_at_most_40_lines(kind):
    import inspect

    assert len(inspect.getsource(kind).splitlines()) <= 40


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_page_lists_all_that_a_policy_sees():
    named = set(re.findall(r"`(\w+)", PAGE))
    assert public(State) - named == set()
    assert public(Request) - named == {"life"}  # what its engine keeps of it


def test_the_examples_of_the_page_run():
    names = {"steptime": steptime, "policies": policies, "KVCache": KVCache}
    for text in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(text, "docs/policies.md", "exec"), names)
    load = a_load(1)
    for policy in (names["OneAtATime"](), names["Refill"](), names["Priority"](8, 256)):
        run = serve(load, policy, STEP)
        assert np.array_equal(run.e2e, serve_asking(load, policy, STEP).e2e)
    assert len(names["run"]) == 2
