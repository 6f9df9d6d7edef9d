"""The lives of requests that do not follow from their last step alone: those in chunks, those preempted."""

import numpy as np

from course.engine.loops.arrivals import Arrivals
from course.engine.loops.log import Log, log_from, rows
from course.workload import Workload


class Trace:
    """What ContinuousLoop notes. Any other request computed its prompt whole in the step of its first token."""

    def __init__(self):
        self.chunks: list[tuple[int, int, int, int]] = []
        self.decodes: list[tuple[int, int, int, int]] = []
        self.tokens: list[tuple[int, int, int]] = []
        self.stays: list[tuple[int, int, int]] = []
        self.preemptions: list[tuple[int, int, int]] = []
        # Of the life under way: where its slot, its run of tokens, and its run of decodes (with what is known) began.
        self.stay_from: dict[int, int] = {}
        self.tokens_from: dict[int, int] = {}
        self.decodes_from: dict[int, tuple[int, int]] = {}
        self._admissions = 0
        self._readmitted: dict[int, tuple[int, int]] = {}
        self._place: dict[int, int] = {}

    def admit(self, request: int, step: int, head: int) -> None:
        """The request takes a slot; `head` counts those admitted for the first time so far, it included."""
        self.stay_from[request] = step
        self._admissions += 1
        if self.preemptions:
            self._readmitted[request] = (head - 1, self._admissions)

    def chunk(self, request: int, step: int, tokens: int, cached: int) -> None:
        self.chunks.append((request, step, tokens, cached))

    def decode(self, request: int, step: int, known: int) -> None:
        """The last token of a prompt computed again, alone: a decode like any other."""
        self.decodes.append((request, step, step, known))

    def first_token(self, request: int, step: int, known: int) -> None:
        """Its prompt, `known` tokens, is computed at the end of this step: the first token of a run leaves."""
        self.tokens_from[request] = step
        self.decodes_from[request] = (step + 1, known + 1)

    def pause(self, request: int, step: int) -> None:
        """A request that decodes is preempted before this step: close its runs at the one before.

        It was admitted by `admit`. Those who never were noted fit the cache at full length together with all before
        them, so they never lose their blocks.
        """
        self.tokens.append((request, self.tokens_from[request], step - 1))
        start, known = self.decodes_from[request]
        self.decodes.append((request, start, step - 1, known))

    def leave(self, request: int, step: int, computed: int) -> None:
        """The request is preempted before this step, and loses `computed` tokens."""
        self.stays.append((request, self.stay_from[request], step - 1))
        self.preemptions.append((request, step, computed))

    def by_admission(self, requests: list[int], ids, head: int) -> list[int]:
        """The requests in order of admission: the place in the queue; a readmitted one after those before it."""
        for place in range(len(self._place), head):
            self._place[ids[place]] = place
        return sorted(requests, key=lambda request: self._readmitted.get(request) or (self._place[request], 0))

    def log(self, load: Workload, arrivals: Arrivals, clock, idle, last: np.ndarray) -> Log:
        """The Log: the plain lives from the step of the last token, the others as noted."""
        prompts, requests = load.prompt_tokens, np.arange(len(load))
        first = last - load.output_tokens + 1
        chunks = np.stack([requests, first, prompts, np.zeros_like(requests)], axis=1)
        noted = np.unique(rows(self.chunks, 4)[:, 0])
        chunks = np.concatenate([np.delete(chunks, noted, axis=0), rows(self.chunks, 4)])
        tokens = np.stack([requests, first, last], axis=1)
        stays = tokens.copy()
        decodes = np.stack([requests, first + 1, last, prompts + 1], axis=1)
        for request, step in self.tokens_from.items():
            tokens[request, 1] = step
        for request, step in self.stay_from.items():
            stays[request, 1] = step
        for request, run in self.decodes_from.items():
            decodes[request, 1], decodes[request, 3] = run
        return log_from(
            load,
            arrivals.arrival,
            clock,
            idle,
            tokens=np.concatenate([tokens, rows(self.tokens, 3)]),
            decodes=np.concatenate([decodes, rows(self.decodes, 4)]),
            chunks=chunks,
            stays=np.concatenate([stays, rows(self.stays, 3)]),
            preemptions=rows(self.preemptions, 3),
        )
