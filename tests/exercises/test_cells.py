"""What a failed cell leaves behind is not graded."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course.exercises import Lab
from course.exercises.cells import Cells, names_checked, names_set, watched
from course.exercises.progress import Progress
from tests.helpers.toy_lab import TOY


def new_shell() -> InteractiveShell:
    """A shell that writes no history anywhere."""
    return InteractiveShell(config=Config(HistoryManager={"enabled": False}))


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """An IPython shell with the toy lab in it, as a notebook's kernel has one; `run` returns what a cell shows."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell = new_shell()
    monkeypatch.setattr("course.exercises.lab.get_ipython", lambda: shell)
    shell.user_ns["lab"] = Lab(TOY, Progress(tmp_path), show=False)

    def run(cell: str):
        return shell.run_cell(cell, store_history=True).result

    return run


CHECK = 'lab.check("little", answer)'


def test_a_value_of_the_run_before_is_not_graded(shell):
    shell("answer = 12")
    assert shell(CHECK).status == "right"
    shell("answer = 24\nanswer = 24 / 0")
    card = shell(CHECK)
    assert card.heading == "Exercise 1 of 3, Little's law: not graded."
    assert card.lines[0] == "The cell that sets answer stopped with ZeroDivisionError: division by zero."


def test_cells_in_between_do_not_hide_the_failure(shell):
    shell("answer = 3")
    shell("answer = nothing")
    shell("other = 5")
    assert "not graded" in shell(CHECK).heading
    assert "NameError" in shell(CHECK).lines[0], "checking again does not clear it"


def test_nothing_is_stored_for_it(shell, tmp_path):
    shell("answer = 3")
    shell("answer = 1 / 0")
    shell(CHECK)
    assert Progress(tmp_path).lab("98")["exercises"] == {}


def test_a_repaired_cell_is_graded(shell):
    shell("answer = 1 / 0")
    shell("answer = 12")
    assert shell(CHECK).status == "right"


@pytest.mark.parametrize("broken", ["answer = nothing", "answer = (12"])
def test_a_repaired_cell_that_checks_itself_is_graded_at_once(shell, broken):
    shell(f"{broken}\n{CHECK}")
    assert shell(f"answer = 12\n{CHECK}").status == "right"
    shell(f"{broken}\n{CHECK}")
    assert "not graded" in shell(f"card = {CHECK}\nanswer = 12\ncard").heading, "set below, it is still the old one"


def test_a_cell_that_is_no_python_counts_as_failed(shell):
    shell("answer = 12")
    shell("answer = (12")
    assert "SyntaxError" in shell(CHECK).lines[0]


def test_a_function_that_could_not_be_defined(shell):
    shell("def area(width, height):\n    return width * height")
    shell("def area(width, height=1 / 0):\n    return width")
    assert "not graded" in shell('lab.check("area", area)').heading


def test_another_exercise_is_graded_all_the_same(shell):
    shell("answer = 1 / 0")
    shell("def area(width, height):\n    return width * height")
    assert shell('lab.check("area", area)').status == "right"


def test_a_literal_has_no_cell_that_failed(shell):
    shell("answer = 1 / 0")
    assert shell('lab.check("little", 12)').status == "right"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a = 1", {"a"}),
        ("a, (b, *c) = 1, (2, 3)", {"a", "b", "c"}),
        ("def f():\n    inner = 1", {"f"}),
        ("class P:\n    x = 1", {"P"}),
        ("for i in x:\n    total += i", {"i", "total"}),
        ("with open(x) as f:\n    pass", {"f"}),
        ("answer = (", {"answer"}),
        ("def f(:\n  pass\nclass Q(:\nb == 3\nc: int = (", {"f", "Q", "c"}),
        ("x == 1", set()),
        ("", set()),
    ],
)
def test_names_that_a_cell_sets(source, names):
    assert names_set(source) == names


def test_names_that_a_check_reads():
    assert names_checked('lab.check("little", rate * W)', "little") == ["rate", "W"]
    assert names_checked('lab.check(id="little", answer=mine)', "little") == ["mine"]
    assert names_checked('lab.check("area", f)', "little") == [] == names_checked("lab.check(", "little")


def test_a_shell_is_watched_once_and_none_is_no_trouble():
    shell = new_shell()
    assert watched(shell) is watched(shell)
    assert isinstance(watched(None), Cells) and watched(None).failure_of("little") is None
