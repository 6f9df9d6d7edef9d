"""Lab 08's game: what rivals reach, and the best of all, found without the engine by trying every set of requests."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest

from course.explore.board import Board, Refused, played
from course.explore.scores import values
from course.lessons.lab08 import game
from course.lessons.lab08.lab import a_small_pool

ASKS, SLOTS, POOL = game.BLOCKS.asks, game.SLOTS, game.POOL


def fits(rows: tuple[int, ...], emitted: tuple[int, ...]) -> bool:
    """Whether these can all compute one step: a request holds blocks for its prompt and what it has said."""
    blocks = sum(-(-(ASKS[row].prompt + emitted[row]) // POOL.block_size) for row in rows)
    return len(rows) <= SLOTS and blocks <= POOL.num_blocks


@cache
def least(time: int, emitted: tuple[int, ...], running: tuple[int, ...], may_send_away: bool) -> float:
    """The least sum of the times at which all can be answered from here. A step lasts one, whatever is in it."""
    if all(said == ask.answer for said, ask in zip(emitted, ASKS, strict=True)):
        return 0.0
    open_ = [row for row, ask in enumerate(ASKS) if emitted[row] < ask.answer and ask.arrival <= time]
    stay = () if may_send_away else tuple(row for row in running if emitted[row] < ASKS[row].answer)
    found, others = float("inf"), [row for row in open_ if row not in stay]
    for count in range(len(others) + 1):
        for more in combinations(others, count):
            rows = tuple(sorted(stay + more))
            if not rows or not fits(rows, emitted):
                continue
            after = tuple(said + (row in rows) for row, said in enumerate(emitted))
            done = sum(after[row] == ASKS[row].answer for row in rows) * (time + 1)
            found = min(found, done + least(time + 1, after, () if may_send_away else rows, may_send_away))
    return found


def best(may_send_away: bool) -> float:
    total = least(0, (0,) * len(ASKS), (), may_send_away)
    return (total - sum(ask.arrival for ask in ASKS)) / len(ASKS)


def test_the_best_of_all_and_the_best_that_sends_nobody_away():
    assert game.BLOCKS.best == pytest.approx(best(may_send_away=True), rel=1e-12)
    assert best(may_send_away=False) == pytest.approx(7.8)


def test_what_rivals_reach_poses_a_choice():
    """Whole answers: nothing is lost, and everybody waits. What is there: sooner, and tokens are computed again."""
    found = {name: values(played(game.BLOCKS, make())[0]) for name, make in game.BLOCKS.rivals.items()}
    assert found == {
        "room for whole answers": pytest.approx([12.2, 0]),
        "while blocks are free": pytest.approx([7.6, 18]),
    }
    assert found["while blocks are free"][0] < best(may_send_away=False) < found["room for whole answers"][0]


def test_a_hand_may_be_sooner_than_whole_answers_without_losing_a_token():
    """One newcomer a step, as long as the blocks of the next three steps are there."""
    board = Board(game.BLOCKS)
    while not board.over:
        for row in board.waiting[:1]:
            here = [*board.lanes, row]
            held = sum(-(-(board.requests[r].known + 3) // POOL.block_size) for r in here)
            if len(here) <= SLOTS and held <= POOL.num_blocks:
                board.play({"tokens": [[row, 1]]})
                break
        else:
            board.play({"tokens": []})
    mean, again = values(board)
    assert again == 0 and mean < 12.2 and len(board.moves) <= 20


def test_who_does_not_send_anybody_away_in_time_is_refused():
    board = Board(game.BLOCKS)
    with pytest.raises(Refused, match="KV blocks more than the cache of 12 has: preempt a request") as refused:
        for _ in range(20):
            board.play({"tokens": [[row, 1] for row in board.waiting[: SLOTS - len(board.lanes)]]})
    assert refused.value.rule == "blocks" and len(refused.value.rows) == 1
    last = max(board.lanes, key=lambda row: ASKS[row].arrival)
    board.play({"tokens": [], "preempt": [last]})
    assert board.waiting[0] == last and board.recomputed > 0


def test_the_board_gives_nothing_away():
    text = a_small_pool().text()
    assert "12.2" not in text and "7.6" not in text and "7.4" not in text and "answer of" not in text
