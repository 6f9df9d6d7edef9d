"""Tables and figures of lab 04 that are no explorers, each one line in the notebook."""

from __future__ import annotations

import plotly.graph_objects as go

from course.engine.serving import serve
from course.exercises.cards import Card
from course.explore.table import Table, table
from course.figures.timelines import timelines
from course.lessons.lab04 import figures, night, refill, three_batchers
from course.lessons.lab04.side_by_side import three_policies
from course.lessons.lab04.three_batchers import FEW, STEP
from course.workload import Workload, lengths

__all__ = ["at_work", "busy_and_waiting", "four_by_hand", "ticket_graphs"]


def busy_and_waiting() -> Table:
    """The static service at two rates: what people wait, and what the GPU is busy with."""
    return table(three_batchers.weeks(), f"Static batching, {three_batchers.SLOTS} slots [{STEP.badge}]")


def four_by_hand() -> go.Figure:
    """Four requests on a time axis, static and continuous."""
    return timelines(three_batchers.by_hand(), height=300, note="one step = 1 s")


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return figures.operators_graphs(night.night())


def at_work(function: refill.Refill) -> go.Figure | Card:
    """The learner's refill in the engine, beside the package's policy; a sentence where it is empty or refused."""
    slots = int(FEW["slots"])
    few = Workload.poisson(FEW["rate"], int(FEW["num_requests"]), 1_024, lengths.lognormal(64, cv=1))
    try:
        mine = serve(few, refill.as_policy(function, slots), STEP)
    except Exception as error:  # whatever a learner's function raises
        said = "it returns nothing yet" if _empty(function) else str(error) or type(error).__name__
        return Card("Your refill does not run yet.", [f"{said[0].upper()}{said[1:].rstrip('.')}."])
    theirs = serve(few, three_policies(slots)["continuous"], STEP)
    return timelines({"yours": mine, "continuous": theirs}, follow=three_batchers.FOLLOWED, height=300)


def _empty(function: refill.Refill) -> bool:
    """Whether the function is still the stub."""
    try:
        return function({1: 1}, {2: 8}, 2) is None
    except Exception:
        return False
