"""Lab 07's game: what chunks reach, and that it poses a choice."""

from __future__ import annotations

from itertools import product

import pytest

from course import policies
from course.explore.board import Board, played
from course.explore.scores import values, verdict
from course.lessons.lab07 import game

CHUNKS = (5, 10, 20, 30, 45, 90)


def chunks(size: int) -> Board:
    policy = policies.Continuous(game.SLOTS, game.TOKENS, long_prefill_token_threshold=size)
    return played(game.BUDGET, policy)[0]


def by_hand(*sizes: int) -> Board:
    """Decodes first; the long prompt in these chunks, then in the last of them, and others as far as they fit."""
    board, left = Board(game.BUDGET), list(sizes)
    while not board.over:
        tokens = {row: 1 for row in board.lanes if board.requests[row].remaining == 1}
        for row in [*board.lanes, *board.waiting]:
            if row in tokens or (row not in board.lanes and len(board.lanes.keys() | tokens.keys()) >= game.SLOTS):
                continue
            size = (left.pop(0) if len(left) > 1 else left[0]) if row == 2 else game.TOKENS
            if count := min(board.requests[row].remaining, size, game.TOKENS - sum(tokens.values())):
                tokens[row] = count
        board.play({"tokens": [[row, count] for row, count in tokens.items()]})
    return board


def test_chunks_trade_the_longest_gap_for_the_first_token():
    gaps, first = zip(*(values(chunks(size)) for size in CHUNKS), strict=True)
    assert [round(gap) for gap in gaps] == [30, 40, 40, 50, 65, 110]
    assert [round(ttft) for ttft in first] == [192, 136, 109, 89, 79, 68]


@pytest.mark.parametrize("size", CHUNKS[1:])  # with 5 the policy cuts short prompts too
def test_a_hand_that_does_the_same_reaches_the_same(size):
    assert values(by_hand(size)) == pytest.approx(values(chunks(size)), rel=1e-12)


def test_no_hand_with_two_sizes_is_better_in_both_than_every_chunk():
    """A real choice: who shortens the gap lets somebody wait."""
    reached = [values(by_hand(*sizes)) for sizes in product((10, 20, 30, 45, 60, 90), repeat=2)]
    whole = values(chunks(90))
    assert not any(gap < whole[0] - 1e-6 and ttft < whole[1] - 1e-6 for gap, ttft in reached)
    assert len({(round(gap), round(ttft)) for gap, ttft in reached}) > 12


def test_a_good_game_is_short_and_its_verdict_has_a_price():
    board = by_hand(game.CHUNK)
    assert len(board.moves) <= 14
    said = verdict(game.BUDGET, values(chunks(10)), values(chunks(20)), "chunks of 20")
    assert said == "Not as good as chunks of 20: mean TTFT 136 ms for 108."  # the longest gap hid it
    trade = verdict(game.BUDGET, values(board), values(chunks(90)), "whole prompts")
    assert trade.startswith("A trade against whole prompts: better in longest gap 40 ms for 110; worse in mean TTFT")
