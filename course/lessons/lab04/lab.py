"""What the notebooks of lab 04 call by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.engine.serving import serve
from course.exercises import tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.figures.timelines import timelines
from course.lessons.lab04 import as_vllm, figures, live_words, night, other_loads, refill, three_batchers
from course.lessons.lab04.side_by_side import three_policies
from course.lessons.lab04.three_batchers import FEW, FOLLOWED, SLOTS, STEP
from course.workload import Workload, lengths

__all__ = [
    "at_saturation", "at_work", "beside_vllm", "busy_and_waiting", "chat_under_load", "four_by_hand",
    "one_trace", "three_policies_speak", "ticket_graphs",
]  # fmt: skip

SPREAD = Slider("output_cv", "Spread of answers (CV)", 0.0, 2.0, 0.1, 1.0)


def busy_and_waiting() -> Table:
    """The static service at two rates: what people wait, and what the GPU is busy with."""
    return table(three_batchers.weeks(), f"Static batching, {SLOTS} slots [{STEP.simulated}]")


def one_trace() -> Explorer:
    """The same dozen requests under each policy, slot by slot."""
    return Explorer(
        three_batchers.one_trace,
        controls=[SPREAD, Slider("max_queue_delay", "Delay of dynamic", 0.0, 1.0, 0.05, 0.1, unit="s")],
        figure=lambda runs: timelines(runs, follow=FOLLOWED, height=300),
        summary=three_batchers.trace_rows,
        title="One trace, three policies",
        badge=STEP.simulated,
        beside=False,
        **tasks_of("04", "one_trace"),
    )


def at_saturation() -> Explorer:
    """What continuous batching gains where somebody always waits."""
    sweep = three_batchers.gain_sweep()  # the lines, once
    return Explorer(
        three_batchers.saturated,
        controls=[SPREAD, Slider("max_num_seqs", "Slots", 4, 128, 2, SLOTS, log=True)],
        figure=lambda result: figures.gain(sweep, result.recorded, height=300),
        summary=three_batchers.saturated_rows,
        title="Gain at saturation",
        badge=STEP.simulated,
        **tasks_of("04", "at_saturation"),
    )


def three_policies_speak() -> Explorer:
    """The small language model answers the same questions under each policy, measured beside the recording."""
    return live_words.view()


def four_by_hand() -> go.Figure:
    """Four requests on a time axis, static and continuous."""
    return timelines(three_batchers.by_hand(), height=300, note="one step = 1 s")


def at_work(function: refill.Refill) -> go.Figure | Card:
    """The learner's refill in the engine, beside the package's policy; a sentence where it is empty or refused."""
    slots = int(FEW["slots"])
    few = Workload.poisson(FEW["rate"], int(FEW["num_requests"]), 1_024, lengths.lognormal(64, cv=1))
    mine, said = tried(function, serve, few, refill.as_policy(function, slots), STEP)
    if mine is None:
        empty, _ = tried(function, _empty, function)
        return Card("Your refill does not run yet.", ["It returns nothing yet." if empty else said])
    theirs = serve(few, three_policies(slots)["continuous"], STEP)
    return timelines({"yours": mine, "continuous": theirs}, follow=FOLLOWED, height=300)


def beside_vllm(function: refill.Refill) -> Table:
    """The refills of vLLM as recorded, and what the learner's refill does with the same requests."""
    return as_vllm.beside_vllm(function)


def _empty(function: refill.Refill) -> bool:
    """Whether the function is still the stub."""
    return function({1: 1}, {2: 8}, 2) is None


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return figures.operators_graphs(night.night())


def chat_under_load() -> Explorer:
    """The chat below saturation and at it."""
    other_loads.compute_lines()  # the lines behind the dots, once
    metrics = {
        "p50 of the whole answer": ("e2e", 50),
        "p95 of the whole answer": ("e2e", 95),
        "p99 of the whole answer": ("e2e", 99),
        "p95 of the first token": ("ttft", 95),
    }
    return Explorer(
        other_loads.under_load,
        controls=[
            Slider("rate", "Arrival rate", 0.5, 20.0, 0.5, 6.0, unit="requests/s"),
            Slider("max_queue_delay", "Delay of dynamic", 0.1, 10.0, 10, 0.1, unit="s", log=True),
            Choice("metric", "Latency", metrics, ("e2e", 95)),
        ],
        figure=lambda result: figures.against_load(result["curves"], result["points"], *result["metric"]),
        summary=other_loads.load_rows,
        title=f"The chat under load, {SLOTS} slots",
        badge=STEP.simulated,
    )
