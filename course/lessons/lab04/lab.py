"""What the notebooks of lab 04 call by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import GameRecord, tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.board import played
from course.explore.board_view import Match
from course.explore.table import Table, table
from course.figures.timelines import timelines
from course.lessons.lab04 import as_vllm, figures, game, live_words, night, other_loads, refill, three_batchers
from course.lessons.lab04.three_batchers import FOLLOWED, SLOTS, STEP

__all__ = [
    "at_saturation", "at_work", "be_the_scheduler", "beside_vllm", "busy_and_waiting", "chat_under_load",
    "four_by_hand", "one_trace", "three_policies_speak", "ticket_graphs", "with_a_predictor",
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


def be_the_scheduler() -> Match:
    """Two slots and six questions, played by hand."""
    return Match(game.REFILL, GameRecord("04", game.REFILL.id))


def with_a_predictor() -> Match:
    """The same with the lengths of the answers on the cards."""
    return Match(game.GUESSED, GameRecord("04", game.GUESSED.id))


def at_work(function: refill.Refill) -> Match | Card:
    """The learner's refill on the board, step by step; a sentence for one that is empty, or never ends."""
    if tried(function, _empty, function)[0]:
        return Card("Your refill returns nothing yet.")
    found, said = tried(function, played, game.REPLAYED, refill.as_policy(function, game.SLOTS))
    if found is None:
        return Card("Your refill does not run yet.", [said])
    return Match(game.REPLAYED, own=found, name="your refill")


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
