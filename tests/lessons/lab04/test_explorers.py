"""Lab 04: the image service, saturation, and what the explorers compute."""

import itertools

import numpy as np
import pytest

from course import Workload, policies, queueing, serve
from course.lessons.lab04 import figures as draw
from course.lessons.lab04 import night, other_loads, side_by_side, three_batchers
from course.lessons.lab04.other_loads import IMAGE
from course.lessons.lab04.three_batchers import CHAT, STEP
from tests.helpers.figures import valid

# Dynamic batching of requests of one step


@pytest.mark.parametrize("rate", [100, 1_000, 2_400, 4_000])
def test_for_one_step_continuous_is_dynamic_without_delay_to_the_bit(rate):
    images = Workload.poisson(rate=rate, num_requests=1_000, prompt_tokens=1, output_tokens=1, seed=3)
    continuous = serve(images, policies.Continuous(16, max_num_batched_tokens=16), IMAGE)
    assert np.array_equal(continuous.e2e, serve(images, policies.Dynamic(16, 0.0), IMAGE).e2e)


def test_a_delay_trades_latency_for_larger_batches_and_is_no_bound():
    none, some = (other_loads.image_run(1_000, delay) for delay in (0.0, 0.01))
    assert len(some.steps) < len(none.steps) / 3 and np.percentile(some.e2e, 95) > 2 * np.percentile(none.e2e, 95)
    assert some.steps.seconds.sum() < 0.5 * none.steps.seconds.sum()
    full = [other_loads.image_run(2_400, delay) for delay in (0.02, 0.05)]
    assert np.allclose(full[0].e2e, full[1].e2e, atol=1e-3)  # the batch is full before the delay is over
    images = Workload.poisson(rate=1_000, num_requests=2_000, prompt_tokens=1, output_tokens=1)
    assert serve(images.scaled(3_000), policies.Dynamic(16, 0.01), IMAGE).queue_wait.max() > 5 * 0.01


def test_bulk_service_is_dynamic_without_delay():
    run = other_loads.image_run(1_000, 0.0)
    bulk = queueing.bulk_service(arrival_rate=1_000, batch_s=[2e-3 + 0.25e-3 * n for n in range(1, 17)])
    # 725 batches whose sizes vary by about 1.5: their mean is good to 2%, as is the latency.
    assert len(run) / len(run.steps) == pytest.approx(bulk.mean_batch_requests, rel=0.04)
    assert run.e2e.mean() == pytest.approx(bulk.mean_time_in_system_s, rel=0.04)
    assert run.steps.seconds.sum() / run.makespan > 0.95 and 1 / bulk.utilisation == pytest.approx(2.7, abs=0.05)


def test_in_a_closed_loop_a_delay_raises_throughput_or_lowers_it():
    def rate(clients, delay):
        load = Workload.closed_loop(
            users=clients, think_time=1e-3, think_cv=0, requests_per_user=125, prompt_tokens=1, output_tokens=1
        )
        run = serve(load, policies.Dynamic(16, delay), IMAGE)
        return len(run) / run.makespan

    # Two groups take turns: 4 images in 3 ms, 8 in 4 ms. Merged: 16 in 6 ms + 1 ms of thinking; 8 wait out the delay.
    assert rate(8, 0.0) == pytest.approx(4 / 3e-3, rel=0.01) and rate(16, 0.0) == pytest.approx(8 / 4e-3, rel=0.01)
    assert rate(16, 0.005) == pytest.approx(16 / 7e-3, rel=0.01)
    assert rate(8, 0.005) == pytest.approx(8 / 10e-3, rel=0.01)


def test_a_batcher_in_front_only_delays():
    released = side_by_side.batcher_release(CHAT.arrival, max_batch_size=32, max_queue_delay=0.1)
    wait = released - CHAT.arrival
    assert (wait >= 0).all() and wait.max() <= 0.1 + 1e-12 and (np.diff(released) >= 0).all()
    burst = side_by_side.batcher_release(np.zeros(10), max_batch_size=4, max_queue_delay=1.0)
    assert burst.tolist() == [0.0] * 8 + [1.0] * 2  # full batches leave at once, the last one waits
    assert side_by_side.batcher_release(CHAT.arrival, max_batch_size=1, max_queue_delay=9.0).tolist() == (
        CHAT.arrival.tolist()
    )


# Saturation


def test_saturated_throughput_leaves_the_drain_out_and_refuses_a_run_without_a_queue():
    run = serve(side_by_side.at_once(CHAT), policies.Continuous(32, 8192), STEP)
    assert side_by_side.saturated_tokens_per_second(run) > CHAT.output_tokens.sum() / run.makespan
    with pytest.raises(ValueError, match="nobody waited"):
        side_by_side.saturated_tokens_per_second(
            serve(side_by_side.at_once(CHAT.head(8)), policies.Continuous(32, 8192), STEP)
        )


# What its explorers compute


@pytest.mark.parametrize(("output_cv", "delay"), [*itertools.product((0.0, 2.0), (0.0, 1.0))])
def test_one_trace(output_cv, delay):
    for name, run in three_batchers.one_trace(output_cv, delay).items():
        assert len(run) == 12 and (run.admitted >= run.arrival).all() and run.steps.running.max() <= 3
        assert run.steps.useful.sum() == run.workload.output_tokens.sum()
        assert name != "continuous" or run.steps.wasted.sum() == 0


@pytest.mark.parametrize(("slots", "output_cv"), [*itertools.product((4, 32, 128), (0.0, 0.4, 2.0))])
def test_the_gain_and_its_dot(slots, output_cv):
    found = three_batchers.saturated(slots, output_cv)
    result = found.recorded
    if slots <= 32:  # 62 batches and more: within the spread of the longest answers
        assert result.gain == pytest.approx(result.bound, rel=0.15)
    assert found.theory.gain == pytest.approx(result.gain, rel=0.12)  # both models of one card
    figure = draw.gain(three_batchers.gain_sweep(), result)
    assert figure.data[2].y[0] == pytest.approx(result.gain, rel=1e-5)


@pytest.mark.parametrize("rate", [0.5, 6.0, 20.0])
@pytest.mark.parametrize("load", list(other_loads.LOADS))
def test_under_load(load, rate):
    result = other_loads.under_load(load, rate, 0.1, ("e2e", 50))
    points = result["points"]
    assert points["continuous"].e2e[50] < min(points["static"].e2e[50], points["dynamic"].e2e[50])
    assert points["continuous"].padding == 0 and all(p.goodput <= rate * 1.01 for p in points.values())
    assert bool(result["warnings"]) == (rate > 3)


def test_the_operators_graphs_are_the_night():
    found = night.night()
    figure = draw.operators_graphs(found)
    valid(figure)
    assert [len(line.y) for line in figure.data] == [len(night.RATES)] * 3
    assert figure.data[1].y == pytest.approx(found.median, rel=1e-4)
    assert len(found.run) == pytest.approx(sum(night.RATES) * night.HOUR, rel=0.02)
    assert found.rate == pytest.approx(np.array(night.RATES), rel=0.1)
    assert figure.layout.xaxis3.ticktext[0] == "20:00"
