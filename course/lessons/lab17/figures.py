"""Figures of lab 17: who waits and where, in an explorer, and what comes with the ticket.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from math import log10

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.operator import four_graphs
from course.figures.parts import INKS, MARGIN, Part, axis, heading, line, note, pair
from course.lessons.lab17.tenants import SECONDS, Outcome
from course.lessons.lab17.throttled import Graphs

EVERY = 5  # seconds of a point
TICKS = (0.01, 0.1, 1, 10, 100, 1_000)


def means(values: np.ndarray, when: np.ndarray, every: float = EVERY) -> np.ndarray:
    """The mean of the values in each interval of `every` seconds, NaN where there is none."""
    place = np.digitize(when, np.arange(0, SECONDS + 1, every)) - 1
    here = (place >= 0) & (place < SECONDS // every)
    counts = np.bincount(place[here], minlength=int(SECONDS // every))
    sums = np.bincount(place[here], weights=values[here], minlength=len(counts))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def waits(found: Outcome, *, height: int = 300) -> go.Figure:
    """Left the TTFT of those who arrive, quiet and noisy; right who has a slot and who waits, over the minute."""
    run, quiet = found.run, found.quiet
    middle = np.arange(EVERY / 2, SECONDS, EVERY)
    edges = np.arange(0, SECONDS + 1, 2.0)
    running, waiting = ([count(at) for at in edges] for count in (found.running, found.waiting))
    data = [
        line(middle, means(run.ttft[~quiet], run.arrival[~quiet]), "wasted", "noisy"),
        line(middle, means(run.ttft[quiet], run.arrival[quiet]), "decode", "quiet"),
        line(edges, waiting, "waiting", "waiting", 2),
        line(edges, running, "continuous", "with a slot", 2),
    ]
    keys = ((1, ("decode", "quiet"), ("wasted", "noisy")), (2, ("continuous", "with a slot"), ("waiting", "waiting")))
    notes = [
        heading(panel, "   ".join(f'<span style="color:{INKS[colour]}">■ {name}</span>' for colour, name in names))
        for panel, *names in keys
    ]
    time: Part = {"title": {"text": "time [s]"}, "range": [0, SECONDS], "dtick": 20}
    ttft: Part = {"title": {"text": "mean TTFT [s]"}, "type": "log", "tickvals": list(TICKS),
                  "ticktext": [f"{tick:,g}" for tick in TICKS],
                  "range": theme.round_digits([log10(0.008), log10(1_500)])}  # fmt: skip
    many: Part = {"title": {"text": "requests"}, "range": theme.round_digits([0, 1.1 * max(*running, *waiting, 9)], 3)}
    return pair(data, (time, ttft), (time, many), height, annotations=notes)


def operators_graphs(before: Graphs, now: Graphs, *, height: int = 400) -> go.Figure:
    """Four graphs of an operator, yesterday and today: utilisation, tokens/s, running, waiting."""
    panels = (
        ("GPU utilisation [%]", lambda found: 100 * found.busy),
        ("output [tokens/s]", lambda found: found.tokens),
        ("running [requests]", lambda found: found.running),
        ("waiting in the engine [requests]", lambda found: found.waiting),
    )
    runs = (("yesterday", "waiting", before), ("today", "wasted", now))
    data, notes, axes = four_graphs(panels, runs, SECONDS, room=1.15)
    for name, colour, found in runs:
        x, y = (float(each[len(each) // 2]) for each in (found.at, found.running))
        notes.append(note(x, y, name, colour, yshift=14, xref=axis("x", 3), yref=axis("y", 3)))
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN} | axes
    return theme.plain_figure(data, layout | {"annotations": notes})
