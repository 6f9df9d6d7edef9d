"""docs/playbook.md: its labs are there, and its commands have the options that they name."""

import re
import shlex

import pytest
import typer

from course.cli import app
from course.desk.catalogue import CORE, ELECTIVES


@pytest.fixture(scope="module")
def text(root):
    return (root / "docs" / "playbook.md").read_text(encoding="utf-8")


def rows(text, heading):
    part = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("| ")][1:]


def test_it_has_the_rows_of_the_note(text):
    counts = {name: len(rows(text, name)) for name in ("Twelve steps", "Ten checks", "Six pitfalls")}
    assert counts == {"Twelve steps": 12, "Ten checks": 10, "Six pitfalls": 6}


@pytest.mark.parametrize("heading", ["Twelve steps", "Ten checks", "Six pitfalls", "What each knob moves"])
def test_each_row_has_a_lab_and_a_command(text, heading):
    for row in rows(text, heading):
        labs = re.findall(r"\[(\d\d)\]|lab (\d\d)", row)
        assert labs and all((a or b) in (*CORE, *ELECTIVES) for a, b in labs), row
        assert "`course " in row.split("|")[-2], row


def test_linked_labs_are_there(text, root):
    links = re.findall(r"\]\(\.\./(labs/[^)]+)\)", text)
    assert links and [link for link in links if not (root / link).is_file()] == []


def test_commands_have_the_options_that_they_name(text):
    group = typer.main.get_command(app)
    for line in sorted(set(re.findall(r"`(course [^`]+)`", text))):
        name, *words = shlex.split(line)[1:]
        command = group.get_command(None, name)
        assert command is not None, line
        there = {option for each in command.params for option in each.opts}
        assert {word for word in words if word.startswith("--")} <= there, line
