"""What spends the time of a step: the one seam between a policy and a clock, a card, or a model that speaks.

The engine knows no length. An executor says after each step how long it took and whose answer has ended. `Simulated`
also knows beforehand, and so lets the engine take a stretch of steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from course.base import settings
from course.engine.step import Step, StepTime, StepTimeModel, check_seconds, with_checks
from course.policies.base import Limits, Request
from course.workload import Workload

NO_DRAFTS: Mapping[Request, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Work:
    """One step as an executor gets it.

    decodes: requests that compute one token and emit the next. chunks: (request, tokens) for those that compute their
    prompt; a prompt that is completed emits its first token. table: from a request to the numbers of its KV blocks, in
    the order of its tokens, those of this step included. start: when the step may begin [s], on the engine's clock.
    drafts: tokens to be drafted and verified in this step, of those that decode; only of executors that verify.
    """

    decodes: Sequence[Request]
    chunks: Sequence[tuple[Request, int]]
    table: Callable[[Request], Sequence[int]]
    start: float = 0.0
    drafts: Mapping[Request, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step.

    seconds: how long it took. finished: requests whose answer is complete with the token of this step. tokens: how many
    tokens left for a request that decodes, if it is not one (more, with accepted drafts).
    """

    seconds: float
    finished: Sequence[Request] = ()
    tokens: Mapping[Request, int] | None = None


class Executor:
    """Base of all executors. Write `execute`; `expect` if something is to be known of each request beforehand.

    verifies: whether it drafts and verifies what `Work.drafts` asks for. badge: where its seconds come from.
    simulates: whether nothing is computed in its steps, so that KV blocks need only be counted.
    numbers_blocks: whether it knows itself which block has which number, and so can do without a pool that keeps that.
    """

    verifies: bool = False
    badge: str = "measured"
    numbers_blocks: bool = False
    simulates: bool = False

    def expect(self, request: Request, output_tokens: int | None) -> None:
        """A request that will come. output_tokens: what the caller says of its answer's length; it may be a bound."""

    def follow(self, load: Workload) -> None:
        """All requests of a workload will come, in place of `expect` for each."""

    def execute(self, work: Work) -> Outcome:
        """Spend the time of one step."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `execute`")


class Lines(dict):
    """decodes -> (base, slope) of `StepTimeModel.decode_line`, asked for once."""

    def __init__(self, step_time: StepTimeModel):
        self.decode_line = step_time.decode_line

    def __missing__(self, decodes: int) -> tuple[float, float]:
        line = self[decodes] = self.decode_line(decodes)
        return line


class Simulated(Executor):
    """A step time in place of a card. It knows from the workload how long each answer will be."""

    simulates = True

    def __init__(self, step_time: StepTime):
        self.step_time = step_time
        self.lengths: list[int] = []  # output tokens by row
        # A model without straight lines is asked for every step, like any callable.
        self.model = None
        if isinstance(step_time, StepTimeModel) and step_time.straight:
            self.model = with_checks(step_time)
        self.lines = Lines(self.model) if self.model else {}
        self.prefill_line = self.model.prefill_line() if self.model else None

    def expect(self, request: Request, output_tokens: int | None) -> None:
        """Its length. Raises ValueError without one."""
        if output_tokens is None:
            raise ValueError("a simulated engine needs to know output_tokens, the length of each answer")
        output_tokens = settings.whole("output_tokens", output_tokens)
        self._check_longest(request.prompt_tokens + output_tokens - 1, request.index)
        self.lengths.append(output_tokens)

    def follow(self, load: Workload) -> None:
        """All lengths of a workload."""
        self.lengths = load.output_tokens.tolist()
        total = load.prompt_tokens + load.output_tokens - 1
        self._check_longest(int(total.max()), int(total.argmax()))

    def execute(self, work: Work) -> Outcome:
        """One step, looked at request by request."""
        decodes = [request.computed for request in work.decodes]
        # The last token of a prompt computed again, or of one that comes from elsewhere, is a decode like any other.
        again = [r for r, _ in work.chunks if r.remaining == 1 and (r.emitted or r.elsewhere)]
        decodes += [request.computed for request in again]
        prompts = [(tokens, request.computed) for request, tokens in work.chunks if request not in again]
        emits = [*work.decodes, *(request for request, tokens in work.chunks if tokens >= request.remaining)]
        finished = [request for request in emits if request.emitted + 1 == self.lengths[request.index]]
        return Outcome(self.seconds(len(decodes), sum(decodes) + len(decodes), prompts), finished)

    def longest(self, requests: Iterable[Request]) -> int:
        """Tokens of the longest of their answers."""
        return max(self.lengths[request.index] for request in requests)

    def _check_longest(self, tokens: int, request: int) -> None:
        if self.model is not None and tokens > self.model.longest:
            raise ValueError(
                f"request {request} grows to {tokens:,} tokens, and {self.step_time!r} has step times for up to "
                f"{self.model.longest:,} tokens of a sequence: shorten it"
            )

    def seconds(self, decodes: int, context: int, chunks: Sequence[tuple[int, int]]) -> float:
        """Seconds of a step, its chunks as (tokens, tokens already cached)."""
        if self.model is None:
            step = Step(decodes, context, tuple(chunks))
            return check_seconds(self.step_time(step), step)
        tokens = pairs = seen = 0
        for chunk, cached in chunks:
            tokens += chunk
            seen += cached
            pairs += chunk * cached + chunk * (chunk + 1) // 2
        if self.prefill_line is None:
            return self.model.seconds(decodes, context, tokens, pairs, seen + tokens)
        (base, slope), (a_token, a_pair) = self.lines[decodes], self.prefill_line
        return base + a_token * tokens + slope * context + a_pair * pairs


def as_executor(given: Any) -> Executor:
    """An executor as it is, a step time as a simulated one. Raises ValueError for anything else."""
    if isinstance(given, Executor):
        return given
    if isinstance(given, type) or not callable(given):
        raise ValueError(f"an engine needs an executor or a step time, not {settings.quote(given)}")
    if isinstance(given, StepTimeModel):
        given.check_settings()
    return Simulated(given)


def checked_outcome(
    outcome: Any,
    executor: Executor,
    emits: Container[Request],
    tokens: int,
    limits: Limits,
    drafts: Mapping[Request, int] = NO_DRAFTS,
) -> tuple[float, tuple[Request, ...], dict[Request, int]]:
    """Seconds, the requests whose answer is complete, and the tokens that left for each of which the outcome says so.

    emits: requests of which a token leaves with this step. tokens: of the step as it was planned, drafts included.
    Raises ValueError for anything but an Outcome, for other requests, for more tokens than a request's drafts and one,
    and for more than the budget has.
    """
    name = type(executor).__name__
    if not isinstance(outcome, Outcome):
        raise ValueError(f"{name}.execute must return an Outcome, not {settings.quote(outcome)}")
    seconds = check_seconds(outcome.seconds, f"the step of {name}")
    if isinstance(outcome.finished, str) or not isinstance(outcome.finished, Iterable):
        raise ValueError(f"{name}: finished must be a list of requests, not {settings.quote(outcome.finished)}")
    if outcome.tokens is not None and not isinstance(outcome.tokens, Mapping):
        raise ValueError(
            f"{name}: tokens must be a dict of requests to token counts, not {settings.quote(outcome.tokens)}"
        )
    counts: dict[Request, int] = {}
    for request, count in (outcome.tokens or {}).items():
        what = f"the tokens that {name} lets leave for {settings.quote(request)}"
        counts[request] = count = settings.whole(what, count)
        if type(request) is not Request or request not in emits:
            raise ValueError(
                f"{name} lets {count} tokens leave for {settings.quote(request)}, which emitted nothing in this step"
            )
        drafted = drafts.get(request)
        if drafted and count > 1 + drafted:
            raise ValueError(
                f"{name} lets {count} tokens leave for {request!r}, for which {drafted} were drafted: 1 more at most"
            )
        tokens += 0 if drafted else count - 1  # each was computed, the first and the drafts as planned
    if tokens > limits.max_num_batched_tokens:
        raise ValueError(
            f"{name} computed {tokens} tokens in one step, those that left besides included, and "
            f"max_num_batched_tokens is {limits.max_num_batched_tokens}: emit fewer, or raise it"
        )
    finished = tuple(outcome.finished)
    for place, request in enumerate(finished):
        if type(request) is not Request or request not in emits:
            raise ValueError(f"{name} ends the answer of {settings.quote(request)}, which emitted nothing in this step")
        if request in finished[:place]:
            raise ValueError(f"{name} ends the answer of {request!r} twice in one step")
    return seconds, finished, counts
