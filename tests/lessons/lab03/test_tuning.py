"""Lab 03's decision and ticket: what is accepted holds for other loads, and for the ticket from another seed too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from course.calibration import vllm_live
from course.exercises.judge import RIGHT, WRONG, judge
from course.lessons import load
from course.lessons.lab03 import evening, facts, metrics_page, one_engine

OTHERS = list(itertools.product((0.9, 1.0, 1.1), (0, 1)))
"""Of the rates, and seeds."""
PROMISE = 1.0  # seconds of p99 TTFT


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_more_slots_hold_the_evening_and_nothing_else_that_is_offered_does(times: float, seed: int) -> None:
    few, many = (evening.served(slots, seed, times) for slots in (one_engine.SLOTS, facts.MANY))
    assert np.percentile(many.ttft, 99) < 0.1 * PROMISE
    # A longer queue and a longer timeout leave the engine as it is: all of them are waited for.
    assert np.percentile(few.ttft, 99) > 100 * PROMISE
    assert np.nanmean(many.tpot) < 1.2 * np.nanmean(few.tpot)  # what it costs


@pytest.mark.parametrize("name", vllm_live.names())
def test_counters_say_how_many_are_in_vllm_in_every_recorded_load(name: str) -> None:
    """Requests over seconds, times their mean E2E, is what the recorder counted in each step."""
    run = vllm_live.read(name)
    lasted = float(run.done[-1] - run.looks[0])
    counted = float(np.diff(np.append(run.looks, run.done[-1])) @ (run.running + run.waiting)) / lasted
    e2e = run.last - run.arrival
    # A request that comes during a step is counted from the next one on: up to half a step of each.
    apart = len(run) * float(run.seconds.max()) / lasted
    assert metrics_page.in_flight(len(run), float(e2e.sum()), lasted) == pytest.approx(counted, abs=apart)


def test_the_accepted_number_is_what_was_in_flight_and_a_moment_is_not() -> None:
    decision, run, lasted = load("03").exercises[-1], metrics_page.load(), metrics_page.seconds()
    by_clients = float((run.client_last - run.sent).sum()) / lasted
    assert judge(decision, {"--max-concurrency": round(by_clients)}).status == RIGHT
    moment = sum(metrics_page.on_page(name, "within") for name in metrics_page.GAUGES)
    for wrong in (moment, run.policy.max_num_seqs, len(run), len(run) / lasted):
        assert abs(wrong / by_clients - 1) > 0.1
        assert judge(decision, {"--max-concurrency": wrong}).status == WRONG
