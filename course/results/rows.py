"""Numbers out of parsed JSON: null is missing; what no clock or counter can have shown is refused, with its place."""

import difflib
import math
import re
from collections.abc import Collection, Mapping
from copy import copy
from typing import Any

from course.base.settings import MAX_TOKENS, quote
from course.base.textfiles import finite

NAN = float("nan")
ALIKE = 0.85  # of the letters: one is missing or wrong
LONGEST = 1e6  # seconds: no request of a benchmark takes eleven days
_NAMES = {"mean": "mean", "avg": "mean", "median": "p50", "min": "min", "max": "max"}
_NAMES |= dict.fromkeys(("std", "stddev", "std_dev"), "std")
_PERCENTILE = re.compile(r"p(\d{1,3})(\.\d{1,3})?", re.ASCII)


def mapping(place: str, value: Any) -> Mapping:
    """`value` if it is a JSON object; ValueError, beginning with `place`, if not."""
    if not isinstance(value, dict):
        raise ValueError(f"{place}: an object in braces was expected, not {quote(value)}")
    return value


def part(place: str, row: Mapping, key: str) -> Mapping:
    """The object row[key], empty if it is null or not there; ValueError if it is something else."""
    value = row.get(key)
    return {} if value is None else mapping(f"{place}, {key}", value)


def items(place: str, row: Mapping, key: str) -> list | None:
    """The list row[key], None if it is null or not there; ValueError if it is something else."""
    value = row.get(key)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{place}: {key} is {quote(value)}, no list")
    return value


def numeric(row: Mapping) -> dict:
    """The object with numbers that were written as text ("550") as numbers; for the tools that do that."""
    found = copy(row) if isinstance(row, dict) else dict(row)  # which keeps what is known of the keys that were read
    found.update({key: _of_text(value) for key, value in row.items() if isinstance(value, str)})
    return found


def _of_text(value: str) -> Any:
    try:
        return float(value) if len(value) < 50 else value
    except ValueError:
        return value


def number(place: str, row: Mapping, key: str) -> float:
    """row[key] as a float; NaN if it is null or not there. ValueError for anything that is no finite number."""
    value = row.get(key)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NAN
    if not finite(value):
        raise ValueError(f"{place}: {key} is {quote(value)}, which is not a number")
    return float(value)


def seconds(place: str, row: Mapping, key: str, scale: float = 1.0) -> float:
    """A duration row[key] times `scale` in seconds; NaN if missing. ValueError for one below 0 or above 1e6 s."""
    value = number(place, row, key) * scale
    if value < 0 or value > LONGEST:
        why = "a time cannot be negative" if value < 0 else f"{value:.3g} s is more than eleven days"
        raise ValueError(f"{place}: {key} is {quote(row[key])}: {why}. Check its unit and its clock")
    return value


def count(place: str, row: Mapping, key: str) -> float:
    """A number of tokens or requests; NaN if missing. ValueError unless it is whole and from 0 to 1e12."""
    value = number(place, row, key)
    if value < 0 or value > 1e12 or (not math.isnan(value) and value != math.floor(value)):
        raise ValueError(f"{place}: {key} is {quote(row[key])}, which is no count")
    return value


def tokens(place: str, row: Mapping, key: str) -> float:
    """The tokens of one request; NaN if missing. ValueError unless the number is whole and from 0 to 1e9."""
    value = count(place, row, key)
    if value > MAX_TOKENS:
        raise ValueError(f"{place}: {key} is {quote(row[key])}, which is no count from 0 to {MAX_TOKENS:,}")
    return value


def rate(place: str, row: Mapping, key: str) -> float:
    """A rate [1/s]; NaN if missing. ValueError for one below 0."""
    value = number(place, row, key)
    if value < 0:
        raise ValueError(f"{place}: {key} is {quote(row[key])}: a rate cannot be negative")
    return value


def setting(row: Mapping, key: str) -> float:
    """A rate or a limit that was asked for: NaN if there was none, which tools write as null, inf or Infinity."""
    value = row.get(key)
    number = _of_text(value) if isinstance(value, str) else value
    return float(number) if number is not None and finite(number) and number > 0 else NAN


def statistic(key: str) -> str | None:
    """mean, p50, p99.9, max, ... for what a tool calls it; None for anything else.

    "median" is p50 and "avg" the mean. guidellm leaves the point out: p001 is p0.1, p05 is p5, p999 is p99.9.
    """
    if key in _NAMES:
        return _NAMES[key]
    match = _PERCENTILE.fullmatch(key)
    if not match:
        return None
    digits, fraction = match[1], match[2]
    if fraction:
        value = float(digits + fraction)
    elif digits.startswith("0"):
        value = 100 * float(f"0.{digits}")
    else:
        value = float(digits) if len(digits) < 3 or digits == "100" else float(digits) / 10
    return f"p{value:g}" if 0 <= value <= 100 else None


def statistics(place: str, block: Mapping, scale: float = 1.0) -> dict[str, float]:
    """The statistics of a block in seconds, by the names above; what is null or unknown is left out."""
    by_name = {}
    for key in block:
        name = statistic(key)
        if name is not None:
            value = seconds(place, block, key, scale)
            if not math.isnan(value):
                by_name[name] = value
    return by_name


def without_missing(values: Mapping[str, float]) -> dict[str, float]:
    """Only what is not missing."""
    return {name: value for name, value in values.items() if not math.isnan(value)}


def flat(place: str, doc: Mapping, metrics: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Keys such as p99_ttft_ms as metric -> statistic -> seconds; without a unit they are seconds, as in other tools.

    metrics: the tool's name of each -> ours. See `unread` for keys that name a metric and were not understood.
    """
    by_metric: dict[str, dict[str, float]] = {}
    for key in doc:
        named = _of_a_metric(key, metrics)
        if named is not None:
            metric, name, scale = named
            value = number(place, doc, key) * scale
            if not math.isnan(value) and name not in by_metric.get(metric, {}):
                by_metric.setdefault(metric, {})[name] = value
    return by_metric


def unread(doc: Mapping, metrics: Mapping[str, str], known: Collection[str]) -> list[str]:
    """A sentence for each key that looks like one which is read, and is not.

    Numbers with a metric in the key whose statistic or unit is none that `flat` reads; and keys almost like one of
    `known` that is not there.
    """
    words = "|".join(map(re.escape, metrics))
    keys = [key for key, value in doc.items() if finite(value) and re.search(rf"(?:^|_)(?:{words})(?:_|$)", key)]
    missing = [key for key in known if key not in doc]
    near = {key: one for one in missing for key in doc if key not in known and alike(str(key), one)}
    return [
        *(f"{key} looks like a metric, and is not read: its statistic or its unit is not known"
          for key in keys if _of_a_metric(key, metrics) is None),
        *(f"{key} is not read, and {one} is not there: was it renamed?" for key, one in near.items()),
    ]  # fmt: skip


def alike(key: str, known: str) -> bool:
    """Whether a key is almost `known`: with a word more, or with letters missing or wrong."""
    return key.startswith(f"{known}_") or bool(difflib.get_close_matches(key, [known], cutoff=ALIKE))


def _of_a_metric(key: str, metrics: Mapping[str, str]) -> tuple[str, str, float] | None:
    """Our name of the metric, the statistic, and seconds per unit."""
    head, _, rest = key.partition("_")
    name = statistic(head)
    for unit, scale in (("_ms", 1e-3), ("_s", 1.0), ("_seconds", 1.0), ("", 1.0)):
        metric = metrics.get(rest.removesuffix(unit)) if rest.endswith(unit) else None
        if name is not None and metric is not None:
            return metric, name, scale
    return None
