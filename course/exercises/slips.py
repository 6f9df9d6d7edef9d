"""Slips that turn up in every lab: a unit, a reciprocal, per token for per request, a constant typed in.

A slip is known by the factor between the answer and what was asked, or by the answer being 1 / what was asked. It is
looked for after an exercise's own mistakes, in a value and in every result of a function alike.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.exercises.compare import as_number, near


@dataclass(frozen=True)
class Slip:
    """An answer that is off by a factor.

    factor: answer / what was asked; None: the answer is the reciprocal. hint: one sentence that names the slip. unit:
    the same in a few words, for an answer that has a mistake as well; "" if the slip is not one of units.
    """

    factor: float | None
    hint: str
    unit: str = ""

    def of(self, right: float) -> float:
        """Return the answer with this slip if `right` was asked."""
        if self.factor is None:
            return 1 / right if right else math.inf
        return right * self.factor


RECIPROCAL = Slip(None, "That is the reciprocal, one divided by the right value. Write the unit beside each number.")
EVERYWHERE = (
    RECIPROCAL,
    Slip(
        1e3,
        "That is a thousand times the right value. Look at the prefixes of the units, as milliseconds for seconds.",
        "a thousand times too large, as milliseconds for seconds are",
    ),
    Slip(
        1e-3,
        "That is a thousandth of the right value. Look at the prefixes of the units, as seconds for milliseconds.",
        "a thousand times too small, as seconds for milliseconds are",
    ),
    Slip(
        1e6,
        "That is a million times the right value. Look at the prefixes of the units.",
        "a million times too large",
    ),
    Slip(
        1e-6,
        "That is a millionth of the right value. Look at the prefixes of the units.",
        "a million times too small",
    ),
    Slip(100, "That is a hundred times the right value. Is it a percentage where a share or a factor is expected?"),
    Slip(0.01, "That is a hundredth of the right value. Is it a share where a percentage is expected?"),
)
"""Known to every exercise."""


def per_token(tokens: float) -> Slip:
    """The answer is per token, and was asked per request of so many tokens."""
    return Slip(1 / tokens, "That is for one token. The question is about a whole request.")


def per_request(tokens: float) -> Slip:
    """The answer is per request of so many tokens, and was asked per token."""
    return Slip(tokens, "That is for a whole request. The question is about one token.")


def per_slot(slots: float) -> Slip:
    """The answer is for one slot, and was asked for all of them."""
    return Slip(1 / slots, "That is for one slot. The question is about all of them together.")


def all_slots(slots: float) -> Slip:
    """The answer is for all slots, and was asked for one."""
    return Slip(slots, "That is for all the slots together. The question is about one.")


def found(
    got: Sequence[Any],
    want: Sequence[Any],
    rtol: float,
    known: Sequence[Slip] = (),
    shown: float = 0.0,
    mistakes: Sequence[tuple[Sequence[Any], str]] = (),
) -> str:
    """Return the hint for the slip that explains every result, "" if none does.

    got: the learner's results, one for each probe. want: those of the solution. rtol, shown: as in `compare.near`.
    known: slips of the exercise, which come before those known everywhere. mistakes: what known mistakes give, each
    with its hint: an answer may have a slip of units and one of them, and is then told both.
    """
    mine, right = _numbers(got), _numbers(want)
    if mine is None or right is None or len(mine) != len(right):
        return ""

    def fits(slip: Slip, meant: Sequence[float]) -> bool:
        wrong = [slip.of(value) for value in meant]
        if any(abs(a - b) <= rtol * abs(b) for a, b in zip(wrong, right, strict=True)):
            return False  # not to be told from the right answer
        digit = shown * abs(slip.factor or 0)
        return all(math.isfinite(w) and near(g, w, rtol, digit) for g, w in zip(mine, wrong, strict=True))

    slips = (*known, *EVERYWHERE)
    for slip in slips:
        if fits(slip, right):
            return slip.hint
    for results, hint in mistakes:
        meant = _numbers(results)
        if meant is None or len(meant) != len(mine):
            continue
        for slip in slips:
            if slip.unit and fits(slip, meant):
                return f"Two things. Your value is {slip.unit}. And beside that: {hint}"
    return ""


def typed_in(answer: Callable[..., Any], solution: Callable[..., Any], probes: Sequence[tuple[Any, ...]]) -> str:
    """Return the hint for a function that does not use one of its parameters, "" if it uses all.

    In each probe the argument is exchanged for that of another one: a result that stays wherever the solution's moves
    has a number typed in. The functions may raise; then nothing is said.
    """
    for position in range(len(probes[0])):
        stays: list[bool] = []  # wherever the solution's result moves
        for probe in probes:
            values = (other[position] for other in probes if len(other) == len(probe) > position)
            value = next((value for value in values if not _same(value, probe[position])), None)
            if value is None or not all(stays):
                continue
            calls = (probe, (*probe[:position], value, *probe[position + 1 :]))
            try:
                mine, yours = [[function(*copy.deepcopy(call)) for call in calls] for function in (answer, solution)]
            except Exception:
                return ""
            if _length(mine[0]) != _length(yours[0]):
                return ""  # what is missing comes first
            if not _same(*yours):
                stays.append(_same(*mine))
        if stays and all(stays):
            name = name_of(answer, position)
            return f"The result does not change with {name}, and it should. Did you type a number where {name} belongs?"
    return ""


def _same(a: Any, b: Any) -> bool:
    mine, yours = _numbers([a]), _numbers([b])
    return repr(a) == repr(b) if mine is None or yours is None else mine == yours


def _length(result: Any) -> int:
    return len(result) if isinstance(result, tuple | list) else 1


def name_of(function: Callable[..., Any], position: int) -> str:
    """Return a parameter of a function as a sentence names it."""
    try:
        return f'"{list(inspect.signature(function).parameters)[position]}"'
    except (TypeError, ValueError, IndexError):
        return f"argument {position + 1}"


def _numbers(values: Sequence[Any]) -> list[float] | None:
    """Return all numbers in the results, in order, or None if something else is among them."""
    found: list[float] = []
    for value in values:
        if isinstance(value, Mapping):
            inner = _numbers(list(value.values()))
        elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
            inner = _numbers(list(value))
        else:
            number = as_number(value)
            inner = None if number is None or not math.isfinite(number) else [number]
        if inner is None:
            return None
        found += inner
    return found
