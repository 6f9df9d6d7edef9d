"""What the notebook of lab 15 calls by name: explorers, tables and figures, each one line there."""

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
from course.figures.words import seconds
from course.lessons.lab15 import by_hand, decision, deeper, figures, game, live_words, mixed, orders, promises, tasks
from course.lessons.lab15.promises import (
    BADGE,
    BUDGET,
    BURSTS,
    DEFAULTS,
    FLAG,
    HOPELESS,
    IN_ORDER,
    MOST,
    NONE,
    POLICIES,
    RATE,
    SMALL,
    STEADY,
    TARGET,
)  # fmt: skip

__all__ = [
    "at_work", "bursts", "by_load", "few_slots", "four_by_hand", "metrics_page", "rejected", "the_step",
    "ticket_graphs", "two_orders", "urgent_questions", "which_policy", "who_can_make_it", "your_step_target",
]  # fmt: skip


def bursts() -> Table:
    """The service when chats come steadily, and when they come in bursts."""
    found = [promises.served(RATE, DEFAULTS, arrivals) for arrivals in (STEADY, BURSTS)]
    rows = [
        (f"{RATE} requests/s come", STEADY, BURSTS),
        ("both promises kept", *(f"{each.share:.0%}" for each in found)),
        ("first token in time", *(f"{each.in_time.mean():.0%}" for each in found)),
    ]
    return table(rows, f"one minute [{BADGE}]")


def who_can_make_it() -> Match:
    """Two slots and eight deadlines, played by hand."""
    return Match(game.DEADLINES, GameRecord("15", game.DEADLINES.id))


def which_policy() -> Explorer:
    """The rate, and the policy."""
    return Explorer(
        promises.served,
        controls=[
            Slider("rate", "Rate", tasks.LEAST, MOST, 1, RATE, "requests/s"),
            Choice("policy", "Policy", [(name, name) for name in POLICIES], DEFAULTS),
            Choice("arrivals", "Chats", [(name, name) for name in (BURSTS, STEADY)], BURSTS),
        ],
        figure=figures.promises,
        summary=promises.rows,
        title="Which policy keeps its promises?",
        badge=BADGE,
        **tasks_of("15", "which_policy"),
    )


def the_step() -> Explorer:
    """The storm with a step target, a token budget and an order."""
    return Explorer(
        promises.tuned,
        controls=[
            Slider("target", f"Target, {NONE}: none", 10, NONE, 1, NONE, "ms"),
            Slider("budget", "Budget", SMALL // 4, BUDGET, 2, BUDGET, "tokens", log=True),
            Choice("order", "Order", [(name, name) for name in (IN_ORDER, HOPELESS)], IN_ORDER),
        ],
        figure=figures.promises,
        summary=promises.rows,
        title="A shorter step",
        badge=BADGE,
        **tasks_of("15", "the_step"),
    )


def urgent_questions() -> Explorer:
    """The small language model answers on the machine at hand."""
    return live_words.explorer()


def four_by_hand() -> go.Figure:
    """Four requests on one slot, in two orders."""
    runs = {order: by_hand.served(order) for order in by_hand.ORDERS}
    due = ", ".join(f"{due:g}" for due in by_hand.DUE)
    return timelines(runs, height=300, note=f"one step = 1 s; all come at 0 s; due at {due} s")


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket: today beside yesterday."""
    return figures.operators_graphs(mixed.graphs(0), mixed.graphs(mixed.DOCUMENTS))


def metrics_page() -> Card:
    """What the engine of the decision reports."""
    heading = f"GET /metrics, simulated, {decision.AT:g} s into a burst"
    return Card(heading, [decision.page()], preformatted=True)


def at_work(function: orders.Own) -> Match | Card:
    """The learner's function on the board, step by step; a sentence for one that is empty or refused."""
    if tried(function, _empty, function)[0]:
        return Card("Your function returns nothing yet.")
    own = orders.Yours(function, game.SLOTS, game.TOKENS, game.PACE)
    found, said = tried(function, played, game.DEADLINES, own)
    if found is None:
        return Card("Your function does not run yet.", [said])
    return Match(game.DEADLINES, own=found, name="your order")


def by_load() -> Table:
    """The policy of the notes beside its smallest budget, by slots."""
    rows = [("slots", "largest load", "kept by load", "TPOT p95", f"kept with {FLAG}", "TPOT p95")]
    for slots in deeper.FEW:
        one, flag = deeper.served(deeper.BY_LOAD, slots), deeper.served(FLAG, slots)
        rows.append(
            (f"{slots:,}", f"{deeper.load(one):.2f}", f"{one.share:.0%}", seconds(one.tpot), f"{flag.share:.0%}",
             seconds(flag.tpot))
        )  # fmt: skip
    return table(rows, f"the storm under the notes' policy by load [{BADGE}]")


def two_orders() -> Table:
    """Orders on short steps, over five seeds."""
    rows = [("policy", *(f"seed {seed}" for seed in deeper.SEEDS), "longest wait")]
    for name in deeper.ORDERS:
        found = [deeper.served(name, seed=seed) for seed in deeper.SEEDS]
        rows.append((name, *(f"{one.share:.0%}" for one in found), seconds(max(one.longest for one in found))))
    return table(rows, f"both promises kept [{BADGE}]")


def rejected() -> Table:
    """The hopeless served last, and rejected."""
    found = [deeper.served(name) for name in (deeper.LAST_FLAG, deeper.REJECTING)]
    computed = [one.run.summary()["computed_tokens"] for one in found]
    rows = [
        ("", "hopeless last", "hopeless rejected"),
        ("both promises kept", *(f"{one.share:.0%}" for one in found)),
        ("requests answered", *(f"{one.run.answered.sum():,}" for one in found)),
        ("tokens computed", *(f"{tokens:,}" for tokens in computed)),
        ("chats' TTFT, p95, of those answered", *(seconds(deeper.answered_ttft(one)) for one in found)),
    ]
    return table(rows, f"budget {SMALL} [{BADGE}]")


def few_slots() -> Table:
    """The policies of the lab with a quarter of the slots."""
    rows = [("policy", *(f"{what}, {slots:,} slots" for what in ("kept", "TPOT p95") for slots in deeper.FEW[:2]))]
    for name in POLICIES:
        found = [deeper.served(name, slots) for slots in deeper.FEW[:2]]
        rows.append((name, *(f"{one.share:.0%}" for one in found), *(seconds(one.tpot) for one in found)))
    return table(rows, f"both promises kept [{BADGE}]")


def your_step_target(function: deeper.Own) -> Table | Card:
    """The storm with the learner's function beside the package's step target; a sentence for one that is empty."""
    if tried(function, function, lambda tokens: 0.0, 0.02, 1_024)[0] is None:
        return Card("Your function returns nothing yet.")
    found, said = tried(function, deeper.with_yours, function)
    if found is None:
        return Card("Your function does not run yet.", [said])
    own, ours = found, deeper.served(TARGET)
    rows = [
        ("", "yours", TARGET),
        ("both promises kept", f"{own.share:.0%}", f"{ours.share:.0%}"),
        ("TPOT, p95", seconds(own.tpot), seconds(ours.tpot)),
        ("longest step", *(seconds(float(one.run.steps.seconds.max())) for one in (own, ours))),
    ]
    return table(rows, f"the storm [{BADGE}]")


def _empty(function: orders.Own) -> bool:
    """Whether the function is still the stub."""
    return function([(1.0, 1)], 0.0, 1.0) is None
