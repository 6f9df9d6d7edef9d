"""The four graphs that an operator sees before and after a change, as the tickets of several labs show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course.figures import theme
from course.figures.parts import LEFT, RIGHT, Part, axis, heading, line

Panel = tuple[str, Callable[[Any], np.ndarray]]


def four_graphs(
    panels: Sequence[Panel], runs: Sequence[tuple[str, str, Any]], end: float, *, room: float = 1.1
) -> tuple[list[Part], list[Part], Part]:
    """Traces, headings and axes of four panels, two beside two.

    panels: (title, function of what was found to one value for each time). runs: (name, colour, found) of each line;
    `found.at` has the times [s], from 0 to `end`. room: the top of each y axis over the largest value.
    """
    data, notes, axes = list[Part](), list[Part](), Part()
    for panel, (title, value) in enumerate(panels, start=1):
        left, upper = panel % 2 == 1, panel <= 2
        data += [line(found.at, value(found), colour, name, panel) for name, colour, found in runs]
        most = room * max(float(np.max(value(found))) for *_, found in runs) or 1.0
        notes.append(heading(panel, title))
        axes[axis("xaxis", panel)] = {
            "anchor": axis("y", panel), "domain": list(LEFT if left else RIGHT), "range": [0, end],
            "showticklabels": not upper, "title": {"text": "" if upper else "time [s]"},
        }  # fmt: skip
        axes[axis("yaxis", panel)] = {
            "anchor": axis("x", panel), "domain": [0.56, 1.0] if upper else [0.0, 0.42], "nticks": 4,
            "range": theme.round_digits([0, most], 3),
        }  # fmt: skip
    return data, notes, axes
