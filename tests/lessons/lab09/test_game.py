"""Lab 09's game: what rivals reach, and the best of all, found without the engine by trying every set of requests."""

from __future__ import annotations

import pytest

from course.explore.board import Board, Refused, played
from course.explore.scores import values
from course.lessons.lab09 import game
from tests.helpers.best_by_trying import best, fits


def test_the_best_of_all_is_proved_by_trying():
    assert game.VICTIM.best == pytest.approx(best(game.VICTIM), rel=1e-12)


def test_what_rivals_reach_poses_a_choice():
    """The engine's rule is neither the soonest nor the one that loses least, and a hand is sooner than all."""
    found = {name: values(played(game.VICTIM, make())[0]) for name, make in game.VICTIM.rivals.items()}
    assert found == {
        "last in goes": pytest.approx([8.75, 29]),
        "first in goes": pytest.approx([9.0, 25]),
        "least computed goes": pytest.approx([8.25, 16]),
    }
    assert game.VICTIM.best < 8.25


def test_a_good_game_is_short_and_one_that_sends_away_the_long_ones_is_the_best():
    """Nobody is admitted beside the first until the short ones are through: 11 moves."""
    board, keys = Board(game.VICTIM), 0
    while not board.over:
        asked = sorted(board.waiting, key=lambda row: game.VICTIM.asks[row].answer - board.requests[row].emitted)
        move, held = {"tokens": [], "preempt": []}, list(board.lanes)
        for row in asked:
            trial = tuple([*held, row])
            if fits(game.VICTIM, trial, tuple(request.emitted for request in board.requests)):
                held.append(row)
                move["tokens"].append([row, 1])
        if not fits(game.VICTIM, tuple(held), tuple(request.emitted for request in board.requests)):
            longest = max(board.lanes, key=lambda row: game.VICTIM.asks[row].answer - board.requests[row].emitted)
            move = {"tokens": [], "preempt": [longest]}
        board.play(move)
        keys += len(move["tokens"]) + len(move["preempt"]) + 1
    assert len(board.moves) <= 14 and keys <= 30
    assert values(board)[0] < 8.25


def test_who_sends_nobody_away_is_refused():
    board = Board(game.VICTIM)
    with pytest.raises(Refused, match="KV blocks more than the cache of 7 has: send a request away") as refused:
        for _ in range(20):
            rows = [
                row
                for row in board.waiting
                if fits(game.VICTIM, (*board.lanes, row), tuple(r.emitted for r in board.requests))
            ]
            board.play({"tokens": [[row, 1] for row in rows[:1]]})
    assert refused.value.rule == "blocks"
