"""What the notebook of lab 12 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from course.exercises import tasks_of
from course.explore import Choice, Explorer, Slider
from course.explore.live import MeasuringExplorer
from course.explore.table import Table, table
from course.lessons.lab12 import by_hand, figures, one_step, python_part, ticket, who_waits
from course.lessons.lab12.on_device import DEPENDENT, FORMS, GRAPH, LAUNCHES
from course.lessons.lab12.recorded import NAMES, brief, recording
from course.lessons.lab12.who_waits import AFTER, MODELS, PLANS

__all__ = [
    "copies",
    "every_size",
    "forms_of_our_model",
    "four_by_hand",
    "one_step_of_16",
    "pythons_part",
    "step_now",
    "ticket_graphs",
    "two_timelines",
    "where_tokens_are_chosen",
    "who_waits_for_whom",
]  # fmt: skip


def step_now() -> Table:
    """The question's table: a step of our small model, and its kernels."""
    now, card = recording().small("fp32", LAUNCHES), recording().small("fp32", DEPENDENT).queued
    rows = [
        ("", "one sequence"),
        ("a step", brief(now.wall)),
        ("its kernels, one behind the other", brief(card)),
        ("kernels", f"{recording().kernels('fp32')}"),
    ]
    return table(rows, f"our small model in fp32 [{recording().badge}]")


def one_step_of_16() -> Explorer:
    """A step of sixteen kernels in every form."""
    return Explorer(
        one_step.one_step,
        controls=[
            Choice("form", "Form", [(NAMES[form], form) for form in FORMS], LAUNCHES),
            Slider("work", "Terms of a kernel", one_step.WORKS[0], one_step.WORKS[-1], 4, one_step.WORKS[0], log=True),
        ],
        figure=figures.timeline,
        summary=one_step.rows,
        title="A step of sixteen kernels",
        badge=recording().badge,
        beside=False,
        **tasks_of("12", "one_step_of_16"),
    )


def who_waits_for_whom() -> Explorer:
    """Program and card, step after step."""
    return Explorer(
        who_waits.waits,
        controls=[
            Choice("model", "Model", [(name, name) for name in MODELS], MODELS[0]),
            Choice("form", "Form", [(NAMES[LAUNCHES], LAUNCHES), (NAMES[GRAPH], who_waits.GRAPH)], LAUNCHES),
            Choice("planned", "The next step is planned", [(name, name) for name in PLANS], AFTER),
            Slider("plan_ms", "Plan, inputs and tokens", 0.05, 0.8, 0.05, who_waits.PLAN_MS, unit="ms"),
        ],
        figure=figures.two_rows,
        summary=who_waits.rows,
        title="Who waits for whom?",
        badge="simulated on recorded steps: H200, 8 sequences; our model in bf16, fused",
        beside=False,
        **tasks_of("12", "who_waits_for_whom"),
    )


def pythons_part() -> Explorer:
    """Python's own part of a step on this machine, measured with each move, beside the recording."""
    shared: dict[str, Any] = {
        "controls": (
            Choice("batch", "Sequences", [(str(batch), batch) for batch in python_part.BATCHES], 8),
            Slider("launches", "Kernels of a step", 1, 128, 2, 32, log=True),
        ),
        "figure": figures.python_parts,
        "summary": python_part.rows,
        "title": "Python's part of a step",
        "badge": recording().badge,
        "beside": False,
    }
    bench = python_part.Bench(None)
    return MeasuringExplorer(Explorer(python_part.on_the_card, **shared), bench.measuring, **shared)


def forms_of_our_model() -> Table:
    """A step of our small model in every form."""
    rows: list[tuple[str, ...]] = [("a step for", "1", "8", "32 sequences")]
    for kind, form, name in (
        ("fp32", LAUNCHES, "fp32, 57 launches"),
        ("fp32", GRAPH, "fp32, a graph"),
        ("bf16", LAUNCHES, "bf16 and fused, 32 launches"),
        ("bf16", GRAPH, "bf16, a graph"),
        ("bf16", DEPENDENT, "bf16, a graph, dependent launch"),
    ):
        rows.append((name, *(brief(recording().small(kind, form, batch).wall) for batch in (1, 8, 32))))
    rows.append(("one persistent kernel, a token", *(brief(recording().persistent(batch)) for batch in (1, 8, 32))))
    return table(rows, f"until the program knows [{recording().badge}]")


def copies() -> Table:
    """A copy to the card from ordinary and from pinned memory."""
    rows: list[tuple[str, ...]] = [("copy to the card", "the call returns after", "the copy is done after")]
    for size, name in ((4_096, "4 KiB"), (1 << 20, "1 MiB"), (16 << 20, "16 MiB")):
        for kind in ("pageable", "pinned"):
            found = recording().copy(kind, size)
            rows.append((f"{name}, {kind}", brief(found["call"]), brief(found["wall"])))
    return table(rows, recording().badge)


def every_size() -> Table:
    """From the end of one kernel to the end of the next, by form and size."""
    rows: list[tuple[str, ...]] = [("terms", *(NAMES[form] for form in FORMS[1:]))]
    for work in one_step.WORKS:
        rows.append((f"{work:,}", *(f"{1e6 * recording().each(form, work):.2f} µs" for form in FORMS[1:])))
    return table(rows, f"one of 200 kernels, or of 200 turns [{recording().badge}]")


def where_tokens_are_chosen() -> Table:
    """A step of the small model whose tokens the card or the program chooses."""
    rows: list[tuple[str, ...]] = [("sequences", "step", "tokens chosen by the card", "by the program")]
    for batch in python_part.BATCHES:
        found = recording().host(batch)
        values = (found["step"], found["token chosen on the card"], found["token chosen here"])
        rows.append((str(batch), *(brief(value) for value in values)))
    return table(rows, f"our small model as a graph, until the program has them [{recording().badge}]")


def four_by_hand() -> go.Figure:
    """The case that is done by hand."""
    return figures.by_hand(by_hand.launched(), by_hand.graph())


def two_timelines() -> go.Figure:
    """The service of the decision, as it is."""
    return figures.two_rows(who_waits.waits())


def ticket_graphs() -> go.Figure:
    """The timeline of the ticket."""
    return figures.two_rows(ticket.now())
