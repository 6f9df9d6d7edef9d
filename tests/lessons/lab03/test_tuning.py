"""Lab 03's decision and ticket: what is accepted holds when it is served at other rates and from another seed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from course.engine.serving import serve
from course.exercises.judge import RIGHT, WRONG, judge
from course.lessons import load
from course.lessons.lab03 import evening, facts, metrics_page, one_engine

LAB = load("03")
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


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_the_counters_say_how_many_are_in_flight_and_a_moment_does_not(times: float, seed: int) -> None:
    rate, (begin, end) = times * metrics_page.RATE, metrics_page.SCRAPES
    run = serve(one_engine.requests(rate, 1.0, metrics_page.REQUESTS, seed), one_engine.engine(), one_engine.STEP)
    before, after = metrics_page.scrapes(run)
    counted = metrics_page.in_flight(after.count - before.count, after.e2e_sum - before.e2e_sum, end - begin)
    mean = run.little(begin, end).L
    assert counted == pytest.approx(mean, rel=0.04)  # as far as an answer may be off
    decision = LAB.exercises[-1]
    here = metrics_page.in_flight(*metrics_page.growth())
    assert judge(decision, {"--max-concurrency": round(here)}).status == RIGHT
    for wrong in (metrics_page.PAGE[1].running + metrics_page.PAGE[1].waiting, one_engine.SLOTS, metrics_page.RATE):
        assert abs(wrong / here - 1) > 0.1 and judge(decision, {"--max-concurrency": wrong}).status == WRONG
