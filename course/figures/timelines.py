"""Timelines of several policies on one workload: slots as lanes, time to the right, one clock for all panels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.engine.run import Run
from course.figures import theme

KINDS = ("waiting", "prefill", "decode", "wasted")
WORDS = {"waiting": "waiting", "prefill": "prefill", "decode": "decode", "wasted": "padding"}
HEADER, STRIP, GAP = 1.3, 1.3, 0.3  # heights of a panel's title, its waiting line and the space below it, in lanes
MARGINS = 28, 48  # pixels above and below the panels
DIM_OPACITY = 0.4  # opacity of the other requests while one is followed


@dataclass(frozen=True)
class Spans:
    """What one run did, as bars: bar k is request `request[k]`, from `start[k]` to `end[k]` [s], in `lane[k]`.

    Lanes count from 0. Those of prefill, decode and wasted are slots; those of waiting are places in the waiting line.
    """

    request: np.ndarray
    lane: np.ndarray
    start: np.ndarray
    end: np.ndarray


def lanes(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The lowest free lane for each interval [start, end), in order of start; one interval may follow another at once.

    Engines do not number their slots: this is one numbering in which no two requests ever share a lane.
    """
    lane = np.zeros(len(start), dtype=np.int64)
    free_from: list[float] = []
    for i in np.argsort(start, kind="stable"):
        row = next((row for row, free in enumerate(free_from) if free <= start[i]), len(free_from))
        if row == len(free_from):
            free_from.append(0.0)
        free_from[row], lane[i] = end[i], row
    return lane


def spans(run: Run) -> dict[str, Spans]:
    """The run as bars of each kind; bars without length are left out.

    waiting: from arrival to a slot. prefill: to the first token. decode: to the last token. wasted: a slot that
    computes padding from the last token until the batch is answered.
    """
    slot, place = lanes(run.admitted, run.response), np.full(len(run), -1)
    queued = np.flatnonzero(run.admitted > run.arrival)
    place[queued] = lanes(run.arrival[queued], run.admitted[queued])
    edges = {
        "waiting": (place, run.arrival, run.admitted),
        "prefill": (slot, run.admitted, run.first_computed),
        "decode": (slot, run.first_computed, run.last_computed),
        "wasted": (slot, run.last_computed, run.response),
    }
    bars = {}
    for kind, (lane, start, end) in edges.items():
        longer = np.flatnonzero(end > start)
        bars[kind] = Spans(longer, lane[longer], start[longer], end[longer])
    return bars


def timelines(runs: Mapping[str, Run], follow: int = 0, *, height: int = 540, note: str = "") -> go.Figure:
    """One panel a run, one above the other, on the same clock.

    runs: by policy name, all on one workload and with the same number of slots. follow: the request to pick out in
    every panel, counted from 1, or 0 for none. note: where the numbers come from, if no badge says so. Each panel's
    title says what its requests got.
    """
    slots = next(iter(runs.values())).policy.max_num_seqs
    bars = {name: spans(run) for name, run in runs.items()}
    end = max(float(run.response.max()) for run in runs.values())
    # A lane of the waiting line is thin, so that the longest queue of the figure fits its strip.
    queue = max((int(of_panel["waiting"].lane.max(initial=-1)) + 1 for of_panel in bars.values()), default=0)
    thin = STRIP / max(queue, 1)
    pitch = HEADER + STRIP + slots + GAP
    tops = {name: -pitch * panel for panel, name in enumerate(runs)}

    lane_pixels = (height - sum(MARGINS)) / (pitch * len(runs) - GAP)
    title_size = int(min(15, max(11, 0.8 * HEADER * lane_pixels)))  # a title leaves the waiting line below it free

    data = [_bars(kind, bars, tops, thin, follow) for kind in KINDS]
    size = int(min(12, 0.8 * lane_pixels))
    for kind in ("prefill", "decode"):
        _fit_numbers(data[KINDS.index(kind)], size, end)

    ticks, names, labels = [], [], []
    for name, run in runs.items():
        top = tops[name] - HEADER
        ticks += [top - STRIP / 2, *(top - STRIP - slot - 0.5 for slot in range(slots))]
        names += ["queue", *(str(slot + 1) for slot in range(slots))]
        font = {"size": title_size, "color": theme.INK}
        labels.append(_label(_title(name, run, follow), y=round(tops[name] - HEADER / 2 - 0.05, 6), font=font))
        here = bars[name]["prefill"]
        for bar in np.flatnonzero(here.request == follow - 1).tolist():
            # Its bars may be too narrow for a number, so it stands before them.
            place = {"x": float(f"{here.start[bar]:.4g}"), "y": round(top - STRIP - here.lane[bar] - 0.5, 6)}
            look = {"bgcolor": theme.PAPER, "borderpad": 0, "font": {"size": max(size, 8), "color": theme.INK}}
            labels.append(_label(f"<b>{follow}</b>", xanchor="right", xshift=-2, **place, **look))
    key = [f'<span style="color:{theme.COLOURS[kind]}">■</span> {WORDS[kind]}' for kind in KINDS]
    labels.append(
        _label("   ".join([*key, f"<b>{note}</b>"]), y=1, xref="paper", yref="paper", yanchor="bottom", yshift=6)
    )
    layout = {
        "template": theme.TEMPLATE,
        "height": height,
        "barmode": "overlay",
        "bargap": 0,
        "margin": {"l": 74, "r": 16, "t": MARGINS[0], "b": MARGINS[1]},
        "hoverlabel": {"align": "left"},
        "annotations": labels,
        "xaxis": {"title": {"text": "time [s]"}, "range": [0, float(f"{end * 1.01:.4g}")]},
        "yaxis": {
            "title": {"text": "slot [number]"},
            "automargin": False,  # "queue" has one width; a margin that follows the labels would move the panels
            "range": [round(GAP - pitch * len(runs), 6), 0],
            "tickvals": theme.round_digits(ticks),
            "ticktext": names,
            "tickfont": {"size": 12 if slots <= 5 else 10},
            "showgrid": False,
            "showline": False,
            "ticks": "",
        },
    }
    return theme.plain_figure(data, layout)


def _label(text: str, **where: Any) -> dict[str, Any]:
    return {
        "x": 0,
        "xanchor": "left",
        "text": text,
        "showarrow": False,
        "font": {"size": 15, "color": theme.INK},
    } | where


def _fit_numbers(bars: dict[str, Any], size: int, end: float) -> None:
    """Leave the numbers where they fit their bars: plotly would shrink them, or hide them all."""
    dark = bars["name"] == "decode"
    inks = ["#FFFFFF" if dark and opacity == 1 else theme.INK for opacity in bars["marker"]["opacity"]]
    bars["textfont"] = {"size": max(size, 1), "color": inks}
    bars["text"] = [
        text if size >= 8 and length > 0.0012 * size * len(text) * end else ""
        for length, text in zip(bars["x"], bars["text"], strict=True)
    ]


def _bars(
    kind: str, bars: Mapping[str, Mapping[str, Spans]], tops: Mapping[str, float], thin: float, follow: int
) -> dict[str, Any]:
    """One trace with the bars of one kind in all panels: few traces make a quick redraw."""
    base, length, y, width, text, hover, opacity, edge = [], [], [], [], [], [], [], []
    followed_edge = 1.5 if kind == "waiting" else 2
    for name, of_panel in bars.items():
        span, top = of_panel[kind], tops[name] - HEADER
        thickness = thin if kind == "waiting" else 1.0
        start_of_lanes = top if kind == "waiting" else top - STRIP
        y += (start_of_lanes - (span.lane + 0.5) * thickness).tolist()
        width += [thickness * (0.8 if kind == "waiting" else 0.86)] * len(span.lane)
        base += span.start.tolist()
        length += (span.end - span.start).tolist()
        numbers = (span.request + 1).tolist()
        decoded = set(of_panel["decode"].request.tolist()) if kind == "prefill" else set()
        # An answer of one token has no decode: its prefill has the number.
        named = [n != follow and (kind == "decode" or (kind == "prefill" and n - 1 not in decoded)) for n in numbers]
        text += [str(n) if shown else "" for n, shown in zip(numbers, named, strict=True)]
        hover += [
            f"request {n}, {name}<br>{WORDS[kind]} {a:.3f} to {b:.3f} s"
            for n, a, b in zip(numbers, span.start, span.end, strict=True)
        ]
        opacity += [1.0 if follow in (0, n) else DIM_OPACITY for n in numbers]
        edge += [followed_edge if n == follow else 0 for n in numbers]
    marker = {"color": theme.COLOURS[kind], "opacity": opacity, "line": {"width": edge, "color": theme.INK}}
    if kind == "wasted":
        marker["pattern"] = {
            "shape": "/",
            "size": 5,
            "solidity": 0.3,
            "fgcolor": "#FFFFFF",
            "bgcolor": theme.COLOURS[kind],
        }
    return {
        "type": "bar", "orientation": "h", "name": WORDS[kind], "marker": marker,
        "base": theme.round_digits(base), "x": theme.round_digits(length),
        "y": theme.round_digits(y), "width": theme.round_digits(width),
        "text": text, "textposition": "inside", "insidetextanchor": "middle", "textangle": 0, "constraintext": "none",
        "hovertext": hover, "hoverinfo": "text",
    }  # fmt: skip


def _title(name: str, run: Run, follow: int) -> str:
    wasted = int(run.steps.wasted.sum())
    parts = [
        f'<b><span style="color:{theme.ink(name) if name in theme.COLOURS else theme.INK}">{name}</span></b>',
        f"last answer at {run.response.max():.2f} s",
        f"mean answer {run.e2e.mean():.2f} s",
        f"{wasted} padding slot-steps" if wasted else "no padding",
    ]
    if 1 <= follow <= len(run):
        parts.append(f"<b>request {follow}: {run.e2e[follow - 1]:.2f} s</b>")
    return "   ".join(parts)
