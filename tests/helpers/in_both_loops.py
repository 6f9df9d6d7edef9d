"""A policy's runs are the same in both loops, and however often it is asked."""

from hypothesis import strategies as st

from course import serve
from tests.engine.test_plain import differences, plainly
from tests.helpers import strategies
from tests.helpers.asking import serve_asking
from tests.helpers.strategies import fresh


@st.composite
def cases(draw, policy):
    """Short of slots, blocks or budget, with guesses, some missing. policy(draw, slots, budget) makes the policy."""
    case = draw(strategies.shortest_first())
    limits = case.policy.max_num_seqs, case.policy.max_num_batched_tokens
    return strategies.replace(case, policy=policy(draw, *limits))


def same_in_both(case):
    """Raises AssertionError where they differ."""
    fast = serve(case.load, fresh(case.policy), case.step_time, case.cache)
    assert not (found := differences(fast, plainly(case))), f"{found}: {case}"
    asked = serve_asking(case.load, fresh(case.policy), case.step_time, case.cache)
    assert not (found := differences(fast, asked)), f"{found}: {case}"
