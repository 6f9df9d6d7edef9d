"""The live view of lab 07: two chats of the small language model, a long question among them, and a newcomer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from course import lm
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.compared import cells, said, where
from course.explore.tasks import Settings
from course.explore.words import Spoken, WordsExplorer, words_on_the_screen
from course.figures.words import seconds
from course.lessons.lab07.long_prompt import STEP
from course.lm.prompts import as_workload, held_out_prompts
from course.policies.continuous import Continuous

PLACES = (2, 57, 67, 4)
"""Of the committed prompts: two chats with long answers, a conversation of 186 tokens, a short question."""
CHATS, LONG, NEWCOMER = (0, 1), 2, 3
RATE, SLOTS, SEED = 32, 4, 15
"""At the start: requests/s, so that both chats stream when the long question comes, and slots enough for everybody."""
PROMPTS = [held_out_prompts()[place] for place in PLACES]
TURNS = [prompt.turns for prompt in PROMPTS]
SETTINGS = {"budget 512": (512, 0), "budget 32": (32, 0), "512, cap 32": (512, 32)}
"""Token budget and cap for one prompt, 0 for none, by name."""


def policy(name: str, max_num_seqs: int) -> Continuous:
    """Continuous batching with one of `SETTINGS`."""
    budget, cap = SETTINGS[name]
    return Continuous(max_num_seqs, budget, long_prefill_token_threshold=cap)


def view() -> WordsExplorer:
    """The view, with a table of gaps and first tokens here and on the recorded card.

    A model that cannot be loaded leaves the recording and a sentence. As text, all three runs are counted in steps.
    """
    return words_on_the_screen(
        TURNS,
        policy="budget 512",
        rate=RATE,
        max_num_seqs=SLOTS,
        seed=SEED,
        choices={name: lambda slots, name=name: (policy(name, slots), None) for name in SETTINGS},
        tasks=(),
        compare=rows,
        title="A long question among two chats",
    )


def recorded(rate: float, max_num_seqs: int) -> dict[str, Run]:
    """The same arrivals and as many tokens on the recorded steps, by setting. LMError without the tokenizer."""
    load = as_workload(PROMPTS, lm.Questions.poisson(TURNS, rate, SEED).arrival)
    return {name: serve(load, policy(name, max_num_seqs), STEP) for name in SETTINGS}


def longest_gap(run: Run) -> float:
    """The longest time [s] between two tokens of a chat."""
    return max(float(np.diff(run.token_times(chat)).max()) for chat in CHATS)


def rows(settings: Settings, spoken: Mapping[str, Spoken]) -> list[tuple[str, ...]]:
    """Longest gap of the chats on the card and here, first tokens, and whether the words are the same."""
    card, names = recorded(settings["rate"], settings["max_num_seqs"]), list(SETTINGS)
    gaps = {name: one.time(longest_gap(one.run)) for name, one in spoken.items()}
    first = {
        who: {name: one.time(float(one.run.ttft[who])) for name, one in spoken.items()} for who in (LONG, NEWCOMER)
    }
    return [
        ("", *names),
        (f"longest gap, recorded: {STEP.card.split()[1]}", *(seconds(longest_gap(run)) for run in card.values())),
        (f"longest gap, {where(spoken)}", *cells(gaps, names)),
        ("TTFT of the long question, here", *cells(first[LONG], names)),
        ("TTFT of the newcomer, here", *cells(first[NEWCOMER], names)),
        ("words", *cells(said(spoken, names), names)),
    ]
