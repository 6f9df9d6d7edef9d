"""Executors that spend real time: arrivals by the clock, lengths as they come; on a clock of the test's own."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve
from course.engine.live import Emitted, Live, serve_live
from tests.engine.test_executors import COLUMNS, KINDS, toys
from tests.helpers import oracle, strategies
from tests.helpers.executors import Toy
from tests.helpers.strategies import examples


class Watch:
    """A clock that goes on when somebody works or sleeps; a sleeper wakes a little late."""

    def __init__(self, late=0.0):
        self.time, self.late, self.slept = 1_000.0, late, []

    def __call__(self):
        return self.time

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds + self.late


class Worker(Live):
    """Works as long as the toy draws, and ends answers where the toy does. overhead: seconds before each step."""

    def __init__(self, toy, watch, overhead=0.0, **settings):
        super().__init__(clock=watch, sleep=watch.sleep, **settings)
        self.toy, self.watch, self.overhead, self.started = toy, watch, overhead, []

    def compute(self, work):
        self.started.append(self.now)
        outcome = self.toy.execute(work)
        self.watch.time += outcome.seconds
        return Emitted(outcome.finished, outcome.tokens)


class Slow(policies.Continuous):
    """Takes a while to decide."""

    def fresh(self):
        return self  # it looks at the watch of the test

    def schedule(self, state):
        self.watch.time += 0.01
        return super().schedule(state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("waits", [True, False])
def test_the_simulator_makes_the_same_run_of_the_same_seconds(kind, waits):
    @given(toys(KINDS[kind]), st.sampled_from([0.0, 0.003]))
    @examples(15)
    def agree(toy, late):
        case, seed = toy
        watch = Watch(late)
        worker = Worker(Toy(seed), watch, waits=waits)
        run = serve_live(case.load, strategies.fresh(case.policy), worker, case.cache)
        assert run.workload.output_tokens.tolist() == [worker.toy.emitted[i] for i in range(len(run))]
        left = iter(worker.seconds)
        same = serve(run.workload, strategies.fresh(case.policy), lambda step: next(left), case.cache)
        assert next(left, None) is None
        for name in COLUMNS:
            assert np.array_equal(getattr(run, name), getattr(same, name), equal_nan=True), name
        for name in oracle.COLUMNS:  # a simulated padded batch knows its longest answer, and reserves blocks for it
            if name == "blocks" and run.batch_answers:
                continue
            assert np.array_equal(getattr(run.steps, name), getattr(same.steps, name)), name

    agree()


def test_the_clock_of_the_run_is_the_wall_clock():
    """Two requests at 0, one at 50; the policy decides for 10 ms before each step, and each sleep is 1 ms too long."""
    watch = Watch(late=0.001)
    worker = Worker(Toy(3, at_most=4), watch)
    policy = Slow(4, 64)
    policy.watch = watch
    load = Workload([0.0, 0.0, 50.0], [5, 6, 7], [1, 1, 1])
    run = serve_live(load, policy, worker)
    # Rounding: each step adds a difference of two readings near 1,000 s, good to 1e-13.
    assert run.response.max() == pytest.approx(watch.time - 1_000, abs=1e-11)
    assert np.allclose(run.steps.start[1:3], run.steps.end[:2], atol=0) and run.steps.start[0] == 0
    assert run.steps.seconds[0] == pytest.approx(worker.toy.seconds[0] + 0.01, abs=1e-11)
    third = np.flatnonzero(run.steps.start >= 50)[0]
    # Deciding at 50 took place while the clock stood before it: what was slept too long is in the step.
    assert run.steps.start[third] == 50
    assert run.steps.seconds[third] == pytest.approx(worker.toy.seconds[third] + 0.001, abs=1e-11)
    assert len(watch.slept) == 1


def test_nothing_begins_before_it_has_come():
    watch = Watch()
    worker = Worker(Toy(1), watch)
    run = serve_live(Workload([0.5, 3.0, 30.0], [4, 4, 4], [1, 1, 1]), policies.Continuous(2, 16), worker)
    assert np.allclose(worker.started, run.steps.start, atol=1e-11)
    assert (run.admitted >= run.arrival).all()
    assert watch.slept[0] == 0.5


def test_a_sleep_that_ends_early_is_gone_on_with():
    watch = Watch()
    worker = Worker(Toy(1), watch)
    worker.sleep = lambda seconds: watch.sleep(seconds / 2 if seconds > 1e-3 else seconds)
    run = serve_live(Workload([2.0], [4], [1]), policies.Continuous(2, 16), worker)
    assert run.steps.start[0] == 2 and worker.started[0] >= 2


def test_without_waiting_a_quiet_hour_passes_at_once():
    watch = Watch()
    worker = Worker(Toy(1), watch, waits=False)
    run = serve_live(Workload([0.0, 3_600.0], [4, 4], [1, 1]), policies.Continuous(2, 16), worker)
    assert not watch.slept
    assert run.response[1] > 3_600
    assert run.steps.seconds.sum() == pytest.approx(sum(worker.toy.seconds), abs=1e-9)
    assert watch.time - 1_000 == pytest.approx(sum(worker.toy.seconds), abs=1e-9)


def test_turns_of_a_conversation_follow_the_real_answers():
    watch = Watch()
    load = Workload([0.0, math.nan], [4, 4], [1, 1], after=np.array([-1, 0]), think_time=np.array([0.0, 2.0]))
    run = serve_live(load, policies.Continuous(2, 16), Worker(Toy(2, at_most=9), watch))
    assert run.arrival[1] == run.response[0] + 2
    assert run.workload == replace(load, output_tokens=run.workload.output_tokens)


def test_refusals():
    load, policy = Workload([0.0], [4], [1]), policies.Continuous(2, 16)
    with pytest.raises(ValueError, match="needs a live executor"):
        serve_live(load, policy, Toy(1))
    with pytest.raises(NotImplementedError, match="Live needs a method `compute`"):
        serve_live(load, policy, Live())
    worker = Worker(Toy(1), Watch())
    worker.compute = lambda work: [1]
    with pytest.raises(ValueError, match="must return an Emitted, not"):
        serve_live(load, policy, worker)
    with pytest.raises(ValueError, match="can never be served"):
        serve_live(load, policy, Worker(Toy(1), Watch()), KVCache(1, 2))
    with pytest.raises(ValueError, match="waits must be"):
        Live(waits="no")
