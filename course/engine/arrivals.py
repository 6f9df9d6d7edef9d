"""Who comes when: the queue of arrivals that are known so far, in order, with turns added as their answers go out."""

from bisect import bisect_right

import numpy as np

from course.policies.base import Request
from course.workload import Workload

NEVER = float("inf")


class Arrivals:
    """times[head:] and ids[head:] are the requests that have not come in yet, by arrival, then by row.

    `times` ends with an infinite sentinel, so times[head] <= now asks at once whether somebody has come. Requests of a
    workload are made when they come in; those given one by one are there from the start.
    """

    def __init__(self):
        self.load: Workload | None = None
        self.arrival: list[float] = []  # by row; NaN while it is not known
        self.prompt: list[int] = []
        self.times: list[float] = [NEVER]
        self.ids: list[int] = []
        self.head = 0
        self.next_turns: dict[int, list[int]] = {}
        self._given: dict[int, Request] = {}
        self._columns: list[tuple[str, list]] = []  # of the workload, where it has them

    def follow(self, load: Workload) -> None:
        """All requests of a workload. Raises ValueError where requests are known already."""
        if self.arrival:
            raise ValueError("an engine takes one workload, before any other request: submit the others one by one")
        self.load = load
        self.arrival, self.prompt = load.arrival.tolist(), load.prompt_tokens.tolist()
        for name in ("class_", "tenant", "guess"):
            column = getattr(load, name)
            if column is not None:
                self._columns.append((f"_{name}", column.tolist()))
        if load.prefix is not None:
            self._columns.append(("_prefix", list(load.prefix)))
        if load.after is None or not (load.after >= 0).any():
            self.times, self.ids = [*self.arrival, NEVER], list(range(len(load)))
            return
        self.think_time = load.think_time.tolist()
        for request, before in enumerate(load.after.tolist()):
            if before >= 0:
                self.next_turns.setdefault(before, []).append(request)
        first = np.flatnonzero(load.after < 0).tolist()
        self.times, self.ids = [*(self.arrival[i] for i in first), NEVER], first

    def add(self, request: Request) -> None:
        """One request more; its row is the next one."""
        row = len(self.arrival)
        self.arrival.append(request.arrival)
        self.prompt.append(request.prompt_tokens)
        self._given[row] = request
        self._enter(row, request.arrival)

    def answered(self, row: int, now: float) -> None:
        """Enter the requests that follow this answer."""
        for turn in self.next_turns.get(row, ()):
            self.arrival[turn] = when = now + self.think_time[turn]
            self._enter(turn, when)

    def _enter(self, row: int, when: float) -> None:
        place = bisect_right(self.times, when, self.head, len(self.times) - 1)
        while place > self.head and self.times[place - 1] == when and self.ids[place - 1] > row:
            place -= 1
        self.times.insert(place, when)
        self.ids.insert(place, row)

    def request(self, row: int) -> Request:
        """The request of this row, as a policy sees it."""
        if self._given and row in self._given:
            return self._given[row]
        request = Request(self.arrival[row], self.prompt[row], index=row)
        for name, values in self._columns:
            setattr(request, name, values[row])
        return request
