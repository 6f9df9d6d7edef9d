"""Program and card, step after step: who waits for whom, by the form and by when the next step is planned."""

from __future__ import annotations

from dataclasses import dataclass

from course.engine.step import Step
from course.lessons.lab12.on_device import DEPENDENT, LAUNCHES, Spent
from course.lessons.lab12.recorded import LARGE, SMALL, brief, recording
from course.steptime import with_host

BATCH = 8
AFTER, DURING = "after the last step", "during the last step"
GRAPH = DEPENDENT
"""An engine's graph; ours has dependent launch in it."""
PLAN_MS = 0.4
"""Of a step: what an engine in Python took at its best beside an 8B (`course.steptime.host.MEASURED`), to plan it, send
its inputs and take its tokens."""
MODELS, FORMS, PLANS = (LARGE, SMALL), (LAUNCHES, GRAPH), (AFTER, DURING)


@dataclass(frozen=True)
class Waits:
    """One service; seconds of a step.

    plan: of the program, without what starts kernels. start: until all kernels are started. card: in which kernels
    compute. run: from the first launch until the program knows that all is done. step: of everything.
    """

    model: str
    form: str
    planned: str
    batch: int
    plan: float
    start: float
    card: float
    run: float
    step: float

    @property
    def busy(self) -> float:
        """The share of the time in which the card computes."""
        return min(1.0, self.card / self.step)

    @property
    def program(self) -> float:
        """The share of the time in which the program's core computes; the rest it waits for tokens."""
        return min(1.0, (self.plan + self.start) / self.step)

    @property
    def speed(self) -> float:
        """Tokens/s of all sequences."""
        return self.batch / self.step


def spent(model: str, form: str, batch: int = BATCH) -> Spent:
    """What was recorded of a step, in bf16 and fused."""
    return recording().small("bf16", form, batch) if model == SMALL else recording().large(form, batch)


def waits(
    model: str = LARGE, form: str = LAUNCHES, planned: str = AFTER, plan_ms: float = PLAN_MS, batch: int = BATCH
) -> Waits:
    """A step of `model` for a batch of sequences, with a program that needs so long for each."""
    found, card, plan = spent(model, form, batch), spent(model, GRAPH, batch).queued, plan_ms / 1e3
    ahead = planned == DURING
    # Planned during the last step, what starts the kernels is a part of the program's turn, beside the card's; planned
    # after it, the two overlap as they do in one step that is waited for.
    alone, turn = (found.queued, plan + found.host) if ahead else (found.wall, plan)
    step_time = with_host(lambda step: alone, turn, overlap=ahead)
    step = step_time(Step(batch, 0, ()))
    return Waits(model, form, planned, batch, plan, found.host, min(card, found.queued), found.wall, step)


def rows(found: Waits) -> list[tuple[str, ...]]:
    """What the table shows."""
    return [
        ("", found.model),
        ("a step", brief(found.step)),
        ("the card computes", f"{brief(found.card)}, {found.busy:.0%}"),
        ("starting its kernels", brief(found.start)),
        ("the program computes", f"{found.program:.0%}"),
        ("tokens/s", f"{found.speed:,.0f}"),
    ]
