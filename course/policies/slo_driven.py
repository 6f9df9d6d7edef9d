"""SLO driven: the reference policy of a note, whole, with its forgetful loop mended."""

import math
from collections import deque
from collections.abc import Iterator
from copy import copy
from itertools import islice
from typing import Annotated

import numpy as np

from course.base import settings
from course.policies.base import Policy, Request, Schedule, State, copied
from course.policies.continuous import Continuous, MaxNumBatchedTokens
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.waiting import Waiting

INTERACTIVE, BULK = "interactive", "bulk"
WINDOWS = {INTERACTIVE: (0.001, 0.008), BULK: (0.010, 0.050)}
"""The least and the longest window of each queue [s]."""
BATCHES = {INTERACTIVE: (4, 16), BULK: (16, 128)}
"""The same of requests with a slot."""
MEMORY = 0.4  # seconds: how long the estimate of the rate looks back; the note says 250 to 500 ms
REFIT, POINTS = 64, 256  # steps from one fit to the next; steps that a fit looks at


@registered("slo-driven")
class SLODriven(Continuous):
    """Two queues, each with a window and a largest batch that follow from an SLO, from the rate and from the steps.

    Interactive are requests of the class `interactive`; all others are bulk. Before each step, and so between the
    tokens of a bulk answer too:

    1. t_step(b) = t0 + c b is fitted to the last steps of decodes alone, from time to time.
    2. The largest batch of a queue is the most requests with which a step of both keeps `tpot`, within BATCHES.
    3. The window of the interactive queue is slo - t_step(b) - margin, within WINDOWS; the least if nobody more is
       expected in it at the present rate, an EMA over MEMORY. The window of the bulk queue is the longest.
    4. An idle engine waits for the window of who came first, or until the batch of a queue is full.
    5. Interactive requests are admitted first, then bulk, up to the largest batch of each.
    6. While more than `depth` interactive requests wait, no bulk request is admitted, and bulk prompts under way give
       their slots back. So with more interactive requests than their largest batch serves, bulk ones wait for ever.

    max_num_seqs: slots of both. slo: of the interactive TTFT [s]. tpot: seconds of a step that are wanted. margin: [s].
    Raises ValueError as Continuous does, and for a time or a depth that cannot be.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        slo: Annotated[float, Knob("TTFT promised of interactive requests.", seconds=True)] = 0.5,
        tpot: Annotated[float, Knob("A step that is wanted.", seconds=True)] = 0.02,
        margin: Annotated[float, Knob("Time kept free beside a step.", seconds=True)] = 0.01,
        depth: Annotated[int, Knob("Interactive requests that wait, above which bulk prompts give way.")] = 8,
        interactive: Annotated[str, Knob("The class of interactive requests.")] = INTERACTIVE,
    ):
        self.slo, self.tpot, self.margin, self.depth, self.interactive = slo, tpot, margin, depth, interactive
        self.begin()
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for a time or a depth that cannot be."""
        super().check_settings()
        for name, low in (("slo", 1e-6), ("tpot", 1e-6), ("margin", 0)):
            setattr(self, name, settings.real(name, getattr(self, name), low=low, high=settings.MAX_SECONDS))
        self.depth = settings.whole("depth", self.depth, low=0)

    def __repr__(self) -> str:
        said = f"slo={self.slo:g}, tpot={self.tpot:g}, margin={self.margin:g}, depth={self.depth}"
        return f"{super().__repr__()[:-1]}, {said}, interactive={self.interactive!r})"

    def fresh(self) -> Policy:
        """One like this that has seen nobody and no step."""
        made = copy(self)
        made.begin()
        return copied(made)

    def begin(self) -> None:
        """Nobody has come, and no step was seen."""
        self.most = {name: high for name, (_, high) in BATCHES.items()}
        """The largest batch of each queue."""
        self.t0 = self.c = self.rate = 0.0  # of a step [s]; of interactive requests a second
        self.looked = 0.0, -1  # arrival and row of the last interactive request that was counted
        self.asked: tuple[int, float] | None = None  # decodes and start of a step of decodes alone
        self.points: deque[tuple[int, float]] = deque(maxlen=POINTS)
        self.unfitted = 0

    def is_interactive(self, request: Request) -> bool:
        """Whether the request is of the interactive queue."""
        return request.class_ == self.interactive

    def seconds(self, batch: float) -> float:
        """A step of so many decodes by the last fit; 0 before the first."""
        return self.t0 + self.c * batch

    def window(self, name: str, batch: int) -> float:
        """How long an idle engine waits for more of this queue [s]: least where nobody more is expected to come."""
        least, longest = WINDOWS[name]
        if name == BULK:
            return longest
        wanted = min(longest, max(least, self.slo - self.seconds(batch) - self.margin))
        return wanted if self.rate * wanted >= 1 else least

    def schedule(self, state: State, *, holds: bool | None = None) -> Schedule:
        """Wait for a window, make way for the interactive queue, or what Continuous answers; for one step."""
        self._learn(state)
        opens = self._opens_at(state)
        if state.now < opens:
            return Schedule(until=opens)
        answer = self._make_way(state) or super().schedule(state, holds=False)
        alone = answer.decodes and not answer.tokens and not answer.preempt
        self.asked = (state.decodes, state.now) if alone else None
        return Schedule(answer.tokens, answer.preempt, answer.decodes)

    def queue(self, state: State, waiting: Waiting) -> Iterator[Request]:
        """Interactive requests, then bulk ones, each up to the largest batch of its queue."""
        lines = waiting.grouped_by(self.is_interactive)
        many = sum(map(self.is_interactive, state.running))
        running = {INTERACTIVE: many, BULK: len(state.running) - many}
        yield from islice(lines.get(True, ()), max(0, self.most[INTERACTIVE] - running[INTERACTIVE]))
        if not self._deep(waiting):
            yield from islice(lines.get(False, ()), max(0, self.most[BULK] - running[BULK]))

    def _deep(self, waiting: Waiting) -> bool:
        """Whether more interactive requests wait than `depth`."""
        line = waiting.grouped_by(self.is_interactive).get(True, ())
        return sum(1 for _ in islice(line, self.depth + 1)) > self.depth

    def _learn(self, state: State) -> None:
        """The rate, from those who came; the curve of the step, from the last step; the largest batches, from both."""
        for request in state.waiting.grouped_by(self.is_interactive).get(True, ()):
            then, row = self.looked
            if (request.arrival, request.index) > (then, row):
                self.rate = self.rate * math.exp((then - request.arrival) / MEMORY) + 1 / MEMORY
                self.looked = request.arrival, request.index
        if self.asked is None or state.last_step_end <= self.asked[1]:
            return
        self.points.append((self.asked[0], state.last_step_end - self.asked[1]))
        self.unfitted += 1
        if self.unfitted < REFIT:
            return
        batches, seconds = np.array(self.points).T
        if len(np.unique(batches)) < 2:
            return
        self.unfitted = 0
        self.c, self.t0 = np.maximum(np.polyfit(batches, seconds, 1), 0).tolist()
        fits = int((self.tpot - self.t0) / self.c) if self.c else sum(high for _, high in BATCHES.values())
        for name in (INTERACTIVE, BULK):
            low, high = BATCHES[name]
            self.most[name] = min(high, max(low, fits))
            fits -= self.most[name]

    def _opens_at(self, state: State) -> float:
        """When the next step may begin [s]: now, unless the engine is idle and a window has only just begun."""
        if state.running or not state.waiting:
            return state.now
        opens = math.inf
        for interactive, line in state.waiting.grouped_by(self.is_interactive).items():
            name = INTERACTIVE if interactive else BULK
            batch = list(islice(line, self.most[name]))
            full = len(batch) >= self.most[name]
            opens = min(opens, state.now if full else batch[0].arrival + self.window(name, len(batch)))
        return opens

    def _make_way(self, state: State) -> Schedule | None:
        """Bulk prompts under way give way to an interactive queue that is too deep; None where that helps nobody."""
        victims = [request for request in state.prefilling if not self.is_interactive(request)]
        if not victims or state.spare_blocks < 0 or not self._deep(state.waiting):
            return None
        plan, tokens, left = state.plan(), dict[Request, int](), self.room(state)
        for request in victims:
            plan.release(request)
        for request in state.prefilling:
            chunk = 0 if request in victims else min(request.remaining, left)
            if chunk > 0 and plan.take(request, chunk, if_fit=chunk):
                tokens[request] = chunk
                left -= chunk
        if left > 0 and state.free_slots:
            self.admit(state, plan, tokens, left, self.cap(state))
        return Schedule(tokens, victims[::-1], decodes=True) if tokens else None
