"""Look at a learner's code from outside: where it failed, and whether it did anything at all."""

from __future__ import annotations

import functools
import inspect
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, TypeVar

from course.exercises.time_limit import OutOfTime, TimeLimit

T = TypeVar("T")

LONGEST = 300  # characters of an error's message
CELL = ("<ipython-input", "/ipykernel_", "\\ipykernel_", "<stdin>", "<string>")


def describe(error: BaseException) -> str:
    """Return the type of an error and what it says, on one line and cut; a learner's error may fail to say it."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message cannot be shown)"
    if len(message) > LONGEST:
        message = message[: LONGEST - 3] + "..."
    return type(error).__name__ + (f": {message}" if message else "")


def describe_error(error: BaseException, answer: Any) -> str:
    """Return the type and message of an error, and the line of the learner's code it comes from.

    error: what was raised. answer: the learner's function, class or object; its source file tells which lines are the
    learner's.
    """
    # A sentence that ends in a full stop already needs no second one.
    words = describe(error).rstrip(".") + "."
    frame = _learner_frame(error, _files_of(answer))
    if frame is None:
        return words
    source = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()
    return f"{words} It happened in line {frame.lineno} of your cell" + (f": {source}" if source else ".")


def stopped_at(error: BaseException, answer: Any, seconds: float) -> str:
    """Return the sentences for an answer that `time_limit` stopped: after how long, and in which line of the code."""
    if not callable(answer) and not hasattr(answer, "schedule"):
        return f"Trying your answer took more than {seconds:g} s of computing and was stopped."
    frame = _learner_frame(error, _files_of(answer))
    where = f", in line {frame.lineno} of your cell" if frame is not None else ""
    return (
        f"Your code computed for {seconds:g} s without an end and was stopped{where}."
        " Look for a loop whose condition never changes."
    )


def tried(answer: Any, function: Callable[..., T], *arguments: Any) -> tuple[T | None, str]:
    """Return what `function` makes of a learner's answer, and ""; or None and a sentence that says why it fails.

    What it runs has `time_limit.SECONDS` of CPU time.
    """
    limit = TimeLimit()
    try:
        return limit.run(function, *arguments), ""
    except OutOfTime as error:
        return None, stopped_at(error, answer, limit.seconds)
    except Exception as error:  # whatever a learner's function raises
        said = str(error) or type(error).__name__
        return None, f"{said[0].upper()}{said[1:].rstrip('.')}."


@contextmanager
def watch(answer: Any) -> Iterator[tuple[Any, list[bool]]]:
    """Note whether a learner's function, or the `schedule` method of a policy, ever returns anything.

    Yields the answer to use instead, and a list that gets one entry a call: False if the call returned nothing.
    """
    calls: list[bool] = []
    if isinstance(answer, FunctionType):

        @functools.wraps(answer)
        def noted(*args: Any, **kwargs: Any) -> Any:
            return _note(calls, answer(*args, **kwargs))

        yield noted, calls
        return
    cls: Any = answer if inspect.isclass(answer) else type(answer)
    method = inspect.getattr_static(cls, "schedule", None)
    kind = type(method) if isinstance(method, staticmethod | classmethod) else None
    function = method.__func__ if kind else method
    # The package's own policies never return nothing, and some are run without calling schedule.
    if not isinstance(function, FunctionType) or str(function.__module__).split(".")[0] == "course":
        yield answer, calls
        return

    @functools.wraps(function)
    def schedule(*args: Any, **kwargs: Any) -> Any:
        return _note(calls, function(*args, **kwargs))

    own = vars(cls).get("schedule")
    try:
        cls.schedule = kind(schedule) if kind else schedule
    except Exception:  # a class that does not let itself be changed is run unwatched
        yield answer, calls
        return
    try:
        yield answer, calls
    finally:
        if own is None:
            del cls.schedule
        else:
            cls.schedule = own  # the very object: a staticmethod read from the class would come back as a function


def _note(calls: list[bool], result: Any) -> Any:
    calls.append(result is not None and result is not ...)
    return result


def _files_of(answer: Any) -> set[str]:
    subject = answer if inspect.isclass(answer) or isinstance(answer, FunctionType) else type(answer)
    functions = [subject] if isinstance(subject, FunctionType) else list(vars(subject).values())
    return {f.__code__.co_filename for f in functions if isinstance(f, FunctionType) and f.__code__.co_filename}


def _learner_frame(error: BaseException, files: set[str]) -> traceback.FrameSummary | None:
    """Return the innermost frame that is the learner's: in the same source as the answer, or in a notebook cell."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if f.filename in files or any(mark in f.filename for mark in CELL)]
    return mine[-1] if mine else None
