"""The live view of lab 07: the small language model tells four stories, and a long prompt comes, beside an H200."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import numpy as np

from course import lm, policies
from course.explore.controls import Slider
from course.explore.table import Rows, rows_of
from course.explore.tasks import Settings
from course.explore.words import Spoken, WordsExplorer
from course.figures.words import seconds
from course.lessons.lab07 import long_prompt
from course.lessons.lab07.long_prompt import PROMPT, STEP
from course.lm.prompts import held_out_prompts
from course.lm.speaker import Conversation

TALKERS = (8, 10, 46, 2)
"""Of the committed prompts: stories, whose answers are long."""
LONG = (67, 69)
"""Two conversations, one after the other, make the long prompt."""
ARRIVES = 0.06  # seconds after the stories, the long prompt
WHOLE = 512  # a token budget that holds the long prompt beside all decodes
ON_THE_CARD = 128
"""The token budget on the H200 is so many times the one here, so that WHOLE holds the whole contract there too."""
BUDGET = Slider("max_num_batched_tokens", "Token budget", 16, WHOLE, 2, WHOLE, "tokens", log=True)
Clock = Callable[[], float]


@cache
def prompts() -> tuple[Conversation, ...]:
    """What is asked: the stories, then the long prompt."""
    committed = held_out_prompts()
    first, last = (committed[place] for place in LONG)
    return (*(committed[place].turns[-1] for place in TALKERS), (*first.turns, first.answer, *last.turns))


@cache
def answers() -> tuple[str, ...]:
    """What the model says to each, whatever shares its steps."""
    return tuple(held_out_prompts()[place].answer for place in (*TALKERS, LONG[-1]))


class ChunkedWords(WordsExplorer):
    """A slider for the token budget over the model that speaks, with a table that has the recorded card beside it."""

    def begin(self, settings: Settings, clock: Clock | None = None) -> Spoken:
        """A run that nobody has computed yet. clock: counts steps in place of seconds."""
        arrival = [0.0] * len(TALKERS) + [ARRIVES]
        policy = policies.Continuous(len(arrival), settings[BUDGET.name])
        watch = lm.Watch(lm.Questions(self.prompts, arrival), policy, _model(), clock=clock or time.perf_counter)
        return Spoken(self.prompts, "continuous", watch, clock is not None)

    def rows(self, result: Spoken) -> Rows:
        """One run, beside the recorded card."""
        return rows_of(_rows(_budget(result), result))

    def compared(self, settings: Settings) -> Rows:
        """The same under the lanes; before a run is complete, the recorded card alone."""
        budget = settings[BUDGET.name]
        return rows_of(_rows(budget, self._measured.get((budget,))))


def explorer() -> ChunkedWords:
    """The view. As text the run is counted in steps; a model that cannot be loaded leaves the recording."""
    return ChunkedWords(prompts(), (BUDGET,), 0, None, title="A long prompt among four stories")


def _budget(result: Spoken) -> int:
    assert isinstance(result.watch.policy, policies.Continuous)
    return result.watch.policy.max_num_batched_tokens


def chunks(result: Spoken) -> int:
    """Steps that computed a part of the long prompt."""
    return sum(any(part.row == len(TALKERS) and part.prefill for part in frame.parts) for frame in result.watch.frames)


def longest_gap(result: Spoken) -> float:
    """The longest time without a word in a story [s]."""
    return float(max(np.diff(result.run.token_times(row)).max() for row in range(len(TALKERS))))


def _rows(budget: int, result: Spoken | None) -> list[tuple[str, str, str]]:
    card = long_prompt.moment(ON_THE_CARD * budget, 0, streaming=len(TALKERS))
    begin, end = card.longest_gap
    here, head = ["-"] * 5, "measured here"
    if result is not None:
        run, head = result.run, "counted in steps" if result.counted else head
        other = sum(said != usual for said, usual in zip(run.words, answers(), strict=True))
        here = [
            f"{run.workload.prompt_tokens[-1]:,} tokens", f"{chunks(result):,}", result.time(longest_gap(result)),
            result.time(float(run.ttft[-1])), f"{other} of {len(run.words)}",
        ]  # fmt: skip
    there = [
        f"{PROMPT:,} tokens", f"{len(card.chunk_steps[0]):,}", seconds(end - begin), seconds(card.run.ttft[card.long]),
        "-",
    ]  # fmt: skip
    labels = ("long prompt", "its chunks", "longest gap of a story", "TTFT of the long prompt", "answers that changed")
    return [
        ("", head, f"simulated: {STEP.card.split()[1]}"),
        ("token budget", f"{budget:,}", f"{ON_THE_CARD * budget:,}"),
        *zip(labels, here, there, strict=True),
    ]


@cache
def _model() -> lm.LanguageModel:
    """Loaded once, and asked once: the first step of a process is a slow one."""
    model = lm.load()
    lm.serve_live(lm.Questions.at_once(["Spell owl."], max_tokens=1), policies.Continuous(1, WHOLE), model)
    return model
