"""Lab 17's game: what its rivals reach, the best there is by trying all, and a hand that reaches it."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest

from course.explore.board import Board, played
from course.explore.scores import values
from course.lessons.lab17 import game
from course.lessons.lab17.lab import at_work
from course.lessons.lab17.turns import fair

NAMES = sorted({ask.tenant for ask in game.TENANTS.asks})
COUNTS = [sum(ask.tenant == name for ask in game.TENANTS.asks) for name in NAMES]


def undominated(points):
    points = set(points)
    return frozenset(
        one for one in points if not any(all(a <= b for a, b in zip(o, one, strict=True)) and o != one for o in points)
    )


@cache
def reachable(time: int, running: tuple, waiting: tuple) -> frozenset:
    """Summed waits of each tenant that some admissions reach, without those that others reach better in all.

    Written without the engine: a step lasts one, and a prompt is computed in the step of its first token.
    """
    asks = game.TENANTS.asks
    waiting = tuple(sorted({*waiting, *(row for row, ask in enumerate(asks) if ask.arrival == time)}))
    all_came = all(ask.arrival <= time for ask in asks)
    if not running and not waiting and all_came:
        return frozenset({(0.0,) * len(NAMES)})
    found = set()
    for count in range(min(game.SLOTS - len(running), len(waiting)) + 1):
        for new in combinations(waiting, count):
            here = (*running, *((asks[row].answer, row) for row in new))
            if not here and all_came:
                continue
            waits = [0.0] * len(NAMES)
            for left, row in here:
                if left == 1:
                    waits[NAMES.index(asks[row].tenant)] += time + 1 - asks[row].arrival
            rest = tuple(sorted((left - 1, row) for left, row in here if left > 1))
            for later in reachable(time + 1, rest, tuple(row for row in waiting if row not in new)):
                found.add(tuple(a + b for a, b in zip(waits, later, strict=True)))
    return undominated(found)


def scored(waits):
    return max(total / count for total, count in zip(waits, COUNTS, strict=True)), sum(waits) / sum(COUNTS)


def reached(name):
    return values(played(game.TENANTS, game.TENANTS.rivals[name]())[0])


def test_what_the_rivals_reach():
    found = {name: [round(value, 2) for value in reached(name)] for name in game.TENANTS.rivals}
    assert found == {"in order": [12, 7], "fair": [10, 7], "shortest first": [15, 6]}


def test_best_is_the_least_that_any_hand_reaches_and_there_is_a_choice():
    found = {scored(waits) for waits in reachable(0, (), ())}
    assert min(found)[0] == game.TENANTS.best < min(reached(name)[0] for name in game.TENANTS.rivals)
    assert len(undominated(found)) > 3  # one wait against the other
    assert min(mean for _, mean in found) < min(reached(name)[1] for name in game.TENANTS.rivals)


def test_a_good_hand_needs_few_moves():
    """B's questions as soon as they come, the long one of A in time, and N's longest last."""
    order, board = [0, 3, 6, 5, 2, 7, 4, 1], Board(game.TENANTS)
    while not board.over:
        line = sorted(board.waiting, key=order.index)[: game.SLOTS - len(board.lanes)]
        board.play({"tokens": [[row, 1] for row in [*board.lanes, *line]]})
    assert values(board)[0] <= 8 and len(board.moves) <= 16


def test_the_learners_order_plays_as_fair_does():
    shown = at_work(fair)
    assert [round(value, 9) for value in values(shown.own[0])] == pytest.approx(reached("fair"))
    assert "returns nothing yet" in at_work(lambda waiting, counters: None).text()
    for wrong in (lambda waiting, counters: [0, 0], lambda waiting, counters: {}, lambda waiting, counters: [99]):
        assert "each of the" in at_work(wrong).text()
