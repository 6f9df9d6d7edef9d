"""Figures of lab 02: the roofline with a step on it, the small machine, a fitted curve, and the ticket's graphs."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite, log2, log10

import numpy as np
import plotly.graph_objects as go

from course.figures import parts, theme
from course.figures.parts import Part
from course.figures.words import seconds
from course.gpu.timing import Timing
from course.lessons.lab02 import by_hand, two_cards
from course.lessons.lab02.on_device import Here
from course.lessons.lab02.one_curve import OneCurve, dollars
from course.lessons.lab02.one_step import CARD, OneStep

FILL = {"weights": "decode", "K and V": "dynamic", "multiply": "prefill", "the step": "recorded", "host": "waiting"}
DARK = ("decode", "recorded")
"""Fills on which a label is white."""
ROOM = 0.24
"""Share of the axis that a part must have to carry its name."""
BATCH_TICKS = (1, 4, 16, 64, 256)


def _bar(row: str, base: float, length: float, part: str, panel: int, most: float, fill: str = "") -> Part:
    """A bar of milliseconds that carries its name where there is room."""
    colour = fill or FILL[part]
    return {
        "type": "bar", "orientation": "h", "name": part, "y": [row], "x": theme.round_digits([length]),
        "base": theme.round_digits([base]), "width": 0.6, "marker": {"color": theme.COLOURS[colour]},
        "text": [part if length > ROOM * most else ""], "textposition": "inside", "insidetextanchor": "middle",
        "textangle": 0, "constraintext": "none",
        "textfont": {"color": "#FFFFFF" if colour in DARK else "#000000", "size": 13},
    } | parts.place(panel)  # fmt: skip


def _log(title: str, low: float, high: float, ticks: Sequence[float]) -> Part:
    return {
        "type": "log", "title": {"text": title}, "range": theme.round_digits([log10(low), log10(high)]),
        "tickvals": list(ticks), "ticktext": [f"{tick:,g}" for tick in ticks],
    }  # fmt: skip


def on_the_roofline(found: OneStep, *, height: int = 300) -> go.Figure:
    """Left, FLOP/s over FLOP a byte: the roof, and the recorded step below it. Right, the times of this step."""
    top, bandwidth = CARD.matrix_flops / 1e12, CARD.read_bandwidth / 1e12
    ridge = top / bandwidth
    data = [
        parts.line([0.5, ridge], [0.5 * bandwidth, top], "theory", "reading is the limit"),
        parts.line([ridge, 3_000], [top, top], "theory", "multiplying is the limit"),
        parts.dots([found.intensity], [found.reached / 1e12], ["recorded"], "this step, recorded"),
        parts.words([14, 2_900], [10 * bandwidth, top], [f"{bandwidth:.3g} TB/s", f"{top:.0f} TFLOP/s"], ["theory"] * 2,
                    corner=["bottom right", "top left"]),
    ]  # fmt: skip
    milliseconds = {
        "read": {"weights": found.reading_weights, "K and V": found.reading_kv},
        "multiply": {"multiply": found.computing},
        "recorded": {"the step": found.recorded} | ({"host": found.host} if found.host else {}),
    }
    longest = 1e3 * max(sum(row.values()) for row in milliseconds.values())
    # The axis grows by doubling, so that it rests while the sliders move a little.
    most = 8.0 * 2 ** max(0, ceil(log2(longest / 7.4)))
    for row, values in milliseconds.items():
        base = 0.0
        for part, value in values.items():
            data.append(_bar(row, base, 1e3 * value, part, 2, most))
            base += 1e3 * value
    return parts.pair(
        data,
        (_log("intensity [FLOP a byte]", 0.5, 3_000, (1, 10, 100, 1_000)),
         _log("reached [TFLOP/s]", 1, 6_000, (1, 10, 100, 1_000))),
        ({"title": {"text": "time [ms]"}, "range": [0, most]},
         {"type": "category", "autorange": "reversed", "ticks": "", "categoryorder": "array",
          "categoryarray": list(milliseconds)}),
        height,
        columns=((0.0, 0.44), (0.6, 1.0)),
        barmode="overlay",
        annotations=[parts.heading(1, "the roof, and the step (dot)"), parts.heading(2, _key())],
    )  # fmt: skip


def _key() -> str:
    mark = '<span style="color:{}">■</span> {}'
    return "  ".join(mark.format(theme.COLOURS[FILL[part]], part) for part in ("weights", "K and V"))


def machine_by_hand(*, height: int = 300) -> go.Figure:
    """Steps of one, two and four sequences on a time axis: what is read, and what is multiplied meanwhile."""
    data, names = [], []
    for batch in by_hand.BATCHES:
        found = by_hand.step_of(batch)
        read, units = f"{batch}: read", f"{batch}: multiply"
        names += [read, units]
        data.append(_bar(read, 0, found.weights, "weights", 1, 6.2))
        data += [_bar(read, found.weights + i, 1, "K and V", 1, 4) for i in range(batch)]
        data.append(_bar(units, 0, found.computing, "multiply", 1, 3))
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN | {"l": 90}, "barmode": "overlay",
        "xaxis": {"title": {"text": "time [s]"}, "range": [0, 6.2]}, "bargap": 0.1,
        "yaxis": {"type": "category", "autorange": "reversed", "ticks": "", "categoryorder": "array",
                  "categoryarray": names},
    }  # fmt: skip
    for bar in data:
        bar["marker"] = bar["marker"] | {"line": {"width": 1, "color": theme.PAPER}}
    return theme.plain_figure(data, layout)


def fitted(found: OneCurve, *, height: int = 300) -> go.Figure:
    """Left, recorded steps, the curve with its band, and the knee. Right, dollars for a million tokens."""
    curve, x = found.curve, np.geomspace(1, 256, 60)
    low, high = (1e3 * each for each in curve.band(x))
    low, high = np.clip(low, 1, 1e3), np.clip(high, 1, 1e3)
    y = 1e3 * curve.seconds(x)
    band = parts.trace([*x, *x[::-1]], [*high, *low[::-1]], "band") | {
        "mode": "lines", "fill": "toself", "line": {"width": 0}, "fillcolor": "rgba(51,34,136,0.18)",
        "hoverinfo": "skip",
    }  # fmt: skip
    used = found.used
    data = [
        band,
        parts.line(x, np.where(y < 1e3, y, np.nan), "modelled", "curve"),
        parts.line([curve.knee] * 2, [3, 200], "waiting", "knee", dash="dot", width=1.5),
        _points(found.batches[used], 1e3 * found.steps[used], "recorded, in the fit", "circle"),
        _points(found.batches[~used], 1e3 * found.steps[~used], "recorded, left out", "circle-open"),
        parts.words([min(curve.knee, 250)], [90], [f"knee {curve.knee:.0f}"], [theme.INK], corner="middle left"),
    ]
    cost = [dollars(batch, step / 1e3, found.price) for batch, step in zip(x, y, strict=True)]
    data += [
        parts.line(x, cost, "modelled", "by the curve", 2),
        _points(found.batches, [dollars(b, s, found.price) for b, s in zip(found.batches, found.steps, strict=True)],
                "recorded", "circle", 2),
        parts.dots([found.batch], [found.cost], ["modelled"], "this batch", 2),
    ]  # fmt: skip
    batches = _log("batch [sequences]", 0.9, 300, BATCH_TICKS)
    return parts.pair(
        data,
        (batches, _log("step [ms]", 3, 200, (5, 10, 20, 50, 100))),
        (batches, _log("cost [dollars]", 0.02, 10, (0.03, 0.1, 0.3, 1, 3))),
        height,
        annotations=[parts.heading(1, "steps, the curve and its band"), parts.heading(2, "what a million tokens cost")],
    )


def _points(x: parts.Values, y: parts.Values, name: str, symbol: str, panel: int = 1) -> Part:
    marker = {"color": theme.COLOURS["recorded"], "size": 8, "symbol": symbol}
    return parts.trace(x, y, name, panel) | {"mode": "markers", "marker": marker}


def two_machines(recorded: Here, here: Here, batch: int, *, height: int = 290) -> go.Figure:
    """Seconds over the batch, by what is launched: as recorded on a card, and on this machine."""
    data, marks, heads = [], [], [parts.heading(1, f"recorded: {recorded.where}")]
    axes: list[tuple[Part, Part]] = []
    for panel, (found, latest) in enumerate(((recorded.times, {}), (here.times, here.latest)), start=1):
        values = [1e3 * value for each in found.values() for value in each.values() if isfinite(value)]
        for (name, each), colour in zip(found.items(), ("theory", "decode", "dynamic"), strict=False):
            style = {"dash": "dash"} if colour == "theory" else {}
            y = [1e3 * value for value in each.values()]
            data.append(parts.line(list(each), y, colour, name, panel, **style))
            if batch in each:
                dot = parts.dots([batch], [1e3 * each[batch]], [colour], name, panel)
                marks.append(dot | _spread(latest[name]) if name in latest else dot)
        # Whole decades: the axis rests while more is measured.
        low, high = (floor(log10(min(values) / 1.2)), ceil(log10(max(values) * 1.2))) if values else (-1, 1)
        ticks = [10.0**k for k in range(low, high + 1)]
        axes.append((_log("batch [sequences]", 0.9, 300, BATCH_TICKS), _log("time [ms]", ticks[0], ticks[-1], ticks)))
    first = {name: 1e3 * each[1] for name, each in recorded.times.items()}
    read, product, attention = recorded.times
    under = 1e3 * recorded.times[attention][4]
    data.append(
        parts.words([1, 4, 4], [0.8 * first[read], first[product], 0.9 * under], [read, product, attention],
                    ["theory", "decode", "dynamic"], corner=["bottom right", "top right", "bottom right"])
    )  # fmt: skip
    if here.times:
        heads.append(parts.heading(2, "measured here"))
    # Marks last: plotly puts what moves behind the other traces.
    return parts.pair([*data, *marks], axes[0], axes[1], height, annotations=heads)


def _spread(found: Timing) -> Part:
    """From the 10th to the 90th percentile of the launches [ms]."""
    above, below = ([1e3 * abs(end - found.seconds)] for end in (found.high, found.low))
    return {"error_y": {"type": "data", "symmetric": False, "array": theme.round_digits(above),
                        "arrayminus": theme.round_digits(below)}}  # fmt: skip


def operators_graphs(*, height: int = 300) -> go.Figure:
    """What the ticket shows: the gap between tokens over the batch, and a prompt's step over its length, by card."""
    data = []
    names = {two_cards.OLD: ("old cards", "continuous"), two_cards.NEW: ("new cards", "wasted")}
    for card, (name, colour) in names.items():
        gaps = [1e3 * two_cards.decode(card, batch) for batch in two_cards.BATCHES]
        steps = [1e3 * two_cards.prefill(card, prompt) for prompt in two_cards.PROMPTS]
        data.append(parts.line(two_cards.BATCHES, gaps, colour, name))
        data.append(parts.line(two_cards.PROMPTS, steps, colour, name, 2))
        data.append(parts.words([two_cards.BATCHES[-1]], gaps[-1:], [name], [colour], corner="top left"))
        # The lines of the two cards lie close together in this panel.
        corner = "top left" if card == two_cards.OLD else "bottom right"
        aside = -60 if card == two_cards.OLD else 60
        data.append(parts.words([two_cards.PROMPTS[3] + aside], [steps[3]], [name], [colour], 2, corner=corner))
    return parts.pair(
        data,
        ({"title": {"text": "running [requests]"}, "range": [0, 34]},
         {"title": {"text": "TPOT [ms]"}, "range": [0, 32]}),
        ({"title": {"text": "prompt [tokens]"}, "range": [0, 2_200]},
         {"title": {"text": "prefill [ms]"}, "range": [0, 140]}),
        height,
        annotations=[parts.heading(1, "time between tokens"), parts.heading(2, "time of a prompt")],
    )  # fmt: skip


def label(value: float) -> str:
    """Seconds, or a dash where there are none."""
    return seconds(value) if isfinite(value) else "-"
