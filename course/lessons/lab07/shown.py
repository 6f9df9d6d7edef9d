"""What lab 07 has at hand beside its explorers: tables, figures, and the recorded step times."""

from __future__ import annotations

import plotly.graph_objects as go

from course.engine.serving import serve
from course.exercises.cards import Card
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab07 import by_hand, decision, figures, long_prompt, rush, share
from course.lessons.lab07.long_prompt import DEFAULT, SLOTS, STALL, STEP, WHOLE
from course.steptime import Step

__all__ = ["STEP", "Step", "at_work", "four_by_hand", "metrics_page", "people_and_dashboard", "ticket_graphs"]

BUDGET, CAP = 2_048, 512  # tokens, where the learner's share is at work


def people_and_dashboard() -> Table:
    """The service with the engine's default budget and with one that holds any prompt."""
    found = [long_prompt.hidden(budget, 0, long_prompt.EVERY, 1e3 * STALL).outcome for budget in (DEFAULT, WHOLE)]
    rows = (
        ("gap between two tokens, p99", [seconds(each.itl["p99"]) for each in found]),
        ("longest gap", [seconds(each.itl["max"]) for each in found]),
        (f"chats whose text stopped for over {seconds(STALL)}", [f"{each.stalled():.1%}" for each in found]),
        ("TTFT of a contract", [seconds(each.long_ttft) for each in found]),
    )
    heads = ("", f"budget {DEFAULT:,}", f"budget {WHOLE:,}")
    return table([heads, *((label, *values) for label, values in rows)], f"1,600 chats [{STEP.badge}]")


def four_by_hand() -> go.Figure:
    """Four requests on a time axis: whole prompt, budget, budget and cap."""
    return figures.by_hand(by_hand.cases())


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket: today beside yesterday."""
    return figures.operators_graphs(rush.graphs(rush.BEFORE), rush.graphs(rush.NOW))


def metrics_page() -> Card:
    """What the engine of the decision reports of itself."""
    heading = (
        f"GET /metrics of the simulated engine, in the names of vLLM {decision.VERSION}, "
        f"{decision.SINCE:g} s after a contract came"
    )
    return Card(heading, [decision.metrics_page()], preformatted=True)


def at_work(function: share.Share) -> go.Figure | Card:
    """The learner's share in the engine, with a long prompt among chats; a sentence where it is empty or refused."""
    if _empty(function):
        return Card("Your share returns nothing yet.")
    policy = share.as_policy(function, SLOTS, BUDGET, CAP)
    try:
        theirs = long_prompt.moment(BUDGET, CAP, long_prompt.PROMPT, 12)
        mine = long_prompt.Moment(serve(theirs.run.workload, policy, STEP), theirs.start, theirs.streaming)
        return figures.moment(mine)
    except Exception as error:  # whatever a learner's function raises
        said = str(error) or type(error).__name__
        return Card("Your share does not run yet.", [f"{said[0].upper()}{said[1:].rstrip('.')}."])


def _empty(function: share.Share) -> bool:
    """Whether the function is still the stub."""
    try:
        return function([1], {2: 8}, 4, 2) is None
    except Exception:
        return False
