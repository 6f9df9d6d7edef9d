"""FewestComputed: whom it sends away, by hand. tests/engine/test_oracle.py compares it with an obvious loop."""

import pytest

from course import KVCache, Workload, policies, steptime
from tests.helpers.asking import BOTH

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
SHORT_FIRST = Workload([0.0, 0.0, 0.0], [4, 8, 8], [4, 4, 4])
"""5 blocks of 4 tokens are full after the prompts: each needs one more."""


@pytest.mark.parametrize("run", BOTH)
def test_the_shortest_gives_way_and_not_the_last(run):
    last = run(SHORT_FIRST, policies.Continuous(8, 64), SECOND, KVCache(5, 4))
    fewest = run(SHORT_FIRST, policies.FewestComputed(8, 64), SECOND, KVCache(5, 4))
    assert last.preempted.tolist() == [0, 0, 1] and last.steps.dropped.tolist()[1] == 8
    # Request 0 frees one block, of two that the others need: the last of the two goes as well.
    assert fewest.preempted.tolist() == [1, 0, 1] and fewest.steps.dropped.tolist()[1] == 12


@pytest.mark.parametrize("run", BOTH)
def test_of_equal_ones_the_last_gives_way(run):
    load = Workload([0.0, 0.0, 0.0], [4, 4, 4], [4, 4, 4])
    runs = [
        run(load, policy(8, 64), SECOND, KVCache(5, 4)) for policy in (policies.FewestComputed, policies.Continuous)
    ]
    assert runs[0].preempted.tolist() == runs[1].preempted.tolist() == [0, 0, 1]
