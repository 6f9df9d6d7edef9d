"""Each step planned before the tokens of the one before are back: what a complete answer holds a step longer."""

import json
from pathlib import Path

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve
from course.engine.plain import PlainEngine
from course.engine.serving import finish
from tests.helpers import vllm_runs
from tests.helpers.places import SHARED

SHARED_SET = SHARED / "accept" / "vllm_oracle" / "async-0.33.0.json"


def second(step):
    return 1.0


def one_by_one(async_scheduling):
    """Three requests of two tokens, one slot."""
    load = Workload(np.zeros(3), np.full(3, 4), np.full(3, 2))
    return serve(load, policies.Continuous(1, 64), second, KVCache(8), async_scheduling=async_scheduling)


def test_if_all_wait_for_a_slot_no_time_passes():
    """Nothing can be planned, so the engine waits for the tokens, learns of the free slot and goes on at once."""
    assert one_by_one(True).response.tolist() == one_by_one(False).response.tolist() == [2, 4, 6]


def test_a_complete_answer_holds_slot_and_blocks_for_one_step_more():
    """Of two slots one is free at 1 s, and the other request runs on: the third joins at 2 s instead of 1 s."""
    load = Workload(np.zeros(3), np.full(3, 4), np.array([1, 9, 2]))
    now, later = (
        serve(load, policies.Continuous(2, 64), second, KVCache(8), async_scheduling=a) for a in (False, True)
    )
    assert now.admitted.tolist() == [0, 0, 1] and later.admitted.tolist() == [0, 0, 2]
    assert now.response.tolist() == [1, 9, 3] and later.response.tolist() == [1, 9, 4]
    assert later.steps.blocks.tolist()[:4] == [2, 2, 2, 2]  # of 16 tokens: the first's block stays for the second step
    assert now.steps.blocks.tolist()[:4] == [2, 2, 2, 1]


def test_a_next_turn_is_counted_from_the_answer():
    """Two turns of one conversation: the second comes a think time after the first answer, not after its slot."""
    load = Workload.turns(1, 1, 2, 4, 3, think_time=0.5, think_cv=0)
    run = serve(load, policies.Continuous(2, 64), second, KVCache(20), async_scheduling=True)
    first = run.arrival[0] + 3
    assert run.response.tolist() == pytest.approx([first, first + 0.5 + 3])


@pytest.mark.parametrize("blocks", [60, 400])
def test_each_answer_is_whole_and_no_slot_or_block_is_taken_twice(blocks):
    load = Workload.poisson(1.2, 150, 40, 30, seed=7)
    run = serve(load, policies.Continuous(8, 64), second, KVCache(blocks, 4), async_scheduling=True)
    for request in range(len(load)):
        assert len(run.token_times(request)) == load.output_tokens[request]
    held = np.zeros(len(run.steps), int)
    for _, first, last in run.log.stays.tolist():
        held[first : last + 1] += 1
    assert held.max() <= 8
    assert run.steps.blocks.max() <= blocks
    sync = serve(load, policies.Continuous(8, 64), second, KVCache(blocks, 4))
    assert run.response.mean() >= sync.response.mean()  # it can only hold back


class Ticking(PlainEngine):
    """Takes a step's time too if nothing could be planned, as the loop does by which the shared set was recorded."""

    def _let_go(self, gone, last):
        nothing_ran = gone is self.leaving and bool(gone)
        super()._let_go(gone, last)
        if nothing_ran:
            self.now += 1.0
            self.idle.append((self.steps, self.now))
            self.waits = 0


@pytest.mark.skipif(not Path(SHARED_SET).is_file(), reason="there is no ../shared beside the project")
def test_the_shared_set_is_equal_by_its_own_clock():
    different = []
    for load in json.loads(Path(SHARED_SET).read_text()):
        engine = Ticking(
            vllm_runs.policy(load, "0.33.0"), second, vllm_runs.cache(load, "0.33.0"), async_scheduling=True
        )
        engine.follow(vllm_runs.workload(load))
        run = finish(engine)
        times = [run.token_times(i).round().astype(int).tolist() for i in range(len(run))]
        free = (load["blocks"] - run.steps.blocks).tolist()
        begins = run.steps.start.round().astype(int)
        lost = sorted([int(begins[step]), row] for row, step, _ in run.log.preemptions.tolist())
        if (times, free, lost) != (load["times"], load["free"], sorted(load["preempted"])):
            different.append(load["seed"])
    assert different == []


def test_what_cannot_be_is_refused():
    load = Workload(np.zeros(1), np.full(1, 4), np.full(1, 2))
    with pytest.raises(ValueError, match="Static answers whole batches: it cannot be served with async_scheduling"):
        serve(load, policies.Static(2), second, async_scheduling=True)
    with pytest.raises(ValueError, match="async_scheduling must be"):
        serve(load, policies.Continuous(2, 64), second, async_scheduling=1)
