"""The scenario of lab 07: streaming chats, now and then one long prompt among them or three, and a class at times.

Llama-3.1-8B on one H200, continuous batching with 64 slots. Chats have 200 prompt tokens and about 300 answer tokens
(lognormal, coefficient of variation 0.5); a long prompt has 32,768. Once a minute a class of forty asks at once. Step
times are those recorded on that card, with the attention of prompts that engines use, where nothing else is said; the
roofline stands beside them as theory.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from course import policies
from course.engine.metrics import percentiles
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.policies import Policy
from course.steptime import Roofline, StepTime, recorded
from course.workload import Workload, lengths

STEP = recorded("h200-llama3-8b-flash")
BADGE = STEP.simulated.partition(", prompts")[0]  # of an explorer, on one line; tables name the kernels too
THEORY = Roofline("llama-3.1-8b", "H200")
SLOTS = 64  # chosen, and never all taken by the chats of this lab; `vllm serve` takes 1,024 on this card
PROMPT, EVERY = 32_768, 20.0  # tokens of a long prompt, seconds from one to the next
MEET, FOURTH = 3, 4  # so many long prompts come at once each fourth time
CLASS, CLASS_EVERY, CLASS_FIRST = 40, 60.0, 45.0  # chats that come at once, seconds from one class to the next
CHAT_RATE, CHAT_PROMPT, CHAT_ANSWER = 8.0, 200, 300
WHOLE = 65_536  # a token budget that holds any prompt of this lab beside all decodes; no engine has it by default
DEFAULT = 8_192  # that of `vllm serve` on an H200
BUDGETS = tuple(2**k for k in range(7, 17))
STALL = 0.1  # seconds without a token that a reader of a stream notices


@lru_cache(maxsize=64)
def requests(every: float = EVERY, num_chats: int = 1_600, seed: int = 0, faster: float = 1.0) -> Workload:
    """Poisson chats, a class of them each minute, and long prompts each `every` seconds; by `class_`.

    The first long prompt comes after half of `every`; the third time three come at once, and each fourth time from
    then on. faster: by this factor all come sooner one after the other.
    """
    answers = lengths.lognormal(CHAT_ANSWER, cv=0.5)
    chats = Workload.poisson(CHAT_RATE, num_chats, CHAT_PROMPT, answers, seed)
    end = chats.arrival[-1]
    times = np.arange(every / 2, end, every)
    times = np.repeat(times, np.where(np.arange(len(times)) % FOURTH == FOURTH // 2, MEET, 1))
    parts = {"chat": chats, "long": Workload(times, np.full(len(times), PROMPT), np.full(len(times), CHAT_ANSWER))}
    if classes := CLASS * len(np.arange(CLASS_FIRST, end, CLASS_EVERY)):
        drawn = Workload.poisson(CHAT_RATE, classes, CHAT_PROMPT, answers, seed + 1)
        at = np.repeat(np.arange(CLASS_FIRST, end, CLASS_EVERY), CLASS)
        parts["class"] = Workload(at, drawn.prompt_tokens, drawn.output_tokens)
    load = Workload.mix(parts)
    return load if faster == 1 else load.scaled(load.rate * faster)


def engine(max_num_batched_tokens: int = WHOLE, long_prefill_token_threshold: int = 0) -> policies.Continuous:
    """The scenario's policy: continuous batching in vLLM's order, 64 slots."""
    return policies.Continuous(
        SLOTS, max_num_batched_tokens, long_prefill_token_threshold=long_prefill_token_threshold
    )  # fmt: skip


def longest_gaps(run: Run) -> np.ndarray:
    """The longest gap between two tokens of each request [s], shape (n,); NaN for an answer of one token.

    For runs in which whoever decodes gets a token in every step: no preemption, nobody sits out a step.
    """
    clock = run.steps.end
    first, last = np.searchsorted(clock, run.first_computed), np.searchsorted(clock, run.last_computed)
    gaps, many = np.append(np.diff(clock), 0.0), np.flatnonzero(last > first)
    found = np.full(len(run), np.nan)
    edges = np.column_stack((first[many], last[many])).ravel()
    found[many] = np.maximum.reduceat(gaps, edges)[::2] if len(many) else 0.0
    return found


@dataclass(frozen=True)
class Outcome:
    """What the chats and the long prompts of one run felt. Times in seconds."""

    run: Run
    gaps: np.ndarray
    """Longest gap of each request."""

    @cached_property
    def chats(self) -> np.ndarray:
        """Which requests are chats, those of a class too."""
        return np.asarray(self.run.workload.class_ != "long")

    @cached_property
    def long_ttft(self) -> float:
        """Median TTFT of the long prompts."""
        return float(np.median(self.run.ttft[~self.chats]))

    @cached_property
    def chat_ttft(self) -> dict[str, float]:
        """TTFT of the chats: mean, p50 ... max."""
        return percentiles(self.run.ttft[self.chats])

    @cached_property
    def itl(self) -> dict[str, float]:
        """Gaps over all tokens, those of the long answers too: mean, p50 ... max."""
        return percentiles(*self.run.itl_weighted)

    @cached_property
    def chat_gaps(self) -> np.ndarray:
        """The longest gap of each chat that has one."""
        gaps = self.gaps[self.chats]
        return gaps[~np.isnan(gaps)]

    def stalled(self, limit: float = STALL) -> float:
        """Share of the chats with a gap above `limit`."""
        return float((self.chat_gaps > limit).mean())


def outcome(load: Workload, policy: Policy, step_time: StepTime = STEP) -> Outcome:
    """Serve the load and see who waited for whom."""
    run = serve(load, policy, step_time)
    return Outcome(run, longest_gaps(run))


@lru_cache(maxsize=256)
def served(budget: int, cap: int = 0, every: float = EVERY, step_time: StepTime = STEP) -> Outcome:
    """The service with this budget and cap."""
    return outcome(requests(every), engine(budget, cap), step_time)


# One long prompt among streaming chats, step by step.


@dataclass(frozen=True)
class Moment:
    """Long prompts that arrive at `start` [s] while `streaming` chats stream; then newcomers and perhaps a class."""

    run: Run
    start: float
    streaming: int
    at_once: int = 1

    @property
    def long(self) -> int:
        """The number of the first long prompt's request."""
        return self.streaming

    @property
    def longs(self) -> range:
        """The long prompts."""
        return range(self.streaming, self.streaming + self.at_once)

    @property
    def newcomers(self) -> range:
        """Those who come just after the long prompts, one by one."""
        return range(self.longs.stop, self.longs.stop + len(NEWCOMERS))

    @property
    def later(self) -> slice:
        """All who come after the long prompts: the newcomers and the class."""
        return slice(self.longs.stop, None)

    @cached_property
    def chunk_steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Start and end of each step that computed a chunk of the first long prompt."""
        return self.steps_of(self.long)

    def steps_of(self, long: int) -> tuple[np.ndarray, np.ndarray]:
        """Start and end of each step between the first chunk of a long prompt and its last."""
        steps, run = self.run.steps, self.run
        here = (steps.start >= run.admitted[long]) & (steps.end <= run.first_computed[long])
        return steps.start[here], steps.end[here]

    @cached_property
    def longest_gap(self) -> tuple[float, float]:
        """From when to when a streaming chat got no token."""
        gaps = longest_gaps(self.run)[: self.streaming]
        tokens = self.run.token_times(int(np.nanargmax(gaps)))
        at = int(np.diff(tokens).argmax())
        return float(tokens[at]), float(tokens[at + 1])

    @property
    def gap(self) -> float:
        """How long that was [s]."""
        return self.longest_gap[1] - self.longest_gap[0]


NEWCOMERS = (0.02, 0.06, 0.2)  # seconds after the long prompt; a class comes with the last


@lru_cache(maxsize=64)
def moment(
    max_num_batched_tokens: int, long_prefill_token_threshold: int, at_once: int = 1, crowd: int = 0,
    streaming: int = 12,
) -> Moment:  # fmt: skip
    """`streaming` chats in the middle of their answers, long prompts, and chats that come just after them.

    at_once: long prompts that arrive together. crowd: chats of a class, which arrive together with the last newcomer.
    """
    start, late = 1.0, len(NEWCOMERS) + crowd
    load = Workload(
        arrival=np.r_[
            np.linspace(0, 0.5, streaming), np.full(at_once, start), start + np.array(NEWCOMERS),
            np.full(crowd, start + NEWCOMERS[-1]),
        ],
        prompt_tokens=np.r_[np.full(streaming, CHAT_PROMPT), np.full(at_once, PROMPT), np.full(late, CHAT_PROMPT)],
        output_tokens=np.r_[np.full(streaming, 1_600), np.full(at_once + late, 100)],
    )  # fmt: skip
    policy = engine(max_num_batched_tokens, long_prefill_token_threshold)
    return Moment(serve(load, policy, STEP), start, streaming, at_once)


def moment_rows(found: Moment) -> list[tuple[str, str]]:
    """How long each of them waited."""
    run = found.run
    return [
        ("long prompt: TTFT" if found.at_once == 1 else "first long prompt: TTFT", seconds(run.ttft[found.long])),
        ("steps it took", f"{len(found.chunk_steps[0]):,}"),
        ("longest gap of a chat", seconds(found.gap)),
        ("newcomer 1: TTFT", seconds(float(run.ttft[found.newcomers.start]))),
        ("last newcomer: TTFT", seconds(float(run.ttft[found.later].max()))),
    ]


# What a percentile over tokens hides.


@dataclass(frozen=True)
class Hidden:
    """One run, and the limit [s] above which a gap counts as a stall."""

    outcome: Outcome
    every: float
    limit: float

    @cached_property
    def tokens(self) -> float:
        """Share of the tokens that come after a gap above the limit."""
        gaps, weights = self.outcome.run.itl_weighted
        return float(weights[gaps > self.limit].sum() / weights.sum())

    @cached_property
    def p99(self) -> float:
        """Over chats, of each one's longest gap [s]."""
        return float(np.percentile(self.outcome.chat_gaps, 99))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the run."""
        return self.outcome.run.warnings


def hidden(max_num_batched_tokens: int, long_prefill_token_threshold: int, every: float, limit_ms: float) -> Hidden:
    """Long prompts each `every` seconds; a gap above `limit_ms` counts as a stall."""
    found = served(max_num_batched_tokens, long_prefill_token_threshold, float(every))
    return Hidden(found, every, limit_ms / 1e3)


def hidden_rows(result: Hidden) -> list[tuple[str, str]]:
    """The same gaps, counted by tokens and by chats."""
    found = result.outcome
    return [
        ("p99 over all tokens", seconds(found.itl["p99"])),
        ("longest gap", seconds(found.itl["max"])),
        ("p99 over chats' longest gaps", seconds(result.p99)),
        (f"tokens after a gap above {seconds(result.limit)}", f"{result.tokens:.3%}"),
        (f"chats with a gap above {seconds(result.limit)}", f"{found.stalled(result.limit):.1%}"),
        ("TTFT of a chat, p99", seconds(found.chat_ttft["p99"])),
        ("TTFT of a long prompt", seconds(found.long_ttft)),
    ]
