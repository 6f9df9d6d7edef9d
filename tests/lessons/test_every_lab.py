"""Every exercise of every lab in three parts, and the committed notebooks: solutions say right, labs not attempted."""

from __future__ import annotations

import re

import nbformat
import pytest

from course.exercises.compare import as_number
from course.exercises.curve import Drawing
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge, overlaps
from course.exercises.spec import Prediction
from course.lessons import available, load

LABS = {number: load(number) for number in available()}
EXERCISES = [pytest.param(e, id=f"{number}-{e.id}") for number, lab in LABS.items() for e in lab.exercises]
USE = re.compile(r"""lab\.(check|predict|recap)\(\s*["'](\w+)["']""")
# What a notebook shows of the lab's questions; with empty progress it is the same on every machine.
SAME_EVERYWHERE = re.compile(r"\bLab\(|\blab\.(check|predict|recap|quiz)\(|\breports\.check\(")
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


class NoSchedule:
    """What a learner has who has written only the head of the method."""

    max_num_seqs = 4
    max_num_batched_tokens = 2048

    def schedule(self, state): ...


def stubs(exercise):
    """Every form in which an exercise may be found untouched."""
    yield from (None, ...)
    if exercise.probes is not None:
        yield lambda *args: None
    elif exercise.evaluate is not None:
        if isinstance(exercise.solution, dict):
            yield dict.fromkeys(exercise.solution)
        elif callable(exercise.solution):
            yield lambda *args: None
        elif hasattr(exercise.solution, "schedule"):
            yield NoSchedule()


def test_labs_are_found():
    assert LABS, "course/lessons has no labNN/"


@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_untouched_stub_is_not_attempted(exercise):
    for stub in stubs(exercise):
        assert judge(exercise, stub).status == NOT_ATTEMPTED


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_solution_is_right(exercise):
    assert judge(exercise, exercise.solution).status == RIGHT


def rounded(value, digit):
    """What a function or a value gives, its numbers rounded to a digit such as 0.01."""
    if callable(value):
        return lambda *arguments: rounded(value(*arguments), digit)
    if isinstance(value, list | tuple):
        return [rounded(part, digit) for part in value]
    return round(value / digit) * digit


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_right_answer_may_be_rounded_as_the_text_rounds(exercise):
    """To the last digit that the text shows, where that is given, and else to three digits of a value with decimals."""
    for one in filter(None, (exercise, exercise.twin)):
        number = as_number(one.solution)
        if one.shown:
            assert judge(one, rounded(one.solution, one.shown)).status == RIGHT
            assert judge(one, rounded(one.solution, one.shown / 10)).status == RIGHT
        elif number is not None and number != int(number):
            assert judge(one, float(f"{number:.3g}")).status == RIGHT


@pytest.mark.parametrize(
    ("number", "id", "answer"),
    [("00", "answer", 0.11), ("02", "cost", 0.08), ("02", "knee", 44), ("02", "knee", 43), ("08", "residents", 21),
     ("08", "residents", 22)],
)  # fmt: skip
def test_roundings_that_learners_typed(number, id, answer):
    exercise = next(exercise for exercise in LABS[number].exercises if exercise.id == id)
    assert judge(exercise, answer).status == RIGHT


@pytest.mark.parametrize("exercise", EXERCISES)
def test_at_least_two_mistakes_get_the_hint_meant_for_them(exercise):
    assert len(exercise.mistakes) >= 2
    for one in filter(None, (exercise, exercise.twin)):
        assert overlaps(one) is None
    for position, mistake in enumerate(exercise.mistakes):
        verdict = judge(exercise, mistake.answer)
        assert (verdict.status, verdict.mistake, verdict.hint) == (WRONG, position, mistake.hint)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_no_hint_contains_the_answer(exercise):
    answer = as_number(exercise.solution)
    if answer is None:
        answer = exercise.solution if isinstance(exercise.solution, str) else None
    for hint in [*(mistake.hint for mistake in exercise.mistakes), exercise.hint, exercise.plain]:
        if isinstance(answer, str):
            assert answer.casefold() not in hint.casefold()
        elif answer is not None:
            numbers = [float(text.replace(",", "")) for text in NUMBER.findall(hint)]
            # The tolerance of the exercise decides what would pass as the answer.
            given = [n for n in numbers if abs(n - answer) <= max(exercise.rtol * abs(answer), 1e-9)]
            assert not given, f"the hint {hint!r} gives the answer"


@pytest.mark.parametrize("number", LABS)
def test_words(number):
    lab = LABS[number]
    assert lab.number == number and lab.minutes is None, "minutes are counted, not typed in"
    assert lab.predictions and lab.quiz and 2 <= len(lab.exercises) <= 4
    texts = [lab.title, *(p.question + p.why for p in lab.predictions)]
    chosen, drawn = ([p for p in lab.predictions if isinstance(p, kind)] for kind in (Prediction, Drawing))
    texts += ["".join(p.options + p.answers) for p in chosen] + ["".join(p.answers.values()) for p in drawn]
    texts += [e.title + e.hint + e.plain + "".join(m.hint for m in e.mistakes) for e in lab.exercises]
    texts += [q.question + "".join(q.options) + "".join(q.explanations) for q in lab.quiz]
    for text in texts:
        assert "!" not in text and "simply" not in text.casefold()


def notebooks(root, folder, number):
    paths = sorted((root / folder).glob(f"{number}_*.ipynb"))
    assert paths, f"{folder}/{number}_*.ipynb is missing: run `make notebooks NN={number}`"
    return [nbformat.read(path, as_version=4) for path in paths]


@pytest.mark.parametrize("number", LABS)
@pytest.mark.parametrize("folder", ["solutions", "labs"])
def test_a_notebook_uses_every_part_once(root, folder, number):
    lab = LABS[number]
    for notebook in notebooks(root, folder, number):
        uses = [use for cell in notebook.cells if cell.cell_type == "code" for use in USE.findall(cell.source)]
        by_kind = {kind: [name for k, name in uses if k == kind] for kind in ("check", "predict", "recap")}
        assert by_kind["check"] == [exercise.id for exercise in lab.exercises]
        assert by_kind["predict"] == by_kind["recap"] == [prediction.id for prediction in lab.predictions]
        assert any("lab.quiz()" in cell.source for cell in notebook.cells)


@pytest.mark.parametrize("number", LABS)
@pytest.mark.parametrize(("folder", "status"), [("solutions", RIGHT), ("labs", NOT_ATTEMPTED)])
def test_the_committed_checks_say(root, folder, number, status):
    for notebook in notebooks(root, folder, number):
        for cell in notebook.cells:
            if cell.cell_type == "code" and "lab.check(" in cell.source:
                shown = "".join(o.get("data", {}).get("text/plain", "") for o in cell.outputs)
                assert shown.splitlines()[0].endswith(f": {status}."), f"{cell.source}\n{shown}"


@pytest.mark.parametrize("number", LABS)
@pytest.mark.parametrize("folder", ["solutions", "labs"])
def test_what_a_lab_asks_is_compared(root, folder, number):
    """Only what differs from machine to machine is left out: with the learner's part, a wrong key would pass."""
    for notebook in notebooks(root, folder, number):
        for cell in notebook.cells:
            if "nbval-ignore-output" in cell.metadata.get("tags", []):
                assert not SAME_EVERYWHERE.search(cell.source), f"no need for the tag:\n{cell.source}"
