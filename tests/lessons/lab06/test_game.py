"""Lab 06's game: what the orders reach, and that it poses a choice."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from course import policies
from course.explore.board import Board, played
from course.explore.scores import values, verdict
from course.lessons.lab06 import fill, game

READERS, PROMPTS = (0, 1), (2, 3, 4)


def by_hand(order: tuple[int, ...], most: int, decodes: bool = True) -> Board:
    """Prompts in this order with at most so many tokens a step together; with decodes, whoever decodes goes first."""
    board = Board(game.ORDER)
    while not board.over:
        here = [*board.lanes, *board.waiting]
        decoding = [row for row in board.lanes if board.requests[row].emitted]
        waiting = [row for row in (*READERS, *order) if row in here and row not in decoding]
        tokens = dict.fromkeys(decoding if decodes or not waiting else (), 1)
        room = min(most, game.TOKENS - len(tokens))
        for row in waiting:
            if room > 0:
                tokens[row] = min(board.requests[row].remaining, room)
                room -= tokens[row]
        board.play({"tokens": [[row, count] for row, count in tokens.items()]})
    return board


def test_the_orders_trade_the_longest_gap_for_the_first_token():
    gaps, first = zip(*(values(played(game.ORDER, make())[0]) for make in game.ORDER.rivals.values()), strict=True)
    assert [round(gap) for gap in gaps] == [170, 58] and [round(ttft) for ttft in first] == [102, 107]


@pytest.mark.parametrize(("policy", "most", "decodes"), [
    (policies.PrefillFirst(game.SLOTS, game.TOKENS), game.TOKENS, False),
    (policies.Continuous(game.SLOTS, game.TOKENS), game.TOKENS, True),
    (policies.PrefillShare(game.SLOTS, game.TOKENS, 0.5), 20, True),
])  # fmt: skip
def test_a_hand_that_does_the_same_reaches_the_same(policy, most, decodes):
    assert values(by_hand(PROMPTS, most, decodes)) == pytest.approx(values(played(game.ORDER, policy)[0]), rel=1e-9)


def test_of_all_orders_and_sizes_none_is_best_in_both():
    """A real choice: short steps let prompts wait. And the order counts: shortest first is better in both."""
    sizes = (5, 10, 15, 20, 25, 30, 35, 40)
    reached = {(order, most): values(by_hand(order, most)) for order, most in product(permutations(PROMPTS), sizes)}
    gaps, first = zip(*reached.values(), strict=True)
    best = [found for found in reached.values() if found[0] < min(gaps) + 5 and found[1] < min(first) + 5]
    assert not best and min(gaps) < 40 and min(first) < 90
    in_order, shortest = reached[PROMPTS, 40], reached[PROMPTS[::-1], 40]
    assert shortest[0] <= in_order[0] + 1e-6 and shortest[1] < 0.9 * in_order[1]
    # No order of prompts alone, with decodes waiting, is within twice the gap of those that mix.
    assert min(values(by_hand(order, 40, decodes=False))[0] for order in permutations(PROMPTS)) > 2 * in_order[0]


def test_a_good_game_is_short_and_its_verdict_has_a_price():
    board = by_hand(PROMPTS[::-1], game.TOKENS)
    assert len(board.moves) <= 14
    rivals = {name: values(played(game.ORDER, make())[0]) for name, make in game.ORDER.rivals.items()}
    assert verdict(game.ORDER, values(board), rivals["decodes first"], "decodes first").startswith("Better")
    trade = verdict(game.ORDER, values(by_hand(PROMPTS, 20)), rivals["prompts first"], "prompts first")
    assert trade.startswith("A trade against prompts first: better in longest gap 40 ms for 170")


def test_a_right_fill_plays_like_the_policy_and_a_wrong_one_is_refused_or_worse():
    share = played(game.REPLAYED, policies.PrefillShare(game.SLOTS, game.TOKENS, game.SHARE))[0]
    mine, refused = played(game.REPLAYED, fill.as_policy(fill.fill, game.SLOTS, game.TOKENS, game.SHARE))
    assert refused is None and values(mine) == pytest.approx(values(share), rel=1e-9)
    wrong = played(game.REPLAYED, fill.as_policy(fill.prompts_first, game.SLOTS, game.TOKENS, game.SHARE))[0]
    assert values(wrong)[0] > 2 * values(mine)[0]
    for function, words in ((lambda *_: {9: 1}, "neither in decoding"), (lambda *_: [1], "no dictionary")):
        _, refused = played(game.REPLAYED, fill.as_policy(function, game.SLOTS, game.TOKENS, game.SHARE))
        assert words in str(refused)
