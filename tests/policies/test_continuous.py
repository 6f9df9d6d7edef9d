"""The hooks of Continuous by hand: who is admitted, who gives way, and a budget that changes from step to step."""

import math

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.policies import Continuous, Order, Policy, Schedule
from tests.helpers.asking import BOTH

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def at_once(prompts, outputs, **more):
    return Workload([0.0] * len(prompts), prompts, outputs, **more)


# Who gives way


class FewestPromptTokens(Continuous):
    def victim(self, state, running):
        return min(running, key=lambda request: request.prompt_tokens)


@pytest.mark.parametrize("serve", BOTH)
def test_the_victim_may_stand_before_those_who_have_their_turn(serve):
    """Eight blocks of one token. After two steps 2 + 1 + 3 + 1 = 7 are held and two are wanted: request 0 goes.

    The last one admitted would have gone by vLLM's rule.
    """
    load, cache = at_once([2, 3], [4, 4]), KVCache(8, 1)
    run = serve(load, FewestPromptTokens(4, 16), SECOND, cache)
    assert run.preempted.tolist() == [1, 0]
    assert run.token_times(1).tolist() == [1, 2, 3, 4]
    assert serve(load, Continuous(4, 16), SECOND, cache).preempted.tolist() == [0, 1]


@pytest.mark.parametrize("serve", BOTH)
def test_tokens_of_a_victim_go_to_others(serve):
    """Request 0 gets its token first, then gives way to 1: the budget that it had counts again, and 2 runs too."""

    class First(Continuous):
        def schedule(self, state):
            self.max_num_batched_tokens = 2 if state.now >= 2 else 12
            return super().schedule(state)

        def victim(self, state, running):
            return running[0]

    # 13 blocks of one token: 9 are held at 1 s, 12 at 2 s. Then a step of two tokens: 0 takes the last block, and 1
    # needs another one.
    run = serve(at_once([3, 3, 3], [6, 3, 3]), First(3, 12), SECOND, KVCache(13, 1))
    assert run.preempted.tolist()[0] == 1
    assert run.token_times(1).tolist() == run.token_times(2).tolist() == [1, 2, 3]


@pytest.mark.parametrize("serve", BOTH)
def test_when_a_request_gives_way_itself_the_next_one_still_has_its_turn(serve):
    """Chunks of two: 4 + 6 + 6 of 17 blocks of one token are held at 3 s. Request 0 takes the last, 1 finds none."""

    class Second(Continuous):
        def victim(self, state, running):
            return running[1]

    policy = Second(3, 16, long_prefill_token_threshold=2, scheduler_reserve_full_isl=False)
    run = serve(at_once([2, 6, 8], [6, 3, 1]), policy, SECOND, KVCache(17, 1))
    assert run.preempted.tolist() == [0, 1, 0]
    assert run.ttft.tolist()[2] == 4  # four chunks, one a step


@pytest.mark.parametrize("answer", [None, 3, "first"])
def test_a_victim_that_does_not_run_is_refused(answer):
    class Nobody(Continuous):
        def victim(self, state, running):
            return answer

    with pytest.raises(ValueError, match=r"Nobody\.victim must return one of the requests that run, not"):
        serve(at_once([2, 2], [4, 4]), Nobody(4, 16), SECOND, KVCache(7, 1))


# A budget that changes


class Budgets(Continuous):
    """At each second the budget that was given for it."""

    def __init__(self, slots, budgets):
        super().__init__(slots, max(budgets))
        self.budgets = budgets

    def schedule(self, state):
        self.max_num_batched_tokens = self.budgets[min(int(state.now), len(self.budgets) - 1)]
        return super().schedule(state)


@pytest.mark.parametrize("serve", BOTH)
def test_the_budget_of_each_step_is_its_own(serve):
    run = serve(at_once([20, 20], [3, 1]), Budgets(2, [8, 4, 16, 2]), SECOND)
    assert run.steps.prefill_tokens.tolist() == [8, 4, 16, 1, 1, 2, 2, 2, 2, 2][: len(run.steps)]
    assert run.steps.decodes.tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0][: len(run.steps)]
    assert (run.steps.decodes + run.steps.prefill_tokens <= [8, 4, 16, *[2] * (len(run.steps) - 3)]).all()


@pytest.mark.parametrize("serve", BOTH)
def test_below_one_token_for_each_the_first_admitted_go_on_and_the_others_wait_their_turn(serve):
    """Three decode; from 1 s on the budget is 2, and from 3 s on 3 again. Who came first stands first."""
    run = serve(at_once([1, 1, 1], [5, 5, 5]), Budgets(3, [3, 2, 2, 3]), SECOND)
    assert run.token_times(0).tolist() == run.token_times(1).tolist() == [1, 2, 3, 4, 5]
    assert run.token_times(2).tolist() == [1, 4, 5, 6, 7]
    one = serve(at_once([1, 1, 1], [3, 3, 3]), Budgets(3, [3, 3, 2, 1, 1, 1]), SECOND)
    assert [one.token_times(row).tolist() for row in range(3)] == [[1, 2, 3], [1, 2, 3], [1, 2, 4]]


@pytest.mark.parametrize("serve", BOTH)
def test_a_step_of_decodes_alone_keeps_the_budget_too(serve):
    class Greedy(Policy):
        max_num_seqs = 4

        def schedule(self, state):
            self.max_num_batched_tokens = 100 if not state.running else 3
            newcomers = () if state.running else state.waiting
            return Schedule({request: request.remaining for request in newcomers}, decodes=True, until=math.inf)

    with pytest.raises(ValueError, match="it runs 4 tokens, and max_num_batched_tokens is 3"):
        serve(Workload([0.0] * 4 + [3.5], [5] * 5, [9] * 5), Greedy(), SECOND)


@pytest.mark.parametrize("bad", [0, None, 2.5, "8"])
def test_a_budget_that_cannot_be_is_refused_in_the_step_that_it_is_for(bad):
    class Odd(Policy):
        max_num_seqs, max_num_batched_tokens = 4, 64

        def schedule(self, state):
            if state.running:
                self.max_num_batched_tokens = bad
            return Schedule({r: r.remaining for r in (*state.running, *state.waiting)})

    with pytest.raises(ValueError, match=r"Odd.max_num_batched_tokens must be a whole number"):
        serve(at_once([5], [3]), Odd(), SECOND)


def test_setting_the_budget_between_two_runs_is_no_change_while_serving():
    policy, load = Continuous(4, 64), at_once([5, 5], [30, 30])
    policy.max_num_batched_tokens = 8
    asked = []

    class Counted(Continuous):
        def schedule(self, state):
            asked.append(state.now)
            return super().schedule(state)

    counted = Counted(4, 64)
    counted.max_num_batched_tokens = 8
    assert np.array_equal(serve(load, policy, SECOND).e2e, serve(load, counted, SECOND).e2e)
    assert len(asked) <= 4  # not in each of 31 steps


# The order of the queue


@pytest.mark.parametrize("serve", BOTH)
def test_a_queue_may_depend_on_the_time_and_say_when_it_changes_next(serve):
    """Nobody is let in before 2.5 s but request 0: the engine is idle from 2 s on, and not asked in between."""
    asked = []

    class Gate(Continuous):
        def queue(self, state, waiting):
            asked.append(state.now)
            return Order(waiting if state.now >= 2.5 else [r for r in waiting if r.index == 0], until=2.5)

    run = serve(at_once([3, 3], [2, 2]), Gate(4, 64), SECOND)
    assert run.admitted.tolist() == [0, 2.5] and run.e2e.tolist() == [2, 4.5]
    assert 2.5 in asked and len(asked) <= 5


def test_a_queue_of_one_argument_says_what_is_missing():
    class Old(Continuous):
        def queue(self, waiting):
            return waiting

    with pytest.raises(TypeError, match="queue"):
        serve(at_once([3], [2]), Old(4, 64), SECOND)


# What a policy remembers


def test_a_policy_that_has_served_once_gives_the_same_run_again():
    class Alternating(Continuous):
        """Lets the last one in first in every second question, by a note of its own."""

        notes = ()

        def __init__(self, slots, budget):
            super().__init__(slots, budget)
            self.notes = []

        def queue(self, state, waiting):
            self.notes.append(state.now)
            return list(waiting) if len(self.notes) % 2 else list(reversed(waiting))

    load, policy = at_once([3, 4, 5, 6, 7], [3, 2, 3, 2, 4]), Alternating(1, 64)
    runs = [serve(load, policy, SECOND) for _ in range(3)]
    assert runs[0].e2e.tolist() == runs[1].e2e.tolist() == runs[2].e2e.tolist()
    assert policy.notes == [] and len(runs[0].policy.notes) % 2 == 1
    again = serve(load, runs[0].policy, SECOND)  # this one has served: an odd number of questions before
    assert again.e2e.tolist() != runs[0].e2e.tolist()


def test_a_policy_of_ones_own_without_fresh_is_copied_and_shares_what_cannot_be():
    class Plain:
        max_num_seqs, max_num_batched_tokens = 4, 64

        def __init__(self):
            self.seen, self.lines = [], (line for line in "abc")  # a generator cannot be copied

        def schedule(self, state):
            self.seen.append(state.now)
            return Schedule({r: r.remaining for r in (*state.running, *state.waiting)})

    policy = Plain()
    run = serve(at_once([3], [3]), policy, SECOND)
    assert policy.seen == [] and run.policy.seen == [0, 1, 2] and run.policy.lines is policy.lines


def test_a_policy_may_make_its_own_copy():
    class Own(Continuous):
        def fresh(self):
            return Own(1, 64)

    assert serve(at_once([3, 3], [2, 2]), Own(4, 64), SECOND).e2e.tolist() == [2, 4]
    Own.fresh = lambda self: None
    with pytest.raises(ValueError, match=r"Own\.fresh must return a policy like itself, not None"):
        serve(at_once([3], [2]), Own(4, 64), SECOND)


# What a request carries


def test_tags_and_deadlines_come_from_the_workload_and_from_submitted_requests():
    seen = {}

    class Look(Continuous):
        def queue(self, state, waiting):
            seen.update({r.index: (r.tags, r.deadline, r.due) for r in waiting})
            return waiting

    load = Workload([0.0, 0.5], [3, 3], [1, 1], tags=[{"user": 7}, ("paid", "chat")], deadline=[math.nan, 2.0])
    serve(load, Look(4, 64), SECOND)
    assert seen == {0: ({"user": 7}, None, math.inf), 1: (("paid", "chat"), 2.0, 2.5)}
    with pytest.raises(TypeError):
        seen[0][0]["user"] = 8
    seen.clear()
    serve(Workload([0.0], [3], [1]), Look(4, 64), SECOND)
    assert seen == {0: ((), None, math.inf)}
    request = policies.Request(1.0, 5, tags=("paid",), deadline=0.5)
    assert (request.tags, request.deadline, request.due) == (("paid",), 0.5, 1.5)


def test_columns_of_tags_and_deadlines_are_cut_merged_and_checked():
    load = Workload([0.0, 1.0], [3, 3], [1, 1], tags=[["a"], {}], deadline=[0.5, math.nan])
    assert load.head(1).tags == (("a",),) and load.head(1).deadline.tolist() == [0.5]
    both = load.concat(Workload([0.5], [9], [1]))
    assert both.tags == (("a",), (), {}) and np.isnan(both.deadline).tolist() == [False, True, True]
    assert both == load.concat(Workload([0.5], [9], [1])) != load.concat(Workload([0.5], [8], [1]))
    for bad, sentence in (
        ({"tags": ["ab", "c"]}, "tags of request 0 must be a mapping, such as"),
        ({"tags": [()]}, "tags has 1"),
        ({"tags": "ab"}, "tags must be a sequence of mappings or of tuples"),
        ({"deadline": [0.5, -1.0]}, "deadline of request 1 must be from 0"),
        ({"deadline": ["soon", 1]}, "deadline of request 0 must be a number"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Workload([0.0, 1.0], [3, 3], [1, 1], **bad)


@pytest.mark.parametrize("serve", BOTH)
def test_a_newcomer_joins_beside_those_who_stood_still(serve):
    """Three decode under a budget of 2 from 1 s on. At 2 s it is 4: all three go on, and the newcomer joins them."""
    load = Workload([0.0, 0.0, 0.0, 1.5], [1, 1, 1, 1], [3, 3, 3, 1])
    run = serve(load, Budgets(4, [4, 2, 4]), SECOND)
    assert [run.token_times(row).tolist() for row in range(4)] == [[1, 2, 3], [1, 2, 3], [1, 3, 4], [3]]


def test_the_watermark_is_beside_all_of_a_prompt_where_all_of_it_must_fit():
    """Ten blocks of four, one kept free. Two are held until 3 s; of the other eight the second prompt needs all, and
    then runs in four steps of 8 tokens. Where its first chunk alone must fit, it begins at once, with 3, 7 and 7.
    """
    load = at_once([5, 32], [3, 1])
    for whole, first in ((True, 7.0), (False, 5.0)):
        policy = Continuous(4, 8, scheduler_reserve_full_isl=whole, watermark=0.1, engine_version="0.33")
        assert serve(load, policy, SECOND, KVCache(10, 4)).token_times(1).tolist() == [first]
