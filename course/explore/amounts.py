"""A number with its unit: as a table shows it, and as it is typed."""

from __future__ import annotations

import math
import re

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0}
_SHOWN = re.compile(r"\s*(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*([^\s,]*)")
# Thousands are whole groups of three, and begin with no 0: in "1,5" and "0,500" the comma may be a decimal point.
_TYPED = re.compile(
    r"([+-]?(?:(?:[1-9]\d{0,2}(?:[,_ ]\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s,.].*)?", re.DOTALL
)

_THINGS = """answer block card chat chunk document draft gap group kernel layer page piece prompt question replica
request row run second sequence slot step token turn user word"""
_ONE = re.compile(rf"(?<![\d.,])\b1 ({'|'.join(_THINGS.split())})s\b")


def singular(text: str) -> str:
    """A text in which one of a thing is said so: "1 slot", "1 request/s"."""
    return _ONE.sub(r"1 \1", text)


def parse_cell(cell: str) -> tuple[float | None, str]:
    """Return number and unit at the start of a cell of a table; times in seconds. (None, "") if there is none."""
    match = _SHOWN.match(cell)
    if not match:
        return None, ""
    number, unit = float(match[1].replace(",", "")), match[2]
    return (number * SECONDS[unit], "s") if unit in SECONDS else (number, unit)


def parse_typed(text: str, unit: str = "") -> float | None:
    """Return a typed text as a number, None if it is none: "1,024", "12 ms", "12ms" and "3.5 %" are numbers.

    unit: what was asked for. A time typed in another unit of time is converted; any other unit is left aside.
    """
    match = _TYPED.fullmatch(" ".join(text.split()).replace("−", "-"))  # noqa: RUF001
    if not match:
        return None
    number = float(re.sub("[,_ ]", "", match[1]))
    own = (match[2] or "").partition(" ")[0]
    if own in SECONDS and unit in SECONDS:
        number *= SECONDS[own] / SECONDS[unit]
    return number if math.isfinite(number) else None
