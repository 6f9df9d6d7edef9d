"""The board: it is the engine, it refuses what the engine refuses, and what it shows gives nothing away."""

from __future__ import annotations

import itertools
import json
import random
import re

import numpy as np
import pytest

from course import policies
from course.engine.serving import serve
from course.explore import board_text
from course.explore.board import MOST_STEPS, Ask, Board, Game, Refused, Score, played
from course.explore.board_view import Match, Memory
from course.explore.scores import values, verdict
from course.workload import Workload
from tests.helpers.games import BLOCKS, BUDGET, DUE, GAMES, ORDER, SLOTS, TENANTS, best_answer, one

RIVALS = [(game, name) for game in GAMES.values() for name in game.rivals]


def workload(game: Game) -> Workload:
    def column(name):
        found = [getattr(ask, name) for ask in game.asks]
        return np.array([np.nan if value is None else value for value in found]) if any(found) else None

    return Workload(
        np.array([ask.arrival for ask in game.asks]), np.array([ask.prompt for ask in game.asks]),
        np.array([ask.answer for ask in game.asks]), guess=column("guess"), deadline=column("due"),
    )  # fmt: skip


@pytest.mark.parametrize(("game", "name"), RIVALS, ids=[f"{game.id}-{name}" for game, name in RIVALS])
def test_a_rival_on_the_board_has_the_times_of_serve_to_the_bit(game, name):
    board, refused = played(game, game.rivals[name]())
    run = serve(workload(game), game.rivals[name](), game.step_time, game.cache)
    assert refused is None
    assert [board.answered[row] for row in range(len(game.asks))] == run.response.tolist()
    first = np.array([board.first[row] for row in range(len(game.asks))]) - run.arrival
    assert first.tolist() == run.ttft.tolist()
    assert [frame.end for frame in board.frames if any(part.emitted or part.prefill or part.padding
                                                       for part in frame.parts)] == run.steps.end.tolist()  # fmt: skip
    assert board.recomputed == run.steps.dropped.sum()
    if not board.engine.limits.padded:
        gaps = [b - a for times in board.emitted_at.values() for a, b in itertools.pairwise(times)]
        assert sorted(gaps) == sorted(run.itl.tolist())


# What a hand can reach, and what rivals do


def refilled(game: Game, order) -> Board:
    """A hand that fills every free slot, in an order."""
    board = Board(game)
    while not board.over:
        rows = order(board, board.waiting)[: game.max_num_seqs - len(board.lanes)]
        board.play({"tokens": [[row, 1] for row in rows]})
    return board


def test_the_best_of_all_admissions_is_proved_by_trying_them():
    assert SLOTS.best == pytest.approx(best_answer(SLOTS), rel=1e-12)
    shortest = refilled(SLOTS, lambda board, rows: sorted(rows, key=lambda row: SLOTS.asks[row].answer))
    assert values(shortest)[0] == pytest.approx(SLOTS.best, rel=1e-12)
    assert len(shortest.moves) <= 14


def test_slots_pose_a_choice():
    """Who leaves no slot free is at 5.83, whoever admits in another order somewhere around it; static at 10.33."""
    found = {name: values(played(SLOTS, make())[0]) for name, make in SLOTS.rivals.items()}
    assert [round(value, 2) for value in found["static"]] == [10.33, 9, 15]
    assert [round(value, 2) for value in found["continuous"]] == [5.83, 0, 11]
    assert values(refilled(SLOTS, lambda board, rows: rows)) == found["continuous"]
    draw = random.Random(0)
    blind = [values(refilled(SLOTS, lambda board, rows: draw.sample(rows, len(rows))))[0] for _ in range(100)]
    assert min(blind) < 5 and max(blind) > 6.5 and 5.5 < sum(blind) / len(blind) < 6.2


def test_chunks_trade_the_longest_gap_for_the_first_token():
    chunks = {
        size: values(played(BUDGET, policies.Continuous(3, 100, long_prefill_token_threshold=size))[0])
        for size in (5, 10, 20, 30, 45, 90)
    }
    gaps, first = zip(*chunks.values(), strict=True)
    assert [round(gap) for gap in gaps] == [30, 40, 40, 50, 65, 110]
    assert [round(ttft) for ttft in first] == [192, 136, 109, 89, 79, 68]


def test_other_games_pose_a_choice_too():
    scores = {game.id: [values(played(game, make())[0]) for make in game.rivals.values()] for game in GAMES.values()}
    assert scores[ORDER.id][0][0] > scores[ORDER.id][1][0]  # whose prompt is first
    assert scores[DUE.id][0][0] == 2 and scores[DUE.id][1][0] == 0  # answers too late
    assert scores[TENANTS.id][0][0] > 1.2 * scores[TENANTS.id][1][0]
    (last_in, again), (first_in, more_again) = scores[BLOCKS.id]
    assert first_in < last_in and more_again > again  # sooner, at the price of computing more again
    for game in GAMES.values():
        assert all(len(played(game, make())[0].frames) <= 20 for make in game.rivals.values())


# Moves


def test_the_same_moves_give_the_same_board_and_undo_takes_one_away():
    board = refilled(SLOTS, lambda board, rows: rows[::-1])
    again = Board(SLOTS, moves=json.loads(json.dumps(board.moves)))
    assert again.frames == board.frames and again.answered == board.answered and again.over
    board.undo()
    assert board.moves == again.moves[:-1] and board.frames == again.frames[:-1] and not board.over
    board.play(again.moves[-1])
    assert board.frames == again.frames


@pytest.mark.parametrize(
    ("game", "before", "move", "rule", "rows", "words"),
    [
        (SLOTS, [], {"tokens": [[0, 1], [1, 1], [2, 1]]}, "slots", (2,), "3 slots, and the board has 2"),
        (SLOTS, [], {"tokens": [[5, 1]]}, "unknown", (5,), "request 6, which is neither in a slot nor in line"),
        (SLOTS, [], {"tokens": [[0, 1]], "preempt": [1]}, "move", (1,), "nobody is sent away"),
        (SLOTS, [], {"tokens": [[0, 1], [0, 1]]}, "move", (0, 0), "once"),
        (BUDGET, [], {"tokens": [[0, 9]]}, "chunk", (0,), "request 1 needs 8 tokens, not 9"),
        (BUDGET, [], {"tokens": [[0, 0]]}, "chunk", (0,), "request 1"),
        (BUDGET, [], {"tokens": []}, None, (), None),
        (BLOCKS, [[0, 1, 2]], {"preempt": [3]}, "preempt", (3,), "sends request 4 away, which has no slot"),
    ],
)
def test_a_refused_move_names_rule_and_rows_and_leaves_the_board(game, before, move, rule, rows, words):
    board = Board(game)
    for names in before:
        board.play({"tokens": [[row, 1] for row in names]})
    kept = list(board.moves), board.now, board.waiting, board.lanes
    if rule is None or words is None:  # allowed: time passes
        board.play(move)
        assert len(board.moves) == len(kept[0]) + 1
        return
    with pytest.raises(Refused, match=words) as refused:
        board.play(move)
    assert (refused.value.rule, refused.value.rows) == (rule, rows)
    assert (board.moves, board.now, board.waiting, board.lanes) == kept


def test_a_budget_and_blocks_are_the_engines():
    board = Board(BUDGET)
    for _ in range(2):
        board.play({"tokens": [[row, 1 if row in board.lanes else 8] for row in (0, 1)]})
    board.play({"tokens": [[0, 1], [1, 1]]})
    assert board.waiting == [2]
    with pytest.raises(Refused, match="it runs 92 tokens, and a step has room for 91") as refused:
        Board(
            Game(**(vars(BUDGET) | {"max_num_batched_tokens": 91})),
            moves=[*board.moves, {"tokens": [[0, 1], [1, 1], [2, 90]], "preempt": []}],
        )
    assert (refused.value.rule, set(refused.value.rows)) == ("budget", {0, 1, 2})
    board = Board(BLOCKS)
    with pytest.raises(Refused, match="the cache of 8 has: send a request away, or let fewer in") as refused:
        for _ in range(20):
            board.play({"tokens": [[row, 1] for row in board.waiting if len(board.lanes) < 3]})
    assert refused.value.rule == "blocks" and set(refused.value.rows) <= {0, 1, 2, 3} and refused.value.rows
    moves = len(board.moves)
    board.play({"tokens": [], "preempt": [max(board.lanes)]})
    assert len(board.moves) == moves + 1 and board.recomputed > 0


def test_a_game_ends_after_its_most_steps():
    long = Game(**(vars(SLOTS) | {"asks": (Ask(0.0, 1, MOST_STEPS + 1),)}))
    board = Board(long, moves=[{"tokens": [[0, 1]]}, *[{"tokens": []}] * (MOST_STEPS - 1)])
    with pytest.raises(Refused, match="at most 300 steps") as refused:
        board.play({"tokens": []})
    assert refused.value.rule == "long" and len(board.moves) == MOST_STEPS
    watched, broke_off = played(long, policies.Continuous(2, 64))
    assert not watched.over and broke_off.rule == "long"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"asks": ()}, "0 requests"),
        ({"asks": (Ask(1.0, 1, 1), Ask(0.0, 1, 1))}, "order of arrival"),
        ({"hand": frozenset({"admit"})}, "'admit'"),
        ({"shows": frozenset({"answer"})}, "'answer'"),
        ({"scores": ()}, "needs a score"),
        ({"unit": "s"}, "'s'"),
    ],
)
def test_a_game_that_cannot_be_played_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        Game(**(vars(SLOTS) | change))


# A function that plays


def watched(function) -> Match:
    policy = policies.FromFunction(function, max_num_seqs=2)
    return Match(SLOTS, own=played(SLOTS, policy), name="yours")


def test_a_function_that_raises_is_refused_with_a_sentence():
    def raises(_state):
        raise KeyError("nope")

    for function, words in ((raises, "KeyError: 'nope'"), (lambda state: {"a": 1}, "'a'"), (lambda state: 3, "3")):
        assert words in watched(function).text() and "breaks off in step 1" in watched(function).text()
    assert watched(raises).own[1].rule == "function"


def test_what_a_function_asked_for_is_there_where_it_breaks_a_rule():
    match = watched(lambda state: dict.fromkeys(state.waiting, 1))
    match._repr_mimebundle_()
    shown = match._state.board["others"]["yours"]
    assert shown["rows"] == [2] and shown["asked"] == [[0, 1], [1, 1], [2, 1]] and not shown["over"]
    assert "it needs 3 slots" in match._state.board["said"]
    match._asked(None, {"play": {"tokens": [[0, 1]]}}, [])  # nobody plays by hand
    assert match.board.moves == []


# Verdicts


def test_a_verdict_compares_all_scores():
    game = SLOTS
    assert verdict(game, [5, 0, 11], [5, 0, 11], "it") == "Just as it."
    assert verdict(game, [4, 0, 11], [5, 0, 11], "it") == "Better than it: mean time to an answer 4.00 steps for 5.00."
    assert verdict(game, [5, 2, 11], [5, 0, 11], "it") == "Not as good as it: wasted slot-steps 2 for 0."
    trade = verdict(game, [4, 2, 12], [5, 0, 11], "it")
    assert (
        trade.startswith("A trade against it: better in mean") and "worse in wasted slot-steps 2 for 0, steps" in trade
    )


def test_a_mean_is_written_alike_in_whatever_order_it_was_added_up():
    score = Score("mean TTFT [ms]", values, "{:.0f}")
    assert score.words(107.49999999999999) == score.words(107.5) == score.words(107.50000000000001)


# What the page gets


def finished() -> list[list[int]]:
    board = refilled(SLOTS, lambda board, rows: rows)
    return [[row + 1 for row, _ in move["tokens"]] for move in board.moves]


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_the_text_is_the_same_whatever_was_played_and_gives_nothing_away(game):
    match = Match(game)
    before = match.text()
    match.play([[1]])
    assert match.text() == before == repr(match) == match._repr_mimebundle_()["text/plain"]
    played_ = {name: played(game, make())[0] for name, make in game.rivals.items()}
    for board in played_.values():
        for score, value in zip(game.scores, values(board), strict=True):
            words = score.words(value)
            assert len(words) < 4 or words not in before, f"{score.name}: {words}"
    if "guess" not in game.shows:
        assert "answer " not in "\n".join(board_text.card(game, 0))
    assert all(name in before for name in game.rivals)


def test_rivals_lengths_and_arrivals_stay_in_the_kernel_until_they_are_due():
    match = Match(SLOTS)
    match._repr_mimebundle_()
    board = match._state.board
    assert board["others"] == {} and [row[0] for row in board["rows"]] == ["you"]
    assert [one["row"] for one in board["requests"]] == [0, 1, 2] and board["coming"] == 3
    assert not any("answer" in key and key != "answered" for one in board["requests"] for key in one)
    told = match.play(finished())
    board = match._state.board
    assert set(board["others"]) == {"static", "continuous"} and "Just as continuous." in told
    assert [row[0] for row in board["rows"]] == ["you", "you, best game", "static", "continuous"]
    match._asked(None, {"again": True}, [])
    assert match._state.board["rows"][1][1][0] == "5.83" and match._state.board["rows"][0][1][0] == "-"


def test_who_sends_the_only_one_away_reads_that_nobody_would_run():
    match = Match(BLOCKS)
    match._asked(None, {"play": {"tokens": [[0, 8]]}}, [])
    match._asked(None, {"play": {"tokens": [], "preempt": [0]}}, [])
    said = "That step cannot be: nobody would run in it: lay a request into a slot first"
    assert match.said == f"{said}, or keep one."
    match = Match(SLOTS)
    for last in ("Step 1.", "Steps 2 to 3: nobody ran.", "Step 4."):
        match._asked(None, {"play": {"tokens": []}}, [])
        assert match.said.startswith(f"{last} Request "), "as it is counted below the lanes"
    match._asked(None, {"play": {"tokens": []}}, [])
    assert match.said == f"{said}."


def test_a_game_is_kept_and_junk_gives_a_fresh_board():
    memory = Memory()
    Match(SLOTS, memory).play(finished())
    again = Match(SLOTS, memory)
    assert again.board.over and again.best is not None and values(again.best)[0] == pytest.approx(35 / 6)
    again._asked(None, {"undo": True}, [])
    third = Match(SLOTS, memory)
    assert not third.board.over and third.best.over and len(third.board.moves) == len(again.board.moves)
    for junk in (3, [], {"moves": "x"}, {"moves": [[1]], "best": 7}, {"moves": [{"tokens": [[99, 1]]}] * 2},
                 {"moves": [{"tokens": []}] * 10_000, "best": [{"tokens": [[0, 1]]}]}):  # fmt: skip
        memory.keep(junk)  # type: ignore[arg-type]
        fresh = Match(SLOTS, memory)
        assert fresh.board.moves == [] and fresh.best is None and fresh.text() == again.text()


JUNK = [
    None, 1, "x", [], [[0]], [[0, 1, 2]], [["a", 1]], [[0, True]], [[-1, 1]], [[99, 1]], [[0, 10**30]], [[0, -5]],
    [[0, 1.5]], {}, [[0, 1], [0, 2]], [[0, 1]] * 50, "__import__('os')",
]  # fmt: skip


def test_two_thousand_hostile_messages_raise_nothing():
    draw, refused = random.Random(1), 0
    for game in GAMES.values():
        match, rows = Match(game), range(len(game.asks))
        match._repr_mimebundle_()
        text = match.text()
        for turn in range(340):
            move = {"tokens": draw.choice(JUNK), "preempt": draw.choice([[], [0], ["a"], [99], None, [True], [0, 0]])}
            if turn % 2:
                move = {
                    "tokens": [[row, draw.randint(0, 6)] for row in draw.sample(rows, draw.randint(0, len(rows)))],
                    "preempt": draw.sample(rows, draw.choice([0, 0, 0, 1, 2])),
                }
            message = {"play": move}
            if turn % 37 == 0:
                message = draw.choice([{"undo": True}, {"again": True}, {"play": draw.choice(JUNK)}, *JUNK])
            match._asked(None, message, None)
            refused += match._state.board["broken"] is not None
            assert not re.search(r"max_num|preempt|num_blocks|Request\(", match._state.board["said"]), "its own words"
        again = Board(game, moves=match.board.moves)
        assert again.frames == match.board.frames and match.text() == text
        json.dumps(match._state.board)
    assert refused > 1_000


@pytest.mark.parametrize("step", ["x", 3, [0], ["1"], [99], {1: "x"}, {1: 0}, [True], {"a": 1}])
def test_a_step_typed_wrongly_gets_a_sentence(step):
    told = Match(BUDGET).play([step])
    assert told.startswith("Step 1 cannot be: ") and repr(told) == str(told)


def test_a_step_of_a_game_ends_at_the_next_arrival_where_nothing_runs():
    game = Game(**(vars(SLOTS) | {"asks": (Ask(0.5, 1, 1), Ask(4.0, 1, 1)), "best": None}))
    board = Board(game)
    assert board.play({"tokens": []}).end == 0.5
    board.play({"tokens": [[0, 1]]})
    assert (board.now, board.over) == (1.5, False)
    assert board.play({"tokens": []}).end == 4.0
    board.play({"tokens": [[1, 1]]})
    assert board.over and values(board)[:2] == [1.0, 0] and one(None) == 1.0
