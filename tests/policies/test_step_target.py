"""StepTarget: what prompts get against trying every size, the same run however it is asked, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import Workload, serve, steptime
from course.policies import Continuous, StepTarget
from course.policies.step_target import GRAIN
from tests.engine.test_plain import differences, plainly
from tests.helpers import strategies
from tests.helpers.asking import BOTH, serve_asking
from tests.helpers.strategies import examples, fresh

# A second, 0.01 for each prompt token, and some for pairs and context.
GROWING = steptime.PowerLaw(t0=1, c=0.001, alpha=1, prefill=0.01, pairs=1e-5, context=1e-5)


@pytest.mark.parametrize("serving", BOTH)
def test_prompts_get_what_keeps_the_target_beside_decodes_and_everything_alone(serving):
    """1 s + 0.01 s a token, target 3 s: 128 tokens take 2.3 s and 192 take 2.9 s, 256 would take 3.6 s."""
    step = steptime.PowerLaw(t0=1, c=0, alpha=1, prefill=0.01)
    load = Workload([0.0, 0.5], [300, 500], [9, 1])
    run = serving(load, StepTarget(4, 1_024, step_time=step, target=3), step)
    assert run.steps.prefill_tokens.tolist()[:4] == [300, 192, 192, 116]
    late = serving(load, StepTarget(4, 1_024, step_time=step, target=0.5), step)  # decodes alone miss it
    assert late.steps.prefill_tokens.tolist()[1:8] == [GRAIN] * 7 and late.steps.prefill_tokens[8] == 500 - 7 * GRAIN


def test_no_larger_multiple_would_have_kept_the_target():
    """Every step of a run, against all sizes there are; the chunk in the step is the one that was asked about."""
    load = Workload.poisson(0.4, 80, 400, 30, seed=5)
    step, budget, seen = steptime.PowerLaw(t0=1, c=0, alpha=1, prefill=0.01, pairs=1e-5, context=4e-4), 1_024, []

    class Watching(StepTarget):
        def room(self, state):
            room = super().room(state)
            if state.decodes:
                cached = state.prefilling[0].computed if state.prefilling else 0
                seen.append(
                    (room, state.decodes, sum(r.known for r in state.running if r not in state.prefilling), cached)
                )
            return room

    serve(load, Watching(64, budget, step_time=step, target=6.0), step)
    assert len(seen) > 50 and len({room for room, *_ in seen}) > 4
    for room, decodes, context, cached in seen:
        kept = [
            size
            for size in range(GRAIN, budget - decodes + 1, GRAIN)
            if step.seconds(decodes, context, size, size * cached + size * (size + 1) // 2, size + cached) <= 6.0
        ]
        assert room == max(kept, default=GRAIN)


@st.composite
def targets(draw):
    """Cases of Continuous with few slots and few blocks, and a target."""
    case = draw(st.one_of(strategies.continuous(), strategies.storms(), strategies.many_in_chunks()))
    limits, target = case.policy, draw(st.sampled_from([0.001, 1.5, 2.0, 4.0, 1e6]))
    budget = max(limits.max_num_seqs, draw(st.sampled_from([64, 200, 400])))
    policy = StepTarget(
        limits.max_num_seqs, budget, step_time=GROWING, target=target, engine_version=limits.engine_version
    )
    return strategies.replace(case, policy=policy)


def test_equal_to_the_plain_loop_and_asked_before_every_step():
    @given(targets())
    @examples(100, 20)
    def equal(case):
        fast = serve(case.load, fresh(case.policy), case.step_time, case.cache)
        assert not (found := differences(fast, plainly(case))), f"{found}: {case}"
        asked = serve_asking(case.load, fresh(case.policy), case.step_time, case.cache)
        assert not (found := differences(fast, asked)), f"{found}: {case}"

    equal()


def test_a_target_that_never_binds_is_continuous():
    load = Workload.poisson(0.5, 60, 300, 12, seed=3)
    never, plain = (
        serve(load, policy, GROWING)
        for policy in (StepTarget(8, 512 + 8, step_time=GROWING, target=1e6), Continuous(8, 512 + 8))
    )
    # A multiple of 64 is no more than 7 decodes and 63 tokens below the budget: the same but for such remainders.
    assert np.allclose(never.e2e, plain.e2e, rtol=0.1)


def test_settings_that_cannot_be():
    for target in (0, -1, "soon"):
        with pytest.raises(ValueError, match="target must be a"):
            StepTarget(4, 64, step_time=GROWING, target=target)
    with pytest.raises(ValueError, match="step_time must be a step-time model"):
        StepTarget(4, 64, step_time=lambda step: 1.0, target=1)
    with pytest.raises(ValueError, match="scheduler_reserve_full_isl=True"):
        StepTarget(4, 64, step_time=GROWING, target=1, scheduler_reserve_full_isl=False)
    policy = StepTarget(4, 64, step_time=GROWING, target=0.02)
    assert repr(policy) == "StepTarget(max_num_seqs=4, max_num_batched_tokens=64, target=0.02)"
    assert policy.fresh().step_time is GROWING and policy.step_time is GROWING
