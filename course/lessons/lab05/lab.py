"""What the notebook of lab 05 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.figures.timelines import timelines
from course.lessons.lab05 import adaptive, figures, knobs, night, on_a_card, toy
from course.lessons.lab05.on_a_card import CARDS, CHAT, ONE

__all__ = [
    "all_knobs", "at_work", "four_by_hand", "four_loops", "one_loop", "ticket_graphs", "two_clocks", "window_on_a_card",
]  # fmt: skip


def two_clocks() -> Table:
    """The question's table: what the benchmark says of two loops."""
    return table(toy.two_loops(), f"{toy.RATE} requests/s of {toy.TOKENS} tokens [simulated on modelled steps]")


def one_loop() -> Explorer:
    """The toy behind either loop."""
    return Explorer(
        toy.served,
        controls=[
            Choice("loop", "Waits", [("before every step", "note"), ("when idle", "window")], "note"),
            Slider("window_ms", "Window", 0.0, 20.0, 0.5, toy.WINDOW_MS, unit="ms"),
            Slider("rate", "Arrival rate", 20, 120, 10, toy.RATE, unit="requests/s"),
            Slider("bmax", "Largest batch", 1, 32, 2, toy.SLOTS, unit="sequences", log=True),
        ],
        figure=figures.service,
        summary=toy.rows,
        title="A loop that waits",
        badge="simulated on modelled steps",
        **tasks_of("05", "one_loop"),
    )


def window_on_a_card() -> Explorer:
    """A window that opens when the engine is idle, in front of a language model."""
    return Explorer(
        on_a_card.both,
        controls=[
            Choice("work", "Answers", [("a chat", CHAT), ("one token", ONE)], CHAT),
            Slider("rate", "Arrival rate", 1.5, 96.0, 2, on_a_card.RATE, unit="requests/s", log=True),
            Slider("window_ms", "Window", 0.0, 50.0, 5.0, on_a_card.WINDOW_MS, unit="ms"),
            Choice("card", "Card", [(name, name) for name in CARDS], "H100"),
        ],
        figure=figures.with_and_without,
        summary=on_a_card.rows,
        title="The window on a card",
        badge="simulated on recorded steps: Llama-3.1-8B",
        beside=False,
        **tasks_of("05", "window_on_a_card"),
    )


def all_knobs() -> Explorer:
    """The benchmark's kernel, launched here with every knob it has, beside the recorded card."""
    return knobs.explorer()


def four_by_hand() -> go.Figure:
    """Four requests on a time axis, with a window and without."""
    runs = {f"window {toy.BY_HAND['window']:g} s": toy.by_hand(), "no window": toy.by_hand(0.0)}
    return timelines(runs, height=300, note="one step = 1 s")


def four_loops() -> Table:
    """Four ways to wait, by both clocks."""
    return table(toy.four_loops(), f"{toy.RATE} requests/s of {toy.TOKENS} tokens [simulated on modelled steps]")


def at_work(function: adaptive.Window) -> Table | Card:
    """The learner's window in front of the H100 by day and by night; a sentence for one that is empty or breaks."""
    if tried(function, _empty, function)[0]:
        return Card("Your window returns nothing yet.")
    found, said = tried(function, adaptive.rows, function)
    if found is None:
        return Card("Your window does not run yet.", [said])
    return table(found, f"Answers of one token on an H100 [{on_a_card.step_time('H100').simulated}]")


def _empty(function: adaptive.Window) -> bool:
    """Whether the function is still the stub."""
    return function([5.0], 1, 20.0) is None


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return figures.operators_graphs(night.night())
