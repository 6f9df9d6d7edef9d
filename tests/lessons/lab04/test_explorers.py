"""Lab 04: the image service, saturation, the timelines, and the explorers at their corners."""

import itertools

import numpy as np
import pytest

from course import Workload, policies, queueing, serve, steptime
from course.figures.timelines import KINDS, lanes, spans, timelines
from course.lessons.lab04 import figures as draw
from course.lessons.lab04 import night, other_loads, side_by_side, three_batchers
from course.lessons.lab04.other_loads import IMAGE
from course.lessons.lab04.three_batchers import CHAT, FOLLOWED, STEP
from course.workload import lengths
from tests.helpers.figures import valid


def small():
    return Workload.poisson(
        rate=10, num_requests=16, prompt_tokens=1024, output_tokens=lengths.lognormal(64, 1.0), seed=0
    )


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


# Timelines


def runs_of(slots, output_cv):
    """Sixteen requests under each policy."""
    load = Workload.poisson(
        rate=10, num_requests=16, prompt_tokens=1024, output_tokens=lengths.lognormal(64, output_cv)
    )
    return side_by_side.serve_each(load, side_by_side.three_policies(slots, 0.1, 2048), STEP)


@pytest.mark.parametrize("output_cv", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("slots", [2, 4, 8])
def test_the_bars_of_a_request_add_up_and_no_two_share_a_lane(slots, output_cv):
    for name, run in runs_of(slots, output_cv).items():
        bars = spans(run)
        total = np.zeros(len(run))
        for span in bars.values():
            np.add.at(total, span.request, span.end - span.start)
        assert np.allclose(total, run.e2e)
        assert len(bars["wasted"].request) == 0 or name != "continuous"
        for kinds in (("waiting",), ("prefill", "decode", "wasted")):
            for lane in range(slots if kinds != ("waiting",) else len(run)):
                held = sorted(
                    (start, end)
                    for kind in kinds
                    for start, end, at in zip(bars[kind].start, bars[kind].end, bars[kind].lane, strict=True)
                    if at == lane
                )
                assert all(a[1] <= b[0] for a, b in itertools.pairwise(held))
        assert max(bars["decode"].lane.max(), bars["prefill"].lane.max()) < slots


def test_wasted_bars_are_the_wasted_slot_steps():
    second_a_step = steptime.PowerLaw(t0=1, c=0, alpha=1)
    run = serve(side_by_side.at_once(small()), policies.Static(4), second_a_step)
    bars = spans(run)["wasted"]
    assert (bars.end - bars.start).sum() == run.steps.wasted.sum() > 0


def test_lanes_are_reused_at_the_moment_they_are_free():
    assert lanes(np.array([0.0, 0.0, 1.0, 1.5]), np.array([1.0, 3.0, 2.0, 2.0])).tolist() == [0, 1, 0, 2]
    assert lanes(np.array([]), np.array([])).tolist() == []


def test_a_request_is_followed_in_every_panel_on_one_clock():
    runs = runs_of(4, 1.0)
    figure = timelines(runs, follow=5)
    assert [trace.name for trace in figure.data] == ["waiting", "prefill", "decode", "padding"]
    decode = figure.data[KINDS.index("decode")]
    assert sum(opacity == 1 for opacity in decode.marker.opacity) == len(runs)
    titles = " ".join(annotation.text for annotation in figure.layout.annotations)
    assert titles.count("request 5:") == len(runs)
    assert figure.layout.xaxis.range[1] >= max(run.response.max() for run in runs.values())
    assert all(opacity == 1 for trace in timelines(runs).data for opacity in trace.marker.opacity)


# Explorers: every control at its ends


@pytest.mark.parametrize(("output_cv", "delay"), [(1.0, 0.1), *itertools.product((0.0, 2.0), (0.0, 1.0))])
def test_the_timeline_explorer_at_every_corner(output_cv, delay):
    runs = three_batchers.one_trace(output_cv, delay)
    for name, run in runs.items():
        assert len(run) == 12 and (run.admitted >= run.arrival).all() and run.steps.running.max() <= 3
        assert run.steps.useful.sum() == run.workload.output_tokens.sum()
        assert name != "continuous" or run.steps.wasted.sum() == 0
    assert {len(row) for row in three_batchers.trace_rows(runs)} == {4}
    valid(timelines(runs, follow=FOLLOWED, height=300))


@pytest.mark.parametrize("height", [250, 300, 440])
def test_titles_leave_the_waiting_line_free(height):
    """A title is at most as high as the room above the waiting line, but for the smallest that one can read."""
    figure = timelines(three_batchers.one_trace(1.0, 0.1), follow=FOLLOWED, height=height)
    low, high = figure.layout.yaxis.range
    a_lane = (height - 28 - 48) / (high - low)
    titles = [note for note in figure.layout.annotations if "last answer" in note.text]
    assert len(titles) == 3 and all(note.font.size <= max(11, 1.1 * a_lane) for note in titles)


@pytest.mark.parametrize(("slots", "output_cv"), [*itertools.product((4, 32, 128), (0.0, 0.4, 1.0, 2.0))])
def test_the_gain_explorer_at_every_corner(slots, output_cv):
    found = three_batchers.saturated(slots, output_cv)
    result = found.recorded
    assert result.gain > 0.98 and result.continuous > 0
    if slots <= 32:  # 62 batches and more: within the spread of the longest answers
        assert result.gain == pytest.approx(result.bound, rel=0.15)
    assert found.theory.gain == pytest.approx(result.gain, rel=0.12)  # both models of one card
    assert {len(row) for row in three_batchers.saturated_rows(found)} == {4}
    figure = draw.gain(three_batchers.gain_sweep(), result)
    valid(figure)
    assert figure.data[2].y[0] == pytest.approx(result.gain, rel=1e-5)


@pytest.mark.parametrize("rate", [0.5, 6.0, 20.0])
@pytest.mark.parametrize("load", list(other_loads.LOADS))
def test_the_load_explorer_at_every_corner(load, rate):
    for delay, metric in itertools.product((0.1, 10.0), (("e2e", 50), ("e2e", 99), ("ttft", 95))):
        result = other_loads.under_load(load, rate, delay, metric)
        points = result["points"]
        assert points["continuous"].e2e[50] < min(points["static"].e2e[50], points["dynamic"].e2e[50])
        assert points["continuous"].padding == 0 and all(p.goodput <= rate * 1.01 for p in points.values())
        assert {len(row) for row in other_loads.load_rows(result)} == {4}
        valid(draw.against_load(result["curves"], points, *metric))
    assert bool(result["warnings"]) == (rate > 3)


@pytest.mark.parametrize(("rate", "delay"), [*itertools.product((100, 2_600), (1, 50))])
def test_the_image_explorer_at_every_corner(rate, delay):
    runs = other_loads.image_service(rate, delay)
    assert all(run.steps.running.max() <= 16 for run in runs.values())
    assert [row[0] for row in other_loads.image_rows(runs)][-1] == "latency, p95"
    valid(draw.shares(runs, dict(zip(runs, ("continuous", "dynamic"), strict=True))))


def test_the_operators_graphs_are_the_night():
    found = night.night()
    figure = draw.operators_graphs(found)
    valid(figure)
    assert [len(line.y) for line in figure.data] == [len(night.RATES)] * 3
    assert figure.data[1].y == pytest.approx(found.median, rel=1e-4)
    assert len(found.run) == pytest.approx(sum(night.RATES) * night.HOUR, rel=0.02)
    assert found.rate == pytest.approx(np.array(night.RATES), rel=0.1)
    assert figure.layout.xaxis3.ticktext[0] == "20:00"
