"""The board of each lab: a good game by keys alone is short, stands on one screen, and is said to a screen reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, expect

from course.explore.board import Board, Game
from course.explore.board_view import BEGIN
from course.explore.scores import values
from tests.browser.lab_page import SECOND, LabPage, opened_next, show
from tests.browser.lab_server import Server
from tests.browser.screen_reader import heard

NAME = "every-board.ipynb"
TALLEST = 560  # px, finished: goal, board and table are on one screen
MOST_MOVES, MOST_KEYS = 14, 30
BUSY = 20 * SECOND
GAMES = {  # its name in game.py, what shows it in lab.py, and a good game; a digit in a field is typed there
    "04": ("REFILL", "be_the_scheduler", "12n n 3n n n 4n n 5n 6n n n"),
    "06": ("ORDER", "whose_turn", "12n n 54n 3n n n n n n"),
    "07": ("BUDGET", "hand_out_tokens", "12n n 3320n 20n 20n 20n n n n 4n n n n"),
    "08": ("BLOCKS", "a_small_pool", "1n 2n 34n 15n 1n n 5n 5n n n n n n"),
    "09": ("VICTIM", "whom_to_send_away", "1n 2n 23n n n 4n 2n n n n n n"),
    "10": ("PREFIXES", "two_manuals", "13n n n n 5n n n 24n n n 6n n n"),
    "15": ("DEADLINES", "who_can_make_it", "12n n n 56n n 8n 7n n n 3n 4n n n n"),
    "17": ("TENANTS", "serve_the_tenants", "13n n 6n 4n n 7n n 5n 2n n n 8n n"),
}
SPILLS = """(board) => Math.max(...[...board.querySelectorAll("*")]
  .map((one) => one.getBoundingClientRect().right)) - board.getBoundingClientRect().right"""
MOVED = "([board, moves]) => board.dataset.moves !== moves || board.querySelector('.course-broken')"


@pytest.fixture(scope="module")
def lab(browser: Browser, server: Server) -> Iterator[LabPage]:
    """A notebook with every lab's board; nothing is stored."""
    (server.progress / "progress.json").unlink(missing_ok=True)
    cells = [
        nbformat.v4.new_code_cell(f"from course.lessons import lab{number}\nlab{number}.{shows}()")
        for number, (_, shows, _) in GAMES.items()
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), server.labs / NAME)
    with opened_next(browser, server, NAME) as page:
        page.run_all()
        yield page


def game_of(number: str) -> Game:
    return getattr(import_module(f"course.lessons.lab{number}.game"), GAMES[number][0])


def press(lab: LabPage, board: Locator, key: str) -> None:
    """Press a key, and wait for the kernel after a step; the board must keep the focus, and stay on one screen."""
    before = board.get_attribute("data-moves")
    lab.page.keyboard.press(key)
    if key == "n":
        lab.page.wait_for_function(MOVED, arg=[board.element_handle(), before], timeout=BUSY)
    assert board.evaluate("(board) => board.contains(document.activeElement)"), "the focus is lost"


def begin_again(board: Locator) -> None:
    if board.get_attribute("data-moves") != "0":
        board.get_by_role("button", name="From the start").click()
    expect(board).to_have_attribute("data-moves", "0", timeout=BUSY)


def on_one_screen(board: Locator) -> None:
    assert board.bounding_box()["height"] <= TALLEST
    assert board.evaluate(SPILLS) <= 1, "something is wider than its room"


def test_a_good_game_by_keys_is_short_and_stands_on_one_screen(lab: LabPage, server: Server) -> None:
    for place, (number, (_, _, keys)) in enumerate(GAMES.items()):
        board, game = lab.cell(place).locator(".course-board"), game_of(number)
        board.wait_for()
        show(board)
        board.focus()
        while game.asks[-1].arrival > Board(game, moves=[{"tokens": []}] * int(board.get_attribute("data-moves"))).now:
            press(lab, board, "n")  # nobody is let in until all have come
        on_one_screen(board)
        begin_again(board)
        pressed = keys.replace(" ", "")
        for key in pressed:
            press(lab, board, key)
            on_one_screen(board)
        expect(board.locator(".course-go")).to_have_text("All answered", timeout=BUSY)
        assert len(pressed) <= MOST_KEYS and int(board.get_attribute("data-moves")) <= MOST_MOVES, number
        kept = json.loads((server.progress / "progress.json").read_text())["labs"][number]["boards"][game.id]
        mine = Board(game, moves=kept["moves"])  # the hand in the browser is the engine's
        rows = [row.inner_text().split("\t") for row in board.locator("tbody tr").all()]
        said = [score.words(value) for score, value in zip(game.scores, values(mine), strict=True)]
        assert rows[0][: 1 + len(said)] == ["you", *said], number
        assert [row[0] for row in rows[2:]] == list(game.rivals)
    assert lab.faults() == [] and lab.complaints == [] and lab.outside == []


def test_a_screen_reader_hears_every_control_and_what_happened(lab: LabPage) -> None:
    for place, (number, (_, _, keys)) in enumerate(GAMES.items()):
        board, game = lab.cell(place).locator(".course-board"), game_of(number)
        board.wait_for()
        show(board)
        begin_again(board)
        said = heard(lab.page, game.title)
        assert said.unnamed == [] and said.live[0] == BEGIN, number
        assert {f"Request {row + 1}" for row, ask in enumerate(game.asks) if ask.arrival == 0} == {
            name.partition(",")[0] for name in said.named("button") if name.startswith("Request ")
        }
        board.focus()
        free = game.max_num_seqs
        for digit in keys.partition("n")[0]:
            press(lab, board, digit)
            free -= 1
            joins = f"Request {digit} joins in this step, {free} slot{'s' * (free != 1)} left."
            assert heard(lab.page, game.title).live[1] == joins
        press(lab, board, "n")
        after = heard(lab.page, game.title).live
        assert after[0].startswith("Step 1, until " if game.unit == "ms" else "Step 1. "), number
        assert not any("joins in this step" in text for text in after), "said of the plan before"
        said = heard(lab.page, game.title)
        assert said.unnamed == [], number
        if "tokens" in game.hand:
            assert "Tokens for request 1 in this step, of 1" in said.named("spinbutton")
        if "preempt" in game.hand:
            assert any(name.startswith("Send request 1 away") for name in said.named("button"))
        assert said.named("image") and "slot 1: request 1 for 1 step" in said.named("image")[0]


def test_tokens_that_are_no_whole_number_are_refused_and_what_was_laid_down_stays(lab: LabPage) -> None:
    board = lab.cell(list(GAMES).index("07")).locator(".course-board")
    board.wait_for()
    show(board)
    begin_again(board)
    board.focus()
    press(lab, board, "1")
    box, said = board.locator('input[data-of="0"]'), board.locator("[role=status]")
    for typed in ("2.5", "0", "-5", "e", ""):
        box.fill("8")
        box.press("Control+a")
        lab.page.keyboard.type(typed) if typed else box.press("Delete")
        lab.page.keyboard.press("n")
        expect(said).to_have_text("Request 1 needs a whole number of tokens from 1 to 8.")
        expect(board).to_have_attribute("data-moves", "0")
        expect(box).to_be_focused()
        board.get_by_role("button", name="Request 1,").click()  # another plan
        expect(said).to_have_text("Changed: take the step.")
        board.get_by_role("button", name="Request 1,").click()
    box.fill("8")
    press(lab, board, "n")
    expect(board).to_have_attribute("data-moves", "1", timeout=BUSY)
