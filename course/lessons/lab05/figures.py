"""Figures of lab 05: a stretch of a service on a time axis, its TTFTs, two machines, and the graphs of the ticket."""

from __future__ import annotations

from math import ceil, isfinite, log2

import numpy as np
import plotly.graph_objects as go

from course.figures import parts, theme
from course.figures.parts import Part
from course.lessons.lab05 import night
from course.lessons.lab05.machine import Compared
from course.lessons.lab05.on_a_card import Both
from course.lessons.lab05.served import Served

LANES = 8
"""Requests that a stretch draws at most."""
STRETCH, CARD_STRETCH = 0.06, 0.3  # seconds of a run that are drawn: of the toy, and of the card
MIDDLE = 100
"""The request from which on one is looked for that finds the engine idle."""
BEFORE = 0.04
"""Share of the stretch before the request that it is about."""


def _bars(x: list[float], base: list[float], y: list[float], colour: str, name: str, width: float) -> Part:
    return {
        "type": "bar", "orientation": "h", "name": name, "y": y, "x": theme.round_digits(x),
        "base": theme.round_digits(base), "width": width, "hoverinfo": "skip", "meta": {"see": name},
        "marker": {"color": theme.COLOURS[colour], "line": {"width": 0}}, **parts.place(1),
    }  # fmt: skip


def stretch(found: Served, seconds: float) -> list[Part]:
    """Bars of a stretch of the run [ms]: steps of the GPU in row 0, above it requests, which wait and then run."""
    run = found.run
    idle = np.flatnonzero(found.idle[MIDDLE:])
    first = MIDDLE + (int(idle[0]) if len(idle) else 0)
    begin = float(run.arrival[first]) - BEFORE * seconds
    end = begin + seconds

    def cut(starts: np.ndarray, ends: np.ndarray) -> tuple[list[float], list[float]]:
        """Lengths and beginnings of what of these spans lies in the stretch [ms]."""
        low, high = np.maximum(starts, begin), np.minimum(ends, end)
        return (1e3 * np.maximum(high - low, 0)).tolist(), (1e3 * (low - begin)).tolist()

    steps = run.steps
    inside = (steps.end > begin) & (steps.start < end)
    length, base = cut(steps.start[inside], steps.end[inside])
    data = [_bars(length, base, [0.0] * len(length), "continuous", "a step", 0.8)]
    there = np.flatnonzero((run.arrival < end) & (run.response > begin) & (run.arrival >= run.arrival[first]))[:LANES]
    rows = [float(row) for row in range(1, len(there) + 1)]
    for colour, name, starts, ends in (
        ("waiting", "waits", run.arrival, run.admitted),
        ("decode", "runs", run.admitted, run.response),
    ):
        length, base = cut(starts[there], ends[there])
        data.append(_bars(length, base, rows, colour, name, 0.6))
    return data


def _shares(found: Served, colour: str, name: str, most: float, **style: str) -> Part:
    """The share of requests whose TTFT is at most so long [ms]."""
    percents = np.arange(0, 101)
    return parts.line(
        np.minimum(1e3 * np.percentile(found.run.ttft, percents), most), percents, colour, name, 2, **style
    )


def _panels(
    found: Served, data: list[Part], seconds: float, least: float, height: int, longest: float, head: str
) -> go.Figure:
    """The stretch on the left, TTFTs on the right. least: the shortest axis of TTFT [ms], which grows by doubling."""
    most = least * 2 ** max(0, ceil(log2(max(longest, 1e-9) * 1e3 / least / 0.95)))
    mark = '<span style="color:{}">■</span> {}'
    fills = (("waiting", "waits"), ("decode", "runs"), ("continuous", "a step"))
    key = "  ".join(mark.format(theme.COLOURS[colour], name) for colour, name in fills)
    p95 = 1e3 * found.p95
    dot = parts.dots([min(p95, most)], [95], ["decode"], "p95", 2)
    text = f"p95 {p95:,.3g} ms" if p95 < 1e3 else f"p95 {p95 / 1e3:,.3g} s"
    # Low on the right, where no curve passes.
    label = parts.words([0.98 * most], [10], [text], ["decode"], 2, corner="middle left")
    rows = list(range(LANES + 1))
    return parts.pair(
        [*stretch(found, seconds), *data, dot, label],
        ({"title": {"text": "time [ms]"}, "range": [0, 1e3 * seconds]},
         {"range": [-0.6, LANES + 0.6], "tickvals": rows, "ticks": "",
          "ticktext": ["GPU", *("" for _ in rows[1:])], "showgrid": False}),
        ({"title": {"text": "TTFT [ms]"}, "range": [0, most]},
         {"title": {"text": "requests [%]"}, "range": [0, 104], "tickvals": [0, 25, 50, 75, 95]}),
        height,
        columns=((0.0, 0.55), (0.66, 1.0)),
        barmode="overlay",
        annotations=[parts.heading(1, key), parts.heading(2, head)],
    )  # fmt: skip


def service(found: Served, *, height: int = 290) -> go.Figure:
    """The toy: 60 ms of it, and the share of requests by TTFT."""
    longest = found.p95
    most = 8.0 * 2 ** max(0, ceil(log2(max(1e3 * longest, 1e-9) / 8 / 0.95)))
    data = [_shares(found, "decode", "requests with a TTFT of at most", most)]
    return _panels(found, data, STRETCH, 8.0, height, longest, "TTFT of all")


def with_and_without(found: Both, *, height: int = 290) -> go.Figure:
    """A card: 300 ms of it with the window, and TTFTs with and without (dashed)."""
    longest = max(found.waits.p95, found.never.p95)
    most = 100.0 * 2 ** max(0, ceil(log2(1e3 * longest / 100 / 0.95)))
    data = [
        _shares(found.never, "theory", "without a window", most, dash="dash"),
        _shares(found.waits, "decode", "with the window", most),
    ]
    return _panels(found.waits, data, CARD_STRETCH, 100.0, height, longest, "TTFT; dashed: without")


def two_machines(found: Compared, *, height: int = 220) -> go.Figure:
    """Tokens/s of a fixed batch, and the p95 of TTFT over the window: recorded, and measured here."""
    data: list[Part] = []
    values: list[float] = []
    tails: list[float] = []
    machines = [(found.recorded, "recorded", "H200")]
    machines += [(found.here, "measured", "here")] if found.here.where else []
    for machine, colour, name in machines:
        rates = {batch: batch / took for batch, took in machine.steps.items()}
        values += list(rates.values())
        if rates:
            batches, speeds = list(rates), list(rates.values())
            data.append(parts.line(batches, speeds, colour, f"{name}, {colour}") | {"mode": "lines+markers"})
            data.append(parts.words(batches[-1:], speeds[-1:], [name], [colour], corner="top left"))
        by_window = sorted((window, 1e3 * run.p95) for window, run in machine.runs.items() if isfinite(run.p95))
        if by_window:
            x, y = ([pair[place] for pair in by_window] for place in (0, 1))
            tails += y
            data.append(parts.line(x, y, colour, f"{name}, {colour}", 2) | {"mode": "lines+markers"})
    speeds_axis, tails_axis = _decades(values), _decades(tails)
    return parts.pair(
        data,
        ({"title": {"text": "batch [sequences]"}, "type": "log", "range": [-0.05, 1.3], "tickvals": [1, 2, 4, 8, 16]},
         {"title": {"text": "tokens/s"}} | speeds_axis),
        ({"title": {"text": "window [ms]"}, "range": [0, 20.5]},
         {"title": {"text": "p95 of TTFT [ms]"}} | tails_axis),
        height,
        annotations=[parts.heading(1, "a fixed batch"), parts.heading(2, "this loop")],
    )  # fmt: skip


def _decades(values: list[float]) -> Part:
    """A logarithmic axis of whole decades around these values, which rests while more is measured."""
    low, high = int(np.floor(np.log10(min(values)))), int(np.ceil(np.log10(max(values))))
    ticks = [10.0**k for k in range(low, max(high, low + 1) + 1)]
    texts = [f"{tick:,.0f}" if tick >= 1 else f"{tick:g}" for tick in ticks]
    ends = [low, max(high, low + 1)]
    return {"type": "log", "range": ends, "tickvals": theme.round_digits(ticks), "ticktext": texts}


def operators_graphs(found: night.Night, *, height: int = 290) -> go.Figure:
    """What the ticket shows, hour by hour: the p95 of TTFT, and how busy the card is."""
    hours = list(range(len(night.RATES)))
    names = [f"{(night.EVENING + hour) % 24}" for hour in hours]
    time = {"title": {"text": "o'clock"}, "range": [-0.4, len(hours) - 0.6], "tickvals": hours[::2],
            "ticktext": names[::2]}  # fmt: skip
    data = [
        parts.line(hours, 1e3 * found.p95, "waiting", "p95 of TTFT"),
        parts.line(hours, 100 * np.minimum(found.busy, 1), "continuous", "GPU computes", 2),
        parts.line(hours, 100 * np.array(night.RATES) / max(night.RATES), "theory", "requests", 2, dash="dot"),
    ]
    return parts.pair(
        data,
        (time, {"title": {"text": "p95 of TTFT [ms]"}, "range": [0, 160]}),
        (time, {"title": {"text": "share [%]"}, "range": [0, 105]}),
        height,
        annotations=[
            parts.heading(1, "time to the first token"),
            parts.heading(2, "the GPU computes; dotted: requests"),
        ],
    )
