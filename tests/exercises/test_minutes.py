"""Minutes are counted from all that is rendered, in the notebook or in the lesson."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.exercises import Exercise, Question, Ticket, minutes
from course.exercises.minutes import Count, count, exercise_minutes, words
from course.explore.tasks import Why
from tests.helpers.toy_lab import TOY, Doubles, Forgets, drive

EXPLORER = """One server [modelled]
At the start: Load 0.5
  mean wait  0.625 s
  p99  3.1 s
Task 1. Find a load with a p99 above 5 s.
   Answer: at 0.8 it is 6.1 s.
Task 2. Why?
   Answer: bursts."""


def text(source: str) -> dict:
    return {"cell_type": "markdown", "source": source}


def code(source: str, *outputs: dict, **metadata) -> dict:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": metadata}


def shown(**data: str) -> dict:
    return {"output_type": "display_data", "data": {name.replace("__", "/"): value for name, value in data.items()}}


def whole(*cells: dict, spec=TOY) -> Count:
    return count([text("## The question"), *cells], spec).whole


def only(**parts) -> dict:
    """All parts of a count, the heading's two words added."""
    parts["words"] = parts.get("words", 0) + 2
    return vars(Count(**parts))


def test_the_rates():
    assert Count(words=300).minutes == 2
    assert Count(lines=12).minutes == pytest.approx(1)
    assert Count(tasks=2, predictions=2).minutes == 6
    assert Count(questions=10).minutes == pytest.approx(7) and Count(pictures=10).minutes == pytest.approx(7)
    assert Count(exercises=9.0, broken=2.0).minutes == 11


@pytest.mark.parametrize(
    ("source", "many"),
    [("two words", 2), ("- a list, of 4 words", 5), ("**bold** _and_ `code`", 3), ("| - | = |", 0),
     ("[a link](https://example.org/a b)", 2), ("5.5 ms", 2)],
)  # fmt: skip
def test_words(source, many):
    assert words(source) == many


def test_a_text_with_a_table_a_picture_and_quoted_code():
    source = (
        "Three words here.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n![a picture](x.png)\n\n```\nf(x)\n\ny\n```"
    )
    assert vars(whole(text(source))) == only(words=3 + 6 + 2, pictures=2, lines=2)


def test_code_counts_by_the_line_and_hidden_code_not():
    assert vars(whole(code("a = 1\n\nb = 2  # why\n"))) == only(lines=2)
    assert vars(whole(code("a = 1", jupyter={"source_hidden": True}))) == only()


def test_outputs():
    stream = {"output_type": "stream", "text": "p99: 3 ms\n"}
    assert vars(whole(code("", stream))) == only(words=3)
    assert vars(whole(code("", shown(text__plain="a card of five words")))) == only(words=5)
    assert vars(whole(code("", shown(text__plain="Figure({", application__json="")))) == only(words=1)
    figure = {"output_type": "display_data", "data": {"application/vnd.plotly.v1+json": {}, "text/plain": "Figure({"}}
    assert vars(whole(code("", figure))) == only(pictures=1)
    assert vars(whole(code("", shown(text__html="<table>...", text__plain="a b c")))) == only(pictures=1)
    assert vars(whole(code("", stream, jupyter={"outputs_hidden": True}))) == only()


def test_an_explorer_is_a_figure_a_table_and_its_tasks():
    found = whole(code("explorer", shown(text__plain=EXPLORER)))
    table = words("mean wait  0.625 s  p99  3.1 s")
    assert (found.tasks, found.pictures, found.lines) == (2, 2, 1)
    assert found.words == 2 + words(EXPLORER) - table


def test_the_answers_of_tasks_count_though_no_copy_has_them():
    why = Why(id="why", text="Why?", show={}, options=(("a", "No."), ("b", "")), right="b", answer="It is {p99} then.")
    kept = EXPLORER.replace("\n   Answer: at 0.8 it is 6.1 s.", "").replace("\n   Answer: bursts.", "")
    cell = code("explorer", shown(text__plain=kept))
    assert whole(cell, spec=replace(TOY, tasks=(why,))).words - whole(cell).words == words("Answer: It is p99 then.")


def test_what_the_lesson_says_counts_where_the_notebook_asks():
    told = replace(TOY.predictions[0], options=(("It falls.", "x", "No, it does not."), ("It stays.", "y", "It moves."),
                                                ("It rises.", "", "Yes.")))  # fmt: skip
    spec = replace(TOY, predictions=(told,))
    assert vars(whole(code('lab.predict("p99")'), spec=spec)) == only(lines=1, predictions=1)
    showed = words(f"The lab showed: c) It rises. {told.why}")  # a widget shows it; no output keeps it
    assert vars(whole(code('lab.recap("p99")'), spec=spec)) == only(lines=1, words=showed + 4)
    said = sum(words(q.explanations[q.right]) for q in TOY.quiz)
    assert vars(whole(code("lab.quiz()"))) == only(lines=1, questions=2, words=said)
    ticket = Ticket("It is slow.", (Question("why", "Why?", (("a", "It is so."), ("b", "No.")), "a"),), "Chunking off.")
    found = whole(code("lab.ticket()"), spec=replace(TOY, ticket=ticket))
    assert vars(found) == only(lines=1, questions=1, words=3 + 2)
    assert vars(whole(code("lab.earlier()"))) == only(lines=1)


def test_exercises_by_what_they_ask_for():
    little, area, policy = TOY.exercises
    assert exercise_minutes(little, 1) == 3
    assert exercise_minutes(area, 5) == 6 and exercise_minutes(area, 6) == 12
    assert exercise_minutes(policy, 3) == 12
    assert exercise_minutes(Exercise("d", "d", {"flag": "x", "value": 3}), 2) == 6
    assert exercise_minutes(Exercise("o", "o", Doubles(), evaluate=drive), 0) == 12 and Forgets


def test_the_stub_above_a_check_says_how_long_an_answer_is():
    stub = "def area(width, height):\n    # Your code here: about {} lines\n    ..."
    short = whole(code(stub.format(2)), code('lab.check("area", area)'))
    long = whole(code(stub.format(9)), code('lab.check("area", area)'))
    assert (short.exercises, long.exercises) == (6, 12)


def test_sections_and_what_is_counted_for_them():
    counted = count(
        [text("# Lab 98\n\nabove"), code("x = 1"), text("## The question\n\nWhat?\n## Predict\nGuess."),
         code('lab.predict("p99")'), text("## 7. Break it\n\nSlow.")],
        TOY,
    )  # fmt: skip
    assert list(counted.sections) == ["The question", "Predict", "Break it"]
    first, second, third = counted.sections.values()
    assert (first.words, first.lines) == (3 + 2 + 1, 1), "what stands above goes to the first section"
    assert (second.words, second.predictions) == (2, 1)
    assert third.broken == 2
    assert counted.minutes == round(sum(c.minutes for c in counted.sections.values()))


def test_what_is_stored_is_read_back_and_nothing_where_there_is_none():
    assert isinstance(minutes.stored("03"), int)
    assert minutes.stored("03", "deeper") is None or isinstance(minutes.stored("03", "deeper"), int)
    assert minutes.stored("98") is None and minutes.read("98") == {}
