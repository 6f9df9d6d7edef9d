"""What one step is made of, and what the engine asks of a step time.

Any callable from a Step to seconds will do. A StepTimeModel also offers what the fast loops need: `seconds`, the same
value from the sums over a step; `decode_line`, the straight line that a step of decodes alone follows as its context
grows; and perhaps `prefill_line`, what prompts add to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from course.base import settings


@dataclass(frozen=True, slots=True)
class Step:
    """What one forward pass is made of; all that a step-time model may look at. Counts of sequences and tokens."""

    decodes: int
    """Sequences that compute one token and emit the next."""
    decode_context: int
    """Tokens that those attend to, the new one included, summed over the decodes."""
    prefill_chunks: tuple[tuple[int, int], ...]
    """(tokens, tokens already in the cache) of each prompt chunk."""

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens of the step."""
        return sum(tokens for tokens, _ in self.prefill_chunks)

    @property
    def prefill_pairs(self) -> int:
        """Query-key pairs of causal attention over the chunks: tokens x (cached + (tokens + 1) / 2) each."""
        return sum(tokens * cached + tokens * (tokens + 1) // 2 for tokens, cached in self.prefill_chunks)

    @property
    def prefill_context(self) -> int:
        """Tokens whose K and V the chunks read: those already in the cache and their own."""
        return sum(tokens + cached for tokens, cached in self.prefill_chunks)


StepTime = Callable[[Step], float]
SHORTEST, LONGEST = 1e-12, 1e200  # seconds a step may take, so that clocks and rates stay within the range of floats


class StepTimeModel:
    """A step time that depends on sums over the step only, so that the fast loops need not build a Step."""

    source = "modelled"
    sound = False
    """Whether its settings alone rule out bad times. A class says so for itself, not for those made from it."""

    straight: bool = True
    """Whether `decode_line` has an answer. Where not, the engine asks for every step, as it asks any callable."""

    longest: float = inf
    """Tokens of a sequence up to which it has an answer; a longer request is refused before it is served."""

    @property
    def badge(self) -> str:
        """Where its numbers come from, in the form that figures and explorers take."""
        return self.source

    @property
    def simulated(self) -> str:
        """The badge of what a simulator made of its steps: only the steps may have been recorded, never a queue."""
        kind, colon, detail = self.badge.partition(":")
        return f"simulated on {kind} steps{colon}{detail}"

    def beyond(self, **step: int) -> str:
        """What of a step was modelled although the model is a recording, as words for the badge; "" if nothing was.

        step: the most decodes, tokens of context of all decodes, tokens of a sequence, prompt tokens of a step.
        """
        return ""

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be. `serve` asks too: they may have been changed since."""

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """Seconds of a step with these sums (see Step)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `seconds`")

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """(base, slope): a step of decodes alone takes base + slope x decode_context seconds, to the last bit."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `decode_line`")

    def prefill_line(self) -> tuple[float, float] | None:
        """What prompts add: (a, b), or None if a step is no such sum.

        Then it takes base + a x tokens + slope x decode_context + b x pairs seconds, to the last bit and added up in
        this order, also with 0 decodes.
        Saves the fast loop a call for each step with prompts. It asks only models whose class is known to keep to it.
        """
        return None

    def __call__(self, step: Step) -> float:
        """Seconds of this step."""
        return self.seconds(
            step.decodes, step.decode_context, step.prefill_tokens, step.prefill_pairs, step.prefill_context
        )


def seconds_of(step_time: StepTime, step: Step) -> float:
    """Seconds of the step. Raises ValueError unless they are a finite number, at least SHORTEST."""
    return check_seconds(step_time(step), step)


def check_seconds(seconds: float, what: object) -> float:
    """The seconds if they are a finite number from SHORTEST to LONGEST; else a ValueError."""
    if type(seconds) is float and SHORTEST <= seconds <= LONGEST:
        return seconds
    try:
        return settings.real("the step time", seconds, low=SHORTEST, high=LONGEST)
    except ValueError as error:
        raise ValueError(f"{error}; it was asked for {what}") from None


def with_checks(model: StepTimeModel) -> StepTimeModel:
    """The model itself if its settings rule out bad times, as here; else one that checks every answer."""
    methods = {"seconds", "decode_line", "prefill_line"}  # put into the object they go before those of its class
    return model if vars(type(model)).get("sound") and not vars(model).keys() & methods else _Checked(model)


class _Checked(StepTimeModel):
    """A model of a reader's own, each answer looked at before the fast loops use it."""

    def __init__(self, model: StepTimeModel):
        self.model, self.longest = model, model.longest

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        what = f"{decodes} decodes over {decode_context} tokens and {tokens} prompt tokens"
        return check_seconds(self.model.seconds(decodes, decode_context, tokens, pairs, prefill_context), what)

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        try:
            base, slope = self.model.decode_line(decodes)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"decode_line must return (base, slope) for {decodes} decodes: {settings.reason(error)}"
            ) from None
        slope = settings.real("the slope of decode_line", slope, low=0, high=LONGEST)
        for context in (decodes, 1000 * decodes):
            line, plain = base + slope * context, self.seconds(decodes, context, 0, 0, 0)
            if line != plain:
                raise ValueError(
                    f"decode_line and seconds must agree to the last bit, but for {decodes} decodes over {context} "
                    f"tokens they give {line!r} and {plain!r}"
                )
        return base, slope
