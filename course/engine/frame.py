"""What one step did to whom, for a screen that shows an engine at work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course.policies.base import Request


@dataclass(frozen=True, slots=True)
class Part:
    """What one slot did in a step.

    lane: the slot, from 0; a request keeps it until it leaves or is preempted, and comes back to it if it is free then.
    row: the request in it. prefill: tokens of its prompt that were computed, 0 if it decodes. padding: tokens computed
    for nothing. text: what it said at the end of the step, perhaps ""; None if it said nothing, or if no language model
    speaks. ended: "" while its answer goes on. emitted: tokens that left.
    """

    lane: int
    row: int
    prefill: int
    padding: int
    text: str | None
    ended: str
    emitted: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """One step. start, end: seconds, on the engine's clock. parts: by lane. waiting: rows without a slot, in line.

    sent: rows that reach their reader first at the end of this step: with the first token, and in a padded batch with
    the last one of the batch. preempted: rows that lost their slot before it.
    """

    start: float
    end: float
    parts: tuple[Part, ...]
    waiting: tuple[int, ...]
    sent: tuple[int, ...]
    preempted: tuple[int, ...] = ()


class Lanes:
    """Which slot each request has, step after step."""

    def __init__(self) -> None:
        self._lanes: dict[int, int] = {}  # from a row to its slot
        self._left: dict[int, int] = {}  # the same, of those that were there before

    def places(self, rows: Sequence[int]) -> list[tuple[int, int]]:
        """(row, lane) by lane. One that was preempted takes its own again if it is free, newcomers the lowest free."""
        self._left |= self._lanes
        self._lanes = {row: lane for row, lane in self._lanes.items() if row in rows}
        for row in rows:
            if row not in self._lanes and self._left.get(row, -1) not in (-1, *self._lanes.values()):
                self._lanes[row] = self._left[row]
        free = iter(sorted(set(range(len(rows) + len(self._lanes))) - set(self._lanes.values())))
        for row in rows:
            if row not in self._lanes:
                self._lanes[row] = next(free)
        return sorted(self._lanes.items(), key=lambda pair: pair[1])


def frame(
    engine: Any,
    seconds: float,
    tokens: Mapping[Request, int],
    emits: Sequence[Request],
    finished: Sequence[Request],
    several: Mapping[Request, int],
    victims: Sequence[Request],
) -> Frame:
    """The Frame of a step of the plain loop that took so many seconds and is not written down yet.

    tokens: what each request computes. emits: those of which a token leaves. finished, several: what the executor says.
    victims: those preempted before it.
    """
    padded, by_row = engine.limits.padded, {request.index: request for request in engine.running}
    parts = []
    for row, lane in engine.lanes.places(list(by_row)):
        request, emitted = by_row[row], row in {each.index for each in emits}
        count, many = tokens.get(request, 0), several.get(request, 1) if emitted else 0
        real = count if not padded else min(count, max(0, request.known - request.computed)) if emitted else 0
        ended = "length" if request in finished or (padded and not emitted) else ""
        # Whoever stood still after a token prefills in the engine's books; what it computes now is that token alone.
        goes_on = not padded and request.emitted and request.known - request.computed == 1
        prefill = 0 if goes_on or request in engine.decoding else real
        parts.append(Part(lane, row, prefill, count - real, None, ended, many))
    sent = [request.index for request in emits if not request.emitted]
    if padded:
        sent = list(by_row) if set(engine.unfinished) <= set(finished) else []
    waiting, preempted = ([request.index for request in group] for group in (engine.waiting, victims))
    return Frame(engine.now, engine.now + seconds, tuple(parts), tuple(waiting), tuple(sent), tuple(preempted))
