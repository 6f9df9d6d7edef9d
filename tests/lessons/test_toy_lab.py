"""A whole toy lab in the form of CONTRIBUTING.md: two explorers, eight tasks, three exercises, ticket and quiz."""

from __future__ import annotations

import pytest

from course.base import answers
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge, overlaps
from course.exercises.lesson import Lesson
from course.explore.tasks import Find, Read
from course.notebooks import check, source
from tests.data import lab97
from tests.helpers.places import SOLUTIONS

LESSON = Lesson("tests.data.lab97")
NOTEBOOK = SOLUTIONS.parent / "tests" / "data" / "97_small_engine.py"


def test_it_is_small() -> None:
    files = [NOTEBOOK, *(path for path in LESSON.folder.iterdir() if path.suffix in (".py", ".yaml", ".json"))]
    assert sum(1 for file in files for line in file.read_text().splitlines() if line.strip()) <= 500


def test_its_notebook_has_every_part() -> None:
    text, spec = NOTEBOOK.read_text(), LESSON.spec
    assert check.source_faults(text, "97", LESSON.facts) == []
    lab = source.notebooks(text, "97", LESSON.facts).lab
    code = "\n".join(cell.source for cell in lab.cells if cell.cell_type == "code")
    for kind, items in (("predict", spec.predictions), ("recap", spec.predictions), ("check", spec.exercises)):
        assert all(f'lab.{kind}("{item.id}"' in code for item in items)
    assert all(f"lab97.{name}()" in code for name in spec.by_explorer) and code.count("# Your code here") == 3
    assert any("brings 444 tokens/s" in cell.source for cell in lab.cells)


@pytest.mark.parametrize("name", LESSON.spec.by_explorer)
def test_the_tasks_of_an_explorer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = getattr(lab97, name)()
    assert len(shown.tasks) == 4
    for task in shown.tasks:
        settings = shown.settings_of(task)
        result = shown.compute(**settings)
        if isinstance(task, Find):
            assert task.reached(settings, result) and not task.reached(shown.defaults, shown.default_result())
        elif isinstance(task, Read):
            assert task.where is None or task.where(settings, result)
        assert "{" not in task.said(settings, result)
        assert task.claim is None or task.claim(settings, result)
    assert "Answer: " not in shown.text()
    monkeypatch.setenv(answers.VARIABLE, "1")
    assert shown.text().count("Answer: ") == 4


@pytest.mark.parametrize("exercise", LESSON.spec.exercises, ids=lambda exercise: exercise.id)
def test_its_exercises(exercise) -> None:
    for one in (exercise, exercise.twin):
        assert judge(one, None).status == NOT_ATTEMPTED and judge(one, one.solution).status == RIGHT
        assert overlaps(one) is None
        for place, mistake in enumerate(one.mistakes):
            verdict = judge(one, mistake.answer)
            assert (verdict.status, verdict.mistake) == (WRONG, place)
