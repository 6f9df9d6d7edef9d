"""Every board of the lessons as a notebook shows it: the rules, and nothing that is to be found by playing."""

from __future__ import annotations

import re

import pytest

from course.explore.board import played
from course.explore.scores import values
from tests.helpers.lesson_explorers import boards


@pytest.mark.parametrize("name", boards())
def test_a_board_gives_neither_scores_nor_lengths_away(name: str) -> None:
    board = boards()[name]()
    text, game = board.text(), board.game
    reached = [values(played(game, make())[0]) for make in game.rivals.values()]
    said = {score.words(value) for row in reached for score, value in zip(game.scores, row, strict=True)}
    said |= {game.scores[0].words(game.best)} if game.best is not None else set()
    shown = [number for number in said if re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", text)]
    assert [number for number in shown if len(number) > 2] == []  # a small whole number may be one of the rules
    assert "guess" in game.shows or "answer of" not in text
