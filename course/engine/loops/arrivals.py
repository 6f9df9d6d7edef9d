"""Who comes when: the queue of arrivals that are known so far, in order, with turns added as their answers go out."""

from bisect import bisect_right

import numpy as np

from course.workload import Workload

NEVER = float("inf")


class Arrivals:
    """times[head:] and ids[head:] are the requests not yet admitted for the first time, by arrival, then by row.

    `times` ends with an infinite sentinel, so times[head] <= now asks at once whether somebody waits.
    """

    def __init__(self, load: Workload):
        self.arrival = load.arrival.tolist()
        self.next_turns: dict[int, list[int]] = {}
        if load.after is None or not (load.after >= 0).any():
            self.times, self.ids = [*self.arrival, NEVER], range(len(load))
        else:
            self.think_time = load.think_time.tolist()
            for request, before in enumerate(load.after.tolist()):
                if before >= 0:
                    self.next_turns.setdefault(before, []).append(request)
            first = np.flatnonzero(load.after < 0).tolist()
            self.times, self.ids = [*(self.arrival[i] for i in first), NEVER], first

    def answered(self, request: int, now: float, head: int) -> None:
        """Enter the requests that follow this answer among those from `head` on."""
        for turn in self.next_turns.get(request, ()):
            when = now + self.think_time[turn]
            self.arrival[turn] = when
            place = bisect_right(self.times, when, head, len(self.times) - 1)
            while place > head and self.times[place - 1] == when and self.ids[place - 1] > turn:
                place -= 1
            self.times.insert(place, when)
            self.ids.insert(place, turn)
