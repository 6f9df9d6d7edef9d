"""One task of each kind over a simulation that can be done by hand: the load is rate / 40."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from course.explore import Explorer, Slider
from course.explore.tasks import Find, Read, Why

RATE = Slider("rate", "Arrival rate", 1, 50, 1, 20, "requests/s")
SLOTS = Slider("slots", "Slots", 1, 64, 2, 32, log=True)


def simulate(rate: int, slots: int) -> dict[str, float]:
    return {"load": rate / 40, "wait": rate / 1000}


def facts(settings: Any, result: Any) -> dict[str, str]:
    return {"load": f"{result['load']:.0%}"}


FIND = Find(
    id="full",
    text="Find a setting with a load of 90% or more.",
    show={"rate": 36},
    reached=lambda settings, result: result["load"] >= 0.9,
    facts=facts,
    miss="The load is {load} here.",
    answer="The load is {load}.",
)
READ = Read(
    id="wait",
    text="With 30 requests/s, how long is the wait?",
    show={"rate": 30},
    value=lambda settings, result: 1e3 * result["wait"],
    unit="ms",
    where=lambda settings, result: settings["rate"] == 30,
    facts=facts,
    slips=((2.0, "That is there and back."),),
    answer="At a load of {load}.",
)
WHY = Why(
    id="why",
    text="Why?",
    show={"rate": 10},
    options=(("It rains.", "Look at the rate."), ("Few come.", ""), ("Many leave.", "Nobody leaves here.")),
    right="b",
    facts=facts,
    answer="The load is only {load}.",
)
TASKS = (FIND, READ, WHY)


def figure(result: dict[str, float]) -> go.Figure:
    return go.Figure(go.Scatter(y=[0.0, result["load"]]), layout={"height": 300})


def summary(result: dict[str, float]) -> list[tuple[str, str]]:
    return [("load", f"{result['load']:.3f}"), ("wait", f"{1e3 * result['wait']:.0f} ms")]


def explorer(tasks: Any = TASKS, **other: Any) -> Explorer:
    """Return an explorer with these tasks. other: instead of its own parts."""
    parts = {"simulate": simulate, "figure": figure, "summary": summary, "title": "A toy"} | other
    return Explorer(controls=[RATE, SLOTS], tasks=tasks, **parts)
