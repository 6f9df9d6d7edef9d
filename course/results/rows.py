"""Numbers out of parsed JSON: null is missing; what no clock or counter can have shown is refused, with its place."""

import math
from collections.abc import Mapping
from typing import Any

from course.settings import MAX_TOKENS, shown
from course.textfiles import finite

NAN = float("nan")
LONGEST = 1e6  # seconds: no request of a benchmark takes eleven days


def mapping(place: str, value: Any) -> Mapping:
    """`value` if it is a JSON object; ValueError, beginning with `place`, if not."""
    if not isinstance(value, dict):
        raise ValueError(f"{place}: an object in braces was expected, not {shown(value)}")
    return value


def number(place: str, row: Mapping, key: str) -> float:
    """row[key] as a float; NaN where it is null or not there. ValueError for anything that is no finite number."""
    value = row.get(key)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NAN
    if not finite(value):
        raise ValueError(f"{place}: {key} is {shown(value)}, which is no number")
    return float(value)


def seconds(place: str, row: Mapping, key: str, scale: float = 1.0) -> float:
    """A duration row[key] times `scale` in seconds; NaN where missing. ValueError for one below 0 or above 1e6 s."""
    value = number(place, row, key) * scale
    if value < 0 or value > LONGEST:
        why = "a time cannot be negative" if value < 0 else f"{value:.3g} s is more than eleven days"
        raise ValueError(f"{place}: {key} is {shown(row[key])}: {why}. Is the unit or the clock another one?")
    return value


def count(place: str, row: Mapping, key: str) -> float:
    """A number of tokens or requests; NaN where missing. ValueError unless it is whole and from 0 to 1e9."""
    value = number(place, row, key)
    if value < 0 or value > MAX_TOKENS or (not math.isnan(value) and value != math.floor(value)):
        raise ValueError(f"{place}: {key} is {shown(row[key])}, which is no count from 0 to {MAX_TOKENS:,}")
    return value
