"""The limits of a core notebook, each exceeded by itself; and how objectives are tied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.exercises import Objective, Prediction, Question, Ticket
from course.notebooks.template import limits, pending, ties
from tests.helpers.toy_lab import TOY

ASK = (("yes", "It is."), ("no", "It is not."))
TASKS = "One server [modelled]\nAt the start: Load 0.5\n  wait 3 s\n" + "".join(
    f"Task {i}. Find it.\n" for i in range(1, 9)
)


class A:
    """A task, as far as a tie goes."""

    id = "read-l"


LAW = Question("law", "Which law?", ASK, "a", lab="04")
GOOD = replace(
    TOY,
    number="03",
    predictions=tuple(
        Prediction(name, "?", (("a", "x", "No."), ("b", "", "Yes.")), "b", "why") for name in ("one", "two")
    ),
    exercises=tuple(replace(exercise, plain="Step by step.") for exercise in TOY.exercises),
    quiz=tuple(Question(f"q{i}", "?", ASK, "a") for i in range(4)),
    objectives=(Objective("compute L", "read-l", "little", "08:law3"),),
    earlier=(LAW,),
    ticket=Ticket("Slow.", (Question("cause", "?", ASK, "a"),), "off"),
    terms=("TTFT",),
)


def text(source: str) -> dict:
    return {"cell_type": "markdown", "source": source}


def code(source: str, shown: str = "") -> dict:
    outputs = [{"output_type": "execute_result", "data": {"text/plain": shown}}] if shown else []
    return {"cell_type": "code", "source": source, "outputs": outputs, "metadata": {}}


CELLS = [text("## The question\n\nA short story.\n\n- a list of what one can do"), code("explorer", TASKS),
         text("## Explain\n\nWhy.")]  # fmt: skip


def exceeded(cells=CELLS, spec=GOOD, there=("03", "04")) -> set[str]:
    return set(limits(cells, spec, there))


def test_a_good_one_keeps_all_limits():
    assert limits(CELLS, GOOD, ("03", "04")) == {}


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("minutes", [*CELLS[:2], text("## Measure\n\n" + "word " * 9_000), CELLS[2]]),
        ("code", [*CELLS, code("x = 1\n" * 16)]),
        ("explain", [*CELLS[:2], text("## Explain\n\n" + "word " * 401)]),
        ("story", [text("## The question\n\n" + "word " * 151), *CELLS[1:]]),
        ("tasks", [CELLS[0], CELLS[2]]),
    ],
)
def test_a_notebook_beyond_a_limit(name, cells):
    assert exceeded(cells) == {name}


def test_the_capstone_has_more_time_and_asks_more():
    capstone = replace(GOOD, number="18", quiz=tuple(Question(f"q{i}", "?", ASK, "a") for i in range(20)))
    long = [*CELLS[:2], text("## Measure\n\n" + "word " * 7_500), CELLS[2]]
    assert exceeded(long) == {"minutes"} and exceeded(long, capstone, ()) == set()
    longer = [*CELLS[:2], text("## Measure\n\n" + "word " * 13_000), CELLS[2]]
    assert exceeded(longer, capstone, ()) == {"minutes"}
    assert exceeded(CELLS, replace(GOOD, number="18"), ()) == {"quiz"}


def test_six_tasks_remain_where_a_board_is_played():
    board = code("lab03.board()", "Be quick.\n2 requests, 1 slots.\nWithout the board: .play([[1]]).")
    six = code("explorer", TASKS.replace("Task 7. Find it.\nTask 8. Find it.\n", ""))
    assert exceeded([CELLS[0], six, board, CELLS[2]]) == set()
    assert exceeded([CELLS[0], six, CELLS[2]]) == {"tasks"} == exceeded([*CELLS, board])


def test_lists_are_no_story_and_tables_no_explanation():
    story = text("## The question\n\n" + "- word word word\n" * 100)
    table = text("## Explain\n\n| a | b |\n|---|---|\n" + "| word | word |\n" * 300)
    assert exceeded([story, *CELLS[1:]]) == set() == exceeded([*CELLS[:2], table]) - {"minutes"}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("objectives", {"objectives": ()}),
        ("objectives", {"objectives": GOOD.objectives * 4}),
        ("predictions", {"predictions": GOOD.predictions[:1]}),
        ("beliefs", {"predictions": (GOOD.predictions[0], Prediction("p", "?", ("a", "b"), 0, "w"))}),
        ("exercises", {"exercises": GOOD.exercises[:2]}),
        ("hints", {"exercises": (*GOOD.exercises[:2], TOY.exercises[2])}),
        ("ticket", {"ticket": None}),
        ("quiz", {"quiz": GOOD.quiz[:3]}),
        ("terms", {"terms": ()}),
        ("terms", {"terms": tuple("abcdefghi")}),
        ("earlier", {"earlier": ()}),
        ("earlier", {"earlier": (replace(LAW, lab="07"),)}),
    ],
)
def test_a_lab_beyond_a_limit(name, parts):
    assert exceeded(spec=replace(GOOD, **parts)) == {name}


def test_questions_come_from_the_lab_before_and_from_three_back_as_far_as_there_are_labs():
    eight = replace(GOOD, number="08", earlier=(replace(LAW, lab="03"),))
    assert exceeded(spec=eight, there=("03", "04", "08")) == set(), "lab 02 is not there yet"
    assert exceeded(spec=eight, there=("02", "03", "04", "08")) == {"earlier"}
    both = replace(eight, earlier=(*eight.earlier, replace(LAW, id="old", lab="02")))
    assert exceeded(spec=both, there=("02", "03", "04", "08")) == set()


def test_the_primer_may_be_asked_about_and_need_not_be():
    four = replace(GOOD, number="04", earlier=())
    assert exceeded(spec=four, there=("00", "03", "04")) == set()
    assert exceeded(spec=replace(four, earlier=(replace(LAW, lab="00"),)), there=("00", "04")) == set()


PRIMER = replace(
    GOOD,
    number="00",
    exercises=tuple(replace(exercise, plain="Step by step.") for exercise in TOY.exercises[:2]),
    quiz=tuple(Question(f"q{i}", "?", ASK, "a") for i in range(6)),
    earlier=(),
    ticket=None,
    terms=tuple("abcdefghijkl"),
)
TASK = "One server [modelled]\nAt the start: Load 0.5\n  wait 3 s\nTask 1. Find it.\n"
PARTS = [text("## A model speaks"), text("## Part 1: A"), code("one", TASK), text("## Part 2: B"), code("two", TASK)]


def test_the_primer_has_two_parts_in_place_of_the_sections():
    assert limits(PARTS, PRIMER, ("00",)) == {}
    ends = {"minutes": [*PARTS, text("word " * 1_800)], "tasks": PARTS[:-1], "code": [*PARTS, code("x = 1\n" * 16)]}
    for name, cells in ends.items():
        assert set(limits(cells, PRIMER, ("00",))) == {name}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("predictions", {"predictions": PRIMER.predictions[:1]}),
        ("exercises", {"exercises": PRIMER.exercises[:1]}),
        ("quiz", {"quiz": PRIMER.quiz[:5]}),
        ("terms", {"terms": tuple("abcdefghijklm")}),
        ("objectives", {"objectives": ()}),
    ],
)
def test_a_primer_beyond_a_limit(name, parts):
    assert set(limits(PARTS, replace(PRIMER, **parts), ("00",))) == {name}


def test_ties_to_what_is_there():
    object.__setattr__(GOOD, "tasks", (A(),))
    later = replace(GOOD, number="08", earlier=(Question("law3", "?", ASK, "a", lab="03"),))
    assert ties(GOOD, {"03": GOOD, "08": later}) == [] == ties(GOOD, {"03": GOOD})
    assert pending(GOOD, {"03": GOOD}) == ["08:law3"] and pending(GOOD, {"03": GOOD, "08": later}) == []
    without = replace(later, earlier=(replace(later.earlier[0], lab="04"),))
    (fault,) = ties(GOOD, {"03": GOOD, "08": without})
    assert fault == "'compute L': lab 08 has no question 'law3', neither an earlier one of lab 03 nor in its quiz"
    in_the_quiz = replace(without, earlier=(), quiz=(Question("law3", "?", ASK, "a"),))
    assert ties(GOOD, {"03": GOOD, "08": in_the_quiz}) == []


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [("task", "other", "no task 'other'"), ("exercise", "other", "no exercise 'other'"),
     ("retest", "04:law", "does not come later"), ("retest", "99:law", "does not come later")],
)  # fmt: skip
def test_ties_to_what_is_not_there(part, value, says):
    broken = replace(GOOD, objectives=(replace(GOOD.objectives[0], **{part: value}),))
    object.__setattr__(broken, "tasks", (A(),))
    (fault,) = ties(broken, {"03": broken})
    assert says in fault


def test_a_lab_of_no_order_is_named_and_not_its_retest():
    unlisted = replace(GOOD, number="90")
    object.__setattr__(unlisted, "tasks", (A(),))
    (fault,) = ties(unlisted, {"90": unlisted})
    assert fault == "lab 90 stands neither in CORE nor in ELECTIVES: add it in course/desk/catalogue.py"
