"""The scenario of lab 15: chats and documents share Llama-3.1-8B on one H200, and chats come in bursts.

Nine in ten requests are chats, with some 512 tokens in and 192 out; the others are documents, with some 6,000 in and
256 out. A chat is promised its first token within 0.5 s, a document within 5 s, and both 20 ms a token from then on.
Slots and token budget are those of `vllm serve` on this card, and the KV blocks those that it has. Step times are those
recorded on the card.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from course import policies
from course.engine.promises import meets_slos
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.memory.kvcache import KVCache
from course.policies import HopelessLast, Policy, Schedule, State, StepTarget
from course.steptime import recorded
from course.workload import SLO, Workload, lengths

STEP = recorded("h200-llama3-8b-flash")
BADGE = STEP.simulated.partition(",")[0]  # of an explorer, on one line; tables name the kernels too
SLOTS, BUDGET = 1_024, 8_192  # of `vllm serve` on an H200
POOL = KVCache(54_251)  # blocks of 16 tokens: what `course kv llama-3.1-8b --gpu H200` leaves
SECONDS = 60
RATE, MOST = 20, 26  # requests/s of both, on average: of the story, and the most of an explorer
DOCUMENTS = 0.1  # of all requests
CHAT, DOCUMENT = "chat", "document"
TTFT = {CHAT: 0.5, DOCUMENT: 5.0}  # seconds that are promised
TPOT = 0.02
PROMISED = {name: SLO(ttft=first, tpot=TPOT) for name, first in TTFT.items()}
CHAT_PROMPT, CHAT_ANSWER, LONG_PROMPT, LONG_ANSWER = 512, 192, 6_000, 256  # tokens, on average
ON, PERIOD = 12.0, 30.0  # bursts: seconds with chats, and from the start of one to that of the next
BURSTS, STEADY = "in bursts", "steadily"
SMALL = 512  # tokens of the flag that exists
PACE = 22_000  # prompt tokens/s that a request counts on before it calls itself hopeless
DEFAULTS, EARLIEST, HOPELESS, FLAG, TARGET, BOTH = (
    "vLLM's defaults", "earliest deadline first", "hopeless last", f"budget {SMALL}", "step target",
    "step target + hopeless last",
)  # fmt: skip
IN_ORDER, NONE = "in order", 60  # an order; ms of a step target that is none
POLICIES = (DEFAULTS, EARLIEST, HOPELESS, FLAG, TARGET, BOTH)


class Both(HopelessLast, StepTarget):
    """A short step, and an order for those who wait: vLLM has neither."""


class Rejecting(HopelessLast):
    """Hopeless requests are rejected: their users know at once, and ask elsewhere."""

    def schedule(self, state: State, *, holds: bool | None = None) -> Schedule:
        """What the order answers, and nothing for those who could no longer start in time."""
        late = tuple(one for one in state.waiting if self.start_by(one)[0] < state.now and not one.emitted)
        answer = super().schedule(state, holds=holds)
        late = tuple(one for one in late if one not in answer.tokens)
        return Schedule(answer.tokens, answer.preempt, answer.decodes, reject=late) if late else answer


@lru_cache(maxsize=128)
def requests(rate: float = RATE, arrivals: str = BURSTS, seed: int = 0) -> Workload:
    """All that come in SECONDS, by class: drawn at MOST a second, of which some stay out at a lower rate."""
    prompts, answers = lengths.lognormal(CHAT_PROMPT, 1.0, 16, 4_096), lengths.lognormal(CHAT_ANSWER, 1.0, 4, 1_024)
    chats, documents = MOST * (1 - DOCUMENTS), MOST * DOCUMENTS
    often = Workload.poisson(chats, int(chats * SECONDS), prompts, answers, seed=seed)
    if arrivals == BURSTS:  # a clock that stands still between bursts
        busy = often.arrival * ON / PERIOD
        often = replace(often, arrival=busy + busy // ON * (PERIOD - ON))
    long = lengths.lognormal(LONG_PROMPT, 0.4, 2_000, 16_000), lengths.lognormal(LONG_ANSWER, 0.5, 16, 1_024)
    seldom = Workload.poisson(documents, int(documents * SECONDS), *long, seed=seed + 1_000)
    both = Workload.mix({CHAT: often, DOCUMENT: seldom})
    here = np.random.default_rng(seed + 2_000).random(len(both)) < rate / MOST
    names = np.asarray(both.class_)[here]
    slos = tuple(PROMISED[name] for name in names)
    arrival, prompt, output = (column[here] for column in (both.arrival, both.prompt_tokens, both.output_tokens))
    return Workload(arrival, prompt, output, class_=names, slo=slos)


def engine(policy: str = DEFAULTS, target: float = TPOT, budget: int = BUDGET) -> Policy:
    """A policy by its name, with this step target [s] and this budget where it takes them from here."""
    slots, small = min(SLOTS, budget), min(SLOTS, SMALL)
    if policy == EARLIEST:
        return policies.EarliestDeadline(slots, budget)
    if policy == HOPELESS:
        return HopelessLast(slots, budget, tokens_per_second=PACE)
    if policy == FLAG:
        return policies.Continuous(small, SMALL)
    if policy == TARGET:
        return StepTarget(slots, budget, step_time=STEP, target=target)
    if policy == BOTH:
        return Both(slots, budget, tokens_per_second=PACE, step_time=STEP, target=target)
    return policies.Continuous(slots, budget)


@dataclass(frozen=True)
class Outcome:
    """What was promised, and what was kept in one run. Times in seconds."""

    run: Run

    @cached_property
    def chat(self) -> np.ndarray:
        """Which requests are chats."""
        return np.asarray(self.run.workload.class_) == CHAT

    @cached_property
    def promised(self) -> np.ndarray:
        """The TTFT that each was promised."""
        return np.array([TTFT[name] for name in np.asarray(self.run.workload.class_)])

    @cached_property
    def in_time(self) -> np.ndarray:
        """Whose first token came in time."""
        return np.asarray(self.run.ttft <= self.promised)

    @cached_property
    def kept(self) -> np.ndarray:
        """For whom both promises were kept."""
        return meets_slos(self.run)

    @property
    def share(self) -> float:
        """Of all requests, those for whom all was kept."""
        return float(self.kept.mean())

    @cached_property
    def tpot(self) -> float:
        """p95 of all."""
        return float(np.nanpercentile(self.run.tpot, 95))

    @cached_property
    def ttft(self) -> float:
        """p95 of chats."""
        return float(np.percentile(self.run.ttft[self.chat], 95))

    @cached_property
    def longest(self) -> float:
        """The longest TTFT of all."""
        return float(self.run.ttft.max())

    @property
    def documents_late(self) -> int:
        """Documents for which something was not kept."""
        return int((~self.kept & ~self.chat).sum())

    def waiting(self, at: float) -> int:
        """Requests without a slot at this time [s]."""
        return int(((self.run.arrival <= at) & (self.run.admitted > at)).sum())

    def running(self, at: float) -> int:
        """Requests with a slot at this time [s]."""
        return int(((self.run.admitted <= at) & (self.run.response > at)).sum())


def outcome(load: Workload, policy: Policy) -> Outcome:
    """Serve the load, and see what was kept."""
    return Outcome(serve(load, policy, STEP, POOL))


@lru_cache(maxsize=160)
def served(
    rate: float = RATE, policy: str = DEFAULTS, arrivals: str = BURSTS, seed: int = 0, target: float = TPOT,
    budget: int = BUDGET,
) -> Outcome:  # fmt: skip
    """The minute with these settings."""
    return outcome(requests(rate, arrivals, seed), engine(policy, target, budget))


@lru_cache(maxsize=64)
def tuned(target: float = NONE, budget: int = BUDGET, order: str = IN_ORDER, seed: int = 0) -> Outcome:
    """The minute of the story with a step target [ms] (NONE: none), a token budget and an order."""
    slots = min(SLOTS, budget)
    pace: dict[str, Any] = {"tokens_per_second": PACE}
    short: dict[str, Any] = {"step_time": STEP, "target": target / 1e3}
    policy: Policy
    if order == IN_ORDER:
        policy = policies.Continuous(slots, budget) if target >= NONE else StepTarget(slots, budget, **short)
    else:
        policy = HopelessLast(slots, budget, **pace) if target >= NONE else Both(slots, budget, **pace, **short)
    return outcome(requests(seed=seed), policy)


@lru_cache(maxsize=8)
def rejecting(seed: int = 0) -> Outcome:
    """The minute of the story with the small budget, and the hopeless rejected."""
    return outcome(requests(seed=seed), Rejecting(SMALL, SMALL, tokens_per_second=PACE))


def rows(found: Outcome) -> list[tuple[str, str]]:
    """The table of an explorer."""
    documents = ~found.chat
    return [
        ("kept, of all", f"{found.share:.0%}"),
        ("first token in time", f"{found.in_time.mean():.0%}"),
        ("TPOT, p95", seconds(found.tpot)),
        ("kept, of documents", f"{found.kept[documents].mean():.0%}"),
    ]
