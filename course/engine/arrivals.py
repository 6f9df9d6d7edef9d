"""Who comes when: the queue of arrivals that are known so far, in order, with turns added as their answers go out."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from typing import Any

import numpy as np

from course.policies.request import Request, give_life, new_life
from course.workload import Workload

NEVER = float("inf")
_NO_LABELS = (None, None, (), None, (), None, None, False, None, None)
_new = Request.__new__  # made by the thousand: without the checks and defaults of the constructor


class Arrivals:
    """times[head:] and ids[head:] are the requests that have not come in yet, by arrival, then by row.

    `times` ends with an infinite sentinel, so times[head] <= now asks at once whether a request has come. Requests of a
    workload are made when they come in; those given one by one are there from the start. `held` are those that a client
    with a cap has not sent: the n-th answer sends the first of them, at once or when it is due.
    """

    def __init__(self):
        self.load: Workload | None = None
        self.arrival: list[float] = []  # by row; NaN while it is not known
        self.prompt: list[int] = []
        self.times: list[float] = [NEVER]
        self.ids: list[int] = []
        self.head = 0
        self.next_turns: dict[int, list[int]] = {}
        self.held = deque[int]()
        self.follow_answers = False  # whether any request waits for another's answer
        self._given: dict[int, Request] = {}
        self._again: dict[int, Request] = {}  # told to come again
        self._labels: tuple[Any, ...] = ()  # columns of the workload, if it has any
        self._blocks: tuple[int | None, bool] = (None, False)  # what its prefixes are made of

    def follow(self, load: Workload) -> None:
        """All requests of a workload. Raises ValueError if requests are known already."""
        if self.arrival:
            raise ValueError(
                "an engine takes one workload, and only before any other request: submit the others one by one"
            )
        self.load = load
        self.arrival, self.prompt = load.arrival.tolist(), load.prompt_tokens.tolist()
        columns = (load.class_, load.tenant, load.prefix, load.guess, load.tags, load.deadline, load.slo, load.patience)
        self._blocks = load.prefix_block_size, load.prefix_answers
        if any(column is not None for column in columns):
            self._labels = tuple(_by_row(column, len(load)) for column in columns)
        if load.after is None or not (load.after >= 0).any():
            sent = len(load) if load.max_concurrency is None else min(load.max_concurrency, len(load))
            self.times, self.ids = [*self.arrival[:sent], NEVER], list(range(sent))
            self.held.extend(range(sent, len(load)))
            self.follow_answers = bool(self.held)
            return
        self.think_time: list[float] = [] if load.think_time is None else load.think_time.tolist()
        for request, before in enumerate(load.after.tolist()):
            if before >= 0:
                self.next_turns.setdefault(before, []).append(request)
        self.follow_answers = True
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
        if self.held and row not in self._given:
            turn = self.held.popleft()
            self.arrival[turn] = when = max(self.arrival[turn], now)
            self._enter(turn, when)
        for turn in self.next_turns.get(row, ()):
            self.arrival[turn] = when = now + self.think_time[turn]
            self._enter(turn, when)

    def come_again(self, request: Request, when: float) -> None:
        """This request, which was here, comes once more."""
        self._again[request.index] = request
        self._enter(request.index, when)

    def withdraw(self, row: int) -> None:
        """This request, which has not come yet, or is to come again, never comes."""
        self._again.pop(row, None)
        place = self.ids.index(row, self.head)
        del self.ids[place], self.times[place]

    def _enter(self, row: int, when: float) -> None:
        place = bisect_right(self.times, when, self.head, len(self.times) - 1)
        while place > self.head and self.times[place - 1] == when and self.ids[place - 1] > row:
            place -= 1
        self.times.insert(place, when)
        self.ids.insert(place, row)

    def request(self, row: int, engine: Any) -> Request:
        """The request of this row, as a policy sees it. engine: the one that serves it."""
        if self._again and row in self._again:
            return self._again.pop(row)
        if self._given and row in self._given:
            return self._given[row]
        request = _new(Request)
        labels = _NO_LABELS if not self._labels else self._labels_of(row)
        give_life(request, new_life(self.arrival[row], self.prompt[row], row, engine, labels))
        return request

    def columns(self) -> dict[str, Any]:
        """What is known of the requests besides their lengths, as columns of a Workload; without their prefixes."""
        rows = range(len(self.arrival))
        found = [
            self._given[row].life.labels if row in self._given else self._labels_of(row) if self._labels else _NO_LABELS
            for row in rows
        ]
        columns: dict[str, Any] = {}
        for name, place in (("class_", 0), ("tenant", 1)):
            values = [labels[place] for labels in found]
            if any(value is not None for value in values):
                text = any(isinstance(value, str) for value in values)
                nothing: int | str = "" if text else -1
                values = [nothing if value is None else value for value in values]
                columns[name] = [str(value) for value in values] if text else values
        for name, place, nobody in (
            ("patience", 9, math.nan),
            ("guess", 3, math.nan),
            ("deadline", 5, math.nan),
            ("tags", 4, ()),
            ("slo", 8, None),
        ):
            values = [labels[place] for labels in found]
            if any(value is not None and (name != "tags" or value) for value in values):
                columns[name] = [nobody if value is None else value for value in values]
        return columns

    def _labels_of(self, row: int) -> tuple:
        class_, tenant, prefix, guess, tags, deadline, slo, patience = [column[row] for column in self._labels]
        if deadline is None and slo is not None:
            deadline = slo.ttft
        return class_, tenant, prefix or (), guess, tags or (), deadline, *self._blocks, slo, patience


def _by_row(column: Any, rows: int) -> Any:
    """A column of a workload with what a policy sees of it: None for NaN, and where there is no such column."""
    if column is None:
        return [None] * rows
    if not isinstance(column, np.ndarray):
        return column
    return [None if value != value else value for value in column.tolist()]
