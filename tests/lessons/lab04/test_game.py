"""Lab 04's games: what can be reached, that rivals are the engine's, and that the board tells every refill apart."""

from __future__ import annotations

import re

import pytest

from course.exercises.lesson import load
from course.explore.board import Board, played
from course.explore.board_view import Match
from course.explore.scores import values
from course.lessons.lab04 import game, refill
from course.lessons.lab04.lab import at_work, be_the_scheduler, with_a_predictor
from tests.helpers.games import best_answer

WRONG = [
    refill.only_when_empty, refill.forgets_the_running, refill.ignores_the_slots, refill.counts_only_newcomers,
    refill.stops_for_newcomers, refill.one_at_a_time, refill.one_token_each,
]  # fmt: skip


def test_the_best_of_all_admissions_is_proved_by_trying_them():
    assert game.REFILL.best == game.GUESSED.best == pytest.approx(best_answer(game.REFILL), rel=1e-12)


def test_what_rivals_reach():
    found = {name: [round(v, 2) for v in values(played(game.GUESSED, make())[0])] for name, make in
             game.GUESSED.rivals.items()}  # fmt: skip
    assert found == {"static": [10.33, 9, 15], "continuous": [5.83, 0, 11], "shortest first": [4.67, 0, 13]}
    latest = played(game.GUESSED, game.GUESSED.rivals["shortest first"]())[0].answered
    assert max(latest, key=latest.get) == 1  # request 2 pays: it came first, and is answered last


def test_a_good_game_is_short():
    """11 steps and 6 cards: 17 keys."""
    board, keys = Board(game.REFILL), 0
    while not board.over:
        rows = board.waiting[: game.SLOTS - len(board.lanes)]
        board.play({"tokens": [[row, 1] for row in rows]})
        keys += len(rows) + 1
    assert len(board.moves) <= 14 and keys <= 30


def test_the_exercises_mistakes_are_those_that_the_board_knows():
    (exercise,) = [one for one in load("04").exercises if one.id == "refill"]
    assert {mistake.answer for mistake in exercise.mistakes} == set(WRONG)


def test_every_planted_refill_is_told_apart_on_the_board():
    """By the rule that it breaks and who is hit, or by its scores; none looks like the right one."""
    seen = {}
    for function in (refill.refill, *WRONG):
        board, refused = played(game.REPLAYED, refill.as_policy(function, game.SLOTS))
        seen[function.__name__] = (refused.rule, refused.rows, len(board.frames)) if refused else tuple(values(board))
    assert len(set(seen.values())) == len(seen), seen
    assert seen["ignores_the_slots"][:2] == ("slots", (2,))
    assert seen["forgets_the_running"][0] == "idle"
    right = played(game.REPLAYED, game.REPLAYED.rivals["continuous"]())[0]
    assert seen["refill"] == tuple(values(right))


def test_a_refill_is_watched_step_by_step_and_an_empty_one_is_not_run():
    match = at_work(refill.counts_only_newcomers)
    assert isinstance(match, Match)
    assert "Your refill breaks off in step 2: it needs 4 slots, and the board has 2." in match.text()
    assert "step 1: slot 1: request 1 prefill 3; slot 2: request 2 prefill 4; in line: 3" in match.text()
    assert "mean time to an answer 5.83 steps, wasted slot-steps 0" in at_work(refill.refill).text()
    assert "returns nothing yet." in repr(at_work(lambda running, waiting, slots: None))
    assert "breaks off in step 1: " in at_work(lambda running, waiting, slots: {99: 1}).text()
    assert "breaks off in step 1: IndexError" in at_work(lambda running, waiting, slots: [][0]).text()


def test_the_board_before_one_trace_says_nothing_of_lengths():
    assert not re.search(r"answer of \d", be_the_scheduler().text())
    assert "answer of 7" in with_a_predictor().text()
