"""Compare a learner's value with a reference, and say in words how it differs without giving the reference away."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

ATOL = 1e-9
"""Absolute tolerance if the reference is 0, in the answer's own unit: far below anything a lab computes."""


def near(value: float, want: float, rtol: float, shown: float = 0.0) -> bool:
    """Whether a number is right: within the relative tolerance `rtol`, or rounded as the text rounds.

    shown: the last digit of such a number in the text, such as 0.01; 0 if the text shows none. What is rounded to it,
    or to one digit more, is off by at most half a unit of the digit that it is rounded to.
    """
    off = abs(value - want)
    if off <= max(rtol * abs(want), ATOL):
        return True
    digits = (shown, shown / 10) if shown > 0 else ()
    return any(off <= 0.5001 * digit and abs(value / digit - round(value / digit)) < 1e-6 for digit in digits)


def same(got: Any, want: Any, rtol: float, shown: float = 0.0) -> bool:
    """Whether `got` equals `want`, numbers as in `near`."""
    return difference(got, want, rtol, shown=shown) is None


def difference(got: Any, want: Any, rtol: float, name: str = "your answer", shown: float = 0.0) -> str | None:
    """Describe the first difference, or return None if there is none.

    Ints, floats, NumPy scalars, fractions and decimals count as numbers alike; lists, tuples and arrays as sequences
    alike, compared element by element; text without regard to case and outer spaces.

    got: the learner's value.
    want: the reference.
    rtol, shown: see `near`.
    name: what the sentence calls the value.
    """
    if _is_bool(want):
        if not _is_bool(got):
            return f"{name} is {brief(got)}: give True or False"
        return None if bool(got) == bool(want) else f"{name} is {bool(got)}, which is not right"
    number = as_number(want)
    if number is not None:
        return _number_difference(got, number, rtol, name, shown)
    if isinstance(want, str):
        if not isinstance(got, str):
            return f"{name} is {brief(got)}: give text in quotes"
        return (
            None if got.strip().casefold() == want.strip().casefold() else f"{name} is {brief(got)}, which is not right"
        )
    if isinstance(want, Mapping):
        return _mapping_difference(got, want, rtol, name, shown)
    if isinstance(want, set | frozenset):
        if not isinstance(got, set | frozenset):
            return f"{name} is {brief(got)}: give a set"
        return None if got == want else f"{name} does not have the right elements"
    if isinstance(want, Sequence | np.ndarray):
        return _sequence_difference(got, want, rtol, name, shown)
    try:
        return None if bool(got == want) else f"{name} is {brief(got)}, which is not right"
    except Exception:
        return f"{name} is {brief(got)}, which cannot be compared with the right answer"


def as_number(value: Any) -> float | None:
    """Return a real number as a float (a huge int becomes infinite), or None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if _is_bool(value) or not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]  # an int beyond every float
    except (TypeError, ValueError):
        return None


def brief(value: Any, limit: int = 60) -> str:
    """Return a short form of a value for a sentence."""
    number = as_number(value)
    if number is not None:
        return f"{number:.6g}"
    if value is None or value is ...:
        return "None" if value is None else "..."
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _number_difference(got: Any, want: float, rtol: float, name: str, shown: float) -> str | None:
    value = as_number(got)
    if value is None:
        return f"{name} is {_no_number(got)}"
    if math.isnan(want) or math.isinf(want):
        fits = (math.isnan(want) and math.isnan(value)) or value == want
        return None if fits else f"{name} is {brief(value)}, which is not right"
    if math.isnan(value):
        return f"{name} is NaN, not a number: look for 0/0, or for a value that was never set"
    if math.isinf(value):
        return f"{name} is infinite: look for a division by 0"
    if near(value, want, rtol, shown):
        return None
    return f"{name} is {brief(value)}, which is too {'high' if value > want else 'low'}"


def _no_number(got: Any) -> str:
    if isinstance(got, str):
        return f"the text {brief(got)}: give a number, without quotes"
    if _is_bool(got):
        return f"{bool(got)}: give a number, not True or False"
    if isinstance(got, complex | np.complexfloating):
        return f"the complex number {got}: give a real number"
    if callable(got):
        return "a function: call it, and give the number it returns"
    if isinstance(got, Sequence) or (isinstance(got, np.ndarray) and got.ndim):
        if isinstance(got, tuple) and len(got) == 2 and all(type(part) is int for part in got) and got[1] >= 0:
            return f"two numbers, {got[0]} and {got[1]}: give one, with a decimal point: {got[0]}.{got[1]}"
        return f"a sequence of {len(got)}: give one number"
    return f"{brief(got)}: give a number"


def _mapping_difference(got: Any, want: Mapping[Any, Any], rtol: float, name: str, shown: float) -> str | None:
    if not isinstance(got, Mapping):
        return f"{name} is {brief(got)}: give a dictionary with the keys {', '.join(map(repr, want))}"
    for key, value in want.items():
        if key not in got:
            return f"{name} has no key {key!r}"
        found = difference(got[key], value, rtol, f"{name}[{key!r}]", shown)
        if found:
            return found
    extra = [key for key in got if key not in want]
    return f"{name} has a key {extra[0]!r} that is not expected" if extra else None


def _sequence_difference(got: Any, want: Any, rtol: float, name: str, shown: float) -> str | None:
    if isinstance(got, str | Mapping) or not (hasattr(got, "__len__") and hasattr(got, "__iter__")):
        if hasattr(got, "__next__"):
            return f"{name} is a generator, which can be read only once: give a list"
        return f"{name} is {brief(got)}: give a list or an array of {len(want)}"
    if isinstance(got, np.ndarray) and got.ndim == 0:
        return f"{name} is {brief(got)}: give a list or an array of {len(want)}"
    if len(got) != len(want):
        return f"{name} has {len(got)} elements where {len(want)} are expected"
    for index, (mine, reference) in enumerate(zip(got, want, strict=True)):
        found = difference(mine, reference, rtol, f"{name}[{index}]", shown)
        if found:
            return found
    return None
