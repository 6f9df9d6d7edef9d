"""Long prompts yield to a deep queue: by hand, both loops, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import Workload, serve, steptime
from course.policies import Continuous, LongPromptsYield
from tests.helpers.asking import BOTH
from tests.helpers.in_both_loops import cases, same_in_both
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def arriving(short):
    """A prompt of 40 in chunks of 8; at 1.5 s so many of 4 come."""
    return Workload([0.0] + [1.5] * short, [40] + [4] * short, [2] + [1] * short)


@pytest.mark.parametrize("serving", BOTH)
def test_more_short_ones_than_the_depth_push_a_long_prompt_back(serving):
    """At 2 s the long one has 16 of 40; three short ones wait, two fit a step, and then it begins anew."""
    run = serving(arriving(3), LongPromptsYield(4, 8, depth=2, long_prompt=20), SECOND)
    assert run.preempted.tolist() == [1, 0, 0, 0] and run.steps.dropped.sum() == 16
    assert run.ttft.tolist() == [9, 1.5, 1.5, 2.5]
    assert run.steps.prefill_tokens.tolist()[:5] == [8, 8, 8, 8, 8]


@pytest.mark.parametrize("serving", BOTH)
def test_a_queue_that_is_not_deep_changes_nothing(serving):
    for depth, short in ((3, 3), (2, 2)):
        load = arriving(short)
        run = serving(load, LongPromptsYield(4, 8, depth=depth, long_prompt=20), SECOND)
        assert (run.e2e == serving(load, Continuous(4, 8), SECOND).e2e).all()


@pytest.mark.parametrize("serving", BOTH)
def test_one_slot_goes_to_a_short_one_in_the_same_step_and_long_ones_do_not_yield_to_each_other(serving):
    run = serving(arriving(2), LongPromptsYield(1, 8, depth=1, long_prompt=20), SECOND)
    assert run.ttft.tolist() == [9, 1.5, 2.5] and run.preempted.tolist() == [1, 0, 0]
    load = Workload([0.0, 1.5, 1.5], [40, 40, 40], [1, 1, 1])
    assert not serving(load, LongPromptsYield(1, 8, depth=0, long_prompt=20), SECOND).preempted.any()


def test_an_answer_that_has_begun_goes_on():
    load = Workload([0.0] + [1.5] * 3, [40] + [4] * 3, [30] + [1] * 3)
    run = serve(load, LongPromptsYield(1, 64, depth=0, long_prompt=20), SECOND)
    assert not run.preempted.any()


def test_equal_to_the_plain_loop_and_asked_before_every_step():
    depths, sizes = st.sampled_from([0, 1, 4]), st.sampled_from([2, 20, 200])

    @given(cases(lambda draw, *limits: LongPromptsYield(*limits, draw(depths), draw(sizes))))
    @examples(150, 20)
    def equal(case):
        same_in_both(case)

    equal()


def test_settings_that_cannot_be_and_what_it_says_it_is():
    with pytest.raises(ValueError, match="depth must be a whole number"):
        LongPromptsYield(4, 64, depth=-1)
    with pytest.raises(ValueError, match="long_prompt must be a whole number"):
        LongPromptsYield(4, 64, long_prompt=0)
    said = "LongPromptsYield(max_num_seqs=4, max_num_batched_tokens=64, depth=8, long_prompt=4096)"
    assert repr(LongPromptsYield(4, 64)) == said
