"""What lab 17 leaves out: the shortest answer first, a predictor that errs, a cap, Retry-After, a predicted wait."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np

from course import policies
from course.engine.fleet import Fleet
from course.engine.routes import ByClass, LeastLoaded, RoundRobin
from course.engine.run import Run
from course.engine.serving import Engine, serve
from course.lessons.lab17 import tenants
from course.lessons.lab17.tenants import BUDGET, BURST, POOL, SLOTS, STEP
from course.policies import Continuous
from course.policies.base import Schedule, State
from course.workload import Workload, lengths

RATE, FEW, ANSWER, SPREAD, LONGEST, CAP = 20, 32, 256, 2.0, 4_096, 512
"""Requests/s, slots that bind, tokens of an answer on average, their coefficient of variation, the longest, a cap."""
ERROR = 1.0  # of a predictor: half of its guesses are wrong by a factor of two and more
GATE = 28_000  # tokens/s of each tenant
IN_ORDER, EXACT, NOISY, CAPPED = (
    "first come, first served", "shortest answer first", "the same, guesses that err", "in order, answers capped",
)  # fmt: skip

NAMES = (IN_ORDER, EXACT, NOISY, CAPPED)


@lru_cache(maxsize=8)
def one_tenant(name: str, seed: int = 0) -> Run:
    """A minute of one service whose answers differ much, with few slots."""
    prompts, answers = lengths.lognormal(512, 1.0, 16, 4_096), lengths.lognormal(ANSWER, SPREAD, 4, LONGEST)
    load = Workload.poisson(RATE, RATE * tenants.SECONDS, prompts, answers, seed=seed)
    load = load.with_max_tokens(CAP) if name == CAPPED else load
    if name in (IN_ORDER, CAPPED):
        return serve(load, Continuous(FEW, BUDGET), STEP, POOL)
    load = load.with_guesses("exact") if name == EXACT else load.with_guesses("lognormal", error=ERROR, seed=seed)
    return serve(load, policies.ShortestFirst(FEW, BUDGET, by="guess"), STEP, POOL)


@lru_cache(maxsize=4)
def gated(retry: bool) -> Run:
    """The storm behind buckets: requests wait at the gateway, or are told when to come again."""
    kind = policies.RateLimit if retry else policies.Bucket
    return serve(tenants.requests(), kind(SLOTS, BUDGET, GATE, BURST), STEP, POOL)


def waits(run: Run) -> tuple[float, float, float]:
    """Median, p95 and longest TTFT [s]."""
    return tuple(float(np.percentile(run.ttft, share)) for share in (50, 95, 100))  # type: ignore[return-value]


@lru_cache(maxsize=4)
def routed(name: str) -> tenants.Outcome:
    """The storm on two engines behind this route."""
    load = tenants.requests()
    load = replace(load, class_=np.asarray(load.tenant))
    own: dict[Any, list[int]] = {name: [0] for name in tenants.QUIET} | {tenants.NOISY: [1]}
    routes = {"round robin": RoundRobin(), "least loaded": LeastLoaded()}
    route: Any = routes.get(name) or ByClass(own)
    engines = [Engine(Continuous(SLOTS, BUDGET), STEP, POOL) for _ in range(2)]
    return tenants.Outcome(Fleet(engines, route).serve(load))


ROUTES = ("round robin", "least loaded", "N on an engine of its own")


# Admission by a predicted wait

READ_PER_SECOND, PROMISE_S = 20_000, 0.5  # prompt tokens that the engine reads in the storm; the promised TTFT
Own = Callable[[int, int, float], float]
"""(prompt tokens ahead, own prompt tokens, tokens/s) to a TTFT in seconds."""


def predicted(ahead: int, prompt: int, per_second: float) -> float:
    """The package's own: a request is read after all that is ahead of it."""
    return (ahead + prompt) / per_second


class ByPrediction(Continuous):
    """First come, first served, without those whose predicted TTFT is above the promise: they are rejected at once."""

    def __init__(self, function: Own):
        self.function, self.said = function, dict[int, float]()
        super().__init__(SLOTS, BUDGET)

    def schedule(self, state: State, *, holds: bool | None = True) -> Schedule:
        """Whoever came and has to go, if anybody; then as Continuous."""
        ahead, told = sum(one.prompt_tokens - one.computed for one in state.prefilling), []
        for one in state.waiting:
            if one.index not in self.said:
                self.said[one.index] = self._ask(ahead, one.prompt_tokens)
            if self.said[one.index] > PROMISE_S:
                told.append(one)
            else:
                ahead += one.prompt_tokens - one.computed
        return Schedule(reject=told) if told else super().schedule(state, holds=holds)

    def _ask(self, ahead: int, prompt: int) -> float:
        said = self.function(ahead, prompt, READ_PER_SECOND)
        if isinstance(said, bool) or not isinstance(said, Real) or not said >= 0:
            raise ValueError(f"Your function must return seconds, 0 or more, not {said!r}.")
        return float(said)


def with_prediction(function: Own | None) -> tenants.Outcome:
    """The storm with this prediction at the door; None: nobody is rejected."""
    policy = Continuous(SLOTS, BUDGET) if function is None else ByPrediction(function)
    return tenants.Outcome(serve(tenants.requests(), policy, STEP, POOL))
