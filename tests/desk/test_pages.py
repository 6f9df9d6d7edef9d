"""Start page, glossary and solutions: refreshed in the learner's folder, and never in the place of a learner's file."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from course.desk import pages, start_page
from course.desk.catalogue import CORE, ELECTIVES, Entry, Item, catalogue, in_order
from course.desk.copies import WorkspaceError
from course.exercises.progress import Progress
from tests.helpers.places import ROOT

NAME = "03_littles_law.ipynb"


@pytest.fixture(autouse=True)
def progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Progress:
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path / "progress"))
    return Progress()


@pytest.fixture
def labs(tmp_path: Path) -> Path:
    """Two labs with solutions beside them."""
    for folder in ("labs", "solutions"):
        (tmp_path / folder).mkdir()
        for name in (NAME, "04_static_dynamic_continuous.ipynb"):
            (tmp_path / folder / name).write_text(f"{folder} {name}")
    (tmp_path / "mine").mkdir()
    return tmp_path / "labs"


def tried(progress: Progress, done: bool, lab: str = "03", name: str = "little") -> None:
    progress.change(lab, "exercises", name, lambda _: {"tries": 1, "done": done})


def test_the_page_lists_the_labs_that_exist_in_the_order_of_the_paths(root: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    start, remarks = pages.write_pages(root / "labs", tmp_path / "mine")
    text = start.read_text()
    assert start.name == "START.md" and remarks == []
    linked = [number for number in re.findall(r"^\| (\d\d) \| \[", text, re.MULTILINE)]
    there = {path.name[:2] for path in (root / "labs").glob("*.ipynb")}
    assert linked == [number for number in (*CORE, *ELECTIVES) if number in there]
    for number in there:
        assert f"| {catalogue()[number].minutes} | not started | after your first answer |" in text
    (tmp_path / "mine" / "x").write_text("")
    for path in re.findall(r"\]\(([^)]+)\)", text):
        assert path == "glossary.md" or (root / "labs" / path).is_file()
    assert (tmp_path / "mine" / "glossary.md").read_text().startswith((root / "docs/glossary.md").read_text().rstrip())


def test_the_paths_hold_every_lab_once() -> None:
    assert sorted(CORE + ELECTIVES) == [f"{number:02d}" for number in range(19)]
    assert in_order({"08", "07", "99", "05"}) == (["08", "07"], ["05", "99"])


def test_minutes_are_added_up_and_electives_and_deeper_notebooks_have_their_place(progress: Progress) -> None:
    known = {
        number: Entry(number, f"Title {number}", minutes) for number, minutes in (("04", 50), ("03", 45), ("05", 30))
    }
    links = start_page.Links(("03_a.ipynb", "03b_a.ipynb", "04_b.ipynb", "05_c.ipynb", "77_d.ipynb"), "g.md", {})
    core, electives = start_page.text(links, known, progress).split("Electives, in any order:")
    assert core.index("Title 04") < core.index("Title 03") and "| | | 95 | | |" in core
    assert "[Title 03](03_a.ipynb) ([deeper](03b_a.ipynb), optional)" in core
    assert "| | | 30 | | |" in electives and "[77_d.ipynb](77_d.ipynb)" in electives


def test_progress_and_what_comes_next(progress: Progress) -> None:
    known = {
        "04": Entry("04", "Batches", 50, exercises=(Item("a"),)),
        "03": Entry("03", "Queues", 45, predictions=(Item("p"),), tasks=(Item("t"),), exercises=(Item("little"),)),
    }
    links = start_page.Links(("03_a.ipynb", "04_b.ipynb"), "g.md", {})
    assert "Next: [lab 04, Batches](04_b.ipynb)." in start_page.text(links, known, progress)
    tried(progress, True, "04", "a")
    assert "Next: [lab 03, Queues](03_a.ipynb)." in start_page.text(links, known, progress)
    assert "| not started |" in start_page.text(links, known, progress)
    tried(progress, False)
    assert "| started |" in start_page.text(links, known, progress)
    progress.change("03", "predictions", "p", lambda _: [{"answer": "x"}])
    text = start_page.text(links, known, progress)
    assert "Go on with: [lab 03, Queues](03_a.ipynb)." in text
    assert "| 1 of 1 predictions, 0 of 1 tasks, 0 of 1 exercises |" in text
    progress.change("03", "exercises", "little", lambda _: {"done": True})
    if "tasks" in progress.lab("03"):
        progress.change("03", "tasks", "t", lambda _: {"state": "shown"})
        assert "You have done every lab of the core path." in start_page.text(links, known, progress)


def test_the_primer_comes_first_and_its_test_lets_one_skip_it(progress: Progress) -> None:
    known = {
        "00": Entry("00", "Primer", 36, predictions=(Item("p"),), quiz=(Item("q"), Item("r"))),
        "04": Entry("04", "Batches", 50, exercises=(Item("a"),)),
    }
    links = start_page.Links(("00_p.ipynb", "04_b.ipynb"), "g.md", {})

    def text() -> str:
        return start_page.text(links, known, progress)

    assert "[Lab 00, Primer](00_p.ipynb), is the primer" in text()
    assert "Next: [lab 00, Primer](00_p.ipynb)." in text()
    progress.change("00", "quiz", "q", lambda _: [{"answer": "x"}])
    assert "Go on with: [lab 00, Primer](00_p.ipynb)." in text(), "the test is not done yet"
    progress.change("00", "quiz", "r", lambda _: [{"answer": "x"}])
    assert "Next: [lab 04, Batches](04_b.ipynb)." in text()
    progress.change("00", "predictions", "p", lambda _: [{"answer": "x"}])
    assert "Next: [lab 04, Batches](04_b.ipynb)." in text(), "all of it is done"
    more = known | {"00": Entry("00", "Primer", 36, predictions=(Item("p"), Item("o")), quiz=(Item("q"), Item("r")))}
    assert "Go on with: [lab 00, Primer](00_p.ipynb)." in start_page.text(links, more, progress), "part 1 was begun"
    without = start_page.Links(("04_b.ipynb",), "g.md", {})
    assert "is the primer" not in start_page.text(without, known, progress)


def test_it_is_written_again_and_only_when_something_has_changed(
    labs: Path, tmp_path: Path, progress: Progress
) -> None:
    mine = tmp_path / "mine"
    start, _ = pages.write_pages(labs, mine)
    before = start.read_text(), os.stat(start).st_ino
    assert pages.write_pages(labs, mine)[0] == start and os.stat(start).st_ino == before[1]
    tried(progress, True)
    assert pages.write_pages(labs, mine)[0] == start and start.read_text() != before[0]


@pytest.mark.parametrize("name", ["START.md", "glossary.md"])
@pytest.mark.parametrize("content", ["my notes", "", None])
def test_a_page_of_the_learners_is_left_alone(labs: Path, tmp_path: Path, name: str, content: str | None) -> None:
    """content: what was there before the course; None: the course's page, with a line that the learner added."""
    mine = tmp_path / "mine"
    if content is None:
        pages.write_pages(labs, mine)
        content = "My note.\n" + (mine / name).read_text()
    (mine / name).write_text(content)
    for _ in range(2):
        start, remarks = pages.write_pages(labs, mine)
        assert (mine / name).read_text() == content and remarks == []
    other = mine / name.replace(".md", "-2.md")
    assert pages.is_ours(other) and not (mine / name.replace(".md", "-3.md")).exists()
    assert start == (other if name == "START.md" else mine / "START.md")
    assert f"](glossary{'-2' if name == 'glossary.md' else ''}.md)" in start.read_text()


def test_a_page_from_an_older_version_of_the_course_is_replaced(labs: Path, tmp_path: Path) -> None:
    start = tmp_path / "mine" / "START.md"
    start.write_bytes(pages.sealed("what an older version said"))
    assert pages.write_pages(labs, tmp_path / "mine")[0] == start
    assert "The labs" in start.read_text()


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("elsewhere.md")], ids=["folder", "link"])
def test_what_is_no_file_is_left_alone(labs: Path, tmp_path: Path, make) -> None:
    make(tmp_path / "mine" / "START.md")
    assert pages.write_pages(labs, tmp_path / "mine")[0].name == "START-2.md"
    assert os.path.lexists(tmp_path / "mine" / "START.md") and not (tmp_path / "mine" / "elsewhere.md").exists()


# Solutions

SOLVED = NAME.replace(".ipynb", "_solutions.ipynb")
"""What a learner's copy of the solutions is called, so that its tab is not that of their lab."""


@pytest.mark.parametrize("right", [True, False])
def test_solutions_open_once_an_answer_was_checked(labs: Path, tmp_path: Path, progress: Progress, right: bool) -> None:
    mine = tmp_path / "mine"
    progress.change("03", "predictions", "p", lambda _: [{"answer": "x"}])
    assert "](solutions" not in pages.write_pages(labs, mine)[0].read_text() and not (mine / "solutions").exists()
    tried(progress, right)
    text = pages.write_pages(labs, mine)[0].read_text()
    assert f"[open](solutions/{SOLVED})" in text and text.count("after your first answer") == 1
    assert [path.name for path in (mine / "solutions").iterdir()] == [SOLVED]
    assert (mine / "solutions" / SOLVED).read_text() == f"solutions {NAME}"


def test_an_open_solution_follows_the_course_unless_it_was_changed(
    labs: Path, tmp_path: Path, progress: Progress
) -> None:
    mine = tmp_path / "mine"
    tried(progress, True)
    pages.write_pages(labs, mine)
    (tmp_path / "solutions" / NAME).write_text("corrected")
    pages.write_pages(labs, mine)
    assert (mine / "solutions" / SOLVED).read_text() == "corrected"
    (mine / "solutions" / SOLVED).write_text("my remarks")
    (tmp_path / "solutions" / NAME).write_text("corrected twice")
    text = pages.write_pages(labs, mine)[0].read_text()
    assert (mine / "solutions" / SOLVED).read_text() == "my remarks"
    assert f"[open](solutions/{SOLVED})" in text and len(list((mine / "solutions").iterdir())) == 1


def test_a_file_of_that_name_from_before_is_not_taken_for_the_solution(
    labs: Path, tmp_path: Path, progress: Progress
) -> None:
    mine = tmp_path / "mine"
    (mine / "solutions").mkdir()
    (mine / "solutions" / SOLVED).write_text("my own attempt")
    tried(progress, True)
    text = pages.write_pages(labs, mine)[0].read_text()
    assert (mine / "solutions" / SOLVED).read_text() == "my own attempt"
    other = f"solutions/{SOLVED.replace('.ipynb', '-2.ipynb')}"
    assert f"[open]({other})" in text and (mine / other).read_text() == f"solutions {NAME}"


def test_solutions_that_are_missing_or_blocked_stop_nothing(labs: Path, tmp_path: Path, progress: Progress) -> None:
    mine = tmp_path / "mine"
    tried(progress, True)
    tried(progress, True, "04", "waste")
    (tmp_path / "solutions" / NAME).unlink()
    (mine / "solutions").write_text("a file of mine")
    start, remarks = pages.write_pages(labs, mine)
    assert start.is_file() and (mine / "solutions").read_text() == "a file of mine"
    assert len(remarks) == 2 and f"The solutions of {NAME} cannot be copied: No such file" in remarks[0]


def test_a_folder_that_cannot_be_written_is_a_sentence(labs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="Your copies of the labs cannot be kept"):
        pages.write_pages(labs, tmp_path / "file")


def test_every_name_taken_is_a_sentence(labs: Path, tmp_path: Path) -> None:
    for number in ("", *(f"-{number}" for number in range(2, 100))):
        (tmp_path / "mine" / f"START{number}.md").write_text("mine")
    with pytest.raises(WorkspaceError, match="every name for this page is taken: delete some of the old pages"):
        pages.write_pages(labs, tmp_path / "mine")


def test_a_course_that_came_without_solutions_says_so_and_complains_of_nothing(
    labs: Path, tmp_path: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what `make bundle` makes for learners: there is no such folder, beside the labs or with the course."""
    for path in (tmp_path / "solutions").iterdir():
        path.unlink()
    (tmp_path / "solutions").rmdir()
    monkeypatch.setattr(
        pages, "part_of_the_course", lambda name: ROOT / name if name != "solutions" else tmp_path / name
    )
    tried(progress, True)
    start, remarks = pages.write_pages(labs, tmp_path / "mine")
    text = start.read_text()
    assert remarks == [] and text.count("not in this copy") == 2 and "came without solutions" in text
    assert "after your first answer" not in text and not (tmp_path / "mine" / "solutions").exists()
