"""What the notebooks of lab 07 call by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

from dataclasses import replace

import plotly.graph_objects as go

from course.engine.serving import serve
from course.exercises import GameRecord, tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.board_view import Match
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab07 import by_hand, decision, figures, game, live_words, long_prompt, recorded_stops, rush, share
from course.lessons.lab07.long_prompt import BADGE, DEFAULT, SLOTS, STALL, STEP, WHOLE
from course.models.engine_defaults import VERSION
from course.steptime import Step

__all__ = [
    "STEP", "Step", "at_work", "four_by_hand", "hand_out_tokens", "metrics_page", "one_long_prompt",
    "people_and_dashboard", "ticket_graphs", "vllm_stops", "what_a_percentile_hides", "words_that_stop",
]  # fmt: skip

CAPS = [("none", 0), ("1,024 tokens", 1_024), ("512 tokens", 512), ("256 tokens", 256)]
MET = [("no", 0), (f"{long_prompt.CLASS} chats", long_prompt.CLASS)]
LIMITS = (
    Slider("max_num_batched_tokens", "Token budget", 128, WHOLE, 2, WHOLE, "tokens", log=True),
    Choice("long_prefill_token_threshold", "Cap for one prompt", CAPS, 0),
)
AT_WORK = 2_048, 512  # budget and cap where the learner's share is at work


def people_and_dashboard() -> Table:
    """The service with the engine's default budget and with one that holds any prompt."""
    found = [long_prompt.served(budget) for budget in (DEFAULT, WHOLE)]
    rows = [
        ("", f"budget {DEFAULT:,}", f"budget {WHOLE:,}"),
        ("gap, p99", *(seconds(each.itl["p99"]) for each in found)),
        ("longest gap", *(seconds(each.itl["max"]) for each in found)),
        (f"chats that stop for over {seconds(STALL)}", *(f"{each.stalled():.1%}" for each in found)),
    ]
    return table(rows, f"{len(found[0].chat_gaps):,} chats [{STEP.simulated}]")


def hand_out_tokens() -> Match:
    """100 tokens a step and a prompt of 90 among decodes, played by hand."""
    return Match(game.BUDGET, GameRecord("07", game.BUDGET.id))


def one_long_prompt() -> Explorer:
    """One long prompt among streaming chats, step by step."""
    return Explorer(
        long_prompt.moment,
        controls=[
            *LIMITS,
            Slider("at_once", "Long prompts", 1, long_prompt.MEET, 1, 1),
            Choice("crowd", "A class", MET, 0),
        ],
        figure=figures.moment,
        summary=long_prompt.moment_rows,
        title="One long prompt",
        badge=BADGE,
        **tasks_of("07", "one_long_prompt"),
    )


def what_a_percentile_hides() -> Explorer:
    """The gaps between tokens, counted by tokens and by chats."""
    return Explorer(
        long_prompt.hidden,
        controls=[
            *LIMITS,
            Slider("every", "Long prompt every", 2, 60, 1, 20, "s"),
            Slider("limit_ms", "Stall: a gap above", 10, 1_000, 10, 100, "ms"),
        ],
        figure=figures.hidden,
        summary=long_prompt.hidden_rows,
        title="Gaps, counted twice",
        badge=BADGE,
        **tasks_of("07", "what_a_percentile_hides"),
    )


def words_that_stop() -> Explorer:
    """The small language model tells stories on the machine at hand while a long prompt is computed."""
    return live_words.explorer()


def vllm_stops() -> go.Figure:
    """The same in vLLM itself: the gaps of one answer of the small model, at two budgets."""
    return figures.one_answer([recorded_stops.answer(load) for load in recorded_stops.LOADS], recorded_stops.label())


def four_by_hand() -> go.Figure:
    """Four requests on a time axis: whole prompt, budget, budget and cap."""
    return figures.by_hand(by_hand.cases())


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket: today beside yesterday."""
    return figures.operators_graphs(rush.graphs(rush.BEFORE), rush.graphs(rush.NOW))


def metrics_page() -> Card:
    """What the engine of the decision reports of itself."""
    heading = f"GET /metrics, simulated in {VERSION}'s names, {decision.SINCE:g} s after a contract"
    return Card(heading, [decision.metrics_page()], preformatted=True)


def at_work(function: share.Share) -> go.Figure | Card:
    """The learner's share in the engine, with a long prompt among chats; a sentence where it is empty or refused."""
    empty, _ = tried(function, _empty, function)
    if empty:
        return Card("Your share returns nothing yet.")
    theirs = long_prompt.moment(*AT_WORK)
    mine, said = tried(function, serve, theirs.run.workload, share.as_policy(function, SLOTS, *AT_WORK), STEP)
    if mine is None:
        return Card("Your share does not run yet.", [said])
    return figures.moment(replace(theirs, run=mine))


def _empty(function: share.Share) -> bool:
    """Whether the function is still the stub."""
    return function([1], {2: 8}, 4, 2) is None
