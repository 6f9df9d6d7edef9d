"""Views of those who wait against plain lists, however they come, go, are sent back and are looked at."""

from operator import attrgetter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from course import KVCache, Workload, lengths, policies, serve, steptime
from course.policies.request import Request
from course.policies.waiting import Waiting
from tests.helpers.asking import BOTH
from tests.helpers.strategies import examples

PROMPT, TENANT = attrgetter("prompt_tokens"), attrgetter("tenant")


def by_tenant_and_prompt(request):
    return request.tenant, -request.prompt_tokens


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["come", "come", "come", "many", "leave", "first", "back", "look", "sort"]), st.integers(0, 99)
    ),
    max_size=60,
)


@given(ACTIONS)
@example([("come", 0), ("come", 1), ("come", 3), ("look", 0), ("leave", 0), ("look", 0)])  # A B A, then B A
@examples(300)
def test_every_view_shows_what_a_list_would(actions):
    queue, sent_back, waiting, gone, made = {}, [], None, [], 0
    waiting = Waiting(queue, sent_back)

    def come(number):
        nonlocal made
        queue[Request(float(made), 1 + number % 7, tenant="ABC"[number % 3], index=made)] = None
        made += 1

    for action, number in actions:
        plain = [*reversed(sent_back), *queue]
        if action == "come":
            come(number)
        elif action == "many":
            for each in range(40):
                come(number + each * number)
        elif action == "leave" and queue:
            gone.append(list(queue)[number % len(queue)])
            del queue[gone[-1]]
        elif action == "first":  # as a policy takes them: the first of an order
            for request in list(waiting.sorted_by(PROMPT))[: number % 5]:
                if request in queue:
                    gone.append(request)
                    del queue[request]
        elif action == "back" and gone:
            sent_back.append(gone.pop(number % len(gone)))
        elif action == "sort":
            for key in (PROMPT, by_tenant_and_prompt):
                line = sorted(plain, key=key)
                assert list(waiting.sorted_by(key)) == line
                least = key(Request(0.0, 1 + number % 7, tenant="ABC"[number % 3]))
                behind, before = map(list, waiting.split_by(key, least))
                assert before + behind == line
                assert all(key(one) >= least for one in behind) and all(key(one) < least for one in before)
        elif action == "look":
            groups = {}
            for request in plain:
                groups.setdefault(request.tenant, []).append(request)
            found = waiting.grouped_by(TENANT)
            assert list(found) == list(groups) and {t: list(line) for t, line in found.items()} == groups
    plain = [*reversed(sent_back), *queue]
    assert list(waiting) == plain and len(waiting) == len(plain) and bool(waiting) == bool(plain)
    assert list(reversed(waiting)) == plain[::-1] and repr(waiting) == repr(tuple(plain))
    assert waiting + plain == (*plain, *plain) == tuple(plain) + waiting
    for place in range(-len(plain), len(plain)):
        assert waiting[place] is plain[place] and plain[place] in waiting
    for cut in (slice(3), slice(-4, None), slice(None, None, 2), slice(None, None, -1), slice(50, 2, -3)):
        assert waiting[cut] == tuple(plain[cut])
    with pytest.raises(IndexError):
        waiting[len(plain)]


def test_many_keys_are_forgotten_and_each_order_is_still_right():
    waiting = Waiting({Request(0.0, 1 + 7 * row % 30, index=row): None for row in range(40)})
    for _ in range(20):
        key = (lambda sign: lambda request: sign * request.prompt_tokens)(-1)
        assert list(waiting.sorted_by(key)) == sorted(waiting, key=key)


class LongestFirst(policies.Continuous):
    def queue(self, state, waiting):
        return waiting.sorted_by(self.key)

    def key(self, request):
        return -request.prompt_tokens


class LongestFirstByList(LongestFirst):
    def queue(self, state, waiting):
        return sorted(waiting, key=self.key)


def test_a_policy_may_use_them_while_others_are_preempted():
    load = Workload.poisson(30, 200, lengths.uniform(10, 80), 30, seed=1)
    step = steptime.PowerLaw(t0=0.01, c=5e-3, alpha=1, prefill=1e-4)
    runs = [
        serve(load, kind(16, 256), step, KVCache(150, 4))
        for serve in BOTH
        for kind in (LongestFirst, LongestFirstByList)
    ]
    assert runs[0].preempted.sum() > 5
    assert all(np.array_equal(run.e2e, runs[0].e2e) for run in runs)


def test_nobody_is_sorted_again_and_again():
    """2,000 wait at once: their keys are asked for about once each, not once in each step."""
    asked = 0

    class Counted(policies.Continuous):
        def key(self, request):
            nonlocal asked
            asked += 1
            return request.prompt_tokens

        def queue(self, state, waiting):
            return waiting.sorted_by(self.key)

    load = Workload([0.0] * 2_000, [1 + 37 * row % 500 for row in range(2_000)], [2] * 2_000)
    serve(load, Counted(8, 4_096), steptime.PowerLaw(t0=0.01, c=0, alpha=1))
    assert asked < 3 * 2_000
