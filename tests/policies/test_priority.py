"""Priority: levels, ageing as a head start, and who waits for ever."""

import math

import numpy as np
import pytest

from course import Workload, policies, steptime
from course.policies import Priority
from tests.helpers.asking import BOTH

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


def leveled(arrival, levels, output=2):
    tags = [{"name": "other"} if level is None else {"priority": level} for level in levels]
    return Workload(arrival, [5] * len(arrival), [output] * len(arrival), tags=tags)


@pytest.mark.parametrize("serve", BOTH)
def test_the_lowest_level_is_first_and_none_is_level_0(serve):
    run = serve(leveled([0, 0, 0, 0], [2, 1, None, 1]), Priority(1, 64), SECOND)
    assert run.response.tolist() == [8, 4, 2, 6]


@pytest.mark.parametrize("serve", BOTH)
def test_ageing_is_a_head_start_of_so_many_seconds_a_level(serve):
    """0 runs until 4 s. 1 has level 1 and came at 0 s; 2 and 3 have level 0 and came at 1 and at 3 s."""
    load = leveled([0, 0, 1, 3], [0, 1, 0, 0], output=4)
    orders = {math.inf: [1, 2, 0], 5: [1, 2, 0], 2: [1, 0, 2], 0.5: [0, 1, 2], 0: [0, 1, 2]}
    for ageing, order in orders.items():
        run = serve(load, Priority(1, 64, ageing=ageing), SECOND)
        assert np.argsort(run.response[1:]).tolist() == order, ageing


@pytest.mark.parametrize("serve", BOTH)
def test_without_ageing_a_level_may_wait_for_all_others_and_with_it_none_waits_for_those_that_come_later(serve):
    """A request of level 0 every 2 s keeps the only slot; one of level 1 came first."""
    load = leveled([0, *(2.0 * n for n in range(20))], [1] + [0] * 20)
    assert serve(load, Priority(1, 64), SECOND).e2e[0] == 42
    assert serve(load, Priority(1, 64, ageing=5), SECOND).e2e[0] == pytest.approx(5 + 2 + 1)


@pytest.mark.parametrize("serve", BOTH)
def test_without_ageing_between_levels_it_is_first_come_first_served(serve):
    load = Workload.poisson(3.6, 300, 64, 40, seed=2)
    step = steptime.PowerLaw(t0=0.01, c=0, alpha=1)
    runs = [
        serve(load, policy, step) for policy in (policies.Continuous(4, 512), Priority(4, 512), Priority(4, 512, 0))
    ]
    assert all(np.array_equal(run.e2e, runs[0].e2e) for run in runs)


def test_settings_and_levels_that_cannot_be():
    with pytest.raises(ValueError, match="ageing must be a finite number from 0"):
        Priority(4, 64, ageing=-1)
    for level in ("high", True, math.nan, math.inf):
        with pytest.raises(ValueError, match="the priority of request 0 must be a"):
            BOTH[0](leveled([0, 0], [level, 1]), Priority(1, 64), SECOND)
    assert "ageing=5" in repr(Priority(4, 64, 5)) and "ageing=inf" in repr(Priority(4, 64))
    # Labels in place of a mapping say nothing of a level.
    load = Workload([0.0, 0.0], [5, 5], [2, 2], tags=[("chat",), ()])
    assert BOTH[0](load, Priority(1, 64), SECOND).e2e.tolist() == [2, 4]
