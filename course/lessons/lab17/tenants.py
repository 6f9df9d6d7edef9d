"""The scenario of lab 17: three quiet tenants and a noisy one share Llama-3.1-8B on one H200.

For a minute A, B and C ask one question a second each, with some 512 tokens in, and N asks more often, with some 1,500;
answers have some 256 (lognormal). Slots and token budget are those of `vllm serve` on this card, and the KV blocks
those that it has. Step times are those recorded on the card.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.memory.kvcache import KVCache
from course.policies import Policy
from course.steptime import recorded
from course.workload import Workload, lengths

STEP = recorded("h200-llama3-8b-flash")
BADGE = STEP.simulated.partition(", prompts")[0]  # of an explorer, on one line; tables name the kernels too
SLOTS, BUDGET = 1_024, 8_192  # of `vllm serve` on an H200
POOL = KVCache(54_251)  # blocks of 16 tokens: what `course kv llama-3.1-8b --gpu H200` leaves
SECONDS = 60
QUIET, NOISY = "ABC", "N"
QUIET_RATE, CALM, STORM = 1.0, 10, 30  # requests/s of each quiet tenant; of the noisy one on a calm day, and in a storm
QUIET_PROMPT, NOISY_PROMPT, ANSWER = 512, 1_500, 256  # tokens, on average
BURST = 20_000  # tokens of a full bucket: more than any request costs
IN_ORDER, PRIORITY, FAIR = "first come, first served", "priority", "fair"
ORDERS = (IN_ORDER, PRIORITY, FAIR)
NONE = 60  # thousand tokens/s at the gateway that let everybody through, and seconds of ageing that decide nothing here


@lru_cache(maxsize=48)
def requests(
    noisy: float = STORM, seed: int = 0, quiet: float = QUIET_RATE, answer: int = ANSWER, duration: int = SECONDS
) -> Workload:
    """All four for `duration` seconds, by tenant; priority 0 is that of the quiet ones.

    noisy, quiet: requests/s. answer: tokens on average, which a gateway takes for the length of each (`guess`).
    """
    answers, parts = lengths.lognormal(answer, 1.0, 4, 1_024), {}
    for place, name in enumerate(QUIET):
        drawn = lengths.lognormal(QUIET_PROMPT, 1.0, 16, 4_096)
        parts[name] = Workload.poisson(quiet, int(quiet * duration), drawn, answers, seed=10 * seed + place)
    prompts = lengths.lognormal(NOISY_PROMPT, 0.7, 16, 6_000)
    parts[NOISY] = Workload.poisson(noisy, int(noisy * duration), prompts, answers, seed=10 * seed + 9)
    load = Workload.mix(parts)
    names = np.asarray(load.class_)
    tags = tuple({"priority": int(name == NOISY)} for name in names.tolist())
    return replace(load, tenant=names, class_=None, tags=tags).with_guesses("constant", tokens=answer)


def engine(order: str = IN_ORDER, slots: int = SLOTS, ageing: float = NONE, gateway: float = NONE) -> Policy:
    """The engine's order and slots; or, with a gateway below NONE thousand tokens/s a tenant, buckets in front.

    ageing: seconds of waiting that make up for the priority; from NONE on no wait does.
    """
    if gateway < NONE:
        return policies.Bucket(slots, BUDGET, 1e3 * gateway, BURST)
    if order == PRIORITY:
        return policies.Priority(slots, BUDGET, ageing if ageing < NONE else float("inf"))
    return policies.Fair(slots, BUDGET) if order == FAIR else policies.Continuous(slots, BUDGET)


@dataclass(frozen=True)
class Outcome:
    """What the tenants felt in one run. Times in seconds."""

    run: Run

    @cached_property
    def quiet(self) -> np.ndarray:
        """Which requests are those of the quiet tenants."""
        return np.asarray(self.run.workload.tenant != NOISY)

    @cached_property
    def ttft(self) -> float:
        """p95 of the quiet tenants."""
        return float(np.percentile(self.run.ttft[self.quiet], 95))

    @cached_property
    def tpot(self) -> float:
        """p95 of the quiet tenants."""
        return float(np.nanpercentile(self.run.tpot[self.quiet], 95))

    @cached_property
    def noisy_ttft(self) -> float:
        """p95 of the noisy tenant."""
        return float(np.percentile(self.run.ttft[~self.quiet], 95))

    @cached_property
    def tokens_per_second(self) -> float:
        """Output tokens/s of all, up to the last arrival."""
        steps, last = self.run.steps, float(self.run.arrival.max())
        return float(steps.useful[steps.end <= last].sum() / last)

    @cached_property
    def busy(self) -> float:
        """Share of that time in which a step ran."""
        steps, last = self.run.steps, float(self.run.arrival.max())
        return float(steps.seconds[steps.end <= last].sum() / last)

    def waiting(self, at: float) -> int:
        """Requests without a slot at this time [s]."""
        return int(((self.run.arrival <= at) & (self.run.admitted > at)).sum())

    def running(self, at: float) -> int:
        """Requests with a slot at this time [s]."""
        return int(((self.run.admitted <= at) & (self.run.response > at)).sum())


def outcome(load: Workload, policy: Policy) -> Outcome:
    """Serve the load, and see who waited."""
    return Outcome(serve(load, policy, STEP, POOL))


@lru_cache(maxsize=128)
def served(
    noisy: float = STORM, order: str = IN_ORDER, slots: int = SLOTS, ageing: float = NONE, gateway: float = NONE,
    seed: int = 0,
) -> Outcome:  # fmt: skip
    """The minute with these settings."""
    return outcome(requests(noisy, seed), engine(order, slots, ageing, gateway))


def rows(found: Outcome) -> list[tuple[str, str]]:
    """The table of an explorer."""
    return [
        ("quiet: TTFT, p95", seconds(found.ttft)),
        ("quiet: TPOT, p95", seconds(found.tpot)),
        ("noisy: TTFT, p95", seconds(found.noisy_ttft)),
        ("output tokens/s, all", f"{found.tokens_per_second:,.0f}"),
        ("most that ran at once", f"{found.run.steps.running.max():,}"),
        ("card busy", f"{found.busy:.0%}"),
    ]
