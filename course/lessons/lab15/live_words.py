"""The live view of lab 15: the small language model answers urgent questions behind stories, with few slots or many."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from course import lm, policies
from course.engine.run import Run
from course.engine.serving import serve
from course.explore import Choice
from course.explore.tasks import Settings
from course.explore.words import Play, Spoken, Timed, WordsExplorer
from course.lessons.lab15.promises import STEP
from course.lm.prompts import as_workload, held_out_prompts
from course.policies import Policy, Request

PLACES = (54, 6, 30, 31, 20, 18)
"""Of the committed prompts: four stories, then two short questions."""
URGENT, STORY = "urgent", "story"
WHAT = (STORY,) * 4 + (URGENT,) * 2
LATER = 0.02  # seconds after the stories
PROMPTS = [held_out_prompts()[place] for place in PLACES]
ARRIVAL = [0.0 if name == STORY else LATER for name in WHAT]
NAMES = ("in order", "urgent first")
FEW, MANY, TOKENS = 2, 8, 1_024
Line = tuple[str, ...]


def urgent_first(request: Request) -> tuple[bool, int]:
    """Questions before stories, each in order."""
    return request.class_ != URGENT, request.index


def engine(policy: str, slots: int) -> Policy:
    """One of the two orders."""
    if policy == NAMES[0]:
        return policies.Continuous(slots, TOKENS)
    return policies.ByKey(slots, TOKENS, key=urgent_first)


def play(policy: str, slots: int) -> Play:
    """All six on so many slots."""
    return Play(lm.Questions([prompt.turns for prompt in PROMPTS], ARRIVAL, class_=WHAT), engine(policy, slots))


@lru_cache(maxsize=4)
def on_the_card(policy: str, slots: int) -> Run:
    """The same requests on recorded steps."""
    load = replace(as_workload(PROMPTS, ARRIVAL), class_=np.array(WHAT))
    return serve(load, engine(policy, slots), STEP)


def first(side: Timed) -> str:
    """Mean TTFT of the two questions."""
    return side.time(float(np.mean(side.run.ttft[np.array(WHAT) == URGENT])))


def compare(settings: Settings, runs: Mapping[str, Spoken]) -> list[Line]:
    """A column for each order: here, and on the recorded card."""

    def cells(sides: Mapping[str, Timed]) -> Iterator[str]:
        return (first(sides[name]) if name in sides else "-" for name in NAMES)

    card = {name: Timed(on_the_card(name, settings["slots"])) for name in NAMES}
    here = "counted in steps" if any(one.counted for one in runs.values()) else "measured here"
    return [
        ("", *NAMES),
        (f"questions, TTFT, {here}", *cells(runs)),
        (f"questions, TTFT, simulated: {STEP.card.split()[1]}", *cells(card)),
        ("same words", *(_same(runs, name) for name in NAMES)),
    ]


def _same(runs: Mapping[str, Spoken], name: str) -> str:
    if name not in runs:
        return "-"
    said: Sequence[str] = runs[name].run.words
    return f"{sum(words == prompt.answer for words, prompt in zip(said, PROMPTS, strict=True))} of {len(PROMPTS)}"


def explorer() -> WordsExplorer:
    """Two orders and two numbers of slots over the model that speaks."""
    controls = (
        Choice("policy", "Order", [(name, name) for name in NAMES], NAMES[0]),
        Choice("slots", "Slots", [(f"{slots}", slots) for slots in (FEW, MANY)], FEW),
    )
    asked = [prompt.turns for prompt in PROMPTS]
    return WordsExplorer(asked, controls, play, compare, title="Four stories, then two urgent questions")
