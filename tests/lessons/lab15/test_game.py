"""Lab 15's game: what its rivals reach, the fewest late answers by trying all, and that a good hand is short."""

from itertools import permutations

import pytest

from course.explore.board import Board, played
from course.explore.scores import values
from course.lessons.lab15 import game, orders
from course.lessons.lab15.lab import at_work

ASKS = [(int(ask.arrival), ask.answer, ask.due) for ask in game.DEADLINES.asks]
GOOD = (0, 1, 4, 5, 6, 7, 2, 3)


def scored(order):
    """Late answers and the mean time to one, if they start in this order, each in the slot that is free first.

    Written without the engine: every schedule of two slots that nobody could start sooner in is one of these.
    """
    free, late, total = [0, 0], 0, 0
    for row in order:
        arrival, steps, due = ASKS[row]
        slot = free.index(min(free))
        free[slot] = max(free[slot], arrival) + steps
        late += free[slot] - arrival > due
        total += free[slot] - arrival
    return late, total / len(ASKS)


def reached(name):
    return values(played(game.DEADLINES, game.DEADLINES.rivals[name]())[0])


def test_what_the_rivals_reach():
    found = {name: [round(value, 2) for value in reached(name)] for name in game.DEADLINES.rivals}
    assert found == {"in order": [6, 7.38], "earliest deadline": [6, 7.5], "hopeless last": [4, 7.62]}


def test_best_is_the_least_that_any_order_reaches_and_there_is_a_choice():
    found = {scored(order) for order in permutations(range(len(ASKS)))}
    assert min(found)[0] == game.DEADLINES.best < min(reached(name)[0] for name in game.DEADLINES.rivals)
    fewest = min(mean for late, mean in found if late == game.DEADLINES.best)
    assert min(mean for _, mean in found) < fewest  # few late answers cost the others time


def test_a_good_hand_needs_few_moves():
    board, order = Board(game.DEADLINES), list(GOOD)
    while not board.over:
        lanes, joins = list(board.lanes), []
        while order and len(lanes) + len(joins) < game.SLOTS and order[0] in board.waiting:
            joins.append(order.pop(0))
        board.play({"tokens": [[row, ASKS[row][1] if row in joins else 1] for row in [*lanes, *joins]]})
    assert values(board) == pytest.approx(scored(GOOD)) and values(board)[0] == game.DEADLINES.best
    assert len(board.moves) <= 16


def test_the_learners_order_plays_as_hopeless_last_does():
    shown = at_work(orders.last)
    assert values(shown.own[0]) == pytest.approx(reached("hopeless last"))
    assert "returns nothing yet" in at_work(lambda waiting, now, pace: None).text()
    for wrong in (lambda waiting, now, pace: [0, 0], lambda waiting, now, pace: {}, lambda waiting, now, pace: [99]):
        assert "each of the" in at_work(wrong).text()
