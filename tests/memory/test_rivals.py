"""Paging's rivals by hand: pieces that are reserved, their holes and compaction, and blocks on the host."""

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.engine.executor import Executor
from course.engine.serving import Engine, finish
from course.memory.contiguous_pool import Space, piece
from course.memory.swap_pool import copy_seconds
from tests.helpers.asking import BOTH

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


def test_what_is_reserved():
    assert piece("longest", 2_048, 100, 25) == 2_048
    assert piece("power of two", 2_048, 100, 25) == 100 + 32  # the paper's example
    assert piece("power of two", 2_048, 100, 32) == 100 + 32 and piece("power of two", 2_048, 100, 1) == 101
    assert piece("length", 2_048, 100, 24.2) == 125 and piece("length", 120, 100, 25) == 120
    assert piece("length", 2_048, 100, None) == 2_048  # nobody knows its length


def test_best_fit_and_holes_that_become_one():
    space = Space([(0, 3), (10, 5), (20, 3)])
    assert space.take(3) == 0 and space.take(4) == 10 and space.holes == [(14, 1), (20, 3)]
    assert space.take(4) is None and space.largest == 3
    space.give(15, 5)
    assert space.holes == [(14, 9)]


@pytest.mark.parametrize("run", BOTH)
def test_first_fit_spoils_the_hole_that_best_fit_keeps(run):
    """30 tokens: A 0-5, B 6-15, C 16-19, D 20-29. A and C end at 2 s, then E wants 4 and F 6."""
    load = Workload([0.0] * 4 + [0.5] * 2, [2] * 6, [2, 8, 2, 8, 2, 2], guess=[4, 8, 2, 8, 2, 4])
    cache = {"num_blocks": 30, "block_size": 1, "reserve": "length", "max_model_len": 16}
    assert run(load, policies.Continuous(8, 64), SECOND, KVCache(**cache)).response.tolist() == [2, 8, 2, 8, 4, 4]
    first = run(load, policies.Continuous(8, 64), SECOND, KVCache(**cache, fit="first"))
    assert first.response.tolist() == [2, 8, 2, 8, 4, 6]
    space = Space([(0, 5), (10, 3)], "first")
    assert space.take(3) == 0 and space.holes == [(3, 2), (10, 3)]


@pytest.mark.parametrize("run", BOTH)
def test_reserved_pieces_decide_how_many_run(run):
    """40 tokens hold two pieces of 16; the third waits, though the two need 6 tokens each."""
    load, policy = Workload([0.0] * 3, [4] * 3, [3] * 3), policies.Continuous(8, 64)
    reserved = run(load, policy, SECOND, KVCache(40, 1, reserve="longest", max_model_len=16))
    assert reserved.response.tolist() == [3, 3, 6] and reserved.steps.blocks.tolist() == [32] * 3 + [16] * 3
    assert run(load, policy, SECOND, KVCache(40, 1)).response.tolist() == [3, 3, 3]


HOLES = Workload([0.0, 0.0, 0.0, 0.5], [2, 2, 2, 4], [2, 6, 2, 2], guess=[2, 6, 2, 4])
"""12 + 2 tokens: A 0-3, B 4-11, C 12-15. A and C end at 2 s; D wants 8, and the holes have 4 and 6."""


@pytest.mark.parametrize("run", BOTH)
def test_external_fragmentation_and_compaction(run):
    cache = {"num_blocks": 18, "block_size": 1, "reserve": "length", "max_model_len": 18}
    waits = run(HOLES, policies.Continuous(8, 64), SECOND, KVCache(**cache))
    assert waits.response.tolist() == [2, 6, 2, 8]  # 10 are free from 2 s on, and no hole of 8
    assert waits.steps.free.tolist() == [2, 2, 10, 10, 10, 10, 10, 10]
    assert waits.steps.compaction_debt.tolist() == [0, 0, 4, 4, 4, 4, 0, 0]  # of 10 all but the hole of 6
    # B's 8 blocks move in the step from 2 s to 3 s, which takes 8 x 0.25 s longer.
    moves = run(HOLES, policies.Continuous(8, 64), SECOND, KVCache(**cache, compaction=0.25))
    assert moves.response.tolist() == [2, 8, 2, 6] and not moves.steps.compaction_debt.any()


TWO = Workload([0.0, 0.0], [4, 4], [4, 4])
"""3 blocks of 4: both hold 1, take a second at 1 s, and only one can. B, admitted last, gives way with 4 tokens."""


@pytest.mark.parametrize("run", BOTH)
def test_a_victim_comes_back_from_the_host(run):
    policy, cache = policies.Continuous(8, 64), {"num_blocks": 3, "block_size": 4}
    again = run(TWO, policy, SECOND, KVCache(**cache))
    assert again.response.tolist() == [4, 7] and again.steps.dropped.sum() == 4
    kept = run(TWO, policy, SECOND, KVCache(**cache, host_blocks=9, host_seconds=0.25))
    # One block out before the step at 1 s, and back before the one that begins when A is gone.
    assert kept.response.tolist() == [4.25, 7.5] and kept.steps.dropped.sum() == 0
    assert kept.steps.prefill_tokens.sum() == 8 and again.steps.prefill_tokens.sum() == 8 + 5
    full = run(TWO, policy, SECOND, KVCache(3, 4, host_blocks=1, host_seconds=0.25))
    assert full.response.tolist() == kept.response.tolist()  # one block is room enough


@pytest.mark.parametrize("run", BOTH)
def test_who_finds_the_host_full_is_computed_again(run):
    load = Workload([0.0] * 3, [8] * 3, [5] * 3)  # 2 blocks each, 3 at the end
    served = run(load, policies.Continuous(8, 64), SECOND, KVCache(6, 4, host_blocks=1, host_seconds=0.25))
    assert served.steps.dropped.sum() == 8 * served.preempted.sum() > 0


def test_two_blocks_take_twice_as_long_and_leave_the_host_empty():
    engine = Engine(policies.Continuous(8, 64), SECOND, KVCache(5, 4, host_blocks=9, host_seconds=0.25))
    engine.follow(Workload([0.0, 0.0], [8, 8], [5, 5]))
    run = finish(engine)
    assert run.preempted.tolist() == [0, 1] and engine.pool.host_free == 9
    assert run.steps.seconds.max() == 1.5  # two blocks of the victim, one way


def test_the_fast_loop_takes_whatever_is_copied_into_one_step():
    """A long stretch follows the preemption: its first step alone is longer."""
    load = Workload([0.0, 0.0], [4, 4], [60, 60])
    kept = serve(load, policies.Continuous(8, 64), SECOND, KVCache(18, 4, host_blocks=40, host_seconds=0.5))
    longer = np.flatnonzero(kept.steps.seconds > 1)
    assert len(longer) == 2 and kept.preempted.tolist() == [0, 1]


def test_seconds_of_a_copy():
    assert copy_seconds(2_097_152, 16e9) == 2_097_152 / 16e9
    with pytest.raises(ValueError, match="a copy at 0 bytes/s never ends"):
        copy_seconds(2_097_152, 0)


class Live(Executor):
    pass


REFUSED = {
    "the cache cannot hold it": lambda: KVCache(4, 16, reserve="longest", max_model_len=100),
    "block_size must be a whole number from 1 to": lambda: KVCache(4, 0),
    "num_blocks must be a whole number": lambda: KVCache(0),
    "reserve must be one of longest, power of two, length": lambda: KVCache(4, reserve="most", max_model_len=4),
    "max_model_len must be": lambda: KVCache(4, reserve="longest"),
    "set reserve as well": lambda: KVCache(4, max_model_len=4),
    "not modelled together": lambda: KVCache(4, host_blocks=4, prefix_caching=True),
    "host_seconds must be": lambda: KVCache(4, host_blocks=4, host_seconds=-1),
    "fit must be one of best, first, not 'worst'": lambda: KVCache(4, reserve="length", max_model_len=4, fit="worst"),
    "compaction and fit belong to pieces": lambda: KVCache(4, fit="first"),
    "compaction must be": lambda: KVCache(4, reserve="length", max_model_len=4, compaction=-1),
    "host_blocks is simulated only": lambda: Engine(policies.Continuous(2, 8), Live(), KVCache(4, host_blocks=4)),
    "Static reserves for whole batches": lambda: Engine(
        policies.Static(2), SECOND, KVCache(4, reserve="longest", max_model_len=4)
    ),
    "request 1 grows to 6 tokens, and 5 are reserved": lambda: serve(
        Workload([0.0, 0.0], [2, 2], [3, 5], guess=[3, 3]), policies.Continuous(2, 8), SECOND,
        KVCache(40, 1, reserve="length", max_model_len=20),
    ),
    "request 0 needs 50 tokens of KV cache, 13 blocks": lambda: serve(
        Workload([0.0], [40], [11]), policies.Continuous(2, 8), SECOND, KVCache(12, 4)
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_refusals_are_sentences(words):
    with pytest.raises(ValueError, match=words):
        REFUSED[words]()
