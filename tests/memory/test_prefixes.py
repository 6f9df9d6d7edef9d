"""Hits of a prefix cache: by hand, and against a slower way of counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import Workload
from course.memory.prefixes import lru_hits


def asked(*prefixes):
    n = len(prefixes)
    return Workload(np.arange(n), np.full(n, 5), np.full(n, 5), prefix=prefixes)


def test_by_hand():
    load = asked((1, 2, 3), (1, 2, 4), (9, 2), (), (1, 2, 3, 5))
    found = lru_hits(load)
    # (9, 2): 2 is cached but 9 before it is not, so nothing of the prefix can be used.
    assert found.hit_blocks.tolist() == [0, 2, 0, 0, 3]
    assert found.blocks.tolist() == [3, 3, 2, 0, 4] and found.rate == 5 / 12
    # Room for three: after the second request 1, 2, 4 are left, after the third 4, 9, 2.
    assert lru_hits(load, 3).hit_blocks.tolist() == [0, 2, 0, 0, 0]


def test_ids_that_differ_only_above_bit_31_or_53_are_different():
    assert lru_hits(asked((5,), (5 + 2**32,), (2**63 + 1,), (2**63 + 2,))).hit_blocks.sum() == 0


def test_refusals():
    with pytest.raises(ValueError, match="have no prefix ids"):
        lru_hits(Workload([0], [1], [1]))
    with pytest.raises(ValueError, match="capacity must be a whole number"):
        lru_hits(asked((1,)), 0)
    assert np.isnan(lru_hits(asked((), ())).rate)


@given(
    prefixes=st.lists(st.lists(st.integers(0, 6), max_size=5, unique=True), min_size=1, max_size=30),
    capacity=st.integers(1, 8) | st.none(),
)
def test_against_last_use_times(prefixes, capacity):
    """Another way: keep when each block was last used, and after each request drop the oldest ones."""
    used, expected, clock = {}, [], 0
    for ids in prefixes:
        hit = 0
        while hit < len(ids) and ids[hit] in used:
            hit += 1
        expected.append(hit)
        for block in ids:
            used[block] = clock = clock + 1
        if capacity is not None:
            for block in sorted(used, key=used.get)[: max(0, len(used) - capacity)]:
                del used[block]
    assert lru_hits(asked(*map(tuple, prefixes)), capacity).hit_blocks.tolist() == expected


@given(prefixes=st.lists(st.lists(st.integers(0, 6), max_size=5, unique=True), min_size=1, max_size=30))
def test_more_room_never_finds_less(prefixes):
    load = asked(*map(tuple, prefixes))
    found = [int(lru_hits(load, capacity).hit_blocks.sum()) for capacity in (1, 2, 4, 8)]
    assert found == sorted(found) and found[-1] == lru_hits(load).hit_blocks.sum()
