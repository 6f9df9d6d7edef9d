"""The model at work, to be watched: a run that is computed a little at a time, and what each of its steps did.

    watch = Watch(asked, policies.Continuous(4, 256), lm.load())
    while not watch.done:
        watch.advance(0.025)   # compute for about so many seconds
        draw(watch.frames)
    watch.run                  # what serve_live returns

No thread computes: nothing runs between two calls of `advance`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from course.base import settings
from course.engine.executor import Outcome, Work
from course.engine.frame import Frame, Lanes, Part
from course.engine.serving import Engine, finish
from course.lm.live import Questions, Speaking, SpokenRun, full_cache, spoken
from course.lm.sampling import GREEDY, Sampling
from course.lm.speaker import LanguageModel
from course.lm.threads import one_thread
from course.memory.kvcache import KVCache
from course.policies.base import Limits, Policy

STRIDE = 0.01  # seconds of the engine's clock between two looks at the watch
STEP_SECONDS = 0.01
"""What `step_clock` counts a step as."""


class _Watched(Speaking):
    """Notes a Frame of each step."""

    def __init__(self, model: LanguageModel, cache: KVCache, padded: bool, **how: Any):
        super().__init__(model, cache, **how)
        self.engine: Engine | None = None
        self.frames: list[Frame] = []
        self.said: dict[int, str] = {}  # by row, in this step
        self._padded = padded
        self._lanes = Lanes()

    def hear(self, row: int, text: str, ended: str) -> None:
        self.said[row] = text

    def execute(self, work: Work) -> Outcome:
        assert self.engine is not None
        self.said = {}
        padded_before = {request.index: self.answers[request.index].padding for request in work.decodes}
        rows = [request.index for request in self.engine.running]
        waiting = tuple(request.index for request in self.engine.waiting)
        real = {
            request.index: min(count, max(0, len(self.answers[request.index].tokens) - request.computed))
            for request, count in work.chunks
        }
        outcome = super().execute(work)
        padding = {row: self.answers[row].padding - before for row, before in padded_before.items()}
        padding |= {request.index: count - real[request.index] for request, count in work.chunks}
        parts = [
            Part(
                lane,
                row,
                real.get(row, 0),
                padding.get(row, 0),
                self.said.get(row),
                self.answers[row].ended,
                int(row in self.said),
            )
            for row, lane in self._lanes.places(rows)
        ]
        readers: Sequence[int] = [
            row for row in self.said if len(self.answers[row].tokens) == self.answers[row].prompt_tokens + 1
        ]
        if self._padded:
            readers = rows if all(self.answers[row].ended for row in rows) else ()
        self.frames.append(Frame(work.start, work.start + outcome.seconds, tuple(parts), waiting, tuple(readers)))
        return outcome


class Watch:
    """Questions that are answered while `advance` is called, and not otherwise.

    Times in which the engine is empty pass at once; the seconds of the steps are real (`serve_live` with waits=False).
    cache, sampling, clock: as for `serve_live`.

    load, policy: as given. frames: of the steps so far. LMError and ValueError as `serve_live` raises them.
    """

    def __init__(
        self,
        load: Questions,
        policy: Policy,
        model: LanguageModel,
        cache: KVCache | None = None,
        *,
        sampling: Sampling = GREEDY,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self.load, self.policy = load, policy
        prompts = [model.prompt(conversation) for conversation in load.conversations]
        cache = full_cache(policy, model.config, len(prompts)) if cache is None else cache
        self._speaking = _Watched(model, cache, Limits.of(policy).padded, waits=False, clock=clock)
        for row, tokens in enumerate(prompts):
            self._speaking.ask(row, tokens, load.max_tokens, sampling, heard=self._speaking.hear)
        self._engine = self._speaking.engine = Engine(policy, self._speaking, cache)
        self._engine.follow(self._speaking.workload(load))
        self._engine.closed = True  # a static batch begins that no arrival will fill
        self._run: SpokenRun | None = None

    @property
    def frames(self) -> Sequence[Frame]:
        """The steps so far; they only become more."""
        return self._speaking.frames

    @property
    def now(self) -> float:
        """Seconds that the engine's clock shows."""
        return self._engine.now

    @property
    def done(self) -> bool:
        """Whether all requests have an answer."""
        return self._engine.answered == len(self._speaking.answers)

    def advance(self, seconds: float) -> None:
        """Compute for about so many seconds, at least one step if one is left; nothing once all is done."""
        seconds = settings.real("seconds", seconds, low=0)
        many, until = len(self.frames), time.perf_counter() + seconds
        with one_thread():
            while not self.done and (len(self.frames) == many or time.perf_counter() < until):
                self._engine.advance(self._engine.now + STRIDE)

    @property
    def run(self) -> SpokenRun:
        """What happened, computed to the end."""
        if self._run is None:
            with one_thread():
                self._run = spoken(finish(self._engine), self._speaking)
        return self._run


def step_clock() -> Callable[[], float]:
    """A clock that goes on by `STEP_SECONDS` a step, whatever it takes: the same run on every machine."""
    looks = 0

    def look() -> float:
        nonlocal looks
        looks += 1
        return looks * STEP_SECONDS

    return look
