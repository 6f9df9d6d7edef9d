"""An explorer that launches: the small language model answers questions, and Little's law on this machine's clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

import numpy as np

from course import lm, policies
from course.engine.run import Run
from course.engine.serving import serve
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.figures.words import seconds
from course.lessons.lab03 import shown_figures
from course.lessons.lab03.one_engine import STEP
from course.lm.prompts import as_workload, held_out_prompts

PLACES = (13, 25, 20, 27, 55, 18, 0, 9, 26, 4)
"""Of the committed prompts: short answers, so that a move takes about a second."""
REQUESTS, SEED = 60, 0
BUDGET = 256  # tokens a step
PROMPTS = [held_out_prompts()[PLACES[number % len(PLACES)]] for number in range(REQUESTS)]
ASKED = [prompt.turns[-1] for prompt in PROMPTS]
CONTROLS = (
    Slider("rate", "Arrival rate", 16, 128, 2, 64, "requests/s", log=True),
    Slider("max_num_seqs", "Slots (max_num_seqs)", 1, 8, 2, 4, log=True),
)
ROUNDING = 1e-9
"""How far both sides of the law may be apart: sums of a hundred times in floating point, as a share of L."""


@dataclass(frozen=True)
class Served:
    """One setting: the run on recorded steps, and the one that this machine has served; None where nothing ran."""

    recorded: Run
    here: lm.SpokenRun | None = None
    warnings: tuple[str, ...] = ()

    @property
    def runs(self) -> dict[str, Run]:
        """What there is, by where its step times come from."""
        here = {"measured here": self.here} if self.here is not None else {}
        return {"recorded": self.recorded, **here}

    @property
    def law_holds(self) -> bool:
        """Whether λ W is L in every run, to rounding."""
        laws = [run.little() for run in self.runs.values()]
        return all(abs(law.arrival_rate * law.W - law.L) <= ROUNDING * law.L for law in laws)


def asked(rate: float) -> lm.Questions:
    """The questions, at Poisson times [requests/s]."""
    return lm.Questions.poisson(ASKED, rate, SEED)


def recorded(rate: float, max_num_seqs: int) -> Served:
    """The same arrivals and as many tokens on recorded steps. LMError without the model's tokenizer."""
    load = as_workload(PROMPTS, asked(rate).arrival)
    return Served(serve(load, policies.Continuous(max_num_seqs, BUDGET), STEP))


def explorer() -> Explorer:
    """Sliders for rate and slots; every move lets the model answer the questions, by the clock of this machine.

    A model that cannot be loaded leaves the recording and a sentence. As text the explorer is the recorded part alone,
    which is the same on every machine.
    """
    bench = _Bench()

    def both(rate: float, max_num_seqs: int) -> Served:
        return bench(recorded(rate, max_num_seqs), rate, max_num_seqs)

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": lambda found: shown_figures.numbers_in_system(found.runs),
        "summary": rows,
        "title": f"{REQUESTS} questions, answered here",
        "badge": STEP.simulated,
    }
    return LiveExplorer(Explorer(recorded, **shared), both, **shared)


_ALONE = RLock()
"""JupyterLab may move a slider in another thread than the one that runs cells: two at once would measure each other."""


class _Bench:
    """Loads the model once, and serves each setting once."""

    def __init__(self) -> None:
        self._model: lm.LanguageModel | None = None
        self._known: dict[tuple[float, int], lm.SpokenRun] = {}

    def __call__(self, found: Served, rate: float, max_num_seqs: int) -> Served:
        key = rate, max_num_seqs
        try:
            with _ALONE:
                if key not in self._known:
                    policy = policies.Continuous(max_num_seqs, BUDGET)
                    self._known[key] = lm.serve_live(asked(rate), policy, self._loaded())
        except lm.LMError as error:
            return replace(found, warnings=(f"Nothing is measured here: {str(error).rstrip('.')}.",))
        return replace(found, here=self._known[key])

    def _loaded(self) -> lm.LanguageModel:
        if self._model is None:
            self._model = lm.load()
            first = lm.Questions.at_once(ASKED[:2], max_tokens=1)  # the first steps allocate
            lm.serve_live(first, policies.Continuous(2, BUDGET), self._model)
        return self._model


def rows(found: Served) -> list[tuple[str, ...]]:
    """Both sides of Little's law, a column for each machine, and what the last answer says."""
    names = {"recorded": f"simulated: {STEP.card}", "measured here": "measured here"}
    laws = [run.little() for run in found.runs.values()]
    table: list[tuple[str, ...]] = [
        ("", *(names[name] for name in found.runs)),
        ("a step, median", *(seconds(float(np.median(run.steps.seconds))) for run in found.runs.values())),
        ("λ, arrivals per second", *(f"{law.arrival_rate:.6g}" for law in laws)),
        ("W, mean E2E", *(f"{1e3 * law.W:.6g} ms" for law in laws)),
        ("λ W", *(f"{law.arrival_rate * law.W:.6f}" for law in laws)),
        ("L, counted over time", *(f"{law.L:.6f}" for law in laws)),
    ]
    if found.here is not None:
        last = int(np.argmax(found.here.response))
        table.append(("the last answer", "-", found.here.words[last]))
    return table
