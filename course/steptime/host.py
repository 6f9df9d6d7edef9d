"""What the host of an engine adds to a step: planning it, sending its inputs, taking its tokens."""

from __future__ import annotations

from course.base import settings
from course.engine.step import StepTime, StepTimeModel, seconds_of, with_checks

MEASURED = {
    "decodes alone, quickest run": 0.40e-3,
    "decodes alone, slowest run": 0.83e-3,
    "all steps, quickest run": 0.66e-3,
    "all steps, slowest run": 1.12e-3,
}
"""Seconds a step that an engine in Python took on its host, beside an 8B on an H200: means of the 30 live runs of
docs/benchmarks.md. Of a median step 0.32 to 0.53 ms are inputs, 0.08 to 0.15 ms policy and engine, and 0.07 to 0.14 ms
new tokens."""


def with_host(step_time: StepTime, seconds: float, *, overlap: bool = True, serial: float = 0.0) -> StepTime:
    """A step time with the host's part in it.

    seconds: that the host takes for a step. overlap: it plans the next step while the card computes this one, so that
    a step takes what the longer of both takes: async scheduling, vLLM's default. Without it (`--no-async-scheduling`)
    one waits for the other and the seconds add up. serial: seconds that nothing can overlap, which come on top in both
    cases. `MEASURED` has seconds of a live engine. `serve(..., async_scheduling=True)` is the other side of the
    overlap: a plan that is made before the last tokens are known.

    Raises ValueError for seconds below 0.
    """
    if isinstance(step_time, StepTimeModel):
        return WithHost(step_time, seconds, overlap=overlap, serial=serial)
    if not callable(step_time):
        raise ValueError(
            f"with_host takes a step time, a callable from a Step to seconds, not {settings.quote(step_time)}"
        )
    part = _Part(seconds, overlap, serial)
    return lambda step: part.added_to(seconds_of(step_time, step))


class _Part:
    """The host's seconds and how they meet the card's."""

    def __init__(self, seconds: float, overlap: bool, serial: float) -> None:
        self.seconds = settings.real("seconds", seconds, low=0, high=settings.MAX_SECONDS)
        self.serial = settings.real("serial", serial, low=0, high=settings.MAX_SECONDS)
        if not isinstance(overlap, bool):
            raise ValueError(f"overlap must be True or False, not {settings.quote(overlap)}")
        self.overlap = overlap

    def added_to(self, card: float) -> float:
        """Seconds of a step that the card computes in `card` seconds."""
        return (max(card, self.seconds) if self.overlap else card + self.seconds) + self.serial


class WithHost(StepTimeModel):
    """Seconds of a step of `card`, a StepTimeModel, with the host's part: see `with_host`."""

    sound = True

    def __init__(self, card: StepTimeModel, seconds: float, *, overlap: bool = True, serial: float = 0.0):
        self.card, self.part = with_checks(card), _Part(seconds, overlap, serial)
        self.source, self.longest = card.source, card.longest
        # The larger of two is no straight line, unless the host is hidden behind a single decode already: then behind
        # all, as more decodes take no less time in the models whose class is `sound`.
        hidden = bool(vars(type(card)).get("sound")) and card.straight and card.decode_line(1)[0] >= self.part.seconds
        self.straight = card.straight and (hidden or not overlap)

    @property
    def badge(self) -> str:
        """See StepTimeModel."""
        how = "behind it" if self.part.overlap else "after it"
        return f"{self.card.badge}, {1e3 * self.part.seconds:g} ms of a host {how}"

    def beyond(self, **step: int) -> str:
        """See StepTimeModel."""
        return self.card.beyond(**step)

    def check_settings(self) -> None:
        """See StepTimeModel."""
        self.card.check_settings()

    def __repr__(self) -> str:
        part = self.part
        return f"WithHost({self.card!r}, {part.seconds:g}, overlap={part.overlap}, serial={part.serial:g})"

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        card = self.card.seconds(decodes, decode_context, tokens, pairs, prefill_context)
        if tokens or not self.straight:
            return self.part.added_to(card)
        base, slope = self.decode_line(decodes)
        return base + slope * decode_context

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel. ValueError if a step is no straight line."""
        if not self.straight:
            raise ValueError(f"decodes of {self!r} do not follow a straight line: call `seconds`")
        base, slope = self.card.decode_line(decodes)
        return self.part.added_to(base), slope
