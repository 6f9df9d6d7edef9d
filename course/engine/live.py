"""Serving for real: a step takes as long as it takes, and an answer is as long as it becomes.

    class Mine(Live):
        def compute(self, work):
            ...                     # run the step: launch, multiply, wait for the end
            return Emitted(finished=[request for request in work.decodes if ...])

    run = serve_live(load, policy, Mine())

The engine's clock is the wall's: it starts with the first step, a request that arrives at t comes t seconds later, and
a step lasts from the moment when the engine could begin it until it is computed. So what the policy and the engine take
between two steps is part of the later one, and the times of the Run are those that a watch would show.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from course.base import settings
from course.engine.executor import Executor, Outcome, Work
from course.engine.run import Run
from course.engine.serving import Engine, finish
from course.engine.step import SHORTEST
from course.memory.kvcache import KVCache
from course.policies.base import Policy, Request, fresh
from course.workload import Workload

TICK = 1e-9  # seconds; waits below it are not waited for


@dataclass(frozen=True, slots=True)
class Emitted:
    """What a step gave.

    finished: requests whose answer is complete with the token of this step. tokens: how many tokens left for a request
    that decodes, if it is not one.
    """

    finished: Sequence[Request] = ()
    tokens: Mapping[Request, int] | None = None


class Live(Executor):
    """Base of executors that really run their steps. Write `compute`.

    waits: True: nothing begins before its time, and the clock is the wall's. False: the seconds of the steps alone are
    real, and the times without a request pass at once, so that a quiet hour need not be sat through.
    clock, sleep: functions of seconds, in place of the machine's.

    seconds: of each step so far, in a list. Given to a simulator in place of a step time, they make the same run.
    """

    def __init__(
        self,
        *,
        waits: bool = True,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.waits = settings.flag("waits", waits)
        self.clock, self.sleep = clock, sleep
        self.seconds: list[float] = []
        self._zero: float | None = None

    def begin(self, at: float = 0.0) -> None:
        """The engine's clock shows `at` seconds now. Without this call it shows 0 at the first step."""
        self._zero = self.clock() - at

    @property
    def now(self) -> float:
        """Seconds that the engine's clock shows; 0 before it has begun."""
        return 0.0 if self._zero is None else self.clock() - self._zero

    def compute(self, work: Work) -> Emitted:
        """Run one step to its end."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `compute`")

    def execute(self, work: Work) -> Outcome:
        """Wait until the step may begin, run it, and say what it took."""
        if self._zero is None:
            self.begin()
        if self.waits:
            while (early := work.start - self.now) > TICK:
                self.sleep(early)
            began = work.start
        else:
            began = self.now
        emitted = self.compute(work)
        if not isinstance(emitted, Emitted):
            raise ValueError(f"{type(self).__name__}.compute must return an Emitted, not {settings.quote(emitted)}")
        seconds = max(self.now - began, SHORTEST)
        self.seconds.append(seconds)
        return Outcome(seconds, emitted.finished, emitted.tokens)


def serve_live(load: Workload, policy: Policy, executor: Live, cache: KVCache | None = None) -> Run:
    """Serve every request of `load` for real, and return what happened.

    load: who comes when, with prompts of which length. Its output_tokens count for nothing here: neither engine nor
    policy knows them, and the Run has the lengths that came out. executor: what runs the steps. cache: KV blocks;
    without one, memory is unlimited.

    Raises ValueError as `serve` does, and for an executor that is none of the live ones.
    """
    check_live(executor)
    engine = Engine(fresh(policy), executor, cache)
    engine.follow(load)
    executor.begin()
    return finish(engine)


def check_live(executor: object) -> None:
    """Raises ValueError for anything but a live executor."""
    if not isinstance(executor, Live):
        raise ValueError(
            f"serving for real needs a live executor (course.engine.live.Live), not {settings.quote(executor)}; "
            "`serve` takes step times"
        )
