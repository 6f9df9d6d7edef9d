"""Capacity by hand: from the seconds of a step to the requests per second that a policy can sustain.

A step of continuous batching with b sequences moves b requests forward by one token each. A request needs one step for
each output token, the first of which comes with its prefill; so b slots finish b / (tokens a request) requests a step.
Divide by the seconds of such a step, prompts included.
"""

from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from course.base.settings import real, whole
from course.queueing import _checks as check
from course.queueing.gain import GainBound
from course.steptime import Step, StepTime, seconds_of
from course.workload import Workload

_MOST_STEPS = 1_000_000  # of one batch: a second or two
_MOST_SIZES = 5_000  # of a batch, each a step to time


@dataclass(frozen=True)
class Demand:
    """What one request asks for on average. `context_tokens`: what an average decode attends to, itself included."""

    prompt_tokens: float
    output_tokens: float
    context_tokens: float

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "output_tokens"):
            object.__setattr__(self, name, check.length(name, getattr(self, name)))
        context = real("context_tokens", self.context_tokens, low=1, high=1e18)
        object.__setattr__(self, "context_tokens", context)


def demand(*, prompt_tokens: float, output_tokens: float, output_cv: float = 0.0) -> Demand:
    """Demand from means and the coefficient of variation of the output lengths; prompts do not depend on outputs.

    An answer of N tokens decodes N - 1 times, attending to prompt + 1, ... prompt + N - 1 tokens. Long answers decode
    more often, so the average decode sees E[N (N - 1)] / (2 E[N - 1]) tokens of answer, (1 + CV^2) / 2 of a mean answer
    when answers are long: with a CV of 1 a whole one, not half.
    """
    prompt = check.length("prompt_tokens", prompt_tokens)
    output = check.length("output_tokens", output_tokens)
    cv = check.spread("output_cv", output_cv)
    answer = (output * (1 + cv**2) - 1) * output / (2 * (output - 1)) if output > 1 else 0.0
    return Demand(prompt, output, prompt + answer)


def demand_of(load: Workload) -> Demand:
    """The same from every request of a workload, a trace for instance, where prompts and outputs may go together."""
    check.kind("load", load, Workload, "Workload.poisson(...)")
    prompts, decodes = load.prompt_tokens.astype(float), load.output_tokens - 1.0
    context = decodes @ prompts + (decodes * (decodes + 1) / 2).sum()
    mean_context = context / decodes.sum() if decodes.sum() else prompts.mean()
    return Demand(float(prompts.mean()), float(load.output_tokens.mean()), float(mean_context))


@dataclass(frozen=True)
class Capacity:
    """What a policy sustains while the queue is never empty. `step_s` is the mean step, prompts included."""

    requests_per_s: float
    output_tokens_per_s: float
    step_s: float
    decodes_per_step: float
    prefill_tokens_per_step: float


def continuous_capacity(
    need: Demand, step_time: StepTime, *, max_num_seqs: int, max_num_batched_tokens: int
) -> Capacity:
    """Requests/s of continuous batching with `max_num_seqs` sequences always in the batch.

    A request holds its slot for `chunks` steps of prefill and output_tokens - 1 decodes, and asks for
    prompt + output - 1 tokens in all. Slots allow max_num_seqs / (chunks + output - 1) requests a step, the token
    budget max_num_batched_tokens / (prompt + output - 1); the smaller one holds. The mean step is a mix of steps with
    and without a prompt chunk, in the share that this number of requests a step needs.
    Source: a balance of work, by hand; tests compare it with the simulator.
    Does not apply: when KV memory, not slots, limits the batch, or when prompts differ so much that the mean prompt's
    chunks are not the mean of their chunks.
    Raises ValueError for a setting out of range or a budget below one token a slot.
    """
    slots = check.slots("max_num_seqs", max_num_seqs)
    check.kind("need", need, Demand, "demand(prompt_tokens=512, output_tokens=128)")
    check.step_model(step_time)
    budget = whole("max_num_batched_tokens", max_num_batched_tokens)
    if budget < slots:
        raise ValueError(
            f"max_num_batched_tokens is {budget} and max_num_seqs {slots}: a full batch of decodes does not fit one "
            "step; raise the budget or lower the slots"
        )
    return _composition(need, step_time, slots, budget)


def _composition(need: Demand, step_time: StepTime, sequences: int, budget: int) -> Capacity:
    room = max(1, budget - (sequences - 1))  # tokens left for a prompt while all other slots decode
    chunks = ceil(need.prompt_tokens / room)
    decodes = need.output_tokens - 1
    per_step = min(sequences / (chunks + decodes), budget / (need.prompt_tokens + decodes))
    present = per_step * chunks  # prompt chunks in an average step
    few = floor(present)
    more = present - few
    chunk = max(1, round(need.prompt_tokens / chunks))
    resident = per_step * (chunks + decodes)
    seconds = 0.0
    for count, weight in ((few, 1 - more), (few + 1, more)):
        if weight > 0:
            seconds += weight * _seconds(step_time, max(0.0, resident - count), need.context_tokens, count, chunk)
    return Capacity(
        requests_per_s=per_step / seconds,
        output_tokens_per_s=per_step * need.output_tokens / seconds,
        step_s=seconds,
        decodes_per_step=per_step * decodes,
        prefill_tokens_per_step=per_step * need.prompt_tokens,
    )


def _seconds(step_time: StepTime, decodes: float, context: float, chunks: int, chunk: int) -> float:
    """A step with `chunks` prompt chunks; a fractional number of decodes is read between its whole neighbours."""
    low = floor(decodes)
    share = decodes - low
    total = 0.0
    for count, weight in ((low, 1 - share), (low + 1, share)):
        if weight > 0 and count + chunks > 0:
            step = Step(count, round(count * context), ((chunk, 0),) * chunks)
            total += weight * seconds_of(step_time, step)
    return total


def static_capacity(need: Demand, longest: GainBound, step_time: StepTime, *, max_num_seqs: int) -> Capacity:
    """Requests/s of static batching with full batches: one padded prefill, then a step for each token of the longest.

    longest: the bound for a batch of max_num_seqs, from `lognormal_gain` and its sisters; only its gain is used, so the
    mean length is that of `need`. Contexts grow together, from the prompt to prompt + longest - 1.
    Does not apply: when prompts differ (the batch is padded to its longest prompt).
    """
    slots = check.slots("max_num_seqs", max_num_seqs)
    check.kind("need", need, Demand, "demand(prompt_tokens=512, output_tokens=128)")
    check.kind("longest", longest, GainBound, "lognormal_gain(batch=32, output_cv=1)")
    check.step_model(step_time)
    gain = real("longest.gain", longest.gain, low=1, high=check.MOST_SLOTS)
    steps = max(1, round(gain * need.output_tokens))
    if steps > _MOST_STEPS:
        raise ValueError(
            f"the longest answer of a batch has {steps:,} tokens, one step each, and at most {_MOST_STEPS:,} are added "
            "up: give shorter answers, or fewer slots"
        )
    prompt = round(need.prompt_tokens)
    batch = seconds_of(step_time, Step(0, 0, ((prompt, 0),) * slots))
    for token in range(1, steps):
        batch += seconds_of(step_time, Step(slots, slots * (prompt + token), ()))
    rate = slots / batch
    return Capacity(
        requests_per_s=rate,
        output_tokens_per_s=rate * need.output_tokens,
        step_s=batch / steps,
        decodes_per_step=slots * (steps - 1) / steps,
        prefill_tokens_per_step=slots * prompt / steps,
    )


def service_rates(need: Demand, step_time: StepTime, *, max_num_seqs: int, max_num_batched_tokens: int) -> np.ndarray:
    """Requests/s finished with 1, 2, ... max_num_seqs in the batch: mu(n) of `processor_sharing`, one a batch size.

    The last entry is the capacity. Raises ValueError as `continuous_capacity`.
    """
    check.slots("max_num_seqs", max_num_seqs, _MOST_SIZES)
    full = continuous_capacity(
        need, step_time, max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens
    )
    budget = int(max_num_batched_tokens)
    partial = [_composition(need, step_time, n, budget).requests_per_s for n in range(1, int(max_num_seqs))]
    return np.array([*partial, full.requests_per_s])
