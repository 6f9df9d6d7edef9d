"""Lab 04: what the tables beside the figures say, from the runs themselves."""

import numpy as np
import pytest

from course import policies, serve, steptime
from course.lessons.lab04 import side_by_side, three_batchers
from course.lessons.lab04.three_batchers import CHAT, H100, LOADS


def table(rows):
    return {name: cells for name, *cells in rows}


def test_under_load():
    result = three_batchers.under_load("chat, CV 1", 2.0, 1.0, ("e2e", 95))
    rows = table(three_batchers.load_rows(result))
    for column, (name, policy) in enumerate(side_by_side.three_policies(32, 1.0).items()):
        run = serve(LOADS["chat, CV 1"].scaled(2.0), policy, H100)
        for percent in (50, 95, 99):
            assert rows[f"whole answer, p{percent}"][column] == f"{np.percentile(run.e2e, percent):.2f} s"
        assert rows["first token, p95"][column] == f"{np.percentile(run.ttft, 95):.2f} s"
        assert rows["output"][column] == f"{run.workload.output_tokens.sum() / run.makespan:,.0f} tokens/s"
        in_time = (run.e2e <= 10).sum() / run.makespan
        assert rows["goodput (answer in 10 s)"][column] == f"{in_time:.2f} requests/s"
        wasted, useful = run.steps.wasted.sum(), run.steps.useful.sum()
        assert rows["padding"][column] == f"{wasted / (wasted + useful):.0%}", name


def test_images():
    runs = three_batchers.image_service(1_000, 10)
    assert [run.policy.max_queue_delay for run in runs.values()] == [0, 0.010]
    rows = table(three_batchers.image_rows(runs))
    for column, run in enumerate(runs.values()):
        assert rows["mean batch"][column] == f"{len(run) / len(run.steps):.1f} images"
        assert rows["GPU busy"][column] == f"{run.steps.seconds.sum() / run.makespan:.0%}"
        assert rows["answered"][column] == f"{len(run) / run.makespan:,.0f} images/s"
        for percent in (50, 95):
            assert rows[f"latency, p{percent}"][column] == f"{1e3 * np.percentile(run.e2e, percent):.1f} ms"


def test_timelines_and_gain():
    result = three_batchers.timelines("drawn", 4, 1.0, 10, 0.1, 5)
    rows = table(three_batchers.timeline_rows(result))
    for column, run in enumerate(result[0].values()):
        assert rows["mean time to an answer"][column] == f"{run.e2e.mean():.2f} s"
        assert rows["longest time to an answer"][column] == f"{run.e2e.max():.2f} s"
        assert rows["padding slot-steps"][column] == f"{run.steps.wasted.sum():,}"
    found = three_batchers.gain(32, 1.0)
    assert found.gain == found.continuous / found.static
    rows = table(three_batchers.gain_rows(found))
    assert rows["E[max] / mean, as drawn"] == [f"{found.drawn_bound:.2f} x"]


def test_saturation_is_counted_until_the_last_one_has_a_slot():
    """Four requests of 3 tokens, two slots, a step of 1 s: the last two join at 3 s, when 6 tokens are out."""
    load = side_by_side.at_once(CHAT.head(4))
    load = type(load)(load.arrival, np.ones(4, dtype=int), np.full(4, 3))
    run = serve(load, policies.Continuous(2, 64), steptime.PowerLaw(1, 0, 1))
    assert side_by_side.saturated_tokens_per_second(run) == pytest.approx(6 / 3)


def test_a_batcher_lets_go_of_a_full_batch_at_once_and_of_others_after_the_delay():
    arrival = np.array([0.0, 0.01, 0.02, 0.5, 0.55, 2.0])
    released = side_by_side.batcher_release(arrival, max_batch_size=3, max_queue_delay=0.1)
    assert released == pytest.approx([0.02, 0.02, 0.02, 0.6, 0.6, 2.1])
