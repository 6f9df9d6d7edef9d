"""What every engine is given, and the door by which requests come in: the same for the plain loop and the fast one."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

import numpy as np

from course.base import settings
from course.engine import answer
from course.engine.arrivals import NEVER, Arrivals
from course.engine.executor import Executor, Simulated, as_executor
from course.engine.feasible import check_feasible, check_pieces, check_prefixes
from course.engine.log import GAVE_UP, REJECTED, Left, Log, Notes
from course.engine.step import LONGEST, StepTime
from course.memory.block_pool import BlockPool
from course.memory.kvcache import KVCache
from course.policies.base import Limits, Policy, Request, State
from course.policies.waiting import Waiting
from course.workload import SLO, Workload
from course.workload.columns import prefix_blocks


class Intake:
    """An engine before its first step. Raises ValueError for arguments of another kind.

    now: seconds; when the step under way ends, if the engine was advanced to less. steps: how many have run; the number
    of the next one. present: the time it was advanced to: all that happens before is decided. clock: when each step
    ended. idle: (step, when it began) of those that began late. answered: requests that are through. closed: no more
    are submitted. serving: from the first step of a call to its end; for good if it broke off. waits: times in a row
    that nothing ran. patience: whether anybody comes with some. impatient: a heap of (when it ends, row, request) of
    those that are here with some.
    """

    __slots__ = (
        "answered", "arrivals", "cache", "clock", "closed", "executor", "honour_until", "idle", "impatient",
        "last_step_end", "limits", "notes", "now", "patience", "policy", "pool", "present", "serving", "simulated",
        "state", "steps", "waits",
    )  # fmt: skip

    state: State
    queue: dict[Request, None]
    waiting: Waiting

    def __init__(
        self, policy: Policy, executor: Executor | StepTime, cache: KVCache | None = None, *, honour_until: bool = True
    ):
        if isinstance(policy, type) or not callable(getattr(policy, "schedule", None)):
            raise ValueError(f"an engine needs a policy with a schedule method, not {settings.quote(policy)}")
        if cache is not None and not isinstance(cache, KVCache):
            raise ValueError(f"the cache must be a KVCache or None, not {settings.quote(cache)}")
        self.executor = as_executor(executor)
        self.simulated = self.executor if isinstance(self.executor, Simulated) else None  # knows lengths beforehand
        self.policy, self.limits, self.cache = policy, Limits.of(policy), cache
        self.pool = cache.open() if cache else BlockPool()
        option = self.cache and self.cache.simulated_only
        if option == "prefix_caching" and self.executor.numbers_blocks:
            option = None
        if option and not self.executor.simulates:
            raise ValueError(
                f"{option} is simulated only: an executor that really runs its steps needs block tables, which such a "
                f"cache does not keep; serve without {option}"
            )
        if self.cache and self.cache.reserve and not self.simulated:
            raise ValueError(
                f"reserve is a piece for each prompt and answer, and what {type(self.executor).__name__} drafts may "
                "reach beyond it: serve without reserve"
            )
        if self.cache and self.cache.reserve and self.limits.padded:
            raise ValueError(
                f"{type(policy).__name__} reserves for whole batches: serve it with a KVCache without `reserve`"
            )
        self.honour_until = settings.flag("honour_until", honour_until)
        self.arrivals, self.notes = Arrivals(), Notes()
        self.impatient: list[tuple[float, int, Request]] = []
        self.now = self.present = self.last_step_end = 0.0
        self.steps = self.answered = self.waits = 0
        self.closed = self.serving = self.patience = False
        self.clock, self.idle = array("d"), [(0, 0.0)]
        self.notes.budgets.append((0, self.limits.max_num_batched_tokens))

    def submit(self, request: Request, output_tokens: int | None = None) -> Request:
        """One request, which comes at its arrival. Its `index` becomes the next row.

        output_tokens: what the executor is told of its answer: the length for a simulated one, a bound for others.
        Raises ValueError for a request that can never be served, that was submitted before, or that came before the
        time that the engine was advanced to (a step that began earlier may be under way: it joins after that); while
        the engine serves, and once `run` has served everybody.
        """
        if type(request) is not Request:
            raise ValueError(f"an engine serves requests (policies.Request), not {settings.quote(request)}")
        if request.index >= 0:
            raise ValueError(f"{request!r} was submitted before: make another one")
        self.must_rest()
        if self.closed:
            raise ValueError("this engine has served all requests: submit before `run`, with `advance` in between")
        arrival = settings.real("arrival", request.arrival, low=0, high=settings.MAX_SECONDS)
        if arrival < self.present:
            raise ValueError(f"{request!r} arrives at {arrival:g} s, and the engine is already at {self.present:g} s")
        life = request.life
        life.arrival = arrival
        life.prompt_tokens = settings.whole("prompt_tokens", request.prompt_tokens)
        if request.guess is not None:
            settings.real("guess", request.guess, low=1, high=settings.MAX_TOKENS)
        if request.deadline is not None:
            settings.real("deadline", request.deadline, low=0, high=settings.MAX_SECONDS)
        if request.slo is not None and not isinstance(request.slo, SLO):
            raise ValueError(f"slo must be an SLO, such as SLO(ttft=0.5), not {settings.quote(request.slo)}")
        if (patience := life.labels[9]) is not None:
            settings.real("patience", patience, above=0, high=settings.MAX_SECONDS)
            self._check_patience()
        elsewhere = self._from_elsewhere(request)
        life.row = len(self.arrivals.arrival)
        try:
            self.executor.expect(request, output_tokens)
            known = self.simulated.lengths[-1] if self.simulated else 1
            sizes = np.array([life.prompt_tokens]), np.array([known])
            self._check_feasible(*sizes, life.row)
            check_pieces(self.cache, *sizes, None if request.guess is None else np.array([request.guess]), life.row)
            if request.prefix:
                answers = np.array([known if request.prefix_answers else 0])
                prefix_blocks(
                    request.prefix_block_size, request.prefix_answers, (request.prefix,),
                    np.array([life.prompt_tokens]), answers, life.row,
                )  # fmt: skip
                check_prefixes(self.cache, [request.prefix], request.prefix_block_size, life.row)
        except Exception:
            if self.simulated:
                del self.simulated.lengths[life.row :]
            life.row = -1
            raise
        life.engine, life.elsewhere = self, elsewhere
        if elsewhere:
            self.pool.bring(request, elsewhere)
        self.arrivals.add(request)
        return request

    def follow(self, load: Workload) -> None:
        """All requests of a workload, before any other. Raises ValueError if requests are known already."""
        if not isinstance(load, Workload):
            raise ValueError(f"an engine follows a Workload, not {settings.quote(load)}")
        self.must_rest()
        if load.patience is not None:
            self._check_patience()
        known = load.output_tokens if self.simulated else np.ones_like(load.output_tokens)
        self._check_feasible(load.prompt_tokens, known, 0)
        check_pieces(self.cache, load.prompt_tokens, known, load.guess, 0)
        check_prefixes(self.cache, load.prefix or (), load.prefix_block_size, 0)
        self.arrivals.follow(load)
        self.executor.follow(load)

    def _from_elsewhere(self, request: Request) -> int:
        """Tokens whose K and V it brings: see Request. Raises ValueError if there are more than its prompt has."""
        tokens = settings.whole("computed", request.elsewhere, low=0)
        if tokens > request.prompt_tokens:
            raise ValueError(
                f"K and V of {tokens:,} tokens come from elsewhere, and {request!r} has a prompt of "
                f"{request.prompt_tokens:,}: let `computed` be at most the prompt"
            )
        for what, on in (
            ("in a padded batch", self.limits.padded),
            ("in a cache that is more than a number of blocks", type(self.pool) is not BlockPool),
            ("with an executor that really runs its steps", not self.simulated),
            ("with async_scheduling", getattr(self, "async_scheduling", False)),
        ):
            if tokens and on:
                raise ValueError(f"K and V from elsewhere {what} are not modelled: leave `computed` at 0")
        return min(tokens, request.prompt_tokens - 1)

    def _check_feasible(self, prompt: np.ndarray, output: np.ndarray, row: int) -> None:
        check_feasible(prompt, output, row, self.policy, self.limits.max_num_batched_tokens, self.cache)

    def _check_patience(self) -> None:
        self.patience = True
        for what, on in (
            ("in a padded batch, which is answered as a whole", self.limits.padded),
            ("with async_scheduling", getattr(self, "async_scheduling", False)),
        ):
            if on:
                raise ValueError(f"patience {what} is not modelled: leave it out, or take a policy or engine without")

    # Those that leave without their whole answer

    def first_token(self, request: Request) -> float:
        """When the first token of a request left that has emitted some [s]; or any time before the last step."""
        raise NotImplementedError

    def drop(self, request: Request, outcome: str) -> None:
        """A request that is with this engine gives all back and goes. outcome: see Left."""
        raise NotImplementedError

    def reject(self, requests: Mapping[Request, float | None]) -> None:
        """These, which wait, are sent away: for so many seconds, or for good (None)."""
        for request, seconds in requests.items():
            if seconds is None:
                self.drop(request, REJECTED)
                continue
            del self.queue[request]
            self.pool.forget(request)
            self.waiting.forget_orders()  # when it comes again it is somebody new to them
            self.notes.retries[request.index] = self.notes.retries.get(request.index, 0) + 1
            self.arrivals.come_again(request, self.now + seconds)

    def gone(self, request: Request, outcome: str, tokens: int) -> None:
        """It holds nothing any more. tokens: of it in the cache until now."""
        life = request.life
        self.notes.left[life.row] = Left(outcome, self.now, self.steps, tokens)
        life.computed_before, life.engine = 0, None
        self.pool.coming.pop(request, None)
        self.answered += 1
        if self.arrivals.follow_answers:
            self.arrivals.answered(life.row, self.now)

    def waits_for(self, request: Request) -> None:
        """Somebody waits for this request, which has just come, perhaps not for ever."""
        if (patience := request.life.labels[9]) is not None:
            heappush(self.impatient, (request.arrival + patience, request.index, request))

    def give_up(self) -> bool:
        """Those leave whose patience is over by now and whose first token came too late or not yet. Whether any did."""
        impatient, before = self.impatient, self.answered
        while impatient and impatient[0][0] <= self.now:
            end, _, request = heappop(impatient)
            if request.life.engine is self and not (request.emitted and self.first_token(request) <= end):
                self.drop(request, GAVE_UP)
        return self.answered > before

    @property
    def next_leave(self) -> float:
        """When somebody's patience ends next, infinite if nobody's does."""
        impatient = self.impatient
        while (
            impatient
            and impatient[0][0] > self.now
            and (impatient[0][2].life.engine is not self or impatient[0][2].emitted)
        ):
            heappop(impatient)  # has its first token, or has gone
        return impatient[0][0] if impatient else NEVER

    @property
    def no_more_arrivals(self) -> bool:
        """Whether no request will come unless an answer goes out."""
        return self.closed and self.arrivals.times[self.arrivals.head] == NEVER

    def ask(self, decodes: int, prefilling: Iterable[Request], free_slots: int) -> Any:
        """What the policy answers now. Arguments: see State. The token budget may be another one with each answer."""
        state, policy, limits = self.state, self.policy, self.limits
        state.now, state.decodes, state.free_slots = self.now, decodes, free_slots
        state.prefilling = tuple(prefilling) if prefilling else ()
        schedule = policy.schedule(state)
        budget = getattr(policy, "max_num_batched_tokens", math.inf)
        if budget is not limits.max_num_batched_tokens and budget != limits.max_num_batched_tokens:
            self.limits = limits.with_budget(policy)
            self.notes.budgets.append((self.steps, self.limits.max_num_batched_tokens))
        return schedule

    @property
    def done(self) -> bool:
        """Whether all that were submitted have their answers."""
        return self.answered == len(self.arrivals.arrival)

    def log(self) -> Log:
        """What happened."""
        return self.notes.log(self.arrivals.arrival, self.arrivals.prompt, self.clock, self.idle, self.pool)

    def rest(self, until: float | None, stop: float = NEVER) -> None:
        """Nothing runs until then, or until a request comes, or until `stop`. Broken if nothing would ever change."""
        if until is not None and not until > self.now:
            raise answer.idle(until)
        until = min(
            NEVER if until is None or until > LONGEST else float(until), self.arrivals.times[self.arrivals.head],
            stop, self.next_leave,
        )  # fmt: skip
        self.waits += 1
        if until == NEVER or self.waits > answer.PATIENCE:
            self.waits -= 1
            raise answer.stuck(self)
        self.now = until
        self.idle.append((self.steps, until))

    def close(self) -> None:
        """No request is submitted any more. Raises ValueError if none was, and while the engine serves."""
        if not self.arrivals.arrival:
            raise ValueError(
                "no request was submitted, so there is nothing to serve: submit a request, or follow a workload"
            )
        self.must_rest()
        self.closed = True

    def must_rest(self) -> None:
        """Raises ValueError while the engine serves, and after it broke off."""
        if self.serving:
            raise ValueError(
                "this engine is in the middle of serving, or stopped there with an error: call submit, advance and run "
                "from outside its policy and its executor, and make another engine after an error"
            )
