"""The live view of lab 17: the small language model answers several tenants in two orders, beside an H200."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from course import lm
from course.engine.run import Run
from course.engine.serving import serve
from course.explore import Choice
from course.explore.tasks import Settings
from course.explore.words import Play, Spoken, Timed, WordsExplorer, policy_of
from course.lessons.lab17.tenants import STEP
from course.lm.prompts import as_workload, held_out_prompts

SLOTS = 2
PLACES = (54, 6, 30, 31, 20, 18)
"""Of the committed prompts: four stories of N's, then a short question of A's and one of B's."""
WHOSE = ("N", "N", "N", "N", "A", "B")
LATER = 0.02  # seconds after the stories
PROMPTS = [held_out_prompts()[place] for place in PLACES]
ARRIVAL = [0.0 if name == "N" else LATER for name in WHOSE]
NAMES = ("continuous", "fair")
Line = tuple[str, ...]


def play(policy: str) -> Play:
    """All six on two slots."""
    return Play(lm.Questions([prompt.turns for prompt in PROMPTS], ARRIVAL, class_=WHOSE), policy_of(policy, SLOTS))


def on_the_card(policy: str) -> Run:
    """The same requests on recorded steps."""
    load = replace(as_workload(PROMPTS, ARRIVAL), class_=np.array(WHOSE))
    return serve(load, policy_of(policy, SLOTS), STEP)


def first(side: Timed, quiet: bool) -> str:
    """Mean TTFT of the two short questions, or of the stories."""
    chosen = np.array([name != "N" for name in WHOSE]) == quiet
    return side.time(float(np.mean(side.run.ttft[chosen])))


def compare(_settings: Settings, runs: Mapping[str, Spoken]) -> list[Line]:
    """A column for each order: here, and on the recorded card."""

    def cells(sides: Mapping[str, Timed], quiet: bool) -> Iterator[str]:
        return (first(sides[name], quiet) if name in sides else "-" for name in NAMES)

    card = {name: Timed(on_the_card(name)) for name in NAMES}
    here = "counted in steps" if any(one.counted for one in runs.values()) else "measured here"
    lines: list[Line] = [("", *NAMES)]
    for place, sides in ((here, runs), (f"simulated: {STEP.card.split()[1]}", card)):
        lines += [(f"A and B, TTFT, {place}", *cells(sides, True)), (f"N, TTFT, {place}", *cells(sides, False))]
    return [*lines, ("same words", *(_same(runs, name) for name in NAMES))]


def _same(runs: Mapping[str, Spoken], name: str) -> str:
    if name not in runs:
        return "-"
    said: Sequence[str] = runs[name].run.words
    return f"{sum(words == prompt.answer for words, prompt in zip(said, PROMPTS, strict=True))} of {len(PROMPTS)}"


def explorer() -> WordsExplorer:
    """A choice of two orders over the model that speaks."""
    choice = Choice("policy", "Order", [(name, name) for name in NAMES], NAMES[0])
    asked = [prompt.turns for prompt in PROMPTS]
    return WordsExplorer(asked, (choice,), play, compare, title="Four stories of N, and a question of A and of B")
