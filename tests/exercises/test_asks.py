"""A lab's questions read from YAML: forty broken texts each give a sentence with file, line and field."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from course.exercises import asks
from course.exercises.judge import RIGHT, judge
from course.exercises.nodes import AsksError
from course.explore.tasks import Find, Read, Why

GOOD = """\
title: Off at 12:30
objectives:
  compute a gain: {task: late, exercise: gain, retest: 15:gain}
terms: [slot, off, 03]
earlier:
  old:
    lab: 03
    ask: Which?
    options: {no: It is not., 12:30: It is.}
    right: b
predictions:
  more:
    ask: "With {{slots}} slots: how much?"
    options:
      "{{gain:.1f}} times":
      half as much:
        slots-are-speed: No, {{gain:.2f}} times.
    right: a
    why: Because.
tasks:
  board:
    start: {cv: 1.0, slots: 8}
    facts: tasks.named
    late: {read: "How late?", value: tasks.late, unit: s, where: start, slips: {1000: In ms.}, answer: "After {late}."}
    equal: {find: Move it., show: {cv: 0}, only: cv, reached: tasks.reached, miss: No., answer: Yes.}
    busy: {why: "Why?", options: {one: , two: Look again.}, right: a, answer: So.}
exercises:
  gain:
    title: Gain
    solution: gain
    rtol: 1e-3
    mistakes:
      4: Those are the slots.
      'off': That is a word.
    slips: {per_slot: 8, 0.5: That is half.}
    hint: Think.
    plain: Divide 30.8 by 8.
    twin: {ask: "And now?", solution: 7, mistakes: {8: No., 9: Nor that.}}
  rule:
    title: Rule
    solution: tasks.rule
    probes: [[1, 2], [3, 4]]
    mistakes: {tasks.late: No.}
decision:
  title: Choose
  flag: --max-num-seqs
  solution: {--max-num-seqs: slots}
  mistakes:
    {--other: 1}: That is another one.
    {--max-num-seqs: 16}: Too many.
  twin: {ask: Again., solution: {--max-num-seqs: 16}, mistakes: {{--max-num-seqs: 4}: Too few.}}
ticket:
  story: It broke.
  questions: {cause: {ask: "Why?", options: {a: No., b: Yes.}, right: b}}
  setting: It was off.
quiz:
  why: {ask: "Why?", options: {one: No., two: Yes.}, right: b}
"""
FACTS = {"gain": 3.846, "slots": 8}
TASKS = SimpleNamespace(
    named=lambda settings, result: {"late": "3 s"},
    late=lambda settings, result: 3.0,
    reached=lambda settings, result: result,
    rule=lambda a, b: a + b,
)


def named(name: str):
    home, _, attribute = name.partition(".")
    if home != "tasks" or not hasattr(TASKS, attribute):
        raise ValueError(f"{name!r}: the lesson has no {home}.py" if home != "tasks" else f"{name!r} is not there")
    return getattr(TASKS, attribute)


def read(text: str, folder: Path):
    path = folder / "lab98" / "asks.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return asks.read(path, "98", FACTS, named)


def test_a_whole_file(tmp_path: Path) -> None:
    spec = read(GOOD, tmp_path)
    assert spec.number == "98" and spec.title == "Off at 12:30" and spec.terms == ("slot", "off", "03")
    assert spec.earlier[0].lab == "03" and spec.earlier[0].options == ("no", "12:30")
    (more,) = spec.predictions
    assert more.question == "With 8 slots: how much?" and more.options == ("3.8 times", "half as much")
    assert more.beliefs == ("", "slots-are-speed") and more.answers[1] == "No, 3.85 times." and more.right == 0
    late, equal, busy = spec.tasks
    assert spec.by_explorer == {"board": (late, equal, busy)}
    start, moved = {"cv": 1.0, "slots": 8}, {"cv": 0, "slots": 8}
    assert isinstance(late, Read) and late.where(start, None) and not late.where(moved, None)
    assert late.said(start, None) == "After 3 s." and late.slips == [(1000, "In ms.")]
    assert isinstance(equal, Find) and equal.reached(moved, True) and not equal.reached(moved, False)
    assert not equal.reached({"cv": 0, "slots": 16}, True), "another control was moved"
    assert isinstance(busy, Why) and busy.options == (("one", ""), ("two", "Look again."))
    gain, rule, decision = spec.exercises
    assert gain.solution == 3.846 and [m.answer for m in gain.mistakes] == [4, "off"]
    assert (gain.slips[0].factor, gain.slips[1].factor) == (1 / 8, 0.5)
    assert gain.twin.title == "Gain" and gain.twin.rtol == 1e-3 and gain.twin.hint == "Think."
    assert gain.plain == "Divide 30.8 by 8." and gain.twin.plain == "", "a way with other numbers"
    assert rule.probes == ((1, 2), (3, 4)) and judge(rule, lambda a, b: b + a).status == RIGHT
    assert decision.id == "decision" and judge(decision, {"max_num_seqs": "8"}).status == RIGHT
    # A twin's choices are those of its exercise, but for what is right now.
    assert [m.answer for m in decision.twin.mistakes] == [{"--max-num-seqs": 4}, {"--other": 1}]
    assert spec.ticket.setting == "It was off." and spec.quiz[0].explanations == ("No.", "Yes.")


# old text, new text, what the sentence says, the line counted from the change (0: its first line)
BROKEN = [
    ("title: Off at 12:30", "", "the file: the field 'title' is missing", None),
    ("title: Off at 12:30", "title: [a]", "title: a text belongs here", 0),
    ("title: Off at 12:30", "title: a # b", "a comment cuts the text 'a' off at '# b'", 0),
    ("title: Off at 12:30", "title: a: b", "this is no YAML (mapping values are not allowed here)", 0),
    ("title: Off at 12:30", "title: &a x", "a text that begins with one of & * ! % needs quotation marks", 0),
    ("title: Off at 12:30", "title: *a", "needs quotation marks", 0),
    ("title: Off at 12:30", "title: !!python/name:os.system x", "needs quotation marks", 0),
    ("title: Off at 12:30", "titel: x", "titel: there is no such field; there are title, needs", 0),
    ("title: Off at 12:30", 'title: "x', "this is no YAML", None),
    ("title: Off at 12:30", "title: x\ntitle: y", "title: the key stands twice, first on line 1", 1),
    ("title: Off at 12:30", "title: x\n---\ntitle: y", "this is no YAML", None),
    ("title: Off at 12:30", "title: x\n\tneeds: y", "this is no YAML", 1),
    ("retest: 15:gain", "retest: gain", "write a lab and a question", 0),
    ("task: late, exercise", "exercise", "objectives.compute a gain: the field 'task' is missing", None),
    ("terms: [slot, off, 03]", "terms: slot", "terms: a list belongs here", 0),
    ("    lab: 03\n", "", "say which earlier lab it is from", None),
    ("12:30: It is.", "12:30: ", "question 'old': give each option as a pair", None),
    ("12:30: It is.", "no: It is.", "earlier.old.options.no: the key stands twice", 0),
    ("{{slots}} slots", "{{slot}} slots", "{{slot}}: there is no fact 'slot'; there are gain, slots", 0),
    ("{{gain:.2f}} times.", "{{gain:d}} times.", "the format 'd' does not fit 3.846", 0),
    ("{{gain:.2f}} times.", "{{gain times.\n          }} x", "write a fact's name and perhaps a format", 0),
    ("        slots-are-speed: No", "        a: b\n        slots-are-speed: No", "has one belief", 0),
    ("    right: a\n    why", "    right: b\n    why", "every option but the right one needs a belief", None),
    ("    right: a\n    why: Because.", "    right: c\n    why: Because.", "'c' is not an option", None),
    ("    why: Because.\n", "", "predictions.more: the field 'why' is missing", None),
    ("facts: tasks.named", "facts: tasks.names", "tasks.board.facts: 'tasks.names' is not there", 0),
    ("start: {cv: 1.0, slots: 8}", "start: 8", "tasks.board.start: write settings", 0),
    ("where: start", "where: begin.now", "tasks.board.late.where: 'begin.now': the lesson has no begin.py", 0),
    ('{read: "How late?"', '{raed: "How late?"', "a task has one of the fields read, find and why", 0),
    ("slips: {1000: In ms.}", "slips: {ms: In ms.}", "tasks.board.late.slips.ms: 'ms' is not a number", 0),
    ("only: cv", "only: vc", "tasks.board.equal.only: 'vc' is not in start: cv, slots", 0),
    ("only: cv, reached: tasks.reached, ", "", "say when the task is done: reached, only, or both", 0),
    ("{one: , two: Look again.}", "{one: , two: }", "the option 'two' is wrong and has no hint", 0),
    ("    title: Gain\n", "", "exercises.gain: the field 'title' is missing", None),
    ("solution: gain", "solution: gian", "'gian' is no number, no fact and no name with a dot", 0),
    ("solution: gain", "solution: os.system", "exercises.gain.solution: 'os.system': the lesson has no os.py", 0),
    ("solution: gain", "solution: tasks.late()", "'tasks.late()' is not there", 0),
    ("rtol: 1e-3", "rtol: 1%", "exercises.gain.rtol: '1%' is not a number", 0),
    ("rtol: 1e-3", "rtol: 2", "rtol 2: choose a tolerance from 0 to below 1", None),
    ("      4: Those are the slots.\n", "      4:\n", "the mistake 4 has no hint", 0),
    ("      'off': That", "      off: That", "'off' is no number, no fact", 0),
    ('twin: {ask: "And now?", ', "twin: {", "exercises.gain.twin: the field 'ask' is missing", 0),
    ("    probes: [[1, 2], [3, 4]]\n", "", "asks for a function: give probes", None),
    ("flag: --max-num-seqs\n", "flga: --max-num-seqs\n", "decision.flga: there is no such field", 0),
    ("  setting: It was off.", "  off: It was off.", "ticket.off: there is no such field", 0),
    ("two: Yes.}, right: b}\n", "two: Yes.}}\n", "quiz.why: the field 'right' is missing", 0),
]


@pytest.mark.parametrize(("old", "new", "said", "below"), BROKEN, ids=[f"{n}" for n in range(len(BROKEN))])
def test_a_broken_text(old: str, new: str, said: str, below: int | None, tmp_path: Path) -> None:
    assert GOOD.count(old) == 1 and len(BROKEN) >= 40
    with pytest.raises(AsksError) as error:
        read(GOOD.replace(old, new), tmp_path)
    sentence = str(error.value)
    assert said in sentence and sentence.startswith("lab98/asks.yaml, line ")
    if below is not None:
        line = GOOD[: GOOD.index(old)].count("\n") + 1 + below
        assert sentence.startswith(f"lab98/asks.yaml, line {line}"), sentence


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words", "[" * 5_000])
def test_what_is_no_mapping(text: str, tmp_path: Path) -> None:
    with pytest.raises(AsksError, match=r"asks.yaml"):
        read(text, tmp_path)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(AsksError, match="cannot be read"):
        asks.read(tmp_path / "asks.yaml", "98", FACTS, named)
    (tmp_path / "asks.yaml").write_bytes(b"title: \xff\n")
    with pytest.raises(AsksError, match="cannot be read"):
        asks.read(tmp_path / "asks.yaml", "98", FACTS, named)


def test_a_hole_in_a_long_text_is_named_with_its_own_line(tmp_path: Path) -> None:
    text = GOOD.replace("why: Because.", 'why: "Because\n      of this\n      and {{that}}."')
    with pytest.raises(AsksError, match=r"that\}\}") as error:
        read(text, tmp_path)
    assert f"line {text[: text.index('{{that')].count(chr(10)) + 1}," in str(error.value)


def test_a_comment_on_a_line_of_its_own_is_fine(tmp_path: Path) -> None:
    assert read("# about this lab\n" + GOOD.replace("terms:", "# new ones\nterms:"), tmp_path).terms
    assert read(GOOD.replace("Off at 12:30", "'x # y'"), tmp_path).title == "x # y"
