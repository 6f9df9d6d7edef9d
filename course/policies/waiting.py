"""Requests that wait, as a policy reads them: in order of arrival, by a key of its own, or apart by a label.

Nothing is copied when a request comes or goes. What is sorted or set apart once stays so: the next look adds those that
came since, and passes over those that left.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from course.policies.request import Request

FEW = 16  # requests that are sorted sooner than looked up
ORDERS = 4  # keys of which the order is remembered


class Waiting(Sequence[Request]):
    """Those without a slot: the preempted ones first, the last of them at the head, then all others by arrival.

    queue: the others, in order of arrival, and none twice. sent_back: the preempted ones, the head last. Both are the
    engine's own, so that this shows the present at any time.
    """

    __slots__ = ("_orders", "_queue", "_sent_back")

    def __init__(self, queue: Any, sent_back: Sequence[Request] = ()):
        self._queue, self._sent_back = queue, sent_back
        self._orders: dict[Callable, _Sorted | _Grouped] = {}

    def __len__(self) -> int:
        return len(self._queue) + len(self._sent_back)

    def __iter__(self) -> Iterator[Request]:
        return chain(reversed(self._sent_back), self._queue) if self._sent_back else iter(self._queue)

    def __reversed__(self) -> Iterator[Request]:
        return chain(reversed(self._queue), self._sent_back)

    def __contains__(self, request: object) -> bool:
        return request in self._queue or request in self._sent_back

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            if not (self._queue or self._sent_back):
                return ()
            start, stop, step = place.indices(len(self))
            return tuple(islice(self, start, stop, step)) if step > 0 else tuple(self)[place]
        size = len(self)
        if not -size <= place < size:
            raise IndexError(f"place {place} in a queue of {size}")
        if place % size < size // 2:
            return next(islice(self, place % size, None))
        return next(islice(reversed(self), size - 1 - place % size, None))

    def __add__(self, others: Iterable[Request]) -> tuple[Request, ...]:
        return (*self, *others)

    def __radd__(self, others: Iterable[Request]) -> tuple[Request, ...]:
        return (*others, *self)

    def __repr__(self) -> str:
        return repr(tuple(self))

    def sorted_by(self, key: Callable[[Request], Any]) -> Iterable[Request]:
        """The same as sorted(self, key=key), for a key that never changes for a request: then none is sorted twice.

        The order is remembered by the function, so give the same one each time: a method or a function with a name.
        """
        if len(self._queue) + len(self._sent_back) <= FEW:
            return sorted(self if self._sent_back else self._queue, key=key)
        order = self._orders.get(key)
        if not isinstance(order, _Sorted):
            order = self._remember(key, _Sorted(self._queue, key))
        order.refresh()
        if not self._sent_back:
            return order
        return merge(sorted(reversed(self._sent_back), key=key), order, key=key)  # of equal ones the preempted first

    def split_by(self, key: Callable[[Request], Any], least: Any) -> tuple[Iterator[Request], Iterator[Request]]:
        """Of `sorted_by(key)`, those from this key on, and those before it. Neither is looked at to find where."""
        order = self.sorted_by(key)
        if isinstance(order, _Sorted):
            place = bisect_left(order.entries, least, order.head, key=itemgetter(0))
            return order.between(place, len(order.entries)), order.between(order.head, place)
        line = list(order)
        place = bisect_left(line, least, key=key)
        return iter(line[place:]), iter(line[:place])

    def grouped_by(self, label: Callable[[Request], Hashable]) -> dict[Any, Iterable[Request]]:
        """Those of each label in order, for a label that never changes for a request, such as its tenant.

        Labels that no request has are not there; the others stand in the order of their first request.
        """
        groups = self._orders.get(label)
        if not isinstance(groups, _Grouped):
            groups = self._remember(label, _Grouped(self._queue, label))
        groups.refresh()
        first: dict[Any, list[Request]] = {}
        for request in reversed(self._sent_back):
            first.setdefault(label(request), []).append(request)
        lines = groups.lines()
        if not first:
            return lines
        return {one: [*first.get(one, ()), *lines.get(one, ())] for one in (*first, *lines)}

    def forget_orders(self) -> None:
        """Those that wait are sorted and grouped anew when somebody asks next. For the engine."""
        self._orders.clear()

    def _remember(self, key: Callable, order: Any) -> Any:
        if len(self._orders) >= ORDERS:
            self._orders.clear()
        self._orders[key] = order
        return order


class _View:
    """What knows of those in the queue, and learns of the others when it is asked."""

    def __init__(self, queue: Any):
        self.queue = queue
        self.known: set[Request] = set()  # and perhaps some that have left
        self.count = 0  # of all that ever came: their place in the queue

    def newcomers(self) -> list[Request]:
        """Those in the queue that are not known yet, in its order; all of them if too many of the known ones left."""
        if len(self.known) > 2 * len(self.queue) + FEW:
            self.forget()
            self.known = set()
        new = []
        for request in reversed(self.queue):
            if request in self.known:
                break
            new.append(request)
        new.reverse()
        return new

    def forget(self) -> None:
        """None is known."""
        raise NotImplementedError


class _Sorted(_View):
    """Those in the queue by a key, equal ones in the order of the queue."""

    def __init__(self, queue: Any, key: Callable[[Request], Any]):
        super().__init__(queue)
        self.key = key
        self.entries: list[tuple[Any, int, Request]] = []
        self.head = 0  # those before it have left

    def forget(self) -> None:
        self.entries, self.head = [], 0

    def refresh(self) -> None:
        """Add those that came since the last look."""
        new = self.newcomers()
        added = [(self.key(request), self.count + place, request) for place, request in enumerate(new)]
        self.known.update(new)
        self.count += len(added)
        entries, queue = self.entries, self.queue
        if len(added) > FEW:
            entries.extend(added)
            entries.sort()
        else:
            for entry in added:
                insort(entries, entry, self.head)
        while self.head < len(entries) and entries[self.head][2] not in queue:
            self.head += 1
        if self.head > len(entries) // 2:
            del entries[: self.head]
            self.head = 0

    def __iter__(self) -> Iterator[Request]:
        return self.between(self.head, len(self.entries))

    def between(self, start: int, stop: int) -> Iterator[Request]:
        """Those in these places, but for who has left."""
        entries, queue = self.entries, self.queue
        for place in range(start, stop):
            if entries[place][2] in queue:
                yield entries[place][2]


class _Grouped(_View):
    """Those in the queue apart by a label."""

    def __init__(self, queue: Any, label: Callable[[Request], Hashable]):
        super().__init__(queue)
        self.label = label
        self.groups: dict[Any, deque[tuple[int, Request]]] = {}

    def forget(self) -> None:
        self.groups = {}

    def refresh(self) -> None:
        """Add those that came since the last look."""
        new = self.newcomers()
        added = [(self.label(request), (self.count + place, request)) for place, request in enumerate(new)]
        self.known.update(new)
        self.count += len(added)
        for label, entry in added:
            self.groups.setdefault(label, deque()).append(entry)
        for label, group in list(self.groups.items()):
            while group and group[0][1] not in self.queue:
                group.popleft()
            if not group:
                del self.groups[label]

    def lines(self) -> dict[Any, Iterable[Request]]:
        """By label, in the order of the first of each: the same whenever and however often it was asked before."""
        return {label: _Line(group, self.queue) for label, group in sorted(self.groups.items(), key=_first_place)}


def _first_place(group: tuple[Any, deque[tuple[int, Request]]]) -> int:
    return group[1][0][0]


class _Line:
    """Those of a group that are still in the queue."""

    def __init__(self, group: Iterable[tuple[int, Request]], queue: Any):
        self._group, self._queue = group, queue

    def __iter__(self) -> Iterator[Request]:
        return (request for _, request in self._group if request in self._queue)
