"""Lab 10's game: what rivals reach, and the best of all, found by trying all on blocks that are not the course's."""

from __future__ import annotations

import copy
from itertools import permutations

import pytest

from course.explore.board import Board, Refused, played
from course.explore.scores import values
from course.lessons.lab10 import game
from course.lessons.lab10.lab import two_manuals
from tests.helpers.oracle_prefix import Memory

SIX, PROMPT, SIZE = game.SIX, game.MANUAL + game.QUESTION, game.BLOCK_SIZE
SHARED = game.MANUAL // SIZE


def texts(row, tokens):
    """What the full blocks of so many tokens hold: a manual's, then the request's own."""
    return [(SIX[row][0] if place < SHARED else row, place) for place in range(tokens // SIZE)]


def after(memory, running, joining, now):
    """(memory, running, end of the step) if these join; None if blocks are short. running: (row, computed)."""
    memory, stay, prefill = copy.deepcopy(memory), [], 0
    for row, computed in running:
        if -(-(computed + 1) // SIZE) - -(-computed // SIZE) > len(memory.unused):
            return None
        memory.add(row, -(-(computed + 1) // SIZE) - -(-computed // SIZE))
        memory.name(row, texts(row, computed + 1))
        stay.append((row, computed + 1))
    for row in joining:
        found = memory.search(row, texts(row, PROMPT - 1))
        new = -(-PROMPT // SIZE) - len(found)
        if new + sum(block in memory.unused for block in found) > len(memory.unused):
            return None
        memory.join(row, found)
        memory.add(row, new)
        memory.name(row, texts(row, PROMPT))
        prefill += PROMPT - len(found) * SIZE
        stay.append((row, PROMPT))
    for row, computed in list(stay):
        if computed - PROMPT + 1 == SIX[row][2]:
            memory.leave(row)
            stay.remove((row, computed))
    return memory, stay, now + 10 + prefill


def best():
    """The least sum of TTFTs [ms], and who joins in each step of one schedule that reaches it."""
    found, seen = [float("inf"), []], {}

    def search(now, running, memory, first, moves):
        left = [row for row in range(6) if row not in first]
        total = sum(first.values())
        if not left:
            if total < found[0]:
                found[:] = total, moves
            return
        # Nobody has a first token sooner than after a step that computes its question.
        if total + sum(max(now, SIX[row][1]) + 10 + game.QUESTION for row in left) >= found[0]:
            return
        held = (
            [(sorted(block.users), str(block.text)) for block in memory.unused],
            sorted((sorted(block.users), str(block.text)) for block in memory.blocks),
        )
        key = now, tuple(sorted(first)), tuple(running), str(held)
        if seen.get(key, float("inf")) <= total:
            return
        seen[key] = total
        here = [row for row in left if SIX[row][1] <= now]
        for count in range(min(game.SLOTS - len(running), len(here)), -1, -1):
            for joining in permutations(here, count):
                if not joining and not running:
                    come = [SIX[row][1] for row in left if SIX[row][1] > now]
                    if come:
                        search(min(come), running, memory, first, [*moves, ()])
                elif step := after(memory, running, joining, now):
                    memory_, stay, end = step
                    search(end, stay, memory_, first | dict.fromkeys(joining, end), [*moves, joining])

    search(0, [], Memory(game.BLOCKS, SIZE, False), {}, [])
    return found


def test_the_best_of_all_and_the_board_plays_it():
    total, moves = best()
    assert game.PREFIXES.best == pytest.approx((total - sum(at for _, at, _ in SIX)) / 6, rel=1e-12)
    board = Board(game.PREFIXES)
    for joining in moves:
        board.play({"tokens": [[row, 1] for row in joining]})
    while not board.over:
        board.play({"tokens": []})
    assert values(board)[0] == pytest.approx(game.PREFIXES.best) and len(board.moves) <= 14


def test_what_rivals_reach_poses_a_choice():
    """In order, prompts are computed again and again. Longest prefix first has the best mean, and request 2 waits."""
    found = {name: values(played(game.PREFIXES, make())[0]) for name, make in game.PREFIXES.rivals.items()}
    assert found["in order"] == pytest.approx([1105 / 6, 245, 220], rel=1e-9)
    assert found["longest prefix first"] == pytest.approx([107.5, 210, 140], rel=1e-9)


def test_a_hand_may_be_fairer_at_nearly_the_same_mean():
    """Pairs of one manual: request 2 and 4 as soon as the first two are answered, before 5."""
    board, plan = Board(game.PREFIXES), [[0, 2], [1, 3], [4], [5]]
    while not board.over:
        joining = plan[0] if plan and all(row in board.waiting for row in plan[0]) else []
        try:
            board.play({"tokens": [[row, 1] for row in joining]})
        except Refused:  # no blocks or no slot yet
            board.play({"tokens": []})
        else:
            plan = plan[1:] if joining else plan
    mean, longest, _ = values(board)
    assert mean < 130 and longest < 180 and len(board.moves) <= 20


def test_two_manuals_do_not_fit_together():
    board = Board(game.PREFIXES)
    with pytest.raises(Refused, match="KV blocks more than the cache of 8 has"):
        board.play({"tokens": [[0, 1], [1, 1]]})
    board.play({"tokens": [[0, 1], [2, 1]]})  # the same one twice does
    assert board.engine.pool.free == 2


def test_the_board_gives_nothing_away():
    text = two_manuals().text()
    assert "184" not in text and "245" not in text and "107" not in text and "of A" in text
