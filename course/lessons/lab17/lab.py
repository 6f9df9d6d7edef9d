"""What the notebook of lab 17 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from course.exercises import GameRecord, tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.board import played
from course.explore.board_view import Match
from course.explore.table import Table, table
from course.figures.timelines import timelines
from course.figures.words import seconds
from course.lessons.lab17 import by_hand, decision, deeper, figures, game, live_words, tenants, throttled, turns
from course.lessons.lab17.tenants import BADGE, CALM, FAIR, IN_ORDER, NONE, ORDERS, SLOTS
from course.models.engine_defaults import VERSION

__all__ = [
    "at_work", "come_again", "five_by_hand", "metrics_page", "serve_the_tenants", "shortest_first",
    "slots_and_a_gateway", "tenants_that_speak", "ticket_graphs", "two_engines", "who_waits", "your_prediction",
]  # fmt: skip


def serve_the_tenants() -> Match:
    """Two slots and three tenants, played by hand."""
    return Match(game.TENANTS, GameRecord("17", game.TENANTS.id))


def who_waits() -> Explorer:
    """The noisy tenant's rate, and the order in which the engine admits."""
    return Explorer(
        tenants.served,
        controls=[
            Slider("noisy", "N asks", 1, 40, 1, CALM, "requests/s"),
            Choice("order", "Order", [(name, name) for name in ORDERS], IN_ORDER),
            Slider("ageing", f"Ageing ({NONE}: none)", 0, NONE, 1, NONE, "s"),
            Choice("slots", "Slots", [(f"{slots:,}", slots) for slots in (SLOTS, 256)], SLOTS),
        ],
        figure=figures.waits,
        summary=tenants.rows,
        title="Who waits?",
        badge=BADGE,
        **tasks_of("17", "who_waits"),
    )


def slots_and_a_gateway() -> Explorer:
    """The storm with fewer slots, and with a token bucket for each tenant."""
    return Explorer(
        tenants.served,
        controls=[
            Slider("slots", "Slots", 16, SLOTS, 2, SLOTS, log=True),
            Choice("order", "Order (no gateway)", [(name, name) for name in ORDERS], FAIR),
            Slider("gateway", f"Gateway, {NONE}: none", 4, NONE, 2, NONE, "k tokens/s"),
        ],
        figure=figures.waits,
        summary=tenants.rows,
        title="Slots, and a gateway",
        badge=BADGE,
        **tasks_of("17", "slots_and_a_gateway"),
    )


def tenants_that_speak() -> Explorer:
    """The small language model answers three tenants on the machine at hand."""
    return live_words.explorer()


def five_by_hand() -> go.Figure:
    """Five requests on one slot, in two orders."""
    runs = {name: by_hand.served(name, 1) for name in by_hand.ORDERS}
    return timelines(runs, height=300, note="one step = 1 s; request 5 is A's")


def shortest_first() -> Table:
    """Who waits if the shortest answer comes first, with guesses of two kinds and with a cap."""
    rows: list[tuple[str, ...]] = [("", "TTFT, median", "p95", "longest", "E2E, mean", "tokens of who waited longest")]
    for name in deeper.NAMES:
        run = deeper.one_tenant(name)
        longest = run.workload.output_tokens[run.ttft.argmax()]
        rows.append((name, *map(seconds, deeper.waits(run)), seconds(float(run.e2e.mean())), f"{longest:,}"))
    return table(rows, f"one minute, {deeper.FEW} slots [{BADGE}]")


def come_again() -> Table:
    """A gateway where requests wait, and one that says when to come again."""
    found = [tenants.Outcome(deeper.gated(retry)) for retry in (False, True)]
    rows = [
        ("", "they wait at the gateway", "they are told to come again"),
        ("quiet: TTFT, p95", *(seconds(one.ttft) for one in found)),
        ("noisy: TTFT, p95", *(seconds(one.noisy_ttft) for one in found)),
        ("noisy: longest TTFT", *(seconds(float(one.run.ttft.max())) for one in found)),
        ("told to come again", *(f"{one.run.retries.sum():,}" for one in found)),
        ("of these one request, at most", *(f"{one.run.retries.max()}" for one in found)),
    ]
    return table(rows, f"the storm, buckets of {deeper.GATE:,} tokens/s [{BADGE}]")


def two_engines() -> Table:
    """The storm on two cards, by route."""
    rows = [("route", "quiet: TTFT, p95", "quiet: TPOT, p95", "noisy: TTFT, p95")]
    for name in deeper.ROUTES:
        one = deeper.routed(name)
        rows.append((name, seconds(one.ttft), seconds(one.tpot), seconds(one.noisy_ttft)))
    return table(rows, f"the storm on two cards, first come, first served [{BADGE}]")


def your_prediction(function: deeper.Own) -> Table | Card:
    """The storm with the learner's prediction at the door, with the package's, and without; or a sentence."""
    if tried(function, function, 0, 1, 1.0)[0] is None:
        return Card("Your function returns nothing yet.")
    found, said = tried(function, deeper.with_prediction, function)
    if found is None:
        return Card("Your function does not run yet.", [said])
    ours, all_ = (deeper.with_prediction(one) for one in (deeper.predicted, None))
    rows: list[tuple[str, ...]] = [("", "yours", "the package's", "nobody rejected")]
    for name, quiet in (("rejected of A, B, C", True), ("rejected of N", False)):
        here = [one.run.answered[one.quiet == quiet] for one in (found, ours, all_)]
        rows.append((name, *(f"{1 - one.mean():.0%}" for one in here)))
    for name, measure in (("TTFT, p95, of the answered", "ttft"), ("TPOT, p95", "tpot")):
        values = [getattr(one.run, measure) for one in (found, ours, all_)]
        rows.append((name, *(seconds(float(np.nanpercentile(one, 95))) for one in values)))
    return table(rows, f"the storm, {deeper.PROMISE_S:g} s promised [{BADGE}]")


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket: today beside yesterday."""
    return figures.operators_graphs(throttled.graphs(NONE), throttled.graphs(throttled.NOW))


def metrics_page() -> Card:
    """What the engine of the decision and its gateway report."""
    heading = f"GET /metrics, simulated in {VERSION}'s names, {decision.AT:g} s into the storm"
    return Card(heading, [decision.page()], preformatted=True)


def at_work(function: turns.Own) -> Match | Card:
    """The learner's function on the board, step by step; a sentence for one that is empty or refused."""
    if tried(function, _empty, function)[0]:
        return Card("Your function returns nothing yet.")
    found, said = tried(function, played, game.TENANTS, turns.Yours(function, game.SLOTS, game.TOKENS))
    if found is None:
        return Card("Your function does not run yet.", [said])
    return Match(game.TENANTS, own=found, name="your order")


def _empty(function: turns.Own) -> bool:
    """Whether the function is still the stub."""
    return function([("A", 1)], {"A": 0}) is None
