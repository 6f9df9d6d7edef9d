"""Multi-level feedback: levels and exchanges by hand, both loops, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import Workload, serve, steptime
from course.policies import Continuous, MultiLevelFeedback
from tests.helpers.asking import BOTH
from tests.helpers.in_both_loops import cases, same_in_both
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


class Emitted:
    def __init__(self, emitted):
        self.emitted = emitted


def test_levels_begin_after_1_3_and_7_quanta():
    policy = MultiLevelFeedback(1, 64, quantum=10, levels=4)
    levels = {tokens: policy.level(Emitted(tokens)) for tokens in (0, 9, 10, 29, 30, 69, 70, 149, 150, 10_000)}
    assert list(levels.values()) == [0, 0, 1, 1, 2, 2, 3, 3, 3, 3]


@pytest.mark.parametrize("serving", BOTH)
def test_who_has_had_its_quantum_gives_way(serving):
    """A quantum of 2: the long one goes down at 2 s, and from 4 s on the new one has the slot for its quantum of 2.

    Then both are at level 1, and the one that was sent away stands first in the queue, but nobody is exchanged.
    """
    load = Workload([0.0, 3.5], [5, 5], [10, 3])
    run = serving(load, MultiLevelFeedback(1, 64, quantum=2), SECOND)
    assert run.token_times(1).tolist() == [5, 6, 7] and run.preempted.tolist() == [1, 0]
    assert run.token_times(0).tolist() == [1, 2, 3, 4, *range(8, 14)]


@pytest.mark.parametrize("serving", BOTH)
def test_of_one_level_nobody_gives_way(serving):
    run = serving(Workload([0.0, 3.5], [5, 5], [10, 3]), MultiLevelFeedback(1, 64, quantum=5), SECOND)
    assert run.token_times(1).tolist() == [6, 7, 8] and run.preempted.tolist() == [1, 0]  # at 5 s it is at level 1
    run = serving(Workload([0.0, 3.5], [5, 5], [10, 3]), MultiLevelFeedback(1, 64, quantum=10), SECOND)
    assert run.preempted.tolist() == [0, 0] and run.e2e.tolist() == [10, 9.5]


def test_one_level_is_continuous():
    load = Workload.poisson(2, 60, 20, 12, seed=3)
    same, run = (serve(load, p, SECOND) for p in (Continuous(8, 32), MultiLevelFeedback(8, 32, levels=1)))
    assert (same.e2e == run.e2e).all() and not run.preempted.any()


def test_equal_to_the_plain_loop_and_asked_before_every_step():
    quanta, levels = st.sampled_from([1, 3, 12]), st.sampled_from([1, 2, 6])

    @given(cases(lambda draw, *limits: MultiLevelFeedback(*limits, draw(quanta), draw(levels))))
    @examples(150, 20)
    def equal(case):
        same_in_both(case)

    equal()


def test_settings_that_cannot_be_and_what_it_says_it_is():
    with pytest.raises(ValueError, match="quantum must be a whole number"):
        MultiLevelFeedback(4, 64, quantum=0)
    with pytest.raises(ValueError, match="levels must be a whole number"):
        MultiLevelFeedback(4, 64, levels=0)
    said = "MultiLevelFeedback(max_num_seqs=4, max_num_batched_tokens=64, quantum=64, levels=6)"
    assert repr(MultiLevelFeedback(4, 64)) == said
