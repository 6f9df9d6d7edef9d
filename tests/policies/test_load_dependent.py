"""LoadDependent: the note's three budgets by the share of slots that are taken."""

import numpy as np
import pytest

from course import Workload, serve, steptime
from course.policies import Continuous, LoadDependent
from tests.helpers.asking import BOTH

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


@pytest.mark.parametrize("serving", BOTH)
def test_the_budget_follows_the_slots_that_are_taken(serving):
    """Ten slots. One request a second, each with 5,000 prompt tokens, and more and more that only decode."""
    load = Workload([0.0, 0.0, 0.0, 0.5, 2.5, 2.6, 2.7, 3.5, 3.6], [1, 1, 1, 1_100, 1, 1, 1, 9_000, 1], [99] * 9)
    run = serving(load, LoadDependent(10), SECOND)
    # 0 taken: 512, of which 3 are used; 3 of 10 taken: 2,048, for the 1,100; then three of one; 7 taken: 4,096.
    assert run.steps.prefill_tokens.tolist()[:6] == [3, 1_100, 0, 3, 4_096 - 7, 4_096 - 7]
    few = serving(Workload([0.0, 0.5], [1, 1_100], [9, 1]), LoadDependent(10), SECOND)
    assert few.steps.prefill_tokens.tolist()[:4] == [1, 511, 511, 78]
    # A prompt under way takes a slot too: with the third of ten the budget is 2,048.
    one = serving(Workload([0.0, 0.0, 0.5], [1, 1, 5_000], [9, 9, 1]), LoadDependent(10), SECOND)
    assert one.steps.prefill_tokens.tolist()[:5] == [2, 510, 2_046, 2_046, 398]


def test_where_few_slots_are_taken_it_is_a_budget_of_512():
    load = Workload.poisson(5, 200, 900, 40, seed=1)
    step = steptime.PowerLaw(t0=0.01, c=0, alpha=1)
    same, fixed = (serve(load, policy, step) for policy in (LoadDependent(1_024), Continuous(512, 512)))
    assert fixed.steps.running.max() < 0.3 * 1_024 and np.array_equal(same.e2e, fixed.e2e)


def test_slots_that_cannot_be():
    with pytest.raises(ValueError, match="max_num_seqs"):
        LoadDependent(1_707)
    assert repr(LoadDependent(8)) == "LoadDependent(max_num_seqs=8, max_num_batched_tokens=4096)"
