"""The pool by hand, and beside a pool that gives out every block of every token one by one."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache
from course.memory.block_pool import BlockPool, Plan, blocks_for
from course.memory.phases import Phases
from tests.helpers.strategies import examples


@dataclass(eq=False)
class Holder:
    """Somebody with so many tokens in the cache, of so many."""

    computed: int = 0
    known: int = 0

    @property
    def remaining(self):
        return self.known - self.computed


def test_blocks_by_hand():
    assert [blocks_for(tokens, 16) for tokens in (0, 1, 16, 17, 32)] == [0, 1, 1, 2, 2]
    pool, one = KVCache(num_blocks=10, block_size=4).open(), Holder()
    assert (pool.free, pool.hit(one), pool.held(one)) == (10, 0, 0)
    pool.take(one, 6)
    one.computed = 6
    assert (pool.free, pool.held(one)) == (8, 2)
    phases = Phases(4)
    phases.decode(one.computed)  # tokens 7 and 8 have a place, the ninth has none
    assert [phases.due, phases.steps_left(pool.free, 100)] == [0, 34]
    pool.spend(phases.advance(3))
    one.computed = 9
    assert (pool.free, pool.held(one)) == (7, 3)
    phases.pause(one.computed)
    pool.release(one)
    assert pool.free == 10 and phases.steps_left(pool.free, 100) == 100


def test_without_a_limit_nothing_runs_short():
    pool = BlockPool()
    pool.take(Holder(), 10**9)
    phases = Phases(1)
    phases.decode(10**9)
    assert pool.free == math.inf and phases.steps_left(pool.free, 10**6) == 10**6


def test_block_numbers_come_back_and_nobody_shares_one():
    pool, first, second, third = KVCache(4, 2).open(), Holder(3), Holder(2), Holder(5)
    assert pool.table(first) == [0, 1] and pool.table(second, tokens=1) == [2, 3]
    assert pool.table(first, tokens=1) == [0, 1]  # its last block has room
    pool.release(first)
    assert sorted(pool.table(third)[:2]) == [0, 1]
    assert not set(pool.table(third)) & set(pool.table(second))


def test_a_reserved_life():
    pool, one = KVCache(10, 4).open(), Holder()
    pool.reserve(one, 9)
    one.computed = 1
    assert (pool.free, pool.held(one)) == (7, 3)
    pool.release(one)
    assert pool.free == 10


def test_a_plan_leaves_the_pool_alone():
    pool, one, other = KVCache(3, 4).open(), Holder(), Holder()
    plan = Plan(pool)
    assert plan.need(one, 5) == 2 and plan.fits(one, 12) and not plan.fits(one, 13)
    assert plan.take(one, 5, if_fit=12) and plan.free == 1 and plan.need(one, 3) == 0
    assert not plan.take(other, 1, if_fit=5) and plan.free == 1
    with pytest.raises(ValueError, match=r"the plan has 1 free blocks, and 5 tokens of .* take 2: ask `fits` before"):
        plan.take(other, 5)
    assert plan.take(other, 4) and plan.free == 0
    plan.release(one)
    assert plan.free == 2 and plan.need(one, 3) == 1 and pool.free == 3


def test_what_comes_from_elsewhere_is_not_left_to_compute():
    pool, one = KVCache(8, 4).open(), Holder(known=20)
    pool.bring(one, 8)
    plan = Plan(pool)
    assert plan.remaining(one) == 12 and plan.take(one, 5) and plan.remaining(one) == 7


def test_a_plan_counts_what_decodes_are_due():
    pool, phases = KVCache(3, 4).open(), Phases(4)
    pool.take(Holder(4), 4, computed=0)
    phases.decode(4)
    assert (pool.plan(phases.due).free, pool.plan().free) == (1, 2)


@st.composite
def lives(draw):
    """What happens to a pool: (verb, number), the number for whom or how much."""
    verbs = st.sampled_from(["join", "join", "decode", "decode", "advance", "advance", "pause", "leave", "release"])
    return draw(st.integers(1, 5)), draw(st.lists(st.tuples(verbs, st.integers(0, 50)), max_size=40))


@given(lives())
@examples(300)
def test_like_one_block_after_the_other(life):
    size, story = life
    pool, phases, total = BlockPool(10_000, size), Phases(size), 10_000
    waiting, decoding = [], []

    def blocks():
        return sum(sum(place % size == 0 for place in range(one.computed)) for one in (*waiting, *decoding))

    for verb, number in story:
        if verb == "join":
            one = Holder()
            pool.take(one, number + 1)
            one.computed = number + 1
            waiting.append(one)
        elif verb == "decode" and waiting:
            one = waiting.pop(number % len(waiting))
            phases.decode(one.computed)
            decoding.append(one)
        elif verb == "advance":
            due = sum(one.computed % size == 0 for one in decoding)
            assert phases.due == due
            for one in decoding:
                one.computed += number
            pool.spend(phases.advance(number))
        elif verb == "pause" and decoding:
            one = decoding.pop(number % len(decoding))
            phases.pause(one.computed)
            waiting.append(one)
        elif verb == "leave" and decoding:
            one = decoding.pop(number % len(decoding))
            phases.pause(one.computed)
            pool.release(one)
        elif verb == "release" and waiting:
            pool.release(waiting.pop(number % len(waiting)))
        assert pool.free == total - blocks()
        numbers = [block for one in (*waiting, *decoding) for block in pool.table(one)]
        assert len(numbers) == len(set(numbers)) == blocks()


@given(st.integers(1, 5), st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 20))
@examples(200)
def test_how_long_the_free_blocks_last(size, computed, free):
    held = sum(blocks_for(tokens, size) for tokens in computed)
    pool, phases = BlockPool(held + free, size), Phases(size)
    for tokens in computed:
        pool.take(Holder(), tokens)
        phases.decode(tokens)
    steps = 0
    while sum(blocks_for(tokens + steps + 1, size) for tokens in computed) <= held + free and steps < 60:
        steps += 1
    assert phases.steps_left(pool.free, 60) == steps


def test_sizes_that_cannot_be():
    with pytest.raises(ValueError, match="num_blocks must be"):
        KVCache(0)
    with pytest.raises(ValueError, match="block_size must be"):
        KVCache(10, 0)
