"""A learner's way through lab 04: predict, explore, wrong answers and their hints, a restart, and on from there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from course.exercises.spec import Exercise
from course.lessons import load
from course.lessons.lab04 import refill
from tests.browser.explorer_page import ExplorerPage
from tests.browser.lab_page import LabPage, opened
from tests.browser.lab_server import Server
from tests.helpers.places import ROOT

LAB = load("04")
COPY = "04 second try.ipynb"
SETUP, EXPLORER = "lab = Lab(", "lab04.one_trace()"
NEW_LINE = ("End", "Enter")
SAME_LINE = ("End", "Shift+Home")


@pytest.fixture
def lab(browser: Browser, server: Server) -> Iterator[LabPage]:
    """A fresh copy of lab 04 beside the learner's first one, and nothing stored yet."""
    shutil.copy(next((ROOT / "labs").glob("04_*continuous.ipynb")), server.labs / COPY)
    shutil.rmtree(server.progress, ignore_errors=True)
    with opened(browser, server, COPY) as page:
        yield page


def exercise(id: str) -> Exercise:
    """Return an exercise of the lab, so that the test follows its wording."""
    return next(found for found in LAB.exercises if found.id == id)


def first_slider_moves(lab: LabPage, output: Locator) -> bool:
    """Move the first slider of the only explorer in an output; True if its figure follows."""
    explorer = ExplorerPage(lab, output.locator(".course-explorer"))
    explorer.settle()
    return explorer.moves(explorer.controls()[0])


def test_a_learners_path(lab: LabPage) -> None:
    """Predict, explore, answer wrongly, read the hint, put it right, restart the kernel, and find all of it again."""
    title = lab.run_cell(SETUP)
    expect(title).to_contain_text(f"Lab 04: {LAB.title}.")
    expect(title).to_contain_text("Nothing is stored for this lab yet.")

    prediction = LAB.predictions[0]
    ask = f'lab.predict("{prediction.id}")'
    form = lab.run_cell(ask)
    form.get_by_text(f"b) {prediction.options[1]}").click()
    form.get_by_role("button", name="Commit").click()
    expect(form).to_contain_text("Stored: b.")

    shown = lab.run_cell(EXPLORER)
    assert first_slider_moves(lab, shown), "the first slider of the first explorer moves nothing"

    # A value: untouched, wrong in a way the lab knows, right.
    waste, check = exercise("waste"), lab.find('lab.check("waste"')
    mistake = waste.mistakes[0]
    lab.run_cell(check - 1)
    expect(lab.run_cell(check)).to_contain_text("not attempted yet")
    lab.type_at(check - 1, "answer = None", *NEW_LINE, text=f"answer = {mistake.answer}")
    lab.run_cell(check - 1)
    expect(lab.run_cell(check)).to_contain_text(mistake.hint)
    lab.type_at(check - 1, f"answer = {mistake.answer}", *SAME_LINE, text=f"answer = {waste.solution}")
    lab.run_cell(check - 1)
    expect(lab.run_cell(check)).to_contain_text(f"{waste.title}: right.")

    # A function: half of it first.
    half = "return {r: waiting[r] for r in list(waiting)[: slots - len(running)]}"
    policy, check = exercise("refill"), lab.find('lab.check("refill"')
    (hint,) = (known.hint for known in policy.mistakes if known.answer is refill.forgets_the_running)
    lab.type_at(check - 1, "...", *SAME_LINE, text=half)
    lab.run_cell(check - 1)
    expect(lab.run_cell(check)).to_contain_text(hint)
    lab.type_at(check - 1, half, *SAME_LINE, text=half.replace("return", "return running |"))
    lab.run_cell(check - 1)
    expect(lab.run_cell(check)).to_contain_text(f"{policy.title}: right.")

    lab.restart_kernel()
    dead = lab.page.locator(".course-explorer .course-dead")
    expect(dead).to_be_visible()
    expect(dead).to_contain_text("Run > Run All Above Selected Cell")

    title = lab.run_cell(SETUP)
    counts = (
        f"1 of {len(LAB.predictions)} predictions, 0 of {len(LAB.tasks)} tasks, 2 of {len(LAB.exercises)} exercises, "
        f"0 of {len(LAB.quiz)} quiz questions"
    )
    expect(title).to_contain_text(f"So far: {counts}.")
    expect(title).to_contain_text(f"Next: prediction {LAB.predictions[1].id}")
    form = lab.run_cell(ask)
    expect(form).to_contain_text("Stored: b.")
    assert form.locator("input[type=radio]").nth(1).is_checked(), "the committed answer is not marked"
    assert lab.faults() == lab.complaints == lab.outside == []


def test_cells_out_of_order_and_twice(lab: LabPage) -> None:
    """After a restart a check says what is missing; the set-up and an explorer that runs twice then work."""
    lab.run_cell(SETUP)
    lab.restart_kernel()
    expect(lab.run_cell('lab.check("waste"')).to_contain_text("NameError: name 'lab' is not defined")
    lab.run_cell(SETUP)
    lab.run_cell(EXPLORER)
    shown = lab.run_cell(EXPLORER)
    expect(shown.locator(".course-explorer")).to_have_count(1)
    assert first_slider_moves(lab, shown), "an explorer that ran twice does not follow its slider"
    assert lab.complaints == lab.outside == []
