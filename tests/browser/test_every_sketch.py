"""The curve that each lab lets draw: a screen reader hears each column, what is drawn there, and what is left to do."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Browser, expect

from course.exercises.curve import Drawing
from course.lessons import available, load
from tests.browser.lab_page import LabPage, opened_next, show
from tests.browser.lab_server import Server
from tests.browser.screen_reader import heard

NAME = "every-sketch.ipynb"
TALLEST = 560  # px
DRAWN = [(number, one) for number in available() for one in load(number).predictions if isinstance(one, Drawing)]


@pytest.fixture
def lab(browser: Browser, server: Server) -> Iterator[LabPage]:
    """A notebook with every drawing; nothing is stored."""
    (server.progress / "progress.json").unlink(missing_ok=True)
    setup = "import course.lessons\nfrom course.exercises import Lab"
    cells = [setup, *(f"Lab('{number}', show=False).predict('{one.id}')" for number, one in DRAWN)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata=kernel)
    nbformat.write(made, server.labs / NAME)
    with opened_next(browser, server, NAME) as page:
        page.run_all()
        yield page


def test_a_screen_reader_hears_every_column_and_what_is_left(lab: LabPage) -> None:
    assert len(DRAWN) >= 14
    for place, (number, drawing) in enumerate(DRAWN, start=1):
        root = lab.cell(place).locator(".course-sketch")
        root.wait_for()
        show(root)
        assert root.bounding_box()["height"] <= TALLEST, number
        sketch, said = drawing.sketch, heard(lab.page, drawing.question)
        free = [column for column in sketch.columns if column not in sketch.given]
        assert said.unnamed == [], number
        assert said.named("slider") == [f"{sketch.y.label} at {sketch.place(column)}" for column in free], number
        for tick in (tick for tick in sketch.x.ticks if tick == int(tick)):  # 8,192 and not 8,190
            assert f"{int(tick):,}" in root.locator("svg text").all_text_contents(), number
        assert f"Columns left to draw: {len(free)}." in said.live[0]
        for left in range(len(free) - 1, -1, -1):
            if left == len(free) - 1:
                root.get_by_role("slider").first.focus()
            lab.page.keyboard.press("ArrowUp")
            lab.page.keyboard.press("ArrowRight")
            words = f"Columns left to draw: {left}." if left else "Commit when you are content."
            expect(root.get_by_role("status")).to_contain_text(words)
        assert all(text != "not drawn yet" for text in root.get_by_role("slider").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('aria-valuetext'))"))  # fmt: skip
    assert lab.faults() == [] and lab.complaints == []
