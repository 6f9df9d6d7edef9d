"""What the notebook of lab 18 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go

from course.exercises import tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab18 import capstone, decision, figures, own, service, tasks
from course.lessons.lab18.decision import start_again
from course.lessons.lab18.design import ROUTING, Design
from course.lessons.lab18.scoring import Score, blocks, score, step_time
from course.lessons.lab18.service import day

__all__ = [
    "Design", "Score", "at_work", "day", "how_many_cards", "other_days", "promises", "report", "score", "scored",
    "start_again", "ticket_graphs", "where_from", "which_flags",
]  # fmt: skip

BADGE = "simulated: H100 and H200 recorded, the rest modelled"


def promises() -> Table:
    """What each class is promised, and how many of it come."""
    load = day()
    rows = [("", "TTFT", "TPOT", "requests", "prompt, mean", "answer, mean")]
    for name, promise in service.PROMISES.items():
        here = np.asarray(load.class_ == name)
        rows.append((
            name, seconds(promise.ttft), seconds(promise.tpot), f"{here.sum():,}",
            f"{load.prompt_tokens[here].mean():,.0f} tokens", f"{load.output_tokens[here].mean():,.0f} tokens",
        ))  # fmt: skip
    return table(rows, f"the seen day: {service.SECONDS:g} s of it")


def rows_of(found: Score) -> list[tuple[str, str]]:
    """The table of an explorer."""
    (chat, pace), (docs, slow) = (found.p95(name) for name in service.PROMISES)
    return [
        *((f"{name} within promise", f"{share:.1%}") for name, share in found.share.items()),
        ("chat: TTFT, TPOT, p95", f"{seconds(chat)}, {seconds(pace)}"),
        ("docs: TTFT, TPOT, p95", f"{seconds(docs)}, {seconds(slow)}"),
        ("found in a cache", f"{found.hit_rate:.0%} of prompts"),
        ("dollars an hour", f"{found.design.dollars_an_hour:.2f}"),
        ("score", f"{found.score:,.0f}"),
    ]


def how_many_cards() -> Explorer:
    """The defaults of vLLM on other fleets, on the day before."""
    start = tasks.FLEET
    return Explorer(
        tasks.fleet,
        controls=[
            Choice("card", "Card", list(service.PRICES), start["card"]),
            Slider("replicas", "Engines", 1, 8, 1, start["replicas"]),
            Slider("drafts", "Drafts a step", 0, 4, 1, start["drafts"], "tokens"),
            Choice("kv", "KV type", ["auto", "fp8"], start["kv"]),
        ],
        figure=figures.promises,
        summary=rows_of,
        title="How many of which card?",
        badge=BADGE,
        **tasks_of("18", "how_many_cards"),
    )


def which_flags() -> Explorer:
    """Two H100 under other flags, on the day before."""
    start = tasks.FLAGS
    return Explorer(
        tasks.flags,
        controls=[
            Choice("cap", "Cap of a prompt", [("none", 0), ("256", 256), ("512", 512), ("1,024", 1_024)], start["cap"]),
            Slider("slots", "Slots", 16, start["slots"], 2, start["slots"], log=True),
            Choice("routing", "Routing", list(ROUTING), start["routing"]),
            Choice("cached", "Prefix caching", [("on", True), ("off", False)], start["cached"]),
        ],
        figure=figures.promises,
        summary=rows_of,
        title="Which flags?",
        badge=BADGE,
        **tasks_of("18", "which_flags"),
    )


def where_from() -> Table:
    """Of each card: where its step times come from, its KV blocks, its price."""
    rows = [("card", "step times", "KV blocks, with fp8", "dollars an hour")]
    for card, price in service.PRICES.items():
        both = f"{blocks(card):,}, {blocks(card, kv_cache_dtype='fp8'):,}"
        rows.append((card, step_time(card).badge, both, f"{price:.2f}, assumed"))
    return table(rows, "what is recorded, what is modelled and what is assumed")


def other_days() -> go.Figure:
    """Three designs on days that nobody has seen."""
    return figures.other_days()


def ticket_graphs() -> go.Figure:
    """What comes with the ticket."""
    return figures.ticket()


def scored(design: Design) -> Card:
    """Score a design on the seen day, and show the count."""
    found, said = tried(decision.scored, decision.scored, design)
    if found is None:
        return Card("Nothing was scored.", [said])
    return Card(
        f"score {found.score:,.0f}: {decision.standing()}",
        ["\n".join(f"{name}: {value}" for name, value in rows_of(found))],
        preformatted=True,
    )


def report(design: Design) -> Card:
    """The page that is handed over. The design is kept, for `course progress --export`."""
    found, said = tried(decision.report, decision.report, design)
    if found is None:
        return Card("There is no design to report yet.", [said])
    capstone.keep(design)
    return Card("Report", [found], preformatted=True)


def at_work(order: Callable) -> Table | Card:
    """The learner's order on one H200, beside first come, first served."""
    if tried(order, own.empty, order)[0]:
        return Card("Your function returns nothing yet.")
    found, said = tried(order, own.compared, order)
    return table(found, "one H200, the day before [simulated]") if found else Card("It does not run yet.", [said])
