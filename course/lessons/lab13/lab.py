"""What the notebook of lab 13 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import tasks_of
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.lessons.lab13 import deeper, figures, pays, spoken, tasks
from course.lessons.lab13.decision import page
from course.lessons.lab13.spoken import measured_here

__all__ = [
    "answers_seen", "measured_here", "page", "pays_off", "shared_steps", "three_steps", "ticket_graphs", "ties",
    "with_drafts", "your_verification",
]  # fmt: skip


def pays_off() -> Explorer:
    """What drafts gain in one step, by who drafts, how many, and the batch."""
    return Explorer(
        pays.pays,
        controls=[
            Choice("drafter", "Who drafts", list(pays.DRAFTERS), tasks.STEP["drafter"]),
            Slider("k", "Drafts a step", 1, pays.MOST, 1, tasks.STEP["k"], "tokens"),
            Slider("accept", "Acceptance", 0.1, 0.9, 0.1, tasks.STEP["accept"]),
            Slider("batch", "Batch", 1, pays.BATCHES[-1], 2, tasks.STEP["batch"], "sequences", log=True),
        ],
        figure=figures.pays_off,
        summary=pays.rows,
        title="When drafts pay",
        badge=f"{pays.STEP.simulated}; the head modelled",
        beside=False,
        **tasks_of("13", "pays_off"),
    )


def shared_steps() -> Explorer:
    """Requests with drafts in shared steps: who is faster than without, and who is slower."""
    return Explorer(
        pays.served,
        controls=[
            Choice("requests", "Requests at once", [1, 4, 16, 64, 128], tasks.SERVED["requests"]),
            Slider("k", "Drafts a step", 0, pays.MOST, 1, tasks.SERVED["k"], "tokens"),
            Choice("mix", "Acceptance", [("0.6 for all", "all alike"), ("0.9 and 0.3", "half and half")], "all alike"),
        ],
        figure=figures.shared_steps,
        summary=pays.served_rows,
        title="Requests that share steps",
        badge=pays.STEP.simulated,
        beside=True,
        **tasks_of("13", "shared_steps"),
    )


def with_drafts() -> Explorer:
    """The small model speaks with drafts, coloured."""
    return Explorer(
        spoken.speak,
        controls=[
            Choice("prompt", "Answer", list(spoken.PROMPTS), "a story"),
            Choice("draft", "Drafts from", [spoken.DRAFT, spoken.SUFFIX], spoken.DRAFT),
            Slider("k", "Drafts a step", 1, 8, 1, 4, "tokens"),
            Slider("seen", "Seen before", 0, 70, 10, 30, "answers"),
        ],
        figure=figures.words,
        summary=spoken.rows,
        title="The small model speaks with drafts",
        unused={"seen": ("draft", [spoken.DRAFT])},
        badge="measured: the language model computes here",
        beside=True,
    )


def three_steps() -> go.Figure:
    """What three steps with drafts take and give, alone and with others."""
    return figures.three_steps(pays.pays(), pays.pays(batch=tasks.SHARED))


def ticket_graphs() -> go.Figure:
    """What comes with the ticket."""
    return figures.ticket()


def ties() -> Table:
    """The acceptance at which drafts neither gain nor lose, by who drafts and the batch."""
    rows = [(f"{deeper.K} drafts, batch", *(f"{batch}" for batch in deeper.TIED))]
    for drafter in pays.DRAFTERS:
        rows.append((drafter, *(f"{pays.tie(drafter, batch, deeper.K):.2f}" for batch in deeper.TIED)))
    return table(rows, f"acceptance at which they tie with none [{pays.STEP.simulated}; the head modelled]")


def answers_seen() -> Table:
    """What suffixes gain alone once many answers of the same kinds were seen."""
    rows = [("answers seen", "accepted", "times the tokens/s, alone")]
    for seen, share in deeper.suffixes_seen().items():
        gain = pays.pays(pays.SUFFIX, deeper.K, share, 1).speed_up
        rows.append((f"{seen:,}", f"{share:.0%}", f"{gain:.2f}"))
    return table(rows, f"{deeper.K} drafts [acceptance measured on the small model's texts; {pays.STEP.simulated}]")


def your_verification(step: deeper.Step) -> Table | Card:
    """An answer of the small model with the learner's step beside the package's; a sentence for one that is empty."""
    if tried(step, step, [1], [1], lambda tokens: [1] * len(tokens))[0] is None:
        return Card("Your function returns nothing yet.")
    own, said = tried(step, deeper.by_hand, step)
    if own is None:
        return Card("Your function does not run yet.", [said])
    if own.wrong:
        return Card("The words are not the model's own.", [own.wrong])
    ours = deeper.by_hand(deeper.verified)
    rows = [
        ("", "yours", "the package's"),
        ("words", "the model's own", "the model's own"),
        ("steps", f"{own.steps}", f"{ours.steps}"),
        ("passes of the model", f"{own.passes}", f"{ours.passes}"),
        ("tokens a step", f"{own.tokens / own.steps:.2f}", f"{ours.tokens / ours.steps:.2f}"),
    ]
    return table(rows, "a story [measured: the model computes here]")
