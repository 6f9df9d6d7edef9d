"""`course progress` and `course class`: what thirty learners did, added up; nothing lost, nothing broken counted."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import course.lessons  # noqa: F401  # each lab registers itself
from course.cli import app
from course.exercises import Lab, capstone, class_count
from course.exercises.export import export
from course.exercises.lesson import load
from course.exercises.progress import Progress
from course.exercises.task_record import TaskRecord
from tests.helpers.odd_files import dangling, endless

NUMBERS = ("03", "04")
STAMP = "2026-11-30_12-00-00"


def call(*args: object):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def counted(*paths: Path) -> dict[str, Any]:
    result = call("class", *paths, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def handed_in(progress: Progress, path: Path) -> Path:
    path.write_text(json.dumps(export(progress, "1.0")))
    return path


def at_work(folder: Path, draw: random.Random, tally: Counter) -> Progress:
    """One learner who does some of two labs, through what the notebooks call; what was done is added to the tally."""
    progress = Progress(folder)
    for number in NUMBERS:
        lab, begun = Lab(number, progress, show=False), False
        for one in lab.spec.predictions:
            if hasattr(one, "options") and draw.random() < 0.7:
                letter = draw.choice("abc"[: len(one.options)])
                lab.predict(one.id, letter)
                tally[number, "prediction", one.id, letter], begun = (
                    tally[number, "prediction", one.id, letter] + 1,
                    True,
                )
        for task in lab.spec.tasks:
            state = draw.choice(("done", "shown", ""))
            if state:
                TaskRecord(number, progress).keep(task.id, state)
                tally[number, "task", task.id, state], begun = tally[number, "task", task.id, state] + 1, True
        for one in lab.spec.exercises[:2]:
            wrong = draw.choices(one.mistakes, k=draw.randrange(4))
            for mistake in wrong:
                lab.check(one.id, mistake.answer)
                tally[number, "wrong", one.id, mistake.name] += 1
            solved = draw.random() < 0.6
            if solved:
                lab.check(one.id, one.solution)
                tally[number, "done", one.id] += 1
                tally[number, "first", one.id] += not wrong
            elif len(wrong) == 3:
                lab.solution(one.id)
                tally[number, "shown", one.id] += 1
            elif wrong:
                tally[number, "tried", one.id] += 1
            begun = begun or solved or bool(wrong)
        for question in lab.spec.quiz:
            letter = draw.choice("abc")
            lab.quiz(**{question.id: letter})
            tally[number, "quiz", question.id, letter] += 1
            begun = True
        tally[number, "began"] += begun
    return progress


def as_tally(found: dict[str, Any]) -> Counter:
    """What `course class --json` says, in the keys of the tally."""
    tally: Counter = Counter()
    for number, lab in found["labs"].items():
        tally[number, "began"] = lab["began"]
        for id, letters in lab["predictions"].items():
            tally.update({(number, "prediction", id, letter): count for letter, count in letters.items()})
        for id, states in lab["tasks"].items():
            tally.update({(number, "task", id, state): count for state, count in states.items()})
        for id, (first, _last) in lab["quiz"].items():
            tally.update({(number, "quiz", id, letter): count for letter, count in first.items()})
        for id, exercise in lab["exercises"].items():
            tally.update({(number, "wrong", id, kind): count for kind, count in exercise["wrong"].items()})
            tally.update({(number, name, id): exercise[name] for name in ("done", "first", "shown", "tried")})
    return +tally


def test_thirty_generated_learners_add_up_to_what_they_did(tmp_path: Path) -> None:
    """Seeds 0 to 29: each did something else, and the test has kept count of it by itself."""
    tally: Counter = Counter()
    paths = []
    for seed in range(30):
        progress = at_work(tmp_path / f"{seed}", random.Random(seed), tally)
        paths.append(handed_in(progress, tmp_path / f"{seed}.json"))
    found = counted(*paths)
    assert found["learners"] == 30 and found["left_out"] == [] and as_tally(found) == +tally
    assert counted(*reversed(paths))["labs"] == found["labs"]
    text = call("class", *paths)
    exercise = load("04").exercises[0]
    kind, number = max(found["labs"]["04"]["exercises"][exercise.id]["wrong"].items(), key=lambda pair: pair[1])
    hint = next(mistake.hint for mistake in exercise.mistakes if mistake.name == kind)
    assert f"wrong {number} x {kind}: {hint}" in text.stdout and "30 learners." in text.stdout
    right = "abc"[int(load("04").quiz[0].right)]
    assert f"{right}* " in text.stdout.split(f"question {load('04').quiz[0].id}:")[1].splitlines()[0]


def test_what_goes_out_holds_nothing_that_a_learner_typed(tmp_path: Path) -> None:
    """Of a learner whose folder, answers and curves are their own, only ids, letters and numbers leave."""
    progress = Progress(tmp_path / "Ada Lovelace")
    lab = Lab("03", progress, show=False)
    lab.check(lab.spec.exercises[0].id, 31.4159)
    lab.predict(lab.spec.predictions[1].id, "b")
    progress.change("03", "predictions", "own", lambda _: [{"answer": "my own words", "at": "2026-11-30"}])
    progress.change("03", "explorers", "x", lambda _: {"note": "my own words"})
    text = json.dumps(export(progress, "1.0"))
    assert not any(said in text for said in ("Ada", "own words", "31.4", "2026", str(tmp_path), '"at"'))
    assert export(progress, "1.0")["labs"]["03"]["predictions"]["own"] == {"first": "?", "last": "?"}


def test_the_command_writes_a_new_file_and_never_over_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path / "progress"))
    Lab("04", Progress(), show=False).check("waste", 80)
    done = call("progress", "--export", tmp_path / "mine.json")
    assert done.exit_code == 0 and "1 labs, without your name" in done.stdout
    assert counted(tmp_path / "mine.json")["labs"]["04"]["exercises"]["waste"]["wrong"] == {"80": 1}
    again = call("progress", "--export", tmp_path / "mine.json")
    assert again.exit_code == 2 and "is there already: give the name of a new file" in again.stderr
    printed = json.loads(call("progress").stdout)
    assert printed["labs"] == json.loads((tmp_path / "mine.json").read_text())["labs"]


def test_a_class_of_five_loses_nothing_by_upgrades_and_resets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle: one resets a lab, one gets a newer course, one of an older course hands in, two just go on."""
    tally: Counter = Counter()
    class_ = [at_work(tmp_path / f"{seed}", random.Random(seed), tally) for seed in range(5)]
    before = as_tally(counted(*(handed_in(one, tmp_path / f"before{n}.json") for n, one in enumerate(class_))))
    assert before == +tally
    # A reset: the progress of the lab is put aside, and what is done from then on adds to it.
    assert class_[0].forget("04", STAMP) is not None and "04" not in class_[0].stored()
    # An upgrade: an exercise that the newer course has under another name, and a lab that it no longer has.
    stored = json.loads(class_[1].path.read_text())
    exercises = stored["labs"]["03"]["exercises"]
    moved = next(iter(exercises))
    exercises["renamed"] = exercises.pop(moved)
    stored["labs"]["77"] = {"tasks": {"old": {"state": "done"}}, "kept": {"by": "a newer version"}}
    class_[1].path.write_text(json.dumps(stored))
    lab = Lab("04", class_[0], show=False)
    exercise = lab.spec.exercises[0]
    lab.check(exercise.id, exercise.mistakes[0].answer)
    paths = [handed_in(Progress(tmp_path / f"{n}"), tmp_path / f"after{n}.json") for n in range(5)]
    older = json.loads(paths[4].read_text()) | {"version": "0.9"}
    for lab_ in older["labs"].values():
        for one in lab_["exercises"].values():
            del one["wrong"]  # which an older course did not count
    paths[4].write_text(json.dumps(older))
    after = counted(*paths)
    assert after["learners"] == 5 and after["versions"] == {"1.0": 4, "0.9": 1} and after["left_out"] == []
    assert after["labs"]["77"]["tasks"] == {"old": {"done": 1}}
    assert (
        after["labs"]["03"]["exercises"]["renamed"]["tried"]
        + after["labs"]["03"]["exercises"]["renamed"]["done"]
        + (after["labs"]["03"]["exercises"]["renamed"]["shown"])
        == 1
    )
    kinds = {"wrong", "done", "first", "shown", "tried"}
    now = as_tally(after)
    for key, number in before.items():
        if key[1] not in kinds:
            assert now[key] == number, key  # predictions, tasks and quiz are all there
    for number in NUMBERS:
        was = sum(n for key, n in before.items() if key[0] == number and key[1] == "done")
        assert sum(n for key, n in now.items() if key[0] == number and key[1] == "done") == was
    mistake = exercise.mistakes[0].name
    alone = json.loads(paths[0].read_text())["labs"]["04"]["exercises"][exercise.id]
    was = json.loads((tmp_path / "before0.json").read_text())["labs"]["04"]["exercises"]
    first = was.get(exercise.id, {"wrong": {}, "tries": 0})
    assert alone["wrong"][mistake] == first["wrong"].get(mistake, 0) + 1 and alone["tries"] == first["tries"] + 1
    assert "Lab 77, not in this version of the course: 1 began it" in call("class", *paths).stdout


RIGHT = {"tries": 1, "done": True, "shown": False, "wrong": {}}
GOOD = {"form": "course progress", "schema": 1, "version": "1.0", "copy": 1,
        "labs": {"04": {"tasks": {"a": "done"}, "exercises": {"waste": RIGHT}}}}  # fmt: skip
EXERCISE = {"tries": 2, "done": False, "shown": False, "wrong": {"80": 2}}


def exercise(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "labs": {"04": {"exercises": {"waste": {**EXERCISE, **changes}}}}}


BROKEN: dict[str, Any] = {
    "a list": [], "a number": 3, "nothing": None, "another form": {**GOOD, "form": "x"}, "no form": {},
    "its own progress": {"schema": 1, "labs": {}}, "newer": {**GOOD, "schema": 2}, "no schema": {**GOOD, "schema": "1"},
    "no copy": {**GOOD, "copy": True}, "a long version": {**GOOD, "version": "9" * 100},
    "labs are a list": {**GOOD, "labs": []}, "a lab is a text": {**GOOD, "labs": {"04": "x"}},
    "a hostile lab": {**GOOD, "labs": {"\x1b[2J": {}}}, "many labs": {**GOOD, "labs": {f"{n}": {} for n in range(200)}},
    "a hostile id": {**GOOD, "labs": {"04": {"tasks": {"../../x": "done"}}}},
    "a state": {**GOOD, "labs": {"04": {"tasks": {"a": "finished"}}}},
    "a state that cannot be looked up": {**GOOD, "labs": {"04": {"tasks": {"a": []}}}},
    "a letter": {**GOOD, "labs": {"04": {"quiz": {"a": {"first": "my words", "last": "a"}}}}},
    "a letter that is a list": {**GOOD, "labs": {"04": {"quiz": {"a": {"first": ["a"], "last": "a"}}}}},
    "tries": exercise(tries=-1), "tries are infinite": exercise(tries=1e999), "tries are true": exercise(tries=True),
    "done is 1": exercise(done=1), "more wrong than tries": exercise(wrong={"80": 3}),
    "a negative kind": exercise(wrong={"80": -1}), "a hostile kind": exercise(wrong={"\x1b]0;x\x07": 1}),
    "a long kind": exercise(wrong={"x" * 1000: 1}), "kinds are a list": exercise(wrong=[]),
    "many tasks": {**GOOD, "labs": {"04": {"tasks": {f"t{n}": "done" for n in range(2_000)}}}},
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_export_is_named_and_left_out_whole(name: str, tmp_path: Path) -> None:
    """Also one whose first half is right: nothing of it is counted."""
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    (tmp_path / "odd.json").write_text(json.dumps(BROKEN[name]))
    result = call("class", tmp_path / "odd.json", tmp_path / "good.json", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["learners"] == 1 and found["labs"]["04"]["began"] == 1 and len(found["labs"]) == 1
    assert result.stderr.startswith("note: odd.json is left out: it ") and "\x1b" not in result.stderr
    alone = call("class", tmp_path / "odd.json")
    assert alone.exit_code == 2 and "no file could be counted: odd.json is left out" in alone.stderr
    with pytest.raises(ValueError):
        class_count.merged([BROKEN[name]])


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "odd.json, row 1: this is not JSON"), (b"{", "Is the file complete?"), (b"\xff\xfe{}", "is UTF-16"),
     (b"PK\x03\x04", "is a zip or Excel file"), (b"\0\0", "a NUL byte"), (b"[" * 100_000, "nested too deeply"),
     (b'{"schema": ' + b"9" * 5_000 + b"}", "more than 300 digits"), (None, "cannot be read: No such file"),
     ("folder", "is a folder"), (dangling, "cannot be read"), (endless, "is a device"),
     (b" " * 2**23, "is larger than 4 MiB")],
)  # fmt: skip
def test_what_is_no_file_of_json_is_named_too(content: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    if callable(content):
        content(path)
    elif content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    result = call("class", path, tmp_path / "good.json")
    assert result.exit_code == 0 and said in result.stderr and "1 learner." in result.stdout


def test_a_copy_counts_once_and_is_named(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(GOOD))
    result = call("class", tmp_path / "a.json", tmp_path / "b.json", "--json")
    assert json.loads(result.stdout)["learners"] == 1
    assert result.stderr == "note: b.json is left out: it is a copy of an export that is counted already\n"


def test_a_design_is_scored_again_and_a_score_in_a_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seam for a lab that ends in a design, with a stand-in for its module: twice the slots is what it is worth."""

    def score(design: dict[str, Any]) -> dict[str, float]:
        if not isinstance(design.get("slots"), int):
            raise ValueError("give slots as a whole number")
        return {"worth": 2 * design["slots"]}

    module = SimpleNamespace(score=score, design_of=lambda parts: parts["boards"].get("design"))
    monkeypatch.setattr(capstone, "module_of", lambda number: module if number == "04" else None)
    paths = []
    for number, design in enumerate(({"slots": 8, "score": 1e9}, {"slots": 3}, {"slots": "many"}, None)):
        progress = Progress(tmp_path / f"{number}")
        Lab("04", progress, show=False).check("waste", 80)
        if design is not None:
            progress.change("04", "boards", "design", lambda _, design=design: design)
        paths.append(handed_in(progress, tmp_path / f"{number}.json"))
    found = counted(*paths)["labs"]["04"]
    assert found["designs"] == [{"worth": 16.0}, {"worth": 6.0}] and found["refused"] == [
        "give slots as a whole number"
    ]
    assert "design, worth: 2 scored again, from 6 to 16" in call("class", *paths).stdout
    monkeypatch.setattr(capstone, "module_of", lambda number: None)
    assert counted(paths[0])["labs"]["04"]["refused"] == ["lab 04 ends in no design"]
