"""Lab 09, deeper: pieces and holes, crossovers, sessions that pause, and classes that share a pool."""

import numpy as np
import pytest

from course.lessons.lab09 import copies, pieces, pool, sessions
from course.lessons.lab09.pieces import PAGED, TRUE
from course.memory.swap_pool import copy_seconds


def test_what_is_empty_free_and_held_is_the_whole_pool():
    for how, also in pieces.WAYS:
        one = pieces.handed_out(how, also)
        inside = one.mean(one.taken - one.held) / pool.TOKENS
        assert inside + pieces.holes(one) + one.used == pytest.approx(1)
        assert (one.mean(one.taken) <= pool.TOKENS) and one.mean(one.held) <= one.mean(one.taken)


def test_what_is_watched_is_that_of_the_step():
    one = pieces.handed_out(PAGED)
    used, free, lost = pieces.watched(one, 10.0)
    steps = one.run.steps
    k = next(k for k in range(len(steps.end)) if steps.end[k] >= 10.0)
    assert used == steps.blocks[k] * 16 * 2 * 32 * 8 * 128 * 2 and free == 40_000 - 16 * steps.blocks[k]
    assert lost == sum(n for n, end in zip(steps.preemptions, steps.end, strict=True) if 5 < end <= 10) / 5
    # 131,072 bytes read and written, by the card's measured bandwidth.
    assert 2 * 131_072 / 6e12 < pieces.move_seconds() < 2 * 131_072 / 3e12
    assert 0 < pieces.compaction_seconds(TRUE) < 2


@pytest.mark.parametrize("name", copies.KINDS)
def test_at_the_crossover_both_take_as_long(name):
    each = copy_seconds(pool.BLOCK * pool.SPEC.kv_bytes_per_token, copies.crossover(name))
    again = copies.served(name, None).makespan
    # A straight line over the seconds of a copy; the clock adds some ten thousand steps.
    assert copies.served(name, each).makespan == pytest.approx(again, rel=1e-9)
    assert copies.served(name, 2 * each).makespan > again > copies.served(name, each / 2).makespan
    load, kind = copies.asked(name), copies.KINDS[name]
    assert len(load) == kind.many and not load.arrival.any()
    assert not kind.prompt or set(load.prompt_tokens) == {kind.prompt}


def test_the_best_watermark_is_read_off_the_table():
    assert copies.best_mark(0) == 0.05
    speeds = [pool.out_of_blocks(watermark=share).tokens_per_second for share in copies.MARKS]
    assert max(speeds) == pool.out_of_blocks(watermark=0.05).tokens_per_second


def test_sessions_that_pause_find_what_was_said_before():
    """Where nothing is evicted a turn finds the full blocks of all before it."""
    run = sessions.paused(sessions.POOLS[-1])
    turn, history = np.arange(len(run)) % 4, (150 + 300) * (np.arange(len(run)) % 4)
    later = turn > 0
    full = (history[later] - 1) // 16 * 16  # the last token of an answer is not computed
    assert sessions.found(run) == pytest.approx(full.sum() / run.workload.prompt_tokens[later].sum(), abs=0.01)
    assert sessions.found(sessions.paused(pool.TOKENS, False)) == 0
    small = sessions.paused(pool.TOKENS)
    assert sessions.found(small, 0, 20) > 0.5 > 0.1 > sessions.found(small, 60)
    # 1 a second, 60 s, and 450, 900, 1,350 tokens behind the first three turns.
    assert sessions.idle_tokens() == 60 * (450 + 900 + 1_350)


def test_what_a_class_holds_is_what_its_requests_have_computed():
    run, held = sessions.one_pool(), sessions.held_by_class()
    moments = np.linspace(0, float(run.arrival.max()), sessions.PARTS + 1)[1:]
    together = sum(held.values())
    for k in range(0, sessions.PARTS, 7):
        step = min(int(np.searchsorted(run.steps.end, moments[k])), len(run.steps.end) - 1)
        # Half a block of each that runs, and prompts of which a part is computed: below 1% here.
        assert together[k] == pytest.approx(run.steps.blocks[step] * 16 / pool.TOKENS, abs=0.01)
    assert set(held) == {"question", "document"}
