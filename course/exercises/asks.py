"""From a lesson's `asks.yaml` to the LabSpec: what a lab asks, as a teacher writes it.

    title: Static, dynamic, continuous
    objectives:
      compute the padding of a static batch: {task: busy, exercise: waste, retest: 15:padding}
    predictions:
      gain:
        ask: With 32 slots, continuous batching delivers
        options:
          32 times the tokens/s:
            slots-are-speed: Both have 32 slots.        # a belief and its answer; nothing at the right one
          "{{gain:.0f}} times the tokens/s":
        right: b
        why: A batch runs until its longest answer ends.
      spread:                                           # a curve: axes, truth and beliefs stand in sketch.py
        {draw: How does it grow?, sketch: sketch.SPREAD, beliefs: {slots-are-speed: Both have 32.}, why: ...}
    tasks:
      one_trace:                                        # the explorer, by its name in lab.py
        start: {output_cv: 1.0}                         # its controls at the start
        facts: tasks.trace
        late: {read: How late?, unit: s, value: tasks.late, where: start, answer: "After {static}."}
        equal: {find: Move only the spread., show: {output_cv: 0}, only: output_cv, reached: tasks.equal, answer: ...}
    exercises:
      waste: {title: Padding, solution: waste, mistakes: {80: That is one slot.}, twin: {ask: ..., solution: ...}}
    decision: {flag: --max-num-seqs, solution: {--max-num-seqs: slots}, ...}
    ticket: {story: ..., questions: {cause: ...}, setting: ...}
    quiz:
      why: {ask: "Why?", options: {one answer: what its reader is told, another: ...}, right: a}

An answer is a number, a text in quotation marks, a list or mapping of answers, the name of a fact, or the name of what
stands in a module of the lesson, such as `refill.refill`. Nothing is evaluated. Every text may have holes (`holes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from course.exercises import holes, nodes, slips
from course.exercises.curve import Drawing
from course.exercises.decision import one_flag
from course.exercises.nodes import AsksError, Node
from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction, Question, Ticket
from course.explore.tasks import Find, Read, Settings, Task, Why, nothing

Named = Callable[[str], Any]
Made = TypeVar("Made")
CONSTANTS = {"true": True, "false": False, "none": None}
SLIPS = {"per_token": slips.per_token, "per_request": slips.per_request, "per_slot": slips.per_slot,
         "all_slots": slips.all_slots}  # fmt: skip


def read(path: Path, number: str, facts: Mapping[str, holes.Fact], named: Named) -> LabSpec:
    """Return what a lab asks.

    path: of its asks.yaml. number: of the lab. facts: by name. named: from a name with a dot to what it means.
    Raises AsksError: a fault, with file, line and field.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AsksError(f"{path.name}: it cannot be read: {error}") from error
    return _Reader(number, facts, named).spec(nodes.read(source, f"{path.parent.name}/{path.name}"))


class _Reader:
    """Reads one file; see `read`."""

    def __init__(self, number: str, facts: Mapping[str, holes.Fact], named: Named) -> None:
        self.number, self.facts, self.named = number, facts, named

    def spec(self, node: Node) -> LabSpec:
        parts = node.fields(
            "needs", "objectives", "terms", "earlier", "predictions", "tasks", "exercises", "decision", "ticket",
            "quiz", needs=("title",),
        )  # fmt: skip
        by_explorer = {name: self.tasks(group) for name, group in _entries(parts.get("tasks")).items()}
        exercises = [self.exercise(id, one) for id, one in _entries(parts.get("exercises")).items()]
        if "decision" in parts:
            exercises.append(self.exercise("decision", parts["decision"]))
        return self.make(
            node,
            LabSpec,
            number=self.number,
            title=self.text(parts["title"]),
            needs=self.text(parts.get("needs")),
            objectives=[self.objective(text, one) for text, one in _entries(parts.get("objectives")).items()],
            terms=[self.text(term) for term in (parts["terms"].items() if "terms" in parts else ())],
            earlier=self.questions(parts.get("earlier")),
            predictions=[self.prediction(id, one) for id, one in _entries(parts.get("predictions")).items()],
            tasks=[task for group in by_explorer.values() for task in group],
            by_explorer=by_explorer,
            exercises=exercises,
            ticket=self.ticket(parts["ticket"]) if "ticket" in parts else None,
            quiz=self.questions(parts.get("quiz")),
        )

    # Texts, names and answers

    def text(self, node: Node | None) -> str:
        """The text with its holes filled; "" for a field that is not there."""
        return "" if node is None else self.fill(node, node.text())

    def fill(self, node: Node, text: str) -> str:
        try:
            return holes.filled(text, self.facts)
        except holes.HoleError as error:
            lines = node.source.splitlines()[node.line - 1 : node.raw.end_mark.line + 1]
            here = next((place for place, line in enumerate(lines) if error.hole in line), 0)
            raise node.error(error, node.line + here) from None

    def name(self, node: Node) -> Any:
        """What a name with a dot means."""
        try:
            return self.named(node.text())
        except ValueError as error:
            raise node.error(error) from None

    def answer(self, node: Node) -> Any:
        """A number, a text, a list, a mapping, a fact, or what has this name in the lesson."""
        if node.is_list:
            return [self.answer(item) for item in node.items()]
        if node.is_mapping:
            return {key: self.answer(value) for key, value in node.entries().items()}
        text = node.text()
        if not node.plain:
            return self.fill(node, text)
        number = nodes.as_number(text)
        if number is not None:
            return number
        if text in CONSTANTS:
            return CONSTANTS[text]
        if text in self.facts:
            return self.facts[text]
        if "." in text:
            return self.name(node)
        raise node.error(
            f"{text!r} is no number, no fact and no name with a dot, such as refill.PROBES; is it a text? It needs"
            " quotation marks"
        )

    def make(self, node: Node, kind: Callable[..., Made], **fields: Any) -> Made:
        """A part of the spec; what it refuses is told with the line."""
        try:
            return kind(**fields)
        except AsksError:
            raise
        except (TypeError, ValueError) as error:
            raise node.error(error) from None

    # The parts

    def objective(self, text: str, node: Node) -> Objective:
        parts = node.fields(needs=("task", "exercise", "retest"))
        return self.make(node, Objective, text=self.fill(node, text), **{k: v.text() for k, v in parts.items()})

    def prediction(self, id: str, node: Node) -> Prediction | Drawing:
        if "draw" in node.entries():
            return self.drawing(id, node)
        parts = node.fields(needs=("ask", "options", "right", "why"))
        options: list[Any] = []
        for key, value in parts["options"].pairs():
            option = self.text(key)
            if value.is_mapping:
                beliefs = value.entries()
                if len(beliefs) != 1:
                    raise value.error("a wrong option has one belief, and behind it what the recap answers")
                ((belief, said),) = beliefs.items()
                options.append((option, belief, self.text(said)))
            else:
                options.append((option, "", self.text(value)))
        return self.make(
            node, Prediction, id=id, question=self.text(parts["ask"]), options=tuple(options),
            right=self.text(parts["right"]), why=self.text(parts["why"]),
        )  # fmt: skip

    def drawing(self, id: str, node: Node) -> Drawing:
        parts = node.fields("beliefs", "after", needs=("draw", "sketch", "why"))
        answers = {name: self.text(said) for name, said in _entries(parts.get("beliefs")).items()}
        return self.make(
            node, Drawing, id=id, question=self.text(parts["draw"]), sketch=self.name(parts["sketch"]), answers=answers,
            why=self.text(parts["why"]), after=self.text(parts.get("after")),
        )  # fmt: skip

    def questions(self, node: Node | None) -> list[Question]:
        return [self.question(id, one) for id, one in _entries(node).items()]

    def question(self, id: str, node: Node) -> Question:
        parts = node.fields("lab", needs=("ask", "options", "right"))
        return self.make(
            node, Question, id=id, question=self.text(parts["ask"]), choices=self.choices(parts["options"]),
            right=self.text(parts["right"]), lab=self.text(parts.get("lab")),
        )  # fmt: skip

    def choices(self, node: Node) -> tuple[tuple[str, str], ...]:
        return tuple((self.text(key), self.text(value)) for key, value in node.pairs())

    def ticket(self, node: Node) -> Ticket:
        parts = node.fields(needs=("story", "questions", "setting"))
        return self.make(
            node, Ticket, story=self.text(parts["story"]), questions=self.questions(parts["questions"]),
            setting=self.text(parts["setting"]),
        )  # fmt: skip

    def exercise(self, id: str, node: Node, of: Exercise | None = None) -> Exercise:
        """An exercise, or the twin of one: title, kind, tolerance and hint are the same unless it gives its own.

        Not so `plain`: it names the way with the numbers of the exercise, and who is asked the twin has seen that.
        """
        known = ("title", "probes", "evaluate", "flag", "offered", "rtol", "shown", "hint", "plain", "slips", "worked",
                 "mistakes")  # fmt: skip
        parts = node.fields(*known, "twin", needs=("solution",)) if of is None else node.fields(
            *known, needs=("ask", "solution"))  # fmt: skip
        made: dict[str, Any] = {"id": id, "solution": self.answer(parts["solution"])}
        for name in ("title", "hint", "plain", "worked"):
            if name in parts:
                made[name] = self.text(parts[name])
        if "probes" in parts:
            probes = self.answer(parts["probes"])
            made["probes"] = tuple(tuple(one) if isinstance(one, list) else one for one in probes)
        if "evaluate" in parts:
            made["evaluate"] = self.name(parts["evaluate"])
        if "flag" in parts:
            offered = self.answer(parts["offered"]) if "offered" in parts else ()
            made["evaluate"] = one_flag(parts["flag"].text(), offered)
        for name in ("rtol", "shown"):
            if name in parts:
                made[name] = parts[name].number()
        if "slips" in parts:
            made["slips"] = [self.slip(key, value) for key, value in parts["slips"].pairs()]
        mistakes = parts["mistakes"].pairs() if "mistakes" in parts else []
        made["mistakes"] = [
            self.make(value, Mistake, answer=self.answer(key), hint=self.text(value), name=key.written())
            for key, value in mistakes
        ]
        if of is not None:
            made["question"] = self.text(parts["ask"])
            for name in ("title", "probes", "evaluate", "rtol", "shown", "hint"):
                made.setdefault(name, getattr(of, name))
            if isinstance(of.solution, dict):  # a choice among the same flags and values
                own = [made["solution"], *(mistake.answer for mistake in made["mistakes"])]
                made["mistakes"] += [mistake for mistake in of.mistakes if mistake.answer not in own]
        exercise = self.make(node, Exercise, **{"title": "", **made})
        if not exercise.title:
            raise node.error("the field 'title' is missing")
        if "twin" not in parts:
            return exercise
        twin = self.exercise(id, parts["twin"], exercise)
        return self.make(node, Exercise, **{**vars(exercise), "twin": twin})

    def slip(self, key: Node, value: Node) -> slips.Slip:
        if key.text() in SLIPS:
            return SLIPS[key.text()](value.number())
        return slips.Slip(key.number(), self.text(value))

    def tasks(self, node: Node) -> tuple[Task, ...]:
        """The tasks of one explorer."""
        parts = node.entries()
        start = parts.pop("start", None)
        facts = parts.pop("facts", None)
        group = {
            "start": {} if start is None else self.settings(start),
            "facts": nothing if facts is None else self.name(facts),
        }
        return tuple(self.task(id, one, **group) for id, one in parts.items())

    def settings(self, node: Node) -> Any:
        found = self.answer(node)
        if not isinstance(found, Mapping) and not callable(found):
            raise node.error("write settings, such as {output_cv: 1.0}, or the name of a function")
        return found

    def task(self, id: str, node: Node, start: Settings, facts: Any) -> Task:
        shared = ("show", "facts", "claim")
        kinds: dict[str, tuple[Callable[..., Task], tuple[str, ...], tuple[str, ...]]] = {
            "read": (Read, ("unit", "rtol", "where", "slips"), ("value", "answer")),
            "find": (Find, ("only", "reached", "miss"), ("show", "answer")),
            "why": (Why, (), ("options", "right", "answer")),
        }
        kind = [name for name in kinds if name in node.entries()]
        if len(kind) != 1:
            raise node.error("a task has one of the fields read, find and why, which says what to do")
        make, may, needs = kinds[kind[0]]
        parts = node.fields(*shared, *may, needs=(kind[0], *needs))
        made: dict[str, Any] = {"id": id, "text": self.text(parts[kind[0]]), "answer": self.text(parts["answer"])}
        made["show"] = self.settings(parts["show"]) if "show" in parts else {}
        made["facts"] = self.name(parts["facts"]) if "facts" in parts else facts
        for name in ("claim", "value"):
            if name in parts:
                made[name] = self.name(parts[name])
        if kind[0] == "read":
            made["unit"] = self.text(parts.get("unit"))
            if "rtol" in parts:
                made["rtol"] = parts["rtol"].number()
            if "where" in parts:
                at_start = parts["where"].text() == "start"
                made["where"] = _only(start, "") if at_start else self.name(parts["where"])
            if "slips" in parts:
                made["slips"] = [(key.number(), self.text(value)) for key, value in parts["slips"].pairs()]
        elif kind[0] == "find":
            made["miss"] = self.text(parts.get("miss"))
            held = [self.name(parts["reached"])] if "reached" in parts else []
            if "only" in parts:
                if parts["only"].text() not in start:
                    raise parts["only"].error(f"{parts['only'].text()!r} is not in start: {', '.join(start)}")
                held.insert(0, _only(start, parts["only"].text()))
                made["stay"] = {name: value for name, value in start.items() if name != parts["only"].text()}
            if not held:
                raise node.error("say when the task is done: reached, only, or both")
            made["reached"] = _all(held)
        else:
            made["options"], made["right"] = self.choices(parts["options"]), parts["right"].text()
        return self.make(node, make, **made)


def _entries(node: Node | None) -> dict[str, Node]:
    return {} if node is None else node.entries()


def _only(start: Settings, free: str) -> Callable[[Settings, Any], bool]:
    """Whether every control but `free` is where it was at the start."""
    return lambda settings, result: all(settings[name] == value for name, value in start.items() if name != free)


def _all(held: list[Callable[[Settings, Any], bool]]) -> Callable[[Settings, Any], bool]:
    return held[0] if len(held) == 1 else lambda settings, result: all(one(settings, result) for one in held)
