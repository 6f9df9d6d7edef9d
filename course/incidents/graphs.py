"""The four graphs of an incident beside those after the repair: requests that run and wait, tokens/s, KV usage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.operator import four_graphs
from course.figures.parts import MARGIN, Part, note
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


def figure(id: str, seed: int = 0, *, height: int = 400) -> go.Figure:
    """Before and after the repair, on one time. Raises KeyError: there is no such incident."""
    found = [graphs(scenes.SCENES[id](repaired, seed)) for repaired in (False, True)]
    panels = (
        ("running [requests]", lambda one: one.running),
        ("waiting in the engine [requests]", lambda one: one.waiting),
        ("output [tokens/s]", lambda one: one.tokens),
        ("KV usage [%]", lambda one: one.usage),
    )
    runs = (("before", "wasted", found[0]), ("after the repair", "waiting", found[1]))
    data, notes, axes = four_graphs(panels, runs, min(float(one.at[-1]) for one in found), room=1.15)
    for after in data[1::2]:
        after["line"]["dash"] = "dash"  # so that the other is seen where both are the same
    above = {"xref": "x domain", "yref": "y domain", "yanchor": "bottom"}
    # Beside the heading of the first panel, where no line can run through them.
    notes += [note(place, 1, f"<b>{name}</b>", colour, "right", **above)
              for place, (name, colour, _) in zip((0.6, 1.0), runs, strict=True)]  # fmt: skip
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN} | axes
    return theme.plain_figure(data, layout | {"annotations": notes})
