"""Shortest remaining first: by hand, against all other orders, and in both loops."""

from itertools import permutations

import pytest
from hypothesis import given

from course import Workload, serve, steptime
from course.policies import ByKey, Continuous, ShortestRemaining
from tests.helpers.asking import BOTH
from tests.helpers.in_both_loops import cases, same_in_both
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


@pytest.mark.parametrize("serving", BOTH)
def test_a_short_answer_takes_the_slot_of_a_long_one(serving):
    """The one of 2 comes at 2.5 s, when the other has 7 of 10 left, and is served from 3 to 5 s."""
    load = Workload([0.0, 2.5], [5, 5], [10, 2], guess=[10, 2])
    run = serving(load, ShortestRemaining(1, 64), SECOND)
    assert run.token_times(1).tolist() == [4, 5] and run.preempted.tolist() == [1, 0]
    assert run.token_times(0).tolist() == [1, 2, 3, *range(6, 13)]  # its prompt and what it had said in one step


@pytest.mark.parametrize("serving", BOTH)
def test_who_has_less_left_is_not_disturbed(serving):
    """At 8 s the long one has 2 left, as many as the other needs."""
    run = serving(Workload([0.0, 7.5], [5, 5], [10, 2], guess=[10, 2]), ShortestRemaining(1, 64), SECOND)
    assert run.preempted.tolist() == [0, 0] and run.e2e.tolist() == [10, 4.5]
    run = serving(Workload([0.0, 6.5], [5, 5], [10, 2], guess=[10, 2]), ShortestRemaining(1, 64), SECOND)
    assert run.preempted.tolist() == [1, 0]


def test_of_those_that_are_there_it_is_the_best_order_and_without_guesses_the_last_one():
    lengths = (5, 2, 9, 4)
    load = Workload([0.0] * 4, [3] * 4, lengths, guess=lengths)
    best = serve(load, ShortestRemaining(1, 64), SECOND).e2e.mean()
    orders = (dict(zip(range(4), order, strict=True)) for order in permutations(range(4)))
    others = [serve(load, ByKey(1, 64, key=lambda r, o=o: o[r.index]), SECOND).e2e.mean() for o in orders]
    assert best == min(others)
    mixed = Workload([0.0] * 3, [3] * 3, [4, 4, 4], guess=[float("nan"), 6, 5])
    assert serve(mixed, ShortestRemaining(1, 64), SECOND).e2e.tolist() == [12, 8, 4]


def test_what_does_not_fit_the_budget_or_the_blocks_is_not_exchanged():
    """Two slots, a budget of 4: one that waits for a slot gets what the two decodes leave when one of them goes."""
    load = Workload([0.0, 0.0, 4.5], [2, 2, 9], [20, 20, 1], guess=[20, 20, 1])
    run = serve(load, ShortestRemaining(2, 4), SECOND)
    assert run.preempted.tolist() == [0, 1, 0]
    assert run.steps.prefill_tokens.tolist()[5:8] == [3, 3, 3]


def test_equal_to_the_plain_loop_and_asked_before_every_step():
    @given(cases(lambda draw, slots, budget: ShortestRemaining(slots, budget)))
    @examples(150, 20)
    def equal(case):
        same_in_both(case)

    equal()


def test_without_guesses_it_is_continuous():
    load = Workload.poisson(2, 60, 20, 12, seed=3)
    same, run = (serve(load, kind(8, 32), SECOND) for kind in (Continuous, ShortestRemaining))
    assert (same.e2e == run.e2e).all() and not run.preempted.any()
