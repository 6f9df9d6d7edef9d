"""When things go wrong in lab 04: reopened without its kernel, restarted in the middle, an answer cell that raises."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from course.lessons import load
from tests.browser.lab_page import LabPage, opened
from tests.browser.lab_server import Server
from tests.helpers.places import ROOT

LAB = load("04")
COPY = "04 mishaps.ipynb"
SETUP, QUIZ, CHECK = "lab = Lab(", "lab.quiz()", 'lab.check("waste"'
PREDICTION = f'lab.predict("{LAB.predictions[0].id}")'
DEAD = "Run > Run All Above Selected Cell"
SAME_LINE = ("End", "Shift+Home")
WASTE = next(exercise for exercise in LAB.exercises if exercise.id == "waste")
QUESTION = LAB.quiz[0]
WRONG = next(place for place in range(len(QUESTION.options)) if place != QUESTION.right)


@pytest.fixture
def lab(browser: Browser, server: Server) -> Iterator[LabPage]:
    """A fresh copy of lab 04, and nothing stored yet."""
    shutil.copy(next((ROOT / "labs").glob("04_*continuous.ipynb")), server.labs / COPY)
    shutil.rmtree(server.progress, ignore_errors=True)
    with opened(browser, server, COPY) as page:
        yield page


def choose(form: Locator, place: int) -> None:
    """Mark an option of the first question of the quiz."""
    form.locator(".course-question").first.locator("input[type=radio]").nth(place).click()


def predict_and_answer(lab: LabPage) -> Locator:
    """Commit to the second option of the first prediction, answer the first quiz question wrongly; return the quiz."""
    lab.run_cell(SETUP)
    form = lab.run_cell(PREDICTION)
    form.locator("input[type=radio]").nth(1).click()
    form.get_by_role("button", name="Commit").click()
    expect(form).to_contain_text("Stored: b.")
    quiz = lab.run_cell(QUIZ)
    choose(quiz, WRONG)
    expect(quiz).to_contain_text(QUESTION.explanations[WRONG])
    return quiz


def test_feedback_has_a_mark_and_a_colour_and_stands_with_its_own_question(lab: LabPage) -> None:
    quiz = predict_and_answer(lab)
    first, second = quiz.locator(".course-question").nth(0), quiz.locator(".course-question").nth(1)
    said = first.locator(".course-wrong")
    expect(said).to_have_text(re.compile(r"^✗ Not quite\. "))
    wrong = said.evaluate("(e) => getComputedStyle(e).borderLeftColor")
    below = said.bounding_box()["y"] > first.locator("input[type=radio]").last.bounding_box()["y"]
    assert below and said.bounding_box()["y"] < second.bounding_box()["y"], "it is below its options, above the next"
    expect(second.locator(".course-said")).to_have_count(0)
    choose(quiz, QUESTION.right)
    said = first.locator(".course-right")
    expect(said).to_have_text(re.compile(r"^✓ Right\. "))
    assert said.evaluate("(e) => getComputedStyle(e).borderLeftColor") != wrong
    assert lab.faults() == lab.complaints == []


def test_restarted_in_the_middle(lab: LabPage) -> None:
    """Dead forms say what to run and show nothing stale; what they say is enough to go on."""
    quiz = predict_and_answer(lab)
    lab.restart_kernel()
    for form in lab.page.locator(".course-form").all():
        expect(form.locator(".course-dead")).to_contain_text(DEAD)
        for said in form.locator(".course-said").all():
            expect(said).to_be_hidden()
    lab.cell(lab.find(QUIZ)).locator(".cm-content").click()
    lab.page.locator(".jp-Notebook").evaluate("(notebook) => courseProbe.watch(notebook)")
    lab.menu("Run", "Run All Above Selected Cell")
    lab._ran(minutes=3)
    quiz = lab.run_cell(QUIZ)
    expect(quiz.locator(".course-dead")).to_be_hidden()
    expect(quiz.locator(".course-question").first.locator(".course-wrong")).to_contain_text("Not quite.")
    assert lab.faults() == [], "running the quiz alone would have met a NameError"


def test_saved_closed_and_opened_again(lab: LabPage) -> None:
    """Without its kernel the lab shows stored texts and one line; after Run All everything is where it was."""
    predict_and_answer(lab)
    lab.menu("File", "Save Notebook")
    lab.page.wait_for_timeout(1_500)  # the file is written in the background, and nothing on the page says when
    lab.server.stop_kernels()
    lab.open(lab.address)
    page = lab.page.locator(".jp-Notebook")
    expect(page).to_contain_text("Run > Run All Cells brings the sliders")
    expect(page).not_to_contain_text("Error displaying widget")
    expect(lab.page.locator(".course-form, .course-said")).to_have_count(0)
    lab.run_all()
    form = lab.cell(lab.find(PREDICTION))
    expect(form).to_contain_text("Stored: b.")
    first = lab.cell(lab.find(QUIZ)).locator(".course-question").first
    expect(first.locator(".course-wrong")).to_contain_text(QUESTION.explanations[WRONG])
    assert first.locator("input[type=radio]").nth(WRONG).is_checked()
    assert lab.faults() == []


def test_an_answer_cell_that_raises_is_not_graded(lab: LabPage) -> None:
    check = lab.find(CHECK)
    lab.run_cell(SETUP)
    lab.type_at(check - 1, "answer = None", *SAME_LINE, text=f"answer = {WASTE.solution}")
    lab.run_cell(check - 1)
    expect(lab.run_cell(check)).to_contain_text(f"{WASTE.title}: right.")
    lab.type_at(check - 1, f"answer = {WASTE.solution}", *SAME_LINE, text="answer = 1 / 0")
    expect(lab.run_cell(check - 1)).to_contain_text("ZeroDivisionError")
    graded = lab.run_cell(check)
    expect(graded).to_contain_text(f"{WASTE.title}: not graded.")
    expect(graded).to_contain_text("The cell that sets answer stopped with ZeroDivisionError: division by zero.")


def test_three_wrong_answers_and_the_solution(lab: LabPage) -> None:
    check, before = lab.find(CHECK), "answer = None"
    lab.run_cell(SETUP)
    for tries, wrong in enumerate((7, 8, 9), start=1):
        lab.type_at(check - 1, before, *SAME_LINE, text=f"answer = {wrong}")
        before = f"answer = {wrong}"
        lab.run_cell(check - 1)
        graded = lab.run_cell(check)
        expect(graded).to_contain_text("too low")
        told = expect(graded.get_by_text("More plainly: "))
        told.to_be_visible() if tries == 3 else told.to_have_count(0)
    expect(graded).to_contain_text(WASTE.plain)
    lab.type_at(check, 'lab.check("waste", answer)', *SAME_LINE, text='lab.solution("waste")')
    expect(lab.run_cell(check)).to_contain_text(f"{WASTE.title}: the solution.")
    assert lab.faults() == lab.complaints == []
