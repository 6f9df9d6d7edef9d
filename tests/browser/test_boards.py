"""Boards and sketches in JupyterLab: by keys, by mouse, after a restart, in both themes; words that light up marks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.lab_page import SECOND, LabPage, opened_next, show
from tests.browser.lab_server import Server
from tests.browser.screen_reader import heard

NAME = "boards.ipynb"
TALLEST = 560  # px, finished, so that goal, board and table are on one screen
CELLS = (
    "from course.exercises import Lab\nfrom course.lessons import lab04\nfrom course.lessons.lab04 import refill\n"
    "lab = Lab('04', show=False)\nlab.predict('gain', 'b')",
    "lab04.be_the_scheduler()",
    "lab.predict('bigger')",
    "lab04.at_work(refill.counts_only_newcomers)",
    "lab04.at_saturation()",
)
WORDS = "Look at [request 2](#see:request-2), at [prefill](#see:prefill), or at [what was simulated](#see:simulated)."
MOVES = "([board, moves]) => Number(board.dataset.moves) !== moves"
BUSY = 20 * SECOND
# What the frame of a refusal lies over, besides what it frames.
FRAMED = """(board) => [...board.querySelectorAll(".course-lit")].flatMap((lit) => {
  const [box, { outlineWidth, outlineOffset }] = [lit.getBoundingClientRect(), getComputedStyle(lit)];
  const wide = parseFloat(outlineWidth) + parseFloat(outlineOffset) - 0.5;
  return [...board.querySelectorAll("*:not(.course-spoken)")].filter((one) => {
    if (lit.contains(one) || one.contains(lit)) return false;
    const { left, right, top, bottom, width } = one.getBoundingClientRect();
    const beside = left >= box.right + wide || right <= box.left - wide;
    return width && !beside && top < box.bottom + wide && bottom > box.top - wide;
  }).map((one) => `${lit.className} over ${one.className || one.tagName} ${one.textContent.slice(0, 20)}`);
})"""


@pytest.fixture
def lab(browser: Browser, server: Server) -> Iterator[LabPage]:
    """A notebook with a board, a sketch and a function that is watched; nothing is stored."""
    (server.progress / "progress.json").unlink(missing_ok=True)
    cells = [nbformat.v4.new_code_cell(code) for code in CELLS]
    cells.append(nbformat.v4.new_markdown_cell(WORDS))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), server.labs / NAME)
    with opened_next(browser, server, NAME) as page:
        page.run_all()
        yield page


def shown(lab: LabPage, cell: int, kind: str) -> Locator:
    found = lab.cell(cell).locator(f".course-{kind}")
    found.wait_for()
    show(found)
    return found


def moves(board: Locator) -> int:
    return int(board.get_attribute("data-moves"))


def press(lab: LabPage, board: Locator, *keys: str) -> int:
    """Press keys, waiting for the kernel after those that ask it. Returns how many were pressed."""
    for key in keys:
        before = moves(board)
        lab.page.keyboard.press(key)
        if key in ("n", "u"):
            lab.page.wait_for_function(MOVES, arg=[board.element_handle(), before], timeout=BUSY)
            assert lab.page.evaluate("document.activeElement.closest('.course-board') !== null"), "the focus is lost"
    return len(keys)


def cards(board: Locator) -> list[str]:
    return board.locator(".course-card b").all_inner_texts()


def by_keys(lab: LabPage, board: Locator) -> int:
    """A whole game, every free slot filled at once."""
    board.focus()
    keys = 0
    while board.locator(".course-go").inner_text() != "All answered":
        free = board.locator(".course-board-head", has_text="free").count()
        keys += press(lab, board, *cards(board)[:free], "n")
    return keys


def on_one_screen(board: Locator) -> None:
    box = board.bounding_box()
    assert box["height"] <= TALLEST
    assert board.evaluate("(e) => [e, ...e.querySelectorAll('*')].every((x) => x.tagName === 'svg' || x.closest('svg') "
                          "|| x.scrollHeight <= x.clientHeight + 2 || getComputedStyle(x).display === 'inline' "
                          "|| !/auto|scroll/.test(getComputedStyle(x).overflowY))")  # fmt: skip


def test_a_game_by_keys_alone_and_after_a_restart(lab: LabPage) -> None:
    board = shown(lab, 1, "board")
    assert board.locator("tbody tr").count() == 0 and "static" not in board.inner_text()
    board.focus()
    press(lab, board, "1", "2", "3")
    lab.page.keyboard.press("n")
    expect(board.locator("[role=status]")).to_contain_text("needs 3 slots", timeout=BUSY)
    expect(board.locator(".course-card.course-lit")).to_have_text("3just came")  # the draft is kept
    assert board.locator(".course-card[aria-pressed=true]").count() == 3 and moves(board) == 0
    assert board.evaluate(FRAMED) == []
    press(lab, board, "3", "2", "1")  # taken back
    expect(board.locator(".course-broken")).to_have_count(0)  # what was refused is not the plan any more
    assert by_keys(lab, board) <= 30
    assert moves(board) == 11 and [row.inner_text().split("\t")[:2] for row in board.locator("tbody tr").all()] == [
        ["you", "5.83"], ["you, best game", "5.83"], ["static", "10.33"], ["continuous", "5.83"]]  # fmt: skip
    on_one_screen(board)
    press(lab, board, "u", "u")
    lab.restart_kernel()
    lab.run_all()
    board = shown(lab, 1, "board")
    assert moves(board) == 9 and "You left off here, after 9 steps." in board.inner_text()
    assert board.locator("tbody tr").count() == 4
    assert lab.faults() == [] and lab.complaints == [] and lab.outside == []


def test_a_card_is_dragged_and_a_rival_is_held(lab: LabPage) -> None:
    board = shown(lab, 1, "board")
    card, lanes = board.locator(".course-card").nth(1), board.locator(".course-board-lanes").bounding_box()
    box = card.bounding_box()
    lab.page.mouse.move(box["x"] + 20, box["y"] + 20)
    lab.page.mouse.down()
    lab.page.mouse.move(lanes["x"] + 300, lanes["y"] + 30, steps=4)
    lab.page.mouse.up()
    expect(card).to_have_attribute("aria-pressed", "true")
    card.click()
    expect(card).to_have_attribute("aria-pressed", "false")
    by_keys(lab, board)
    picture = board.locator("svg")
    mine = picture.get_attribute("aria-label")
    hold = board.get_by_role("button", name="Hold to see the schedule of static")
    hold.hover()
    lab.page.mouse.down()
    expect(picture).to_have_attribute("aria-label", re.compile("^static"))
    assert "padding" in board.locator(".course-board-key").inner_text()
    lab.page.mouse.up()
    assert picture.get_attribute("aria-label") == mine
    hold.focus()
    lab.page.keyboard.down(" ")
    expect(picture).to_have_attribute("aria-label", re.compile("^static"))
    lab.page.keyboard.up(" ")
    assert picture.get_attribute("aria-label") == mine
    lab.page.keyboard.press("Tab")
    assert "play" in lab.page.evaluate("document.activeElement.innerText"), "the Tab key is stopped"
    board.get_by_role("button", name="From the start").click()
    expect(board).to_have_attribute("data-moves", "0", timeout=BUSY)
    assert lab.page.evaluate("document.activeElement.closest('.course-board') !== null"), "the focus is lost"


def test_a_wrong_function_is_seen_where_it_breaks_off(lab: LabPage) -> None:
    board = shown(lab, 3, "board")
    expect(board.locator("[role=status]")).to_have_text(
        "Your refill breaks off in step 2: it needs 4 slots, and the board has 2."
    )
    assert board.locator("svg rect[stroke='#D55E00']").count() == 2  # those without a slot
    board.focus()
    lab.page.keyboard.press("u")
    assert board.locator("svg rect[stroke='#D55E00']").count() == 0
    lab.page.keyboard.press("n")
    assert board.locator("svg rect[stroke='#D55E00']").count() == 2
    on_one_screen(board)


def test_a_sketch_by_keys_and_by_mouse(lab: LabPage, server: Server) -> None:
    sketch = shown(lab, 2, "sketch")
    assert sketch.locator(".course-true").count() == 0 and sketch.locator("[role=slider]").count() == 7
    sketch.locator("[role=slider]").first.focus()
    for _ in range(7):
        for key in ("ArrowUp", "ArrowUp", "ArrowRight"):
            lab.page.keyboard.press(key)
    slider = sketch.locator("[role=slider]").nth(1)
    assert slider.get_attribute("aria-valuetext") != "not drawn yet"
    assert "at 4 slots" in slider.get_attribute("aria-label")
    lab.page.keyboard.press("Enter")
    sketch.locator(".course-true").wait_for(timeout=BUSY)
    expect(sketch.locator("[role=status]")).to_contain_text("you drew")
    said = heard(lab.page, "In this chat, how many times")
    assert "you drew" in said.live[0] and said.unnamed == []
    true = [name for name in said.named("image") if ", the true value is " in name]
    assert len(true) == sketch.locator("[data-column]").count()
    assert lab.page.evaluate("document.activeElement.closest('.course-sketch') !== null")
    on_one_screen(sketch)
    sketch.get_by_role("button", name="Draw again").click()
    box = sketch.locator("svg").bounding_box()
    lab.page.mouse.move(box["x"] + 100, box["y"] + 200)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + box["width"] - 60, box["y"] + 150, steps=12)
    lab.page.mouse.up()
    expect(sketch.locator("[role=status]")).to_have_text("Commit when you are content.")
    sketch.get_by_role("button", name="Commit").click()
    sketch.locator(".course-true").wait_for(timeout=BUSY)
    stored = json.loads((server.progress / "progress.json").read_text())["labs"]["04"]["predictions"]["bigger"]
    assert len(stored["drawings"]) == 2 and stored["drawings"][0] != stored["drawings"][1]
    lab.restart_kernel()
    lab.run_all()
    sketch = shown(lab, 2, "sketch")
    sketch.locator(".course-true").wait_for(timeout=BUSY)
    assert sketch.locator(".course-first").count() == 1 and lab.faults() == [] and lab.complaints == []


def test_words_light_up_what_they_name_and_lead_nowhere(lab: LabPage) -> None:
    board = shown(lab, 1, "board")
    by_keys(lab, board)
    address, link = lab.page.url, lab.page.locator('a[href*="#see:request-2"]')
    link.hover()
    dimmed, all_ = board.locator("svg .course-dim"), board.locator("svg [data-see]")
    assert 0 < dimmed.count() < all_.count()
    assert all("request-2" not in one.get_attribute("data-see") for one in dimmed.all())
    link.click()
    assert lab.page.url == address
    lab.page.mouse.move(5, 5)
    link.blur()
    assert dimmed.count() == 0
    link.focus()
    assert dimmed.count() > 0
    link.blur()
    board.locator(".course-lights").first.hover()
    assert dimmed.count() > 0
    plot = shown(lab, 4, "explorer").locator(".js-plotly-plot")
    plot.locator(".trace").first.wait_for(timeout=BUSY)
    lab.page.locator('a[href*="#see:simulated"]').focus()
    names = plot.locator(".course-dim").evaluate_all("(all) => all.map((one) => one.__data__[0].trace.name)")
    assert names and "simulated" not in names


CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
THEME = "jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab %s' })"


def test_texts_can_be_read_in_both_themes_and_everything_has_a_name(lab: LabPage) -> None:
    board, sketch = shown(lab, 1, "board"), shown(lab, 2, "sketch")
    by_keys(lab, board)
    try:
        for theme in ("Light", "Dark"):
            lab.page.evaluate(THEME % theme)
            lab.page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(theme == 'Light').lower()}'")
            lab.page.wait_for_timeout(SECOND)
            for found in (board, sketch, shown(lab, 3, "board")):
                assert found.evaluate(CONTRAST) == [], theme
    finally:
        lab.page.evaluate(THEME % "Light")
    unnamed = "(root) => [...root.querySelectorAll('button, input, [role=slider], [role=img], [role=group]')]" + (
        ".filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim())).length"
    )
    for found in (board, sketch):
        assert found.evaluate(unnamed) == 0 and found.locator("[role=status]").count() == 1
        assert found.get_attribute("role") == "group" and found.get_attribute("aria-label")
