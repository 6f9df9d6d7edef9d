"""Which replica a request goes to: the routes of `Fleet`.

A route is any function of a request and the replicas that returns the number of one. Each replica has `requests`, those
that were sent to it and have no answer yet, and `outstanding`, how many they are. It is asked in order of arrival.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from course.base import settings
from course.policies.base import Request

Replica = Any  # course.engine.fleet.Replica, which stands above


class RoundRobin:
    """One after the other, whatever they have to do."""

    def __init__(self):
        self._next = 0

    def __call__(self, request: Request, replicas: Sequence[Replica]) -> int:
        """The one after the last."""
        self._next, now = (self._next + 1) % len(replicas), self._next % len(replicas)
        return now


class LeastLoaded:
    """The replica with the fewest requests that have no answer yet; of equals the first."""

    def __call__(self, request: Request, replicas: Sequence[Replica]) -> int:
        """Its number."""
        return least_loaded(replicas, range(len(replicas)))


class ByClass:
    """Each class has replicas of its own, and of these a request goes to the least loaded one.

    replicas: numbers by class, such as {"chat": [0, 1, 2], "docs": [3]}; a number alone stands for a list of one. A
    replica may serve several classes. Raises ValueError for a class without a replica, and a number of none.
    """

    def __init__(self, replicas: Mapping[Hashable, int | Iterable[int]]):
        if not isinstance(replicas, Mapping) or not replicas:
            raise ValueError(
                f'ByClass takes a dict of classes to numbers of replicas, such as {{"chat": [0, 1], "docs": [2]}}, not '
                f"{settings.quote(replicas)}"
            )
        self.replicas = {label: _numbers(label, given) for label, given in replicas.items()}

    def __call__(self, request: Request, replicas: Sequence[Replica]) -> int:
        """The least loaded of those of its class."""
        group = self.replicas.get(request.class_)
        if group is None:
            raise ValueError(
                f"the request of {request.arrival:g} s has the class {settings.quote(request.class_)}, which has no "
                f"replica: ByClass has {', '.join(map(settings.quote, self.replicas))}"
            )
        if max(group) >= len(replicas):
            raise ValueError(
                f"ByClass sends {settings.quote(request.class_)} to replica {max(group)}, and there are "
                f"{len(replicas)}, from 0: name others"
            )
        return least_loaded(replicas, group)


def _numbers(label: Hashable, given: Any) -> tuple[int, ...]:
    given = [given] if isinstance(given, int) else given
    name = f"a replica of {settings.quote(label)}"
    if isinstance(given, str) or not isinstance(given, Iterable) or not (group := tuple(given)):
        raise ValueError(f"{settings.quote(label)} needs the numbers of its replicas, not {settings.quote(given)}")
    return tuple(settings.whole(name, one, low=0, high=10**6) for one in group)


class ByPrefix:
    """Where the longest part of its prefix was sent before; of equals to the least loaded one.

    What the replicas still have in their caches the route does not know: it remembers what it sent where. within: a
    replica that has so many requests more than the least loaded one gets no more on account of a prefix, since one
    prefix that all requests begin with would else send all of them to one replica.
    Raises ValueError for within below 0.
    """

    def __init__(self, within: int = 32):
        self.within = settings.whole("within", within, low=0)
        self._sent: list[set[Hashable]] = []  # by replica: hashes, each of which stands for all text up to its end

    def __call__(self, request: Request, replicas: Sequence[Replica]) -> int:
        """Its number."""
        while len(self._sent) < len(replicas):
            self._sent.append(set())
        fewest = min(replica.outstanding for replica in replicas)
        here = [n for n, replica in enumerate(replicas) if replica.outstanding <= fewest + self.within]
        known = {n: self._known(request.prefix, self._sent[n]) for n in here}
        most = max(known.values())
        chosen = least_loaded(replicas, [n for n in here if known[n] == most])
        self._sent[chosen].update(request.prefix)
        return chosen

    def _known(self, prefix: tuple, sent: set[Hashable]) -> int:
        """How many of the leading blocks were sent there."""
        low, high = 0, len(prefix)
        while low < high:  # whoever knows a block knows those before it
            middle = (low + high) // 2
            if prefix[middle] in sent:
                low = middle + 1
            else:
                high = middle
        return low


def least_loaded(replicas: Sequence[Replica], among: Iterable[int]) -> int:
    """Of these numbers that of the replica with the fewest requests without an answer; of equals the first."""
    return min(among, key=lambda n: replicas[n].outstanding)
