"""What the notebook of lab 14 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.lessons.lab14 import apart, cards, figures, four, halves, layers, sums, tasks
from course.lessons.lab14.decision import log

__all__ = [
    "at_work", "five_draws", "four_cards", "links", "log", "one_layer", "power", "prefill_and_decode", "speed_ups",
    "split_at_work", "stages", "step_on_cards", "ticket_graphs", "two_halves",
]  # fmt: skip


def one_layer() -> Table:
    """The question's table: what a layer reads and sends, on one card and on each of two."""
    return table(cards.layer_table(), "Llama-3.1-8B in bf16, H200s with NVLink [data sheet]")


def step_on_cards() -> Explorer:
    """One step on 1 to 8 cards, and what its tokens cost."""
    return Explorer(
        cards.spread,
        controls=[
            Choice("cards", "Cards", list(cards.CARDS), tasks.STEP["cards"]),
            Slider("batch", "Batch", 1, cards.BATCHES[-1], 2, tasks.STEP["batch"], "sequences", log=True),
            Choice("kind", "All-reduce", list(cards.KINDS), tasks.STEP["kind"]),
        ],
        figure=figures.spread,
        summary=cards.rows,
        title="A step on several cards",
        badge="modelled: recorded steps, halves and sums; 4 and 8 cards extrapolated",
        **tasks_of("14", "step_on_cards"),
    )


def four_cards() -> Explorer:
    """Three ways to use four cards, under a load and a promise."""
    return Explorer(
        four.four,
        controls=[
            Slider("rate", "Arrival rate", 10, 120, 10, four.RATE, unit="requests/s"),
            Choice("tpot_ms", "TPOT promised", [(f"{ms} ms", float(ms)) for ms in four.PROMISES], four.TPOT_MS),
        ],
        figure=figures.four_cards,
        summary=four.rows,
        title="Four cards",
        badge="simulated on modelled steps: one four extrapolated",
        beside=False,
        **tasks_of("14", "four_cards"),
    )


def two_halves() -> Explorer:
    """The small model, whole and in two halves."""
    return Explorer(
        halves.speak,
        controls=[
            Choice("prompt", "Answer", list(halves.PROMPTS), "a story"),
            Choice("add", "Both halves add", [halves.SUM, halves.NOTHING], halves.SUM),
        ],
        figure=figures.words,
        summary=halves.rows,
        title="The small model in two halves",
        badge="measured: the language model computes here",
        beside=True,
    )


def at_work(function: sums.Route) -> Table | Card:
    """The learner's route in front of four replicas; a sentence for one that is empty or breaks."""
    if tried(function, _empty, function)[0]:
        return Card("Your route returns nothing yet.")
    found, said = tried(function, sums.at_work, function)
    if found is None:
        return Card("Your route does not run yet.", [said])
    return table(found, f"Four replicas, {sums.ROUTE_RATE} requests/s [simulated on recorded steps]")


def _empty(function: sums.Route) -> bool:
    """Whether the function is still the stub."""
    return function([0, 0], [0, 1]) is None


# The deeper notebook

SIMULATED = "simulated on recorded steps"


def prefill_and_decode() -> Explorer:
    """Prompts and answers on the same four cards, and apart."""
    return Explorer(
        apart.apart,
        controls=[
            Slider("rate", "Arrival rate", 8, 32, 4, apart.RATE, unit="requests/s"),
            Choice("tpot_ms", "TPOT promised", [(f"{ms} ms", float(ms)) for ms in (6, 8, 10, 20)], apart.TPOT_MS),
            Choice("link_gb", "Link", [(f"{link:g} GB/s", float(link)) for link in apart.LINKS_GB], apart.LINK_GB),
        ],
        figure=figures.prefill_and_decode,
        summary=apart.rows,
        title="Prompts and answers on four H200s",
        badge=SIMULATED,
        beside=False,
    )


def five_draws() -> Table:
    """The layouts on two cards, with a tight and a loose promise, over five draws."""
    return table(apart.five_draws(), f"Within both promises [{SIMULATED}]")


def links() -> Table:
    """What a link does."""
    return table(apart.links(), f"2P2D of H100s, TPOT {apart.TPOT_MS:g} ms [{SIMULATED}]")


def split_at_work(function: apart.Split) -> Table | Card:
    """The learner's ratio for three loads; a sentence for one that is empty or breaks."""
    if tried(function, _no_split, function)[0]:
        return Card("Your function returns nothing yet.")
    found, said = tried(function, apart.split_at_work, function)
    if found is None:
        return Card("Your function does not run yet.", [said])
    return table(found, f"Within both promises by cards for prompts [{SIMULATED}]")


def _no_split(function: apart.Split) -> bool:
    return function(1.0, 1.0, 2) is None


def stages() -> Table:
    """A step of shares and of stages."""
    return table(layers.stages(), "Llama-3.1-8B on H200s [modelled: recorded steps and sums; 4 cards extrapolated]")


def speed_ups() -> Table:
    """Layers as two cards took them."""
    return table(layers.speed_ups(), "One H200 and two, CUDA graphs [measured]")


def power() -> Table:
    """Tokens a joule as one card and two made them."""
    return table(layers.power(), "Llama-3.1-8B on H200s [measured]")


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return figures.ticket()
