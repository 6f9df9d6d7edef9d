"""Judge an answer: not attempted, right, a known mistake with its hint, a slip, or wrong in a way that is described."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from course.exercises import slips
from course.exercises.compare import brief, difference, same
from course.exercises.learner import describe, describe_error, stopped_at, watch
from course.exercises.printing import limited
from course.exercises.spec import Exercise
from course.exercises.time_limit import OutOfTime, TimeLimit

MOST_ELEMENTS = 10_000
UNJUDGED = "That cannot be judged"
"""That are read of a generator: far more than any result has."""
NOT_ATTEMPTED, RIGHT, WRONG = "not attempted yet", "right", "not right yet"
UNITS, OTHER = "units", "other"
"""Kinds of wrong answers that no mistake of the exercise names: a slip of units or a constant typed in; any other."""


@dataclass(frozen=True)
class Verdict:
    """What `judge` found.

    `status` is one of NOT_ATTEMPTED, RIGHT and WRONG; `hint` says more about a wrong answer; `mistake` is the position
    of the known mistake, if it is one; `kind` is what a wrong answer is counted as: the name of that mistake, UNITS or
    OTHER.
    """

    status: str
    hint: str = ""
    mistake: int | None = None
    kind: str = ""


@dataclass(frozen=True)
class RaisedError:
    """An answer raised this error instead of returning something."""

    error: BaseException


@dataclass(frozen=True)
class Outcome:
    """What an answer did: one result (or error) for each probe, and whether it did nothing at all.

    changed: names a parameter whose list or dictionary the function changed; "" if it changed none.
    """

    results: tuple[Any, ...]
    empty: bool
    changed: str = ""


def judge(exercise: Exercise, answer: Any) -> Verdict:
    """Judge an answer to an exercise: what it does has `time_limit.SECONDS` of CPU time, and is stopped then.

    Never raises for what the answer does, except when a learner interrupts it.
    """
    # Ours first, whose time is not the learner's.
    for own in range(-1, len(exercise.mistakes)):
        _own_outcome(exercise, own)
    limit = TimeLimit()
    try:
        return limit.run(_judge, exercise, answer)
    except KeyboardInterrupt:
        raise
    except OutOfTime as error:
        return Verdict(WRONG, stopped_at(error, answer, limit.seconds))
    except BaseException as error:  # an object may raise anything at whatever it is asked, its own name included
        kind = type(answer).__name__ if type(type(answer)) is type else "its own kind"
        return Verdict(
            WRONG,
            f"Your answer is an object of type {kind} that cannot be compared with the right answer: "
            f"reading its value stopped with {describe(error)}.",
        )


def _judge(exercise: Exercise, answer: Any) -> Verdict:
    if answer is None or answer is ...:
        return Verdict(NOT_ATTEMPTED)
    if exercise.probes is not None and not callable(answer):
        return Verdict(WRONG, f"Your answer is {brief(answer)}: give the function itself, without calling it.")
    if exercise.evaluate is not None and inspect.isclass(answer) and not inspect.isclass(exercise.solution):
        return Verdict(
            WRONG, f"Your answer is the class {answer.__name__}: give an object of it, {answer.__name__}(...)."
        )
    with limited():
        got = outcome(exercise, answer)
    if _alike(got, _solution(exercise), exercise):
        if got.changed:
            hint = (
                f"Your function changes {got.changed}, which its caller goes on using: take nothing out of it and put"
            )
            return Verdict(WRONG, f"{hint} nothing into it, or work on a copy.")
        return Verdict(RIGHT)
    if got.empty:
        return Verdict(NOT_ATTEMPTED)
    for position, mistake in enumerate(exercise.mistakes):
        if _alike(got, _mistake(exercise, position), exercise):
            return Verdict(WRONG, mistake.hint, position, mistake.name or f"mistake {position + 1}")
    slip = _slip(exercise, answer, got)
    hint = slip or _describe(exercise, answer, got)
    about_its_form = exercise.probes is None and isinstance(answer, str) and not isinstance(exercise.solution, str)
    about_its_form |= hint.startswith(UNJUDGED)
    hints = (hint, "" if slip or about_its_form else exercise.hint)
    return Verdict(WRONG, " ".join(filter(None, hints)), kind=UNITS if slip else OTHER)


def outcome(exercise: Exercise, answer: Any) -> Outcome:
    """Run an answer as the exercise asks for: on every probe, through `evaluate`, or not at all for a value."""
    if exercise.evaluate is not None:
        with watch(answer) as (subject, calls):
            result = _attempt(exercise.evaluate, (subject,))
        stub = isinstance(result, RaisedError) and isinstance(result.error, NotImplementedError)
        return Outcome((result,), stub or (bool(calls) and not any(calls)))
    if exercise.probes is not None:
        # A copy each time: a function may change its arguments, and the next answer needs them whole.
        given = copy.deepcopy(exercise.probes)
        results = tuple(_settled(_attempt(answer, arguments)) for arguments in given)
        return Outcome(results, all(_nothing(result) for result in results), _changed(answer, exercise.probes, given))
    return Outcome((answer,), _nothing(answer))


def overlaps(exercise: Exercise) -> str | None:
    """Return a sentence if a mistake cannot be told from the solution or from another mistake, else None."""
    solution = _solution(exercise)
    broken = next((result for result in solution.results if isinstance(result, RaisedError)), None)
    if broken is not None:
        return f"the solution raises {describe(broken.error)}"
    seen: list[tuple[int, Outcome]] = []
    for position, mistake in enumerate(exercise.mistakes):
        wrong = _mistake(exercise, position)
        if _alike(wrong, solution, exercise):
            return f"mistake {position} ({brief(mistake.answer)}) is within the tolerance of the solution"
        if wrong.empty:
            return f"mistake {position} ({brief(mistake.answer)}) returns nothing, which counts as not attempted"
        for other, earlier in seen:
            if _alike(wrong, earlier, exercise):
                return f"mistakes {other} and {position} give the same result, so the second hint never shows"
        seen.append((position, wrong))
    return None


def _solution(exercise: Exercise) -> Outcome:
    return _own_outcome(exercise, -1)


def _mistake(exercise: Exercise, position: int) -> Outcome:
    return _own_outcome(exercise, position)


def _own_outcome(exercise: Exercise, position: int) -> Outcome:
    """Return the outcome of a mistake, or of the solution at -1, which `evaluate` may take a while to find, once."""
    memory = exercise.__dict__.setdefault("_outcomes", {})
    if position not in memory:
        own = exercise.solution if position < 0 else exercise.mistakes[position].answer
        memory[position] = outcome(exercise, own)
    return memory[position]


def _attempt(function: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except (KeyboardInterrupt, OutOfTime):
        raise
    except BaseException as error:  # also what is no Exception, such as sys.exit() or a class of the learner's
        return RaisedError(error)


def _settled(result: Any) -> Any:
    """A result that can be read only once, such as a generator or a map, as a list."""
    if not isinstance(result, Iterator):
        return result
    try:
        return list(islice(result, MOST_ELEMENTS))
    except (KeyboardInterrupt, OutOfTime):
        raise
    except BaseException as error:
        return RaisedError(error)


def _changed(function: Any, before: tuple[tuple[Any, ...], ...], after: tuple[tuple[Any, ...], ...]) -> str:
    """Return the name of a parameter whose list, dictionary or set is not what it was, "" if there is none."""
    for probe, given in zip(before, after, strict=True):
        for position, (was, now) in enumerate(zip(probe, given, strict=True)):
            if isinstance(was, list | dict | set) and now != was:
                return slips.name_of(function, position)
    return ""


def _nothing(result: Any) -> bool:
    if isinstance(result, RaisedError):
        return isinstance(result.error, NotImplementedError)
    if isinstance(result, dict) and result:
        return all(value is None or value is ... for value in result.values())
    return result is None or result is ...


def _alike(a: Outcome, b: Outcome, exercise: Exercise) -> bool:
    return all(_alike_one(x, y, exercise) for x, y in zip(a.results, b.results, strict=True))


def _alike_one(got: Any, want: Any, exercise: Exercise) -> bool:
    if isinstance(got, RaisedError) or isinstance(want, RaisedError):
        if not (isinstance(got, RaisedError) and isinstance(want, RaisedError) and type(got.error) is type(want.error)):
            return False
        # The engine says by its sentences which rule was broken; Python's own messages differ between versions.
        return not isinstance(got.error, ValueError) or describe(got.error) == describe(want.error)
    return same(got, want, exercise.rtol, exercise.shown)


def _slip(exercise: Exercise, answer: Any, got: Outcome) -> str:
    """Return the hint for a slip of units or a constant typed in; "" for anything else, and for what has no numbers."""
    if exercise.evaluate is not None:
        return ""  # what is compared there is what the answer did, not what it says
    want = _solution(exercise).results
    wrong = [(_mistake(exercise, place).results, mistake.hint) for place, mistake in enumerate(exercise.mistakes)]
    hint = slips.found(got.results, want, exercise.rtol, exercise.slips, exercise.shown, wrong)
    if hint or exercise.probes is None or any(isinstance(result, RaisedError) for result in got.results):
        return hint
    return slips.typed_in(answer, exercise.solution, exercise.probes)


def _describe(exercise: Exercise, answer: Any, got: Outcome) -> str:
    """Return the general hint: the first probe that differs and how, never the reference."""
    for index, (mine, reference) in enumerate(zip(got.results, _solution(exercise).results, strict=True)):
        if _alike_one(mine, reference, exercise):
            continue
        call = ""
        if exercise.probes is not None:
            call = (
                f"{getattr(answer, '__name__', 'f')}({', '.join(brief(part, 40) for part in exercise.probes[index])})"
            )
        if isinstance(mine, RaisedError):
            typed = isinstance(answer, Mapping | str | int | float)
            if typed and isinstance(mine.error, ValueError):  # from `evaluate`, which says what it takes
                return f"{UNJUDGED}: {str(mine.error).rstrip('.')}."
            where = f"{call} stopped with " if call else "Your answer stopped with "
            return where + describe_error(mine.error, answer)
        if isinstance(mine, str) and exercise.evaluate is not None and isinstance(answer, Mapping):
            return f"With it: {mine}."  # what follows from a decision, in the words of `evaluate`
        name = "your answer" if exercise.evaluate is None or isinstance(answer, Mapping) else "the result"
        if call:
            name = f"the result of {call}"
        if mine is None:
            return f"{name[0].upper()}{name[1:]} is None: does every path of your code return a value?"
        found = difference(mine, reference, exercise.rtol, name, exercise.shown) or f"{name} is not right"
        for part in ("flag", "value"):  # of a decision
            found = found.replace(f"your answer['{part}']", f"the {part}")
        return found[0].upper() + found[1:] + "."
    return ""
