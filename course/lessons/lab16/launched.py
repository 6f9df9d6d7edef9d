"""An explorer that launches: the language model answers through a client with a limit, and once the engine stalls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import sleep
from typing import Any

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.engine.step import Step
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.figures.words import seconds
from course.lessons.lab16 import figures
from course.lessons.lab16.load_test import STEP, sent_times
from course.lm.errors import LMError
from course.lm.live import Answer, Questions, serve_live
from course.lm.speaker import LanguageModel
from course.workload import Workload

QUESTIONS = ("Count from 3 to 9.", "Spell owl.")
REQUESTS, RATE, TOKENS, PROMPT = 30, 20, 4, 16
"""Requests, requests/s that the client plans, tokens of an answer, and of a prompt in the recording."""
STALLED = 15  # the request whose prompt is in the step that stalls
BUDGET = 256  # tokens a step
LEAST = 0.25  # seconds that count as a stall where there is none
CONTROLS = (
    Slider("max_concurrency", "Limit in flight", 1, 16, 2, 2, log=True),
    Slider("stall", "Stall", 0.0, 1.0, 0.25, 0.5, unit="s"),
)


def planned() -> np.ndarray:
    """When each request is planned [s]: a clock that ticks RATE times a second."""
    return np.arange(REQUESTS) / RATE


@dataclass(frozen=True)
class Seen:
    """One test through the client, on the machine of that name. run: its times count from the plan."""

    where: str
    run: Run
    max_concurrency: int

    @cached_property
    def written(self) -> np.ndarray:
        """TTFT from the moment when the client sent the request [s]."""
        return self.run.first_computed - sent_times(self.run.arrival, self.run.response, self.max_concurrency)


@dataclass(frozen=True)
class Launched:
    """One setting: on recorded steps, and what happened here; None where nothing ran."""

    stall: float
    recorded: Seen
    here: Seen | None = None
    warnings: tuple[str, ...] = ()


def recorded(max_concurrency: int, stall: float) -> Launched:
    """The same plan, limit and stall on the recorded steps."""
    load = Workload(planned(), np.full(REQUESTS, PROMPT), np.full(REQUESTS, TOKENS))
    begun = 0

    def step_time(step: Step) -> float:
        nonlocal begun
        before, begun = begun, begun + len(step.prefill_chunks)
        return STEP(step) + stall * (before < STALLED <= begun)

    run = serve(load, policies.Continuous(max_concurrency, BUDGET), step_time)
    return Launched(stall, Seen(STEP.card, run, max_concurrency))


def spoken(model: LanguageModel, max_concurrency: int, stall: float) -> Seen:
    """The language model, by this machine's clock. An engine with as many slots as the limit is one behind the client.

    LMError where the memory is not there.
    """
    stalled = False

    def seen(answers: Mapping[int, Answer]) -> None:
        nonlocal stalled
        if not stalled and sum(len(a.tokens) > a.prompt_tokens for a in answers.values()) >= STALLED:
            stalled = True
            sleep(stall)  # within the step

    asked = [QUESTIONS[number % len(QUESTIONS)] for number in range(REQUESTS)]
    load = Questions(asked, planned(), max_tokens=TOKENS)
    run = serve_live(load, policies.Continuous(max_concurrency, BUDGET), model, seen=seen)
    return Seen("this machine's CPU", run, max_concurrency)


def launch_explorer() -> Explorer:
    """Sliders for limit and stall: each move lets the language model answer 30 questions, which takes two seconds.

    As text the explorer is the recorded part alone, which is the same on every machine.
    """
    bench = _Bench()

    def both(max_concurrency: int, stall: float) -> Launched:
        return bench(recorded(max_concurrency, stall), max_concurrency)

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": lambda found: figures.launched(_panels(found)),
        "summary": rows,
        "title": f"{REQUESTS} questions, one stall",
        "badge": STEP.simulated,
    }
    return LiveExplorer(Explorer(recorded, **shared), both, **shared)


class _Bench:
    """Loads the model once, and launches each setting once."""

    def __init__(self) -> None:
        self._model: LanguageModel | None = None
        self._known: dict[tuple[int, float], Seen] = {}

    def __call__(self, found: Launched, max_concurrency: int) -> Launched:
        key = (max_concurrency, found.stall)
        try:
            if key not in self._known:
                self._known[key] = spoken(self._loaded(), *key)
        except LMError as error:
            return replace(found, warnings=(f"Nothing is measured here: {str(error).rstrip('.')}.",))
        return replace(found, here=self._known[key])

    def _loaded(self) -> LanguageModel:
        from course import lm

        if self._model is None:
            self._model = lm.load()
            serve_live(Questions.at_once(QUESTIONS, max_tokens=1), policies.Continuous(2, BUDGET), self._model)
        return self._model


def _panels(found: Launched) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(planned, written, from the plan) by the heading of a panel."""
    tests = {"simulated: H100": found.recorded} | ({"measured here": found.here} if found.here else {})
    return {name: (test.run.arrival, test.written, test.run.ttft) for name, test in tests.items()}


def rows(found: Launched) -> list[tuple[str, ...]]:
    """p95 of TTFT and those above half the stall, by either clock, of each machine."""
    table: list[tuple[str, ...]] = [("", "written down", "from the plan")]
    for label, test in (("simulated: H100", found.recorded), ("measured here", found.here)):
        if test is None:
            continue
        ways = (test.written, test.run.ttft)
        tails = [seconds(float(np.percentile(way, 95))) for way in ways]
        late = [f"{int((way > max(found.stall, LEAST) / 2).sum())} of {REQUESTS}" for way in ways]
        table += [(f"{label}, p95", *tails), (f"{label}, above half the stall", *late)]
    return table
