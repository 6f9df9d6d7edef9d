"""What the notebook of lab 06 calls by name: explorers, the board, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import GameRecord, tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.board import played
from course.explore.board_view import Match
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab06 import (
    agents,
    by_hand,
    decision,
    figures,
    figures_deeper,
    fill,
    game,
    one_launch,
    over_time,
    tasks,
    two_orders,
)
from course.lessons.lab06.draws import slots_taken, told_apart
from course.lessons.lab06.give_way import answers_give_way, every_kth_step, long_prompts_yield
from course.lessons.lab06.two_orders import BADGE, BUDGET, FIRST, MIXED, ORDERS, RATE, RULES, SLOTS, STEP

__all__ = [
    "a_share_for_prompts", "answers_give_way", "at_work", "engine_log", "every_kth_step", "four_by_hand",
    "long_prompts_yield", "one_launch_or_two", "service_now", "slots_taken", "ticket_graphs", "told_apart",
    "what_steps_hold", "who_goes_first", "whose_turn",
]  # fmt: skip

SEATS = [("64", tasks.FEW), ("256", SLOTS), ("1,024", 1_024)]


def service_now() -> Table:
    """The service as it is, with mixed batches."""
    found = two_orders.served(MIXED)
    rows = [
        ("", "mixed"),
        ("mean TTFT", seconds(found.ttft)),
        ("ITL, p99", seconds(found.itl_p99)),
        ("mean E2E", f"{found.e2e:.2f} s"),
        ("slots taken, at most", f"{found.run.steps.running.max()} of {SLOTS}"),
    ]
    return table(rows, f"{len(found.run):,} requests [{STEP.simulated}]")


def whose_turn() -> Match:
    """Two readers and three prompts, played by hand."""
    return Match(game.ORDER, GameRecord("06", game.ORDER.id))


def who_goes_first() -> Explorer:
    """Both orders, with a budget: what the steps around the longest gap held."""
    return Explorer(
        two_orders.who_goes_first,
        controls=[
            Choice("order", "Order", list(ORDERS), FIRST),
            Slider("max_num_batched_tokens", "Token budget", 512, BUDGET, 2, BUDGET, "tokens", log=True),
        ],
        figure=figures.composition,
        summary=two_orders.order_rows,
        title="Who goes first",
        badge=BADGE,
        beside=True,
        **tasks_of("06", "who_goes_first"),
    )


def a_share_for_prompts() -> Explorer:
    """Rules for what prompts get, at a rate and with some slots: gaps against first tokens."""
    return Explorer(
        two_orders.a_share_for_prompts,
        controls=[
            Choice("rule", "Prompts get", [(_words(rule), rule) for rule in RULES], MIXED),
            Slider("rate", "Arrival rate", 8, 18, 1, RATE, unit="requests/s"),
            Choice("max_num_seqs", "Slots", SEATS, SLOTS),
        ],
        figure=figures.rules,
        summary=two_orders.share_rows,
        title="A share for prompts",
        badge=BADGE,
        beside=True,
        **tasks_of("06", "a_share_for_prompts"),
    )


def _words(rule: str) -> str:
    if rule == MIXED:
        return "all that decodes leave (mixed)"
    return f"{rule} of the budget" if rule in two_orders.SHARES else rule


def what_steps_hold() -> Explorer:
    """What the steps of a run held, second by second."""
    return Explorer(
        over_time.what_steps_held,
        controls=[
            Choice("order", "Order", list(ORDERS), MIXED),
            Slider("max_num_batched_tokens", "Token budget", 512, BUDGET, 2, BUDGET, "tokens", log=True),
            Slider("rate", "Arrival rate", 8, 18, 1, RATE, unit="requests/s"),
        ],
        figure=figures_deeper.over_time,
        summary=over_time.rows,
        title="What the steps hold",
        badge=BADGE,
        beside=True,
    )


def one_launch_or_two() -> Explorer:
    """Decodes and a prompt launched apart and together, here and as recorded."""
    return one_launch.launch_explorer()


def four_by_hand() -> go.Figure:
    """The case that is done by hand."""
    return figures.by_hand(by_hand.cases())


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket: now beside last week."""
    return figures.operators_graphs(agents.graphs(agents.BEFORE), agents.graphs(agents.NOW))


def engine_log() -> Card:
    """Some lines that the engine of the decision writes."""
    return Card("Log, simulated in SGLang's words, shortened", [decision.log()], preformatted=True)


def at_work(function: fill.Fill) -> Match | Card:
    """The board, played by the learner's fill; a sentence where it is empty or stopped."""
    empty, _ = tried(function, _empty, function)
    if empty:
        return Card("Your fill returns nothing yet.")
    policy = fill.as_policy(function, game.SLOTS, game.TOKENS, game.SHARE)
    found, said = tried(function, played, game.REPLAYED, policy)
    if found is None:
        return Card("Your fill does not run yet.", [said])
    return Match(game.REPLAYED, own=found, name="your fill")


def _empty(function: fill.Fill) -> bool:
    """Whether the function is still the stub."""
    return function([1], {2: 8}, 8, 0.5) is None
