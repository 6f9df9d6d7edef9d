"""Lab 08's game: what rivals reach, and the best of all, found without the engine by trying every set of requests."""

from __future__ import annotations

import pytest

from course.explore.board import Board, Refused, played
from course.explore.scores import values
from course.lessons.lab08 import game
from tests.helpers.best_by_trying import best


def test_the_best_of_all_and_the_best_that_sends_nobody_away():
    assert game.BLOCKS.best == pytest.approx(best(game.BLOCKS), rel=1e-12)
    assert best(game.BLOCKS, may_send_away=False) == pytest.approx(7.8)


def test_what_rivals_reach_poses_a_choice():
    """Whole answers: nothing is lost, and everybody waits. What is there: sooner, and tokens are computed again."""
    found = {name: values(played(game.BLOCKS, make())[0]) for name, make in game.BLOCKS.rivals.items()}
    assert found == {
        "room for whole answers": pytest.approx([12.2, 0]),
        "while blocks are free": pytest.approx([7.6, 18]),
    }
    assert (
        found["while blocks are free"][0] < best(game.BLOCKS, may_send_away=False) < found["room for whole answers"][0]
    )


def test_a_hand_may_be_sooner_than_whole_answers_without_losing_a_token():
    """One newcomer a step, as long as the blocks of the next three steps are there."""
    board = Board(game.BLOCKS)
    while not board.over:
        for row in board.waiting[:1]:
            here = [*board.lanes, row]
            held = sum(-(-(board.requests[r].known + 3) // game.POOL.block_size) for r in here)
            if len(here) <= game.SLOTS and held <= game.POOL.num_blocks:
                board.play({"tokens": [[row, 1]]})
                break
        else:
            board.play({"tokens": []})
    mean, again = values(board)
    assert again == 0 and mean < 12.2 and len(board.moves) <= 20


def test_who_does_not_send_anybody_away_in_time_is_refused():
    board = Board(game.BLOCKS)
    with pytest.raises(Refused, match="KV blocks more than the cache of 12 has: send a request away") as refused:
        for _ in range(20):
            board.play({"tokens": [[row, 1] for row in board.waiting[: game.SLOTS - len(board.lanes)]]})
    assert refused.value.rule == "blocks" and len(refused.value.rows) == 1
    last = max(board.lanes, key=lambda row: game.BLOCKS.asks[row].arrival)
    board.play({"tokens": [], "preempt": [last]})
    assert board.waiting[0] == last and board.recomputed > 0
