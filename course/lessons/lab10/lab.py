"""What the notebooks of lab 10 call by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from course.exercises import GameRecord, tasks_of
from course.explore import Choice, Explorer, Slider
from course.explore.board_view import Match
from course.lessons.lab10 import by_hand, chats, evening, figures, game, one_prompt, tasks
from course.lessons.lab10.decision import log as log_of_vllm
from course.lessons.lab10.documents import sixty_documents
from course.lessons.lab10.forked import one_agent
from course.lessons.lab10.live_words import words_again
from course.lessons.lab10.lookup import block_key, keys_of
from course.lessons.lab10.replicas import four_replicas

__all__ = [
    "block_key", "chats_that_return", "four_prompts", "four_replicas", "keys_of", "log_of_vllm", "one_agent",
    "one_system_prompt", "sixty_documents", "ticket_graphs", "two_manuals", "words_again",
]  # fmt: skip


def one_system_prompt() -> Explorer:
    """The same requests with prefix caching and without: tokens/s, TTFT, blocks."""
    rates: list[Any] = [("all at once", one_prompt.AT_ONCE), (f"{tasks.LIGHT:g} requests/s", tasks.LIGHT)]
    return Explorer(
        one_prompt.both,
        controls=[
            Choice("answer", "Tokens of an answer", [20, 50, 100, 200, 500, 1_000], tasks.PROMPT["answer"]),
            Choice("rate", "They come", rates, one_prompt.AT_ONCE),
            Choice("block_size", "Tokens of a block", [16, 128, 512, 2_048], tasks.PROMPT["block_size"]),
        ],
        figure=figures.time_spent,
        summary=one_prompt.rows,
        title="One system prompt, 600 requests",
        badge=one_prompt.STEP.simulated,
        beside=True,
        **tasks_of("10", "one_system_prompt"),
    )


def chats_that_return() -> Explorer:
    """Chats of five turns, and a pool in which their history may still be."""
    return Explorer(
        chats.returned,
        controls=[
            Slider("num_blocks", "Blocks in the pool", 2_000, 54_000, 2_000, tasks.CHATS["num_blocks"]),
            Slider("pause", "Pause between two turns", 15.0, 90.0, 15.0, tasks.CHATS["pause"], unit="s"),
            Choice("pause_cv", "Pauses", [("all as long (agents)", chats.AGENTS), ("CV 1 (people)", chats.PEOPLE)],
                   chats.AGENTS),
        ],
        figure=figures.by_turn,
        summary=chats.rows,
        title="150 chats of five turns",
        badge=one_prompt.STEP.simulated,
        beside=True,
        **tasks_of("10", "chats_that_return"),
    )  # fmt: skip


def two_manuals() -> Match:
    """Six questions about two manuals, admitted by hand in a pool that holds one."""
    return Match(game.PREFIXES, GameRecord("10", game.PREFIXES.id))


def four_prompts() -> go.Figure:
    """The case that is done by hand."""
    return figures.by_hand(by_hand.small())


def ticket_graphs() -> go.Figure:
    """What comes with the ticket."""
    return figures.dashboard(evening.evening(evening.BEFORE), evening.evening(evening.SINCE))
