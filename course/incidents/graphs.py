"""The four graphs of an incident beside those after the repair: requests that run and wait, tokens/s, KV usage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from course.figures import theme
from course.figures.operator import four_graphs
from course.incidents import page, scenes
from course.incidents.page import Seen


@dataclass(frozen=True)
class Graphs:
    """Of one run a value for each line of its page."""

    at: np.ndarray
    running: np.ndarray
    waiting: np.ndarray
    tokens: np.ndarray
    usage: np.ndarray


def graphs(seen: Seen) -> Graphs:
    """What the periodic lines of a run say, as arrays: requests, requests, tokens/s, percent."""
    at = seen.at()
    return Graphs(
        at,
        np.array([page.running(seen, one) for one in at]),
        np.array([page.waiting(seen, one) for one in at]),
        np.array([page.rate(seen, seen.run.steps.useful, one) for one in at]),
        np.array([100 * page.usage(seen, one) for one in at]),
    )


def figure(id: str, seed: int = 0) -> dict[str, Any]:
    """The figure, as Plotly has it: before and after the repair. Raises KeyError: no such incident."""
    found = [graphs(scenes.SCENES[id](repaired, seed)) for repaired in (False, True)]
    panels = [("running [requests]", lambda one: one.running), ("waiting [requests]", lambda one: one.waiting),
              ("tokens/s", lambda one: one.tokens), ("KV usage [%]", lambda one: one.usage)]  # fmt: skip
    runs = [("before", theme.NOTE, found[0]), ("after", theme.MARK, found[1])]
    data, notes, axes = four_graphs(panels, runs, max(float(one.at[-1]) for one in found))
    return {"data": data, "layout": {**axes, "annotations": notes}}
