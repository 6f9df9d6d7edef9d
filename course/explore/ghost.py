"""What stood before a move: ranges of axes that hold both pictures, and the sentence that says what changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course.explore.controls import Control
from course.explore.table import Rows

Ranges = dict[str, tuple[float, float]]
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0}


@dataclass(frozen=True)
class Shown:
    """One setting as it was shown: the settings, the rows of its table, and the ranges of its axes."""

    settings: Mapping[str, Any]
    rows: Rows
    ranges: Ranges = field(default_factory=dict)


def ranges_of(layout: Mapping[str, Any]) -> Ranges:
    """Return the ranges that a layout fixes, by the name of the axis; axes that fit themselves are left out."""
    found = {}
    for name, axis in layout.items():
        if re.fullmatch(r"[xy]axis\d*", name) and isinstance(axis, Mapping):
            ends = axis.get("range")
            if isinstance(ends, list | tuple) and len(ends) == 2 and all(isinstance(e, int | float) for e in ends):
                found[name] = (ends[0], ends[1])
    return found


def joined(one: Ranges, other: Ranges) -> Ranges:
    """Return ranges that hold both; an axis that runs backwards still does. An axis that only one has is left out."""
    both = {}
    for name in one.keys() & other.keys():
        (a, b), (c, d) = one[name], other[name]
        if (a < b) == (c < d):
            both[name] = (min(a, c), max(b, d)) if a < b else (max(a, c), min(b, d))
    return both


def what_changed(controls: Sequence[Control], before: Shown, now: Shown) -> str:
    """Return one sentence: which controls moved, and the row that changed most. "" where no control did."""
    moved = [control for control in controls if before.settings[control.name] != now.settings[control.name]]
    if not moved:
        return ""
    first = moved[0]
    was, is_ = (first.text(shown.settings[first.name]) for shown in (before, now))
    head = f"{first.label}: {was} → {is_}." if len(moved) == 1 else f"{len(moved)} controls moved."
    most, change = None, 0.0
    for old_row, new_row in zip(before.rows, now.rows, strict=False):
        if old_row[0] == new_row[0] and (ratio := _change(old_row[1], new_row[1])) > change:
            most, change = f"{new_row[0].lstrip('+- ')}, {old_row[1]} → {new_row[1]}", ratio
    return f"{head} " + (f"Largest change: {most}." if most else "The table stays the same.")


def _change(old: str, new: str) -> float:
    """Return by how much a cell changed: the larger over the smaller less 1; a small number where none can be read."""
    if old == new:
        return 0.0
    (a, unit_a), (b, unit_b) = _read(old), _read(new)
    if a is None or b is None or unit_a != unit_b:
        return 1e-6
    low, high = sorted((abs(a), abs(b)))
    return 1e6 if low == 0 or a * b < 0 else high / low - 1 or 1e-6


def _read(cell: str) -> tuple[float | None, str]:
    found = re.match(r"\s*(-?[\d,]*\.?\d+)\s*([^\s,]*)", cell)
    if not found:
        return None, ""
    number, unit = float(found[1].replace(",", "")), found[2]
    return (number * SECONDS[unit], "s") if unit in SECONDS else (number, unit)
