"""Speculative decoding on a simulated clock: a draft proposes tokens, and the model verifies them in one step.

    from course import KVCache, Workload, policies, serve, steptime
    from course.engine.speculative import Speculative

    load = Workload.poisson(rate=4, num_requests=200, prompt_tokens=512, output_tokens=256, seed=0)
    executor = Speculative(steptime.recorded("h200-llama3-8b-verify"), steptime.recorded("h200-llama3-1b"), accept=0.7)
    run = serve(load, policies.Drafting(policies.Continuous(256, 8192), 4), executor, KVCache(20_000))
    run.summary()["accepted_tokens"], run.step_time.accepted_at

A step verifies the drafts of all that decode. Of each, those up to the first that is wrong are accepted, and one token
of the model's own follows: 1 to k + 1 tokens leave (Leviathan, Kalman and Matias, 2023). That the model's words stay
the same is what `course.lm` shows; here only their number matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from course.base import settings
from course.base.draws import uniform
from course.engine.answer import MOST_DRAFTS
from course.engine.executor import Executor, Outcome, Simulated, Work
from course.engine.step import LONGEST, Step, StepTime, StepTimeModel, check_seconds
from course.policies.base import Request
from course.workload import Workload

DraftTime = float | StepTimeModel | Callable[[int, int, int], float]
Verify = Callable[[int, int, float], float]
Accept = float | Mapping[Any, float] | Sequence[float] | np.ndarray


class Speculative(Executor):
    """Draws which drafts are accepted, and takes the seconds from step times.

    step_time: of a step without drafts. draft_time: seconds that the draft takes in a step: of one pass of all that
    decode, which it makes once for each draft (a number, 0 for a draft that costs nothing, or the step time of a draft
    model); or a function of (sequences, drafts of each, tokens that they attend to) for all passes. The prompts that a
    draft model computes are not counted.

    accept: the probability that a draft is accepted if those before it were: a number, a mapping of classes to numbers,
    or a number for each request of the workload. The draw depends on seed, request and position alone: a longer draft,
    or another batch, changes nothing about the drafts before.

    verify: seconds of a step that verifies, as `steptime.verify().seconds`: a function of (sequences, drafts of each,
    tokens that one attends to). Without it, each draft is one row more in the matrix products of a step time with
    straight lines, and the cache is read once; for another step time it is a short prompt behind what is cached. What
    drafts add to a step of decodes alone, they add to a step with prompts as well.

    accepted_at: of the drafts at each position, how many were accepted, as vLLM's counters per position have it (those
    beyond the end of an answer too); drafts: how often anything was drafted for a request; drafted: tokens.

    Raises ValueError for a probability outside 0 to 1, and for another kind of step time.
    """

    verifies = simulates = True

    def __init__(
        self,
        step_time: StepTime,
        draft_time: DraftTime = 0.0,
        accept: Accept = 0.7,
        *,
        verify: Verify | None = None,
        seed: int = 0,
    ):
        if isinstance(step_time, type) or not callable(step_time):
            raise ValueError(f"step_time must be a step time, not {settings.quote(step_time)}")
        if not callable(draft_time):
            draft_time = settings.real("draft_time", draft_time, low=0, high=LONGEST)
        for model in (step_time, draft_time):
            if isinstance(model, StepTimeModel):
                model.check_settings()
        self.step_time, self.draft_time, self.verify = step_time, draft_time, verify
        self.accept, self.seed = accept, settings.whole("seed", seed, low=0, high=2**64 - 1)
        self.simulated = Simulated(step_time)
        self.shares: list[float] = []  # of acceptance, by row
        self.accepted_at = np.zeros(MOST_DRAFTS, dtype=np.int64)
        self.drafts = self.drafted = 0
        self._common: float | None = None
        self._by_class: dict[Any, float] | None = None
        self._by_row: list[float] = []
        if isinstance(accept, Mapping):
            self._by_class = {name: _share(f"accept of class {name!r}", one) for name, one in accept.items()}
        elif isinstance(accept, Sequence | np.ndarray):
            self._by_row = [_share(f"accept[{row}]", one) for row, one in enumerate(accept)]
        else:
            self._common = _share("accept", accept)

    def fresh(self) -> Speculative:
        """One like this that has verified nothing yet."""
        return type(self)(self.step_time, self.draft_time, self.accept, verify=self.verify, seed=self.seed)

    @property
    def badge(self) -> str:  # type: ignore[override]
        """That of the step time; "modelled" where the draft's seconds, or those of verifying, come from elsewhere."""
        sources = [self.step_time, getattr(self.verify, "__self__", None)]
        sources += [self.draft_time] if callable(self.draft_time) or self.draft_time else []
        found = {getattr(source, "badge", "modelled") for source in sources}
        return found.pop() if len(found) == 1 else "modelled"

    @property
    def accepted(self) -> int:
        """Drafted tokens that were accepted, those beyond the end of an answer too."""
        return int(self.accepted_at.sum())

    def expect(self, request: Request, output_tokens: int | None) -> None:
        """Its length. Raises ValueError without one, and for a request whose acceptance is not given."""
        self.simulated.expect(request, output_tokens)
        self.shares.append(self._share(request.index, request.class_))

    def follow(self, load: Workload) -> None:
        """All lengths and acceptances of a workload."""
        self.simulated.follow(load)
        classes = [None] * len(load) if load.class_ is None else load.class_.tolist()
        self.shares = [self._share(row, class_) for row, class_ in enumerate(classes)]

    def _share(self, row: int, class_: Any) -> float:
        if self._common is not None:
            return self._common
        if self._by_class is not None:
            if class_ not in self._by_class:
                raise ValueError(f"accept has no class {settings.quote(class_)}, which request {row} is of: add it")
            return self._by_class[class_]
        if row >= len(self._by_row):
            raise ValueError(
                f"accept has {len(self._by_row):,} numbers, and there is a request {row}: give one for each"
            )
        return self._by_row[row]

    def execute(self, work: Work) -> Outcome:
        """One step: draft, verify, and see who is complete."""
        outcome = self.simulated.execute(work)
        if not work.drafts:
            return outcome
        decodes, rows = work.decodes, [request.index for request in work.decodes]
        drafts = np.array([work.drafts.get(request, 0) for request in decodes])
        emitted = np.array([request.emitted for request in decodes])
        positions = np.arange(drafts.max())
        draws = uniform(self.seed, np.array(rows)[:, None], emitted[:, None] + positions)
        right = (draws < np.array([self.shares[row] for row in rows])[:, None]) & (positions < drafts[:, None])
        accepted = np.logical_and.accumulate(right, axis=1)
        self.accepted_at[: len(positions)] += accepted.sum(axis=0)
        self.drafts, self.drafted = self.drafts + int((drafts > 0).sum()), self.drafted + int(drafts.sum())
        left = np.array([self.simulated.lengths[row] for row in rows]) - emitted
        tokens = np.minimum(1 + accepted.sum(axis=1), left)
        decoded = set(decodes)
        finished = [request for request in outcome.finished if request not in decoded]
        finished += [request for request, last in zip(decodes, (tokens == left).tolist(), strict=True) if last]
        seconds = check_seconds(outcome.seconds + self._more(work, drafts), f"a step with {int(drafts.sum())} drafts")
        return Outcome(seconds, finished, dict(zip(decodes, tokens.tolist(), strict=True)))

    def _more(self, work: Work, drafts: np.ndarray) -> float:
        """Seconds that drafting and verifying add to a step."""
        many, total, model = len(drafts), int(drafts.sum()), self.step_time
        there = [request.computed + 1 for request in work.decodes]
        context = sum(there)
        return self._drafting(drafts, context) + self._verifying(work, drafts, many, total, there, context, model)

    def _drafting(self, drafts: np.ndarray, context: int) -> float:
        time, passes = self.draft_time, int(drafts.max())
        if isinstance(time, StepTimeModel):
            return passes * time.seconds(int((drafts > 0).sum()), context, 0, 0, 0)
        return time(len(drafts), passes, context) if callable(time) else passes * time

    def _verifying(
        self, work: Work, drafts: np.ndarray, many: int, total: int, there: list[int], context: int, model: StepTime
    ) -> float:
        if self.verify is not None:
            each, mean = context / many, total / many
            few = int(mean)
            low, high = (self.verify(many, k, max(round(each), k + 1)) for k in (few, few + (mean > few)))
            return low + (high - low) * (mean - few) - self.simulated.seconds(many, context, ())
        if self.simulated.model is not None:
            return self.simulated.lines[many + total][0] - self.simulated.lines[many][0]
        chunks = tuple((int(k), cached) for k, cached in zip(drafts, there, strict=True) if k)
        return model(Step(many, context, chunks)) - model(Step(many, context, ()))


def _share(name: str, value: Any) -> float:
    return settings.real(name, value, low=0, high=1)
