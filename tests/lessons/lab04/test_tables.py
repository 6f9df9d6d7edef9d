"""Lab 04: what the tables beside the figures say, from the runs themselves."""

import numpy as np
import pytest

from course import policies, serve, steptime
from course.lessons.lab04 import other_loads, side_by_side, three_batchers
from course.lessons.lab04.other_loads import LOADS
from course.lessons.lab04.three_batchers import CHAT


def table(rows):
    return {name: cells for name, *cells in rows}


@pytest.mark.parametrize("rate", [2.0, 17.0])  # at 17 answers begin in time that do not end in time
def test_under_load(rate):
    result = other_loads.under_load("chat", rate, 1.0, ("e2e", 95))
    rows = table(other_loads.load_rows(result))
    workload, step_time = LOADS["chat"]
    for column, (name, policy) in enumerate(side_by_side.three_policies(32, 1.0).items()):
        run = serve(workload.scaled(rate), policy, step_time)
        for percent in (50, 95):
            assert rows[f"whole answer, p{percent}"][column] == f"{np.percentile(run.e2e, percent):.2f} s"
        assert rows["first token, p95"][column] == f"{np.percentile(run.ttft, 95):.2f} s"
        assert rows["tokens/s"][column] == f"{run.workload.output_tokens.sum() / run.makespan:,.0f}"
        in_time = (run.e2e <= 10).sum() / run.makespan
        assert rows["requests/s within 10 s"][column] == f"{in_time:.2f}"
        wasted, useful = run.steps.wasted.sum(), run.steps.useful.sum()
        assert rows["padding"][column] == f"{wasted / (wasted + useful):.0%}", name


def test_images():
    runs = other_loads.image_service(1_000, 10)
    assert [run.policy.max_queue_delay for run in runs.values()] == [0, 0.010]
    rows = table(other_loads.image_rows(runs))
    for column, run in enumerate(runs.values()):
        assert rows["mean batch"][column] == f"{len(run) / len(run.steps):.1f} images"
        assert rows["GPU busy"][column] == f"{run.steps.seconds.sum() / run.makespan:.0%}"
        assert rows["answered"][column] == f"{len(run) / run.makespan:,.0f} images/s"
        for percent in (50, 95):
            assert rows[f"latency, p{percent}"][column] == f"{1e3 * np.percentile(run.e2e, percent):.1f} ms"


def test_timelines_and_gain():
    runs = three_batchers.one_trace(1.0, 0.1)
    rows = table(three_batchers.trace_rows(runs))
    for column, run in enumerate(runs.values()):
        assert rows["mean time to an answer"][column] == f"{run.e2e.mean():.2f} s"
        wanted, padding = run.steps.useful.sum(), run.steps.wasted.sum()
        assert rows["slot-steps wanted + padding"][column] == f"{wanted:,} + {padding:,}"
    found = three_batchers.saturated(32, 1.0)
    rows = table(three_batchers.saturated_rows(found))
    for label, one in (("recorded steps", found.recorded), ("roofline (theory)", found.theory)):
        assert one.gain == one.continuous / one.static
        assert rows[label] == [
            f"{one.static:,.0f} tokens/s", f"{one.continuous:,.0f} tokens/s", f"{one.gain:.2f}x"
        ]  # fmt: skip
    assert rows["slot-steps for each token"][-1] == f"{found.recorded.drawn_bound:.2f}x"


def test_the_table_of_the_question():
    rows = table(three_batchers.weeks())
    for rate in (4, 6):
        run = serve(CHAT.scaled(rate), policies.Static(32), three_batchers.STEP)
        wasted, useful = run.steps.wasted.sum(), run.steps.useful.sum()
        assert rows[f"{rate} requests/s"] == [
            f"{np.percentile(run.e2e, 95):.0f} s",
            f"{run.steps.seconds.sum() / run.makespan:.0%}",
            f"{useful / (useful + wasted):.0%}",
        ]


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
