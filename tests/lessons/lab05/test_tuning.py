"""Lab 05's decision, ticket and tasks, served at rates around the lab's: what is accepted holds, the rest does not."""

import numpy as np
import pytest

from course.lessons.lab05 import adaptive, night, on_a_card, sketch, tasks, toy, vision

AROUND = [(0.9, 1), (1.0, 2), (1.1, 3)]


@pytest.mark.parametrize(("more", "seed"), AROUND)
@pytest.mark.parametrize(("rate", "goal"), [(vision.RATE, vision.GOAL), (vision.TWIN["rate"], vision.TWIN["goal"])])
def test_the_delay_of_the_decision_is_the_largest_that_keeps_the_promise(more, seed, rate, goal):
    right = vision.largest(goal, rate)
    above = vision.CHOICES_US[vision.CHOICES_US.index(right) + 1]
    kept, broken, none = (vision.served(delay, more * rate, seed) for delay in (right, above, 0))
    assert none.p95 <= goal and kept.p95 <= goal < broken.p95
    assert kept.busy < none.busy - 0.2  # what the delay is for


@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_dispatching_at_once_mends_the_ticket_and_the_other_repairs_do_not(more, seed):
    quiet = night.QUIET
    as_it_was, mended, longer, slots = (
        night.night(*given, slots=many)
        for given, many in (
            ((night.WINDOW, seed, more), 64),
            ((0.0, seed, more), 64),
            ((2 * night.WINDOW, seed, more), 64),
            ((night.WINDOW, seed, more), 256),
        )
    )
    assert mended.p95[quiet].max() < 0.5 * as_it_was.p95[quiet].min()
    assert mended.p95[0] < 1.1 * as_it_was.p95[0]  # nothing is lost in the evening
    assert longer.p95[quiet].min() > as_it_was.p95[quiet].max()
    np.testing.assert_array_equal(slots.p95, as_it_was.p95)


@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_what_the_tasks_accept_holds_around_it(more, seed):
    kept = tasks.kept()["window_ms"]
    step = toy.T0 + 4 * toy.C  # of as many as may be there when the window closes
    assert toy.served("window", kept, more * toy.RATE, seed=seed).p95 <= tasks.PROMISE
    assert toy.served("window", kept + 2 * tasks.FINE, more * toy.RATE, seed=seed).p95 > tasks.PROMISE
    assert 1e-3 * kept + step > tasks.PROMISE - 1e-3 * tasks.FINE
    few = tasks.too_few()["bmax"]
    assert toy.served(bmax=few, rate=more * toy.RATE, seed=seed).p95 > tasks.ENDLESS
    assert toy.served(bmax=4 * few, rate=more * toy.RATE, seed=seed).p95 < 0.01


@pytest.mark.parametrize("card", on_a_card.CARDS)
@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_the_window_does_not_matter_to_a_busy_card_and_buys_time_on_an_idle_one(more, seed, card):
    rate = more * tasks.busy_enough()["rate"]
    assert tasks.busy_enough()["rate"] == sketch.RATE
    waits, never = (on_a_card.served(on_a_card.CHAT, rate, window, card, seed=seed) for window in (50.0, 0.0))
    # The H200 is idle more often: up to 6 of 50 ms.
    assert waits.p95 - never.p95 < 0.2 * 50e-3
    one = {**tasks.one_token()}
    waits, never = (
        on_a_card.served(on_a_card.ONE, more * one["rate"], window, card, seed=seed) for window in (50.0, 0.0)
    )
    assert never.busy - waits.busy > 0.7 * tasks.SPARED and waits.p95 > 2 * never.p95


@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_the_window_that_shrinks_is_as_good_as_none_by_night_and_spares_the_card_by_day(more, seed):
    found = {}
    for rate in (adaptive.DAY, adaptive.NIGHT):
        policy = adaptive.Adaptive(on_a_card.SLOTS, adaptive.window)
        load = on_a_card.load(on_a_card.ONE, more * rate, seed=seed)
        run = adaptive.serve(load, policy, on_a_card.step_time("H100"))
        none = on_a_card.served(on_a_card.ONE, more * rate, 0.0, seed=seed)
        found[rate] = adaptive.Served(0.0, run), none
    shrinks, none = found[adaptive.NIGHT]
    assert shrinks.p95 < 1.3 * none.p95
    shrinks, none = found[adaptive.DAY]
    assert shrinks.busy < none.busy - 0.15
