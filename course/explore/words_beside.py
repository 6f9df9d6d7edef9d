"""Live words beside a recorded card: the same prompts, served here and on recorded steps, in one table.

A lesson says what is asked and under which policy (`play`, from the settings), whose steps are recorded, and what the
rows are: functions of a `Timed` run by their label. `quantities` are read off both runs, `spoken` off the words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course import lm
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.controls import Slider
from course.explore.explorer import Explorer
from course.explore.live import LiveExplorer
from course.explore.tasks import Settings
from course.explore.turn import in_turn
from course.explore.words import Compare, Play, Spoken, Timed, WordsExplorer
from course.gpu.errors import not_measured
from course.lm.prompts import Prompt, as_workload
from course.steptime import Recorded

Quantities = Mapping[str, Callable[[Timed], str]]
Line = tuple[str, ...]
HERE = "measured here"


def on_card(prompts: Sequence[Prompt], play: Play, step: Recorded) -> Run:
    """The same arrivals and as many tokens on recorded steps. LMError without the model's tokenizer."""
    return serve(as_workload(prompts, play.questions.arrival), play.policy, step, play.cache)


def longest_gap(run: Run, rows: int) -> float:
    """The longest time without a word in one of the first so many answers [s]."""
    return float(max(np.diff(run.token_times(row)).max() for row in range(rows)))


def table(sides: Mapping[str, Timed | None], quantities: Quantities, spoken: Quantities) -> list[Line]:
    """A column for each side, with "-" where nothing has run yet, and for words on a card, which says none."""

    def cells(cell: Callable[[Timed], str], says: bool) -> Line:
        known = (side if side and (not says or isinstance(side.run, lm.SpokenRun)) else None for side in sides.values())
        return tuple("-" if side is None else cell(side) for side in known)

    lines = [("", *sides), *((label, *cells(cell, False)) for label, cell in quantities.items())]
    return lines + [(label, *cells(cell, True)) for label, cell in spoken.items()]


def played_beside(
    prompts: Sequence[Prompt],
    control: Slider,
    play: Callable[..., Play],
    step: Recorded,
    quantities: Quantities,
    title: str,
    card: Callable[..., Run] | None = None,
    scale: int = 1,
) -> WordsExplorer:
    """One slider over lanes of words, with the recorded card beside it.

    card: the run there, where it is not that of the same requests. scale: how many times the slider's value it has.
    A model that cannot be loaded leaves the recording. As text the run is counted in steps.
    """

    def changed(side: Timed) -> str:
        said = zip(side.run.words, prompts, strict=True)  # type: ignore[attr-defined]
        return f"{sum(words != prompt.answer for words, prompt in said)} of {len(prompts)}"

    def compare(settings: Settings, runs: Mapping[str, Spoken]) -> list[Line]:
        value, here = settings[control.name], next(iter(runs.values()), None)
        run = on_card(prompts, play(value), step) if card is None else card(value)
        sides = {"counted in steps" if here and here.counted else HERE: here, _head(step): Timed(run)}
        head, *rest = table(sides, quantities, {"answers that changed": changed})
        return [head, (control.label[0].lower() + control.label[1:], f"{value:,}", f"{scale * value:,}"), *rest]

    asked = [prompt.turns for prompt in prompts]
    return WordsExplorer(asked, (control,), play, compare, title=title)


def policies_beside(
    prompts: Sequence[Prompt],
    names: Sequence[str],
    play: Callable[..., Play],
    step: Recorded,
    model: str,
    engine: Callable[[Settings], Line],
) -> Compare:
    """A column for each policy: time and tokens/s on the card, with this model, and here; padding; the words.

    engine: the line of an engine that was recorded with the small model, at these settings.
    """

    def pace(side: Timed) -> str:
        return f"{side.time(side.run.makespan)}, {side.speed}"

    def gain(sides: Mapping[str, Timed]) -> str:
        """Tokens/s of the last policy over those of the first, where both are known: the tokens are the same."""
        both = [sides[name].run.makespan for name in (names[0], names[-1]) if name in sides]
        return f"{both[0] / both[1]:.2f}x" if len(both) == 2 else "-"

    def compare(settings: Settings, here: Mapping[str, Spoken]) -> list[Line]:
        def line(label: str, sides: Mapping[str, Any], cell: Callable[[Any], str], last: str = "") -> Line:
            return (label, *(cell(sides[name]) if name in sides else "-" for name in names), last)

        def words(one: Spoken) -> str:
            """What the answers are, compared word by word with those of the first policy that was played."""
            first = here[next(name for name in names if name in here)]
            if one is first:
                return f"{len(prompts)} answers"
            return "the same words" if one.run.words == first.run.words else "other words"

        plays = {name: play(**{**settings, "policy": name}) for name in names}
        card = {name: Timed(on_card(prompts, each, step)) for name, each in plays.items()}
        return [
            ("", *names, "gain"),
            line(f"{_head(step)}, {model}", card, pace, gain(card)),
            line("counted in steps" if any(one.counted for one in here.values()) else HERE, here, pace, gain(here)),
            engine(settings),
            line("padding computed here", here, lambda one: f"{one.padding:,} of {one.computed:,} tokens"),
            line("words", here, words),
        ]

    return compare


@dataclass(frozen=True)
class Both:
    """One setting: the run on recorded steps, and the one that this machine has served; None where nothing ran."""

    recorded: Run
    here: lm.SpokenRun | None = None
    warnings: tuple[str, ...] = ()

    @property
    def runs(self) -> dict[str, Run]:
        """What there is, by where its step times come from."""
        return {"simulated": self.recorded} | ({} if self.here is None else {HERE: self.here})


def served_beside(
    prompts: Sequence[Prompt],
    controls: Sequence[Slider],
    play: Callable[..., Play],
    step: Recorded,
    quantities: Quantities,
    spoken: Quantities,
    figure: Callable[[Mapping[str, Run]], go.Figure],
    title: str,
) -> Explorer:
    """Sliders at each move of which the model answers, by the clock of this machine, once for each setting.

    A model that cannot be loaded leaves the recording and a sentence. As text the explorer is the recorded part alone.
    """
    known: dict[tuple[Any, ...], lm.SpokenRun] = {}

    def recorded(**settings: Any) -> Both:
        return Both(on_card(prompts, play(**settings), step))

    @in_turn  # two runs at once would measure each other
    def both(**settings: Any) -> Both:
        key, card = tuple(settings.values()), recorded(**settings).recorded
        try:
            if key not in known:
                known[key] = play(**settings).serve()
        except lm.LMError as error:
            return Both(card, warnings=(not_measured(error),))
        return Both(card, known[key])

    def rows(found: Both) -> list[Line]:
        names = {"simulated": f"simulated: {step.card}"}
        sides = {names.get(name, name): Timed(run) for name, run in found.runs.items()}
        return table(sides, quantities, spoken if found.here else {})

    shared: dict[str, Any] = {
        "controls": controls, "figure": lambda found: figure(found.runs), "summary": rows, "title": title,
        "badge": step.simulated,
    }  # fmt: skip
    return LiveExplorer(Explorer(recorded, **shared), both, **shared)


def _head(step: Recorded) -> str:
    return f"simulated: {step.card.split()[1]}"
