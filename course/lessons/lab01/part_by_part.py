"""One question to the small language model, by this machine's clock: tokenizer, prefill, decodes, text. Beside an H100.

The network is not in it: the question never leaves this machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from course import lm
from course.engine.step import Step
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.figures.words import seconds
from course.lessons.lab01 import figures
from course.lessons.lab01.chat import STEP
from course.lm.errors import LMError
from course.lm.threads import one_thread

SENTENCES = (
    "Tell a short sad story about Mia, a fox.",
    "It happens in the garden, and there is a red kite.",
    "The sun is warm, and a small dog sleeps under the old tree.",
    "Mia has a friend, a bird with a blue hat.",
    "They look for a key that was lost in the rain.",
    "At the end they sit at the pond and eat bread.",
)
PARTS = ("tokenizer", "prefill", "decodes", "text")
TRIES = 7  # each part gets the median of its seconds
CONTROLS = (
    Slider("sentences", "Prompt", 1, len(SENTENCES), 1, 2, "sentences"),
    Slider("answer", "Answer", 1, 41, 5, 21, "tokens"),
)


@dataclass(frozen=True)
class Parts:
    """One setting.

    prompt, answer: tokens. recorded: seconds of prefill and decodes on the H100. here: seconds of all four parts on
    this machine; None where nothing was measured.
    """

    prompt: int
    answer: int
    recorded: dict[str, float]
    here: dict[str, float] | None = None
    warnings: tuple[str, ...] = ()


def text_of(sentences: int) -> str:
    """A prompt of so many sentences."""
    return " ".join(SENTENCES[:sentences])


@cache
def model() -> lm.LanguageModel:
    """The small language model, loaded once."""
    return lm.load()


def recorded(sentences: int, answer: int) -> Parts:
    """As many tokens on the steps of the recording."""
    prompt = len(model().prompt(text_of(sentences)))
    decodes = sum(STEP(Step(1, prompt + done, ())) for done in range(1, answer))
    return Parts(prompt, answer, {"prefill": STEP(Step(0, 0, ((prompt, 0),))), "decodes": decodes})


def ask(sentences: int, answer: int) -> dict[str, float]:
    """Answer once, each part by the clock [s]; the answer goes on past its end until it has so many tokens.

    Raises LMError: no memory for it.
    """
    mind, clock = model(), time.perf_counter
    context = mind.config.max_position_embeddings
    cache_, blocks = lm.PagedKV(mind.config, context, 1), [range(context)]
    began = clock()
    given = list(mind.prompt(text_of(sentences)))
    found = {"tokenizer": clock() - began}
    said: list[int] = []
    computed = 0
    for part in ("prefill", "decodes"):
        began = clock()
        while len(said) < (1 if part == "prefill" else answer):
            logits = mind.forward(given, [len(given)], [computed], blocks, cache_)
            computed += len(given)
            given = [int(logits[0].argmax())]
            said += given
        found[part] = clock() - began
    began = clock()
    mind.tokenizer.decode(said)
    return found | {"text": clock() - began}


def measured(sentences: int, answer: int) -> dict[str, float]:
    """Medians over some answers [s]."""
    with one_thread():
        ask(sentences, 1)
        tries = [ask(sentences, answer) for _ in range(TRIES)]
    return {part: float(np.median([one[part] for one in tries])) for part in PARTS}


def launch_explorer(measure: Callable[[int, int], dict[str, float]] = measured) -> Explorer:
    """Sliders for prompt and answer: each move asks the language model on this machine.

    As text the explorer is the recorded part alone, which is the same on every machine.
    """
    known: dict[tuple[int, int], dict[str, float]] = {}

    def both(sentences: int, answer: int) -> Parts:
        key, found = (sentences, answer), recorded(sentences, answer)
        try:
            if key not in known:
                known[key] = measure(*key)
        except LMError as error:
            return replace(found, warnings=(f"Nothing is measured here: {str(error).rstrip('.')}.",))
        return replace(found, here=known[key])

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": lambda found: figures.two_machines(found.recorded, found.here),
        "summary": rows,
        "title": "One question, part by part",
        "badge": STEP.badge,
        "beside": False,
    }
    return LiveExplorer(Explorer(recorded, **shared), both, **shared)


def rows(found: Parts) -> list[tuple[str, ...]]:
    """The parts, TTFT and E2E, a column for each machine."""
    machines = {"H100, recorded": found.recorded} | ({"here, measured": found.here} if found.here else {})
    table: list[tuple[str, ...]] = [("", *machines)]
    for part in PARTS:
        table.append((part, *(seconds(parts[part]) if part in parts else "-" for parts in machines.values())))
    first = [parts.get("tokenizer", 0.0) + parts["prefill"] for parts in machines.values()]
    last = [sum(parts.values()) for parts in machines.values()]
    return [*table, ("TTFT", *map(seconds, first)), ("E2E", *map(seconds, last))]
