"""What stood before a move: ranges of axes that hold both pictures, and the sentence that says what changed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from course.explore import amounts
from course.explore.controls import Control
from course.explore.table import Rows, short

SOLID = ("bar", "heatmap")
"""Traces of which two on top of each other cannot be read: their panels have no ghost (plot.js)."""
PALE, LINE = " Pale: before.", 122
"""What a ghost is, said where so many characters have room for it."""

Ranges = dict[str, tuple[float, float, str]]
"""Of axes by name: where they begin and end (exponents on a log axis), and their type, "" if plotly chooses it."""


@dataclass(frozen=True)
class Shown:
    """One setting as it was shown: the settings, the rows of its table, and the ranges of its axes."""

    settings: Mapping[str, Any]
    rows: Rows
    ranges: Ranges = field(default_factory=dict)


def ranges_of(layout: Mapping[str, Any]) -> Ranges:
    """Return the ranges that a layout fixes, by the name of the axis; axes that fit themselves are left out."""
    ranges = {}
    for name, axis in layout.items():
        if re.fullmatch(r"[xy]axis\d*", name) and isinstance(axis, Mapping):
            ends = axis.get("range")
            if isinstance(ends, list | tuple) and len(ends) == 2 and all(map(_finite, ends)):
                ranges[name] = (ends[0], ends[1], axis.get("type") or "")
    return ranges


def joined(one: Ranges, other: Ranges) -> Ranges:
    """Return ranges that hold both; an axis that runs backwards still does.

    An axis that only one has, or that is linear in one and logarithmic in the other, is left out.
    """
    both = {}
    for name in one.keys() & other.keys():
        (a, b, kind), (c, d, other_kind) = one[name], other[name]
        if (a < b) == (c < d) and kind == other_kind:
            both[name] = (min(a, c), max(b, d), kind) if a < b else (max(a, c), min(b, d), kind)
    return both


def what_changed(controls: Sequence[Control], before: Shown, now: Shown) -> str:
    """Return one sentence: which controls moved, and the value that changed most. "" if no control did."""
    moved = [control for control in controls if before.settings[control.name] != now.settings[control.name]]
    if not moved:
        return ""
    first = moved[0]
    was, is_ = (first.text(run.settings[first.name]) for run in (before, now))
    head = f"{first.label}: {short(was, is_)} → {is_}." if len(moved) == 1 else f"{len(moved)} controls moved."
    if before.rows == now.rows:
        return f"{head} The table stays the same."
    most = _largest_change(before.rows, now.rows)
    return f"{head} " + (f"Largest change: {most}." if most else "The table has other rows.")


def has_ghost(traces: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a panel of these traces has none that is solid."""
    panels = [((trace.get("xaxis") or "x", trace.get("yaxis") or "y"), trace.get("type") in SOLID) for trace in traces]
    return bool({panel for panel, _ in panels} - {panel for panel, solid in panels if solid})


def _largest_change(before: Rows, now: Rows) -> str:
    """Return the value that changed most, by its label, and by the head of its column if a row has several."""
    heads = now[0] if now and not now[0][0] else ()
    old_rows = {row[0]: row for row in before}
    most, largest = "", 0.0
    for row in now[1:] if heads else now:
        for column, (old, new) in enumerate(zip(old_rows.get(row[0], row)[1:], row[1:], strict=False), start=1):
            if (change := _change(old, new)) > largest:
                names = (row[0].lstrip("+- "), heads[column] if heads and len(row) > 2 else "")
                most, largest = f"{', '.join(filter(None, names))}, {short(old, new)} → {new}", change
    return most


def _finite(end: Any) -> bool:
    return isinstance(end, Real) and math.isfinite(end)


def _change(old: str, new: str) -> float:
    """Return by how much a cell changed: the larger over the smaller less 1; a small number if none can be read."""
    if old == new:
        return 0.0
    (a, unit_a), (b, unit_b) = amounts.parse_cell(old), amounts.parse_cell(new)
    if a is None or b is None or unit_a != unit_b:
        return 1e-6
    low, high = sorted((abs(a), abs(b)))
    return 1e6 if low == 0 or a * b < 0 else high / low - 1 or 1e-6
