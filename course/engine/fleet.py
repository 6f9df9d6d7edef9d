"""Several engines behind one router: each request goes to one of them when it arrives, and all make one Run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from course.base import settings
from course.engine.log import Log
from course.engine.routes import RoundRobin
from course.engine.run import Run
from course.engine.serving import Engine
from course.engine.steps import Steps
from course.policies.base import Limits, Request, fresh
from course.workload import Workload

LABELS = ("class_", "tenant", "guess", "tags", "deadline", "slo", "patience", "prefix")


class Replica:
    """One engine of a fleet, as a route sees it. number: its place. sent: how many requests were sent to it."""

    def __init__(self, number: int, engine: Engine):
        self.number, self.engine, self.sent = number, engine, 0
        self._open: list[Request] = []
        self._now = 0.0

    @property
    def requests(self) -> list[Request]:
        """Those that were sent to it and have no answer yet, in order of arrival."""
        engine = self.engine
        engine.advance(self._now)
        under_way = engine.now > self._now  # a step: what leaves at its end is still here
        self._open = [
            request
            for request in self._open
            if request.life.engine is engine or (under_way and request.life.leaves_at == engine.steps)
        ]
        return self._open

    @property
    def outstanding(self) -> int:
        """How many they are."""
        return len(self.requests)

    def look(self, now: float) -> None:
        """It is this late [s]. The engine goes on so far if anybody asks for its requests."""
        self._now = now

    def send(self, request: Request, output_tokens: int) -> None:
        """It comes to this engine."""
        self.engine.submit(request, output_tokens)
        self._open.append(request)
        self.sent += 1


class Fleet:
    """Engines that serve one workload, each request on one of them.

    engines: `course.engine.serving.Engine`s that simulate, and to which nothing was submitted. They may differ. If one
        policy stands in several, each gets a copy of its own. route: which engine a request goes to, when it arrives:
        one of `course.engine.routes`, RoundRobin if it is left out, or a function of the request and the replicas that
        returns a number.

        fleet = Fleet([Engine(policies.Continuous(64, 2048), step_time) for _ in range(4)], LeastLoaded())
        run = fleet.serve(load)  # one Run; fleet.runs has that of each engine, fleet.routed who went where

    Raises ValueError for no engines, one engine twice, others than these, and a route that cannot be called.
    """

    def __init__(self, engines: Sequence[Engine], route: Callable[[Request, Sequence[Replica]], int] | None = None):
        if isinstance(engines, Engine) or not isinstance(engines, Sequence) or not engines:
            raise ValueError(f"a Fleet needs a list of engines, not {settings.quote(engines)}")
        self.route = RoundRobin() if route is None else route
        if isinstance(self.route, type) or not callable(self.route):
            raise ValueError(
                "route must be one of course.engine.routes, such as LeastLoaded(), or a function of a request and the "
                f"replicas, not {settings.quote(route)}"
            )
        policies: list[Any] = []
        for number, engine in enumerate(engines):
            if not isinstance(engine, Engine) or not engine.simulated:
                raise ValueError(f"engine {number} must be an Engine with a step time, not {settings.quote(engine)}")
            if engine.arrivals.arrival:
                raise ValueError(f"engine {number} has requests already: a Fleet needs engines that have served nobody")
            if any(engine is other for other in engines[:number]):
                raise ValueError(f"engine {number} is in the list twice: make one for each place")
            if engine.limits.padded != engines[0].limits.padded:
                raise ValueError(
                    f"engine {number} answers {'whole batches' if engine.limits.padded else 'each request by itself'}, "
                    "and engine 0 does not: one Run cannot show both"
                )
            if any(engine.policy is other for other in policies):
                engine.policy = fresh(engine.policy)
            policies.append(engine.policy)
        self.replicas = [Replica(number, engine) for number, engine in enumerate(engines)]
        self.routed = np.empty(0, dtype=np.int64)
        self.runs: tuple[Run | None, ...] = ()

    def serve(self, load: Workload, computed: Sequence[int] | np.ndarray | None = None) -> FleetRun:
        """Serve every request, and return what happened. A fleet serves once.

        computed: (n,) tokens of each prompt whose K and V come from elsewhere (`Request`); none by default.

        routed: (n,) the number of the engine of each request. runs: the Run of each engine, None if nobody was sent to
        it; its rows are those of the workload that went there.

        Raises ValueError for a workload whose arrivals depend on answers, for a route that returns no number of an
        engine, and as `serve` does.
        """
        if not isinstance(load, Workload):
            raise ValueError(f"a Fleet serves a Workload, not {settings.quote(load)}")
        if len(self.routed):
            raise ValueError("this fleet has served a workload: make another one")
        if load.max_concurrency is not None or (load.after is not None and (load.after >= 0).any()):
            raise ValueError(
                "a Fleet serves requests whose arrivals are known, and these follow answers: give a workload without "
                "`after` and max_concurrency"
            )
        if computed is not None and len(computed) != len(load):
            raise ValueError(f"computed has {len(computed):,} numbers for {len(load):,} requests: give one for each")
        lengths, routed = load.output_tokens.tolist(), []
        for row, request in enumerate(_requests(load, computed)):
            for replica in self.replicas:
                replica.look(request.arrival)
            number = self.route(request, self.replicas)
            name = f"the replica to which {type(self.route).__name__} sends request {row}"
            number = settings.whole(name, number, low=0, high=len(self.replicas) - 1)
            self.replicas[number].send(request, lengths[row])
            routed.append(number)
        self.routed = np.array(routed)
        rows = [np.flatnonzero(self.routed == number) for number in range(len(self.replicas))]
        self.runs = tuple(
            _run(part(load, of), replica.engine) if len(of) else None
            for of, replica in zip(rows, self.replicas, strict=True)
        )
        parts = [(run, of) for run, of in zip(self.runs, rows, strict=True) if run is not None]
        return FleetRun(load, [replica.engine for replica in self.replicas], parts)


def _requests(load: Workload, computed: Sequence[int] | np.ndarray | None) -> list[Request]:
    """Each request as it is submitted."""
    elsewhere = [0] * len(load) if computed is None else np.asarray(computed).tolist()
    columns = {name: getattr(load, name) for name in LABELS if getattr(load, name) is not None}
    lists = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in columns.items()}
    common: dict[str, Any] = {"prefix_block_size": load.prefix_block_size, "prefix_answers": load.prefix_answers}
    requests = []
    for row, (arrival, prompt) in enumerate(zip(load.arrival.tolist(), load.prompt_tokens.tolist(), strict=True)):
        labels: dict[str, Any] = {name: v[row] for name, v in lists.items() if v[row] == v[row]}  # not NaN
        requests.append(Request(arrival, prompt, computed=elsewhere[row], **labels, **common))
    return requests


def part(load: Workload, rows: np.ndarray) -> Workload:
    """These requests of a workload without `after`, in the order of `rows`."""
    columns: dict[str, Any] = {}
    for name in ("arrival", "prompt_tokens", "output_tokens", *LABELS):
        if (values := getattr(load, name)) is not None:
            columns[name] = values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows.tolist()]
    return replace(load, after=None, think_time=None, **columns)


def _run(load: Workload, engine: Engine) -> Run:
    return Run(load, engine.policy, engine.limits, engine.executor, engine.cache, engine.run())


class FleetRun(Run):
    """What a fleet did, as one Run: a row for each request, and the steps of all engines, one engine after the other.

    policy, step_time: those of the first engine. limits: the slots of all. cache: the blocks of all, None if an engine
    has memory without a limit. parts: (Run, its rows here) of each engine that somebody was sent to.
    """

    def __init__(self, load: Workload, engines: Sequence[Engine], parts: Sequence[tuple[Run, np.ndarray]]):
        self.parts, first = tuple(parts), engines[0]
        slots = sum(engine.limits.max_num_seqs for engine in engines)
        limits = Limits(slots, math.inf, first.limits.padded)
        caches = [engine.cache for engine in engines if engine.cache]
        blocks = sum(cache.num_blocks for cache in caches)
        cache = replace(caches[0], num_blocks=blocks) if len(caches) == len(engines) else None
        super().__init__(load, first.policy, limits, first.executor, cache, self.merged(load))

    def merged(self, load: Workload) -> Log:
        """The logs of all engines: their steps one engine after the other, their requests as rows of the workload."""
        return _merged(load, self.parts)

    @cached_property
    def steps(self) -> FleetSteps:
        """One row a step of one engine (see Steps); `queue` counts those that wait at that engine."""
        return FleetSteps(self)

    def summary(self, *given: Any, **more: Any) -> dict[str, float]:
        """As `Run.summary`; kv_peak is that of the fullest engine."""
        numbers = super().summary(*given, **more)
        peaks = [run.steps.blocks.max() / run.cache.num_blocks for run, _ in self.parts if run.cache]
        return numbers | {"kv_peak": float(max(peaks)) if self.cache else math.nan}


class FleetSteps(Steps):
    """The steps of several engines; what one engine has is that engine's. engine: the place of its run in `parts`."""

    def __init__(self, run: FleetRun):
        super().__init__(run.cache, run.log, run.response, run.batch_answers)
        each = [part.steps for part, _ in run.parts]
        self.engine = np.repeat(np.arange(len(each)), [len(steps) for steps in each])
        self.blocks = np.concatenate([steps.blocks for steps in each])
        self.shared = np.concatenate([steps.shared for steps in each])
        self.queue = np.concatenate([steps.queue for steps in each])


def _merged(load: Workload, parts: Sequence[tuple[Run, np.ndarray]]) -> Log:
    """See FleetRun."""
    logs = [run.log for run, _ in parts]
    first = np.cumsum([0, *(len(log.clock) for log in logs)])
    rows: dict[str, Any] = {}
    for name, steps in (
        ("tokens", (1, 2)), ("decodes", (1, 2)), ("chunks", (1,)), ("stays", (1, 2)), ("preemptions", (1,)),
        ("more", (1,)), ("drafts", (1,)), ("brought", (1,)), ("lookups", ()),
    ):  # fmt: skip
        of_engines = []
        for log, before, (_, of) in zip(logs, first, parts, strict=False):
            if (noted := getattr(log, name)) is None:
                continue
            noted = noted.copy()
            noted[:, 0] = of[noted[:, 0]]
            noted[:, steps] += before
            of_engines.append(noted)
        if of_engines:
            rows[name] = np.concatenate(of_engines)
    rows["tokens"] = rows["tokens"][np.lexsort((rows["tokens"][:, 1], rows["tokens"][:, 0]))]
    return Log(
        arrival=load.arrival,
        lengths=load.prompt_tokens + load.output_tokens,
        clock=np.concatenate([log.clock for log in logs]),
        idle=np.concatenate([log.idle + before for log, before in zip(logs, first, strict=False)]),
        idle_start=np.concatenate([log.idle_start for log in logs]),
        budgets=tuple(
            (step + int(n), budget) for log, n in zip(logs, first, strict=False) for step, budget in log.budgets
        ),
        retries={int(of[row]): n for log, (_, of) in zip(logs, parts, strict=True) for row, n in log.retries.items()},
        left={
            int(of[row]): left._replace(step=left.step + int(n))
            for log, n, (_, of) in zip(logs, first, parts, strict=False)
            for row, left in log.left.items()
        },
        **rows,
    )
