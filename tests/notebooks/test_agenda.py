"""Agendas add up: clock times, minutes and what was counted, read again from the page; every wrong answer is listed."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from course import lessons
from course.lessons import available, load
from course.notebooks import agenda, proof
from tests.helpers.places import ROOT

FITS = {
    "90 minutes, one lab": 90,
    "Half a day, three labs": 240,
    "Two days, the first": 480,
    "Two days, the second": 480,
}
ROW = re.compile(r"^\| (\d\d):(\d\d) \| (.*?) \| (\d*) \|$", re.MULTILINE)


def page(name: str) -> list[tuple[int, str, int]]:
    """The rows of one agenda as the page has them: minutes of the day, what, minutes."""
    text = (ROOT / "docs/instructor/agendas.md").read_text()
    part = text.split(f"## {name}\n")[1].split("\n## ")[0]
    return [(60 * int(h) + int(m), what, int(took or 0)) for h, m, what, took in ROW.findall(part)]


@pytest.mark.parametrize("name", FITS)
def test_the_clock_goes_on_by_the_minutes_and_ends_in_time(name: str) -> None:
    rows = page(name)
    for (start, _, took), (after, _, _) in pairwise(rows):
        assert start + took == after
    assert rows[-1][1] == "end" and 0 < rows[-1][0] - rows[0][0] <= FITS[name]


@pytest.mark.parametrize("name", FITS)
def test_nothing_gets_less_than_was_counted(name: str) -> None:
    for _, what, took in page(name):
        match = re.match(r"Lab (\d\d)(?:: (.*)|, .*)", what)
        if match:
            counted = json.loads((ROOT / f"course/lessons/lab{match[1]}/counted.json").read_text())["core"]["sections"]
            least = counted[match[2]] if match[2] else sum(counted.values())
            assert least <= took <= 1.3 * least + 2, what


CHECKPOINT = re.compile(r"^- by minute (\d+) \((\d\d):(\d\d)\), Lab (\d\d): (.+?): (.+)$", re.MULTILINE)
CUT = re.compile(r"^(\d)\. Lab (\d\d): (.+), (\d+) minutes \((\d+) so far\)$", re.MULTILINE)


def sections_of(lab: str) -> dict[str, float]:
    return json.loads((ROOT / f"course/lessons/lab{lab}/counted.json").read_text())["core"]["sections"]


@pytest.mark.parametrize("name", FITS)
def test_checkpoints_stand_where_the_minutes_before_them_add_up(name: str) -> None:
    """Added up again from the rows of the page and the counted minutes of the sections."""
    rows = page(name)
    text = (ROOT / "docs/instructor/agendas.md").read_text().split(f"## {name}\n")[1].split("\n## ")[0]
    found = [(int(at), 60 * int(h) + int(m), lab, section) for at, h, m, lab, section, _ in CHECKPOINT.findall(text)]
    asked = [what for _, what, _ in rows if what.startswith("Lab ")]
    assert {lab for *_, lab, _ in found} == {what[4:6] for what in asked} and len(found) >= 8
    for at, clock, lab, section in found:
        assert clock == rows[0][0] + at
        begins, what, took = next(
            row for row in rows if row[1] in (f"Lab {lab}: {section}",) or row[1].startswith(f"Lab {lab}, ")
        )
        if what.startswith(f"Lab {lab}: "):
            assert clock == begins + took
            continue
        (notebook,) = (ROOT / "labs").glob(f"{lab}_*.ipynb")
        headings = re.findall(r'"## ([^"\\]+)', notebook.read_text())  # in the order of the lab itself
        names = [one for one in headings if one in sections_of(lab)]
        assert len(names) == len(set(names)) == len(sections_of(lab))
        counted = sum(sections_of(lab)[one] for one in names[: names.index(section) + 1])
        assert counted <= clock - begins <= 1.15 * counted + 1 and clock - begins <= took


@pytest.mark.parametrize("name", FITS)
def test_what_is_cut_first_is_in_the_agenda_and_saves_what_it_says(name: str) -> None:
    text = (ROOT / "docs/instructor/agendas.md").read_text().split(f"## {name}\n")[1].split("\n## ")[0]
    cuts, so_far = CUT.findall(text), 0
    assert len(cuts) >= 3 and [int(place) for place, *_ in cuts] == list(range(1, len(cuts) + 1))
    rows = [what for _, what, _ in page(name)]
    for _, lab, section, took, saved in cuts:
        assert f"Lab {lab}: {section}" in rows or any(row.startswith(f"Lab {lab}, ") for row in rows)
        assert sections_of(lab)[section] <= int(took) <= 1.15 * sections_of(lab)[section] + 1
        so_far += int(took)
        assert so_far == int(saved)


def test_every_agenda_is_tested_and_the_pages_are_new() -> None:
    assert set(agenda.plan()["agendas"]) == set(FITS)
    assert (ROOT / "docs/instructor/agendas.md").read_text() == agenda.agendas()
    assert (ROOT / "docs/instructor/wrong-answers.md").read_text() == agenda.wrong_answers()


def test_two_forms_of_twelve_different_items_with_the_keys_of_the_labs() -> None:
    text = (ROOT / "docs/instructor/forms.md").read_text()
    assert text == proof.page()
    asked = {form: [question.question for _, question in proof.items(form)] for form in proof.FORMS}
    assert len(asked["A"]) == len(asked["B"]) == 12 and not set(asked["A"]) & set(asked["B"])
    for form in proof.FORMS:
        printed = re.search(rf"^\| {form} \| (.*) \|$", text, re.MULTILINE)[1].split(" | ")
        for (number, question), letter in zip(proof.items(form), printed, strict=True):
            said = lessons.find(number).named("facts.keys")()[question.id]
            right = question.options["abcdefghij".index(letter)]
            assert said["abcdefghij".index(letter)] and sum(said) == 1 if isinstance(said, tuple) else said in right
        assert max(printed.count(letter) for letter in "abc") <= 7  # no letter is worth guessing


@pytest.mark.parametrize("number", available())
def test_every_known_mistake_is_listed_with_its_hint(number: str) -> None:
    text = (ROOT / "docs/instructor/wrong-answers.md").read_text()
    for exercise in load(number).exercises:
        assert all(f"`{one.name}`: {' '.join(one.hint.split())}" in text for one in exercise.mistakes)
        names = [one.name for one in exercise.mistakes]
        assert all(names) and len(set(names)) == len(names)  # else a class could not tell them apart
