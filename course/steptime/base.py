"""How long one step takes: callables from a Step to seconds.

Any callable will do for `serve`. The models here also offer what the fast loops need: `seconds`, the same value from
the sums over a step; `decode_line`, the straight line that a step of decodes alone follows as its context grows; and
perhaps `prefill_line`, what prompts add to it.
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
        """Tokens of all chunks."""
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
    reliable = False
    """Whether its settings rule out bad times, so that nobody need look at each answer. It is read from the class
    itself: whoever derives one from it must say so again."""
    longest: float = inf
    """Tokens of a sequence up to which it has an answer; a longer request is refused before it is served."""

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be. `serve` asks too: they may have been changed since."""

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """Seconds of a step with these sums (see Step)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `seconds`")

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """(base, slope): a step of decodes alone takes base + slope x decode_context seconds, to the last bit."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `decode_line`")

    def prefill_line(self) -> tuple[float, float] | None:
        """(a, b) where prompts only add to a step's time; None where they do not.

        Then it is base + a x tokens + slope x decode_context + b x pairs seconds, to the last bit and added up in this
        order, also with 0 decodes. Saves the fast loop a call for each step with prompts, of models that are reliable.
        """
        return None

    def __call__(self, step: Step) -> float:
        """Seconds of the step."""
        return self.seconds(
            step.decodes, step.decode_context, step.prefill_tokens, step.prefill_pairs, step.prefill_context
        )


def checked(step_time: StepTime, step: Step) -> float:
    """Seconds of the step. Raises ValueError unless they are a finite number, at least SHORTEST."""
    return usable(step_time(step), step)


def usable(seconds: float, asked: object) -> float:
    """These seconds, where they can be; else ValueError with what was asked for."""
    if type(seconds) is float and SHORTEST <= seconds <= LONGEST:
        return seconds
    try:
        return settings.real("the step time", seconds, low=SHORTEST, high=LONGEST)
    except ValueError as error:
        raise ValueError(f"{error}; it was asked for {asked}") from None


def trusted(model: StepTimeModel) -> StepTimeModel:
    """The model itself where its class is reliable, and the object has no method put over it; else one that checks."""
    own = vars(model).keys() & {"seconds", "decode_line", "prefill_line"}
    return model if vars(type(model)).get("reliable") is True and not own else _Checked(model)


class _Checked(StepTimeModel):
    """Somebody's own model, each answer looked at before the fast loops use it."""

    def __init__(self, model: StepTimeModel):
        self.model = model

    def seconds(self, decodes, decode_context, tokens, pairs, prefill_context):
        asked = f"{decodes} decodes over {decode_context} tokens and {tokens} prompt tokens"
        return usable(self.model.seconds(decodes, decode_context, tokens, pairs, prefill_context), asked)

    def decode_line(self, decodes):
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
                    f"tokens they say {line!r} and {plain!r}"
                )
        return base, slope
