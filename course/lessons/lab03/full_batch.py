"""Capacity by hand, and the ways in which it goes wrong. Lengths in tokens, `context` is that of one decode."""

from course.engine.step import Step, StepTime
from course.lessons.lab03.one_engine import STEP
from course.steptime import PowerLaw

PROBES = (
    (STEP, 512, 256, 768, 32),
    (STEP, 1024, 128, 1152, 64),
    (PowerLaw(5.5e-3, 30e-6, 1, prefill=25e-6, context=45e-9), 512, 256, 768, 32),
    (PowerLaw(1e-3, 1e-3, 1, prefill=10e-6, context=1e-6), 64, 4, 66, 2),
    (PowerLaw(1e-4, 1.2e-3, 1, prefill=1e-4, context=1e-4), 4, 7, 7, 4),
    (PowerLaw(1e-4, 1.6e-3, 1, prefill=8e-4, context=5e-4), 3, 5, 5, 2),
    (PowerLaw(1e-4, 2e-3, 1, prefill=3e-4, context=1e-3), 47, 18, 56, 5),
)
"""The small ones tell a decode, a token of context or of the prompt more or less from the right number: they weigh more
there than 2% of tolerance."""


def capacity(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """Requests/s with every slot taken: a request costs output / slots steps, one of them with its prompt."""
    decode = step_time(Step(slots, slots * context, ()))
    mixed = step_time(Step(slots - 1, (slots - 1) * context, ((prompt, 0),)))
    return 1 / ((output / slots - 1) * decode + mixed)


def one_too_many(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """The prompt beside as many decodes as there are slots."""
    decode, mixed = Step(slots, slots * context, ()), Step(slots, slots * context, ((prompt, 0),))
    return 1 / ((output / slots - 1) * step_time(decode) + step_time(mixed))


def without_first(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """One token of each answer less."""
    return capacity(step_time, prompt, output - 1, context, slots)


def without_prefill(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """Decoding alone."""
    return slots / (output * step_time(Step(slots, slots * context, ())))


def prompt_step_twice(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """The step with the prompt on top of all others."""
    decode = step_time(Step(slots, slots * context, ()))
    return 1 / (output / slots * decode + step_time(Step(slots - 1, (slots - 1) * context, ((prompt, 0),))))


def step_of_one(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """All slots, at the step time of one."""
    return slots / (output * step_time(Step(1, context, ())))


def one_at_a_time(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """One request after the other."""
    return 1 / (output * step_time(Step(1, context, ())))


def prefill_apart(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """The prompt in a step of its own."""
    decode = step_time(Step(slots, slots * context, ()))
    return 1 / (output / slots * decode + step_time(Step(0, 0, ((prompt, 0),))))


def context_of_one(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """The context of one decode for that of all."""
    mixed = step_time(Step(slots - 1, context, ((prompt, 0),)))
    return 1 / ((output / slots - 1) * step_time(Step(slots, context, ())) + mixed)


def tokens(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """Tokens/s."""
    return output * capacity(step_time, prompt, output, context, slots)


def decode_tokens(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """The twin: output tokens/s of a batch that decodes alone."""
    return slots / step_time(Step(slots, slots * context, ()))


def one_token(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """Of the twin: one token a step."""
    return 1 / step_time(Step(slots, slots * context, ()))


def tokens_at_step_of_one(step_time: StepTime, prompt: int, output: float, context: int, slots: int) -> float:
    """Of the twin: all slots, at the step time of one."""
    return slots / step_time(Step(1, context, ()))
