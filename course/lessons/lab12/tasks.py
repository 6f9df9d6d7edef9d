"""Lab 12: what its two explorers ask of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.lessons.lab12 import one_step as steps
from course.lessons.lab12 import who_waits
from course.lessons.lab12.on_device import DEPENDENT, LAUNCHES, PERSISTENT
from course.lessons.lab12.one_step import OneStep
from course.lessons.lab12.recorded import LARGE, SMALL, brief, recording
from course.lessons.lab12.who_waits import AFTER, GRAPH, PLAN_MS, Waits

BUSY, ALL, HALF = 0.9, 0.985, 0.5
SMALLEST = steps.WORKS[0]

# One step


def idle(settings: Settings, result: OneStep) -> float:
    """Microseconds between two ends in which no kernel computes."""
    return result.every - result.kernel


def host_bound(settings: Settings, result: OneStep) -> bool:
    """Whether a kernel ends as often as the program makes a call, within a fifth."""
    begins = [begin for begin, _ in result.calls]
    each = (begins[-1] - begins[0]) / (len(begins) - 1)
    return abs(each / result.every - 1) < 0.2


def hidden(settings: Settings, result: OneStep) -> bool:
    """Whether launched kernels compute for most of the time."""
    return result.form == LAUNCHES and result.busy >= BUSY


def graph_gains_little(settings: Settings, result: OneStep) -> bool:
    """Whether a graph shortens such a step by less than a tenth."""
    return steps.one_step(DEPENDENT, result.work).wall > 0.9 * result.wall


def shortest(settings: Settings, result: OneStep) -> bool:
    """Whether no other form has a shorter step with the smallest kernels."""
    return result.work == SMALLEST and result.form == steps.shortest(SMALLEST)


def begins_early(settings: Settings, result: OneStep) -> bool:
    """Whether kernels begin before the one before has ended."""
    ends = [begin + length for begin, length in result.kernels]
    return sum(begin < end for (begin, _), end in zip(result.kernels[1:], ends, strict=False)) > 10


def no_faster(settings: Settings, result: OneStep) -> bool:
    """Whether a turn of the persistent kernel takes as long as a kernel of the graph, within a fifth, and no less."""
    other = recording().each(DEPENDENT, result.work)
    return result.form == PERSISTENT and 1 <= recording().each(PERSISTENT, result.work) / other < 1.2


def step(settings: Settings, result: OneStep) -> Mapping[str, Any]:
    """What the answers name."""
    each = {form: f"{1e6 * recording().each(form, result.work):.2f} µs" for form in (DEPENDENT, PERSISTENT)}
    return {
        "idle": f"{idle(settings, result):.1f} µs",
        "kernel": f"{result.kernel:.1f} µs",
        "every": f"{result.every:.1f} µs",
        "busy": f"{result.busy:.0%}",
        "wall": f"{result.wall:.0f} µs",
        "graph": f"{steps.one_step(DEPENDENT, result.work).wall:.0f} µs",
        "dependent": each[DEPENDENT],
        "persistent": each[PERSISTENT],
        "launched": f"{steps.one_step(LAUNCHES, result.work).wall:.0f} µs",
    }


# Who waits


def card_waits(settings: Settings, result: Waits) -> float:
    """Milliseconds of a step in which the card does not compute."""
    return 1e3 * (result.step - result.card)


def plan_alone(settings: Settings, result: Waits) -> bool:
    """Whether nearly all of that is the program's plan."""
    return 0.8 < result.plan / (result.step - result.card) < 1


def always(settings: Settings, result: Waits) -> bool:
    """Whether the card of the 8B computes nearly all of the time, with the same program."""
    return result.model == LARGE and settings["plan_ms"] == PLAN_MS and result.busy >= ALL


def not_by_the_graph(settings: Settings, result: Waits) -> bool:
    """Whether the graph alone leaves the card waiting as long."""
    graph, now = (who_waits.waits(LARGE, form, AFTER) for form in (GRAPH, LAUNCHES))
    return graph.step > 0.99 * now.step


def half(settings: Settings, result: Waits) -> bool:
    """Whether the card computes for half of the small model's time."""
    return result.model == SMALL and result.busy >= HALF


def needs_all_three(settings: Settings, result: Waits) -> bool:
    """Whether each of the three changes alone leaves the card at less than half."""
    alone = (
        who_waits.waits(SMALL, GRAPH, AFTER),
        who_waits.waits(SMALL, LAUNCHES, result.planned),
        who_waits.waits(SMALL, LAUNCHES, AFTER, 1e3 * result.plan),
    )
    return all(one.busy < HALF for one in alone)


def queued_in_time(settings: Settings, result: Waits) -> bool:
    """Whether starting all kernels takes much less time than computing them."""
    return result.start < 0.4 * result.card or who_waits.spent(LARGE, LAUNCHES).host < 0.4 * result.card


def two(settings: Settings, result: Waits) -> Mapping[str, Any]:
    """What the answers name."""
    launched = who_waits.spent(result.model, LAUNCHES).host
    return {
        "waits": brief(result.step - result.card),
        "plan": brief(result.plan),
        "step": brief(result.step),
        "busy": f"{result.busy:.0%}",
        "program": f"{result.program:.0%}",
        "card": brief(result.card),
        "launched": brief(launched),
        "graph": brief(who_waits.waits(LARGE, GRAPH, AFTER).step),
        "before": brief(who_waits.waits(LARGE, LAUNCHES, AFTER).step),
    }
