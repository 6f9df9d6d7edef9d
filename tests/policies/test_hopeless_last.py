"""HopelessLast: cases by hand, and a policy that sorts everybody anew before every step."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, serve, steptime
from course.policies import Continuous, HopelessLast, StepTarget
from tests.helpers.asking import BOTH
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


@pytest.mark.parametrize("serving", BOTH)
def test_who_can_no_longer_meet_its_deadline_gives_way(serving):
    """One slot, 4 s each. At 4 s request 1 (due at 3) is late; 3 (due at 6) comes before 2 (9.5)."""
    load = Workload([0.0] * 4, [10] * 4, [4] * 4, deadline=[1.5, 3.0, 9.5, 6.0])
    run = serving(load, HopelessLast(1, 64, tokens_per_second=10), SECOND)
    assert run.admitted.tolist() == [0, 12, 8, 4]
    # Whoever has to start now can still make it: 2, due at 5 s with 1 s of prompt.
    load = Workload([0.0] * 3, [10] * 3, [4] * 3, deadline=[1.5, 9.5, 5.0])
    assert serving(load, HopelessLast(1, 64, tokens_per_second=10), SECOND).admitted.tolist() == [0, 8, 4]


@pytest.mark.parametrize("serving", BOTH)
def test_a_long_prompt_has_to_start_earlier(serving):
    """Both are due at 12 s, and 5 tokens are computed in a second: 50 tokens have to start by 2 s, and are late."""
    load = Workload([0.0, 0.0, 0.0], [5, 50, 5], [4, 1, 1], deadline=[99, 12, 12])
    run = serving(load, HopelessLast(1, 64, tokens_per_second=5), SECOND)
    # 1 stands first (start by 2 s), then 2 (by 11 s), then 0 (by 98 s): nobody is late at 0 s.
    assert run.admitted.tolist() == [2, 0, 1]
    load = Workload([0.0, 3.0, 3.0], [5, 50, 5], [4, 1, 1], deadline=[0.5, 9, 9])
    assert serving(load, HopelessLast(1, 64, tokens_per_second=5), SECOND).admitted.tolist() == [0, 5, 4]


class Sorted(Continuous):
    """The same by sorting: late ones last, each group by its latest start."""

    def queue(self, state, waiting):
        def key(request):
            start = request.due - request.prompt_tokens / 7
            return start < state.now, start, request.index

        return sorted(waiting, key=key)


rows = st.lists(
    st.tuples(
        st.floats(0, 20), st.integers(1, 40), st.integers(1, 8), st.sampled_from([0.5, 3.0, 9.0, 30.0, math.nan])
    ),
    min_size=2,
    max_size=40,
)


@examples(80)
@given(rows, st.integers(1, 4), st.sampled_from([None, 30, 60]))
def test_it_is_what_sorting_before_every_step_gives(drawn, slots, blocks):
    drawn = sorted(drawn, key=lambda row: row[0])
    load = Workload(*([row[k] for row in drawn] for k in range(3)), deadline=[row[3] for row in drawn])
    cache = KVCache(blocks, block_size=2) if blocks else None
    want = serve(load, Sorted(slots, 16), SECOND, cache)
    for serving in BOTH:
        run = serving(load, HopelessLast(slots, 16, tokens_per_second=7), SECOND, cache)
        assert np.array_equal(run.e2e, want.e2e) and np.array_equal(run.admitted, want.admitted)


def test_without_deadlines_it_is_first_come_first_served_and_goes_with_a_step_target():
    class Both(HopelessLast, StepTarget):
        """An order and a short step."""

    load = Workload.poisson(2, 60, 20, 12, seed=3)
    plain, last = (serve(load, p, SECOND) for p in (Continuous(4, 64), HopelessLast(4, 64, tokens_per_second=9)))
    assert np.array_equal(plain.e2e, last.e2e)
    step = steptime.PowerLaw(t0=1, c=0, alpha=1, prefill=0.01)
    load = replace(Workload.poisson(0.3, 60, 300, 12, seed=3), deadline=np.full(60, 40.0))
    run = serve(load, Both(8, 512, tokens_per_second=50, step_time=step, target=2.5), step)
    beside = run.steps.decodes > 0
    assert run.steps.seconds[beside].max() <= 2.5 + 1e-9 and run.policy.tokens_per_second == 50


def test_settings_that_cannot_be():
    for rate in (0, -1, "fast"):
        with pytest.raises(ValueError, match="tokens_per_second must be a"):
            HopelessLast(4, 64, tokens_per_second=rate)
    assert repr(HopelessLast(4, 64, tokens_per_second=5)) == (
        "HopelessLast(max_num_seqs=4, max_num_batched_tokens=64, tokens_per_second=5)"
    )
