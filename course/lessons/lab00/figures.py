"""Figures of lab 00: an answer in tokens, a step for several sequences, and arrivals beside the TTFT they lead to."""

from collections.abc import Sequence
from math import ceil, log10
from operator import itemgetter
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import INKS, LEFT, MARGIN, RIGHT, Part, dots, heading, line, note, pair, place, words
from course.figures.words import seconds
from course.lessons.lab00 import together
from course.lessons.lab00.answer import Answer
from course.lessons.lab00.together import Together
from course.lessons.lab00.traffic import PERCENTS, SHOWN, Traffic

ACROSS = 8  # tokens in a row
WIDE = (0.0, 0.6), (0.7, 1.0)
BINS = 40
BARS, LABEL = 0.5, 0.115  # shares of the height: of the highest bar, and of a label
SHORTEST, LONGEST = 0.01, 30.0  # seconds on the log axis
TIMES = [0.01, 0.1, 1, 10]


def _bars(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray, colour: str | list[str], name: str,
          panel: int = 1, **more: object) -> Part:  # fmt: skip
    colours = colour if isinstance(colour, list) else theme.COLOURS[colour]
    bars = {"type": "bar", "x": theme.round_digits(x), "y": theme.round_digits(y), "name": name}
    return bars | {"marker": {"color": colours, "line": {"width": 0}}} | place(panel) | more


def answer(result: Answer, *, height: int = 380) -> go.Figure:
    """Left, the tokens so far, those computed filled; right, how long each step took here."""
    pieces = [*result.prompt, *result.said[: result.step]]
    kinds = ["prefill"] * len(result.prompt) + ["decode"] * result.step
    fill = [theme.COLOURS[kind] for kind in kinds]
    fill[-1] = theme.PAPER  # the newest is not in the cache before the next step computes it
    inks = ["#000000" if kind == "prefill" else "#FFFFFF" for kind in kinds[:-1]] + [theme.INK]
    spots = np.arange(len(pieces))
    boxes = _bars(np.full(len(pieces), 0.94), -(spots // ACROSS), fill, "tokens") | {
        "orientation": "h", "base": (spots % ACROSS).tolist(), "width": 0.8, "text": pieces, "textangle": 0,
        "textposition": "inside", "insidetextanchor": "middle", "hoverinfo": "text", "constraintext": "none",
        "textfont": {"color": inks, "size": [11 if len(piece) < 9 else 9 for piece in pieces]},
        "marker": {"color": fill, "line": {"width": 1.5, "color": [theme.COLOURS[kind] for kind in kinds]}},
    }  # fmt: skip
    lines = max(5, ceil((len(result.prompt) + len(result.said)) / ACROSS))
    taken = 1e3 * np.array(result.seconds[: result.step])
    steps = np.arange(1, len(taken) + 1)
    shown = ["prefill", *["decode"] * max(0, len(taken) - 1)][: len(taken)]
    times = _bars(steps, taken, [theme.COLOURS[kind] for kind in shown], "seconds of a step", 2, width=0.8)
    most = 1e3 * max(result.seconds, default=1e-3)
    blank = {"showticklabels": False, "showgrid": False, "showline": False, "ticks": ""}
    key = [f'<span style="color:{theme.COLOURS[kind]}">■</span> {what}' for kind, what in
           (("prefill", "question"), ("decode", "answer"))]  # fmt: skip
    return pair(
        [boxes, times],
        (blank | {"range": [0, ACROSS]}, blank | {"range": [-lines + 0.5, 0.5]}),
        (
            {"title": {"text": "step [number]"}, "range": [0.4, max(6, len(result.said)) + 0.6]},
            {"title": {"text": "time [ms]"}, "range": [0, float(f"{1.15 * most:.3g}")]},
        ),
        height,
        columns=WIDE,
        margin=MARGIN | {"l": 12},
        annotations=[heading(1, "  ".join([*key, "□ newest"])), heading(2, "measured here")],
    )


def step(result: Together, *, height: int = 380) -> go.Figure:
    """How many times as long as a step for one a step for several takes: on the H100, here, and one after the other."""
    sizes = np.arange(1, together.MOST + 1)
    here_too = sizes[: result.sequences]  # further on is what a prediction is about
    alone = together.on_h100(1)
    data = [
        line(sizes, sizes, "theory", "one after the other", dash="dash"),
        line(here_too, [together.on_h100(int(size)) / alone for size in here_too], "recorded", "H100, recorded"),
    ]
    labels = [
        (12.2, 12.2, "one after the other", "theory", "top left"),
        (result.sequences, result.ratio, " H100", "recorded", "bottom right"),
    ]
    spots, colours = [(result.sequences, result.ratio)], ["recorded"]
    if result.measured:
        counts = list(result.measured)
        times = [result.measured[count] / result.measured[1] for count in counts]
        here = np.interp(here_too, counts, times)
        data.append(line(here_too, here, "measured", "this CPU, measured"))
        labels.append((result.sequences, float(here[-1]), " this CPU", "measured", "top right"))
        spots.append((result.sequences, float(here[-1])))
        colours.append("measured")
    across, up = zip(*spots, strict=True)
    data.append(dots(across, up, colours, "the step chosen"))
    x, y, texts, inks, corners = zip(*labels, strict=True)
    data.append(words(x, y, texts, inks, corner=corners))
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN,
        "xaxis": {"title": {"text": "in the step [sequences]"}, "range": [0, 19.5], "tickvals": [1, 4, 8, 12, 16]},
        "yaxis": {"title": {"text": "against a step for one [times]"}, "range": [0, 17], "tickvals": [1, 4, 8, 12, 16]},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def traffic(result: Traffic, *, height: int = 360) -> go.Figure:
    """Left, how many requests come in each second; right, how many get which TTFT, with the mean and percentiles.

    The two scales of the right panel have axes of their own: what was drawn on one means nothing on the other.
    """
    panel = 3 if result.log else 2
    ttft = np.maximum(result.run.ttft, SHORTEST)
    if result.log:
        low, high = log10(SHORTEST), log10(max(LONGEST, 1.1 * float(ttft.max())))
    else:
        low, high = 0.0, max(1.02 * float(ttft.max()), result.percentile(99) / 0.7)
    edges = np.linspace(low, high, BINS + 1)
    counts = np.histogram(np.log10(ttft) if result.log else ttft, edges)[0]
    most = float(counts.max()) / BARS
    values = [("mean", result.mean, "wasted"), *((f"p{p}", result.percentile(p), "decode") for p in PERCENTS)]
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    # The further right, the lower: no label is crossed by a line.
    for rank, (name, value, colour) in enumerate(sorted(values, key=itemgetter(1))):
        x = float(f"{log10(max(value, SHORTEST)) if result.log else value:.6g}")
        y = float(f"{most * (0.95 - LABEL * rank):.4g}")
        axes = {"xref": f"x{panel}", "yref": f"y{panel}"}
        end: dict[str, Any] = {
            "type": "line",
            "x0": x,
            "x1": x,
            "y0": 0,
            "y1": y,
            "line": {"color": INKS[colour], "width": 2},
        }
        shapes.append(end | axes)
        notes.append(note(x, y, f"{name} {seconds(value)}", colour, xshift=3, **axes))
    rate: dict[str, Any] = {
        "type": "line",
        "x0": 0,
        "x1": SHOWN,
        "y0": result.rate,
        "y1": result.rate,
        "xref": "x",
        "yref": "y",
    }
    shapes.append(rate | {"line": {"color": theme.INK, "width": 2, "dash": "dash"}})
    scale = "log" if result.log else "linear"
    notes += [heading(1, "requests each second (dashed: rate)"), heading(panel, f"requests by TTFT, {scale} axis")]
    ticks = {"tickvals": [log10(value) for value in TIMES], "ticktext": [seconds(value) for value in TIMES]}
    ends = theme.round_digits([low, high])
    width = float(f"{(high - low) / BINS:.4g}")
    middles = (edges[1:] + edges[:-1]) / 2
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"r": 60}, "shapes": shapes,
        "annotations": notes, "bargap": 0,
        "xaxis": {"title": {"text": "time [s]"}, "range": [0, SHOWN], "domain": LEFT, "anchor": "y"},
        "yaxis": {"title": {"text": "arrivals [requests]"}, "range": [0, max(30, 1.15 * int(result.arrivals.max()))],
                  "anchor": "x"},
        f"xaxis{panel}": {"title": {"text": f"TTFT, {scale} scale [s]"}, "range": ends, "domain": RIGHT,
                          "anchor": f"y{panel}"} | (ticks if result.log else {}),
        f"yaxis{panel}": {"title": {"text": "count [requests]"}, "range": [0, float(f"{most:.4g}")],
                          "anchor": f"x{panel}"},
    }  # fmt: skip
    bars = [
        _bars(np.arange(SHOWN) + 0.5, result.arrivals, "modelled", "arrivals", width=0.9),
        _bars(middles, counts, "waiting", "requests", panel, width=width),
    ]
    return theme.plain_figure(bars, layout)
