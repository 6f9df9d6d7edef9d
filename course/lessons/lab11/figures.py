"""Figures of lab 11: one batch in three shapes, what a card took, launches here and there, the ticket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10

import plotly.graph_objects as go

from course.figures import parts, theme
from course.figures.parts import Part
from course.lessons.lab11 import tenant
from course.lessons.lab11.batch import LAYOUTS, PACKED
from course.lessons.lab11.card import DECODE_STEP, DECODES, PROMPTS, OnCard
from course.lessons.lab11.on_device import Here
from course.lessons.lab11.shapes import OneBatch

THIRDS = ((0.0, 0.3), (0.35, 0.65), (0.7, 1.0))
SHADES = (theme.COLOURS["prefill"], "#F3C566")
"""Of prompts that lie behind one another."""
TIMES = (1, 2, 4, 8, 16, 32)


def _bars(rows: Sequence[float], long: Sequence[float], base: Sequence[float], colour: str | list[str], name: str,
          panel: int) -> Part:  # fmt: skip
    return {
        "type": "bar", "orientation": "h", "name": name, "y": list(rows), "x": theme.round_digits(long),
        "base": theme.round_digits(base), "width": 0.86, "hoverinfo": "name+x", "marker": {"color": colour},
        "meta": {"see": "padding" if name == "padding" else "tokens"},
    } | parts.place(panel)  # fmt: skip


def _padded(prompts: Sequence[int], ends: Sequence[int], panel: int) -> list[Part]:
    """Prompts, one a row, and what makes them as long as their bucket."""
    rows = list(range(1, len(prompts) + 1))
    rest = [end - own for own, end in zip(prompts, ends, strict=True)]
    return [
        _bars(rows, prompts, [0] * len(rows), SHADES[0], "tokens", panel),
        _bars(rows, rest, prompts, theme.COLOURS["waiting"], "padding", panel),
    ]


def _ragged(prompts: Sequence[int], wide: int, panel: int) -> Part:
    """Prompts behind one another, in lines as wide as the rectangle."""
    rows, long, base, colours, at = [], [], [], [], 0
    for i, own in enumerate(prompts):
        left = own
        while left:
            column = at % wide
            piece = min(left, wide - column)
            rows.append(at // wide + 1)
            long.append(piece)
            base.append(column)
            colours.append(SHADES[i % 2])
            at, left = at + piece, left - piece
    return _bars(rows, long, base, colours, "tokens", panel)


def three_shapes(found: OneBatch, *, height: int = 300) -> go.Figure:
    """The batch as a rectangle, in buckets, and as a line that is ragged."""
    prompts = sorted(found.prompts)
    wide = max(prompts)
    limits = sorted(found.limits)
    ends = [next(edge for edge in limits if edge >= own) for own in prompts]
    data = [
        *_padded(prompts, [wide] * len(prompts), 1),
        *_padded(prompts, ends, 2),
        _ragged(prompts, wide, 3),
    ]
    shapes = (found.rectangle, found.in_buckets, found.packed)
    used = len(shapes[1].groups)
    names = ("rectangle", f"{used} bucket{'s' * (used > 1)} in use", "ragged, behind one another")
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN, "barmode": "overlay"}
    ticks = _ticks(wide)
    for panel, domain in enumerate(THIRDS, start=1):
        layout[parts.axis("xaxis", panel)] = {
            "domain": domain, "anchor": parts.axis("y", panel), "range": [0, 1.02 * wide], "tickvals": ticks,
            "ticktext": [f"{tick:,}" for tick in ticks], "title": {"text": "tokens"},
        }  # fmt: skip
        layout[parts.axis("yaxis", panel)] = {
            "anchor": parts.axis("x", panel), "range": [len(prompts) + 0.6, 0.4], "showgrid": False,
            "tickvals": [1, 8, 16, 24, 32] if panel == 1 else [],
            "title": {"text": "prompts, by length" if panel == 1 else ""},
        }  # fmt: skip
    notes = [parts.heading(panel, name) for panel, name in enumerate(names, start=1)]
    return theme.plain_figure(data, layout | {"annotations": notes})


def _ticks(wide: int) -> list[int]:
    step = next(step for step in (100, 200, 500, 1_000, 2_000, 5_000) if wide / step <= 4)
    return list(range(0, wide + 1, step))


def on_the_card(found: OnCard, *, height: int = 270) -> go.Figure:
    """Seconds of each layout times those of the packed one, beside its tokens and its pairs."""
    rows = [layout for layout in LAYOUTS if layout in found.times]
    marks = [("time", "recorded", "circle", found.ratio), ("tokens", "prefill", "line-ns", found.tokens)]
    if found.kind == PROMPTS:
        marks.append(("pairs", "decode", "diamond-open", found.pairs))
    data = [parts.line([1, 1], [-0.6, len(rows) - 0.4], "waiting", "packed", dash="dot", width=1.5)]
    for name, colour, symbol, ratio in marks:
        look = {"color": theme.COLOURS[colour], "size": 15 if symbol == "circle" else 18, "symbol": symbol,
                "line": {"width": 3 if symbol != "circle" else 0, "color": theme.COLOURS[colour]}}  # fmt: skip
        one = parts.trace([ratio(row) for row in rows], range(len(rows)), name)
        data.append(one | {"mode": "markers", "marker": look, "cliponaxis": False, "hoverinfo": "name+x"})
    signs = {"circle": "●", "line-ns": "❙", "diamond-open": "◇"}
    words = {"time": "time", "pairs": "pairs",
             "tokens": "tokens read" if found.kind in (DECODES, DECODE_STEP) else "tokens computed"}  # fmt: skip
    key = "   ".join(f'<span style="color:{parts.INKS[colour]}">{signs[symbol]}</span> {words[name]}'
                     for name, colour, symbol, _ in marks)  # fmt: skip
    layout: Part = {
        "template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN | {"l": 130},
        "xaxis": {"type": "log", "range": [log10(0.85), log10(40)], "tickvals": TIMES,
                  "ticktext": [f"{tick}" for tick in TIMES], "title": {"text": "times the packed batch"}},
        "yaxis": {"range": [len(rows) - 0.4, -0.6], "tickvals": list(range(len(rows))), "ticktext": rows, "ticks": "",
                  "showgrid": False},
        "annotations": [parts.heading(1, key)],
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def launches(recorded: Mapping[str, float], card: str, here: Here, *, height: int = 270) -> go.Figure:
    """Left, what the card took; right, what this machine takes."""
    sides = ((recorded, f"{card}, recorded", "recorded"), (here.times, _here(here), "measured"))
    data, heads, axes = [], [], []
    for panel, (times, head, colour) in enumerate(sides, start=1):
        rows = [layout for layout in LAYOUTS if layout in times]
        scale, unit = _unit(max(times.values(), default=1.0))
        long = [scale * times[row] for row in rows]
        data.append({
            "type": "bar", "orientation": "h", "name": "time", "y": rows, "x": theme.round_digits(long, 4),
            "width": 0.6, "hoverinfo": "x", "marker": {"color": theme.COLOURS[colour]},
        } | parts.place(panel))  # fmt: skip
        if PACKED in times:  # the others are measured before it
            factors = [f"{times[row] / times[PACKED]:.2f} times" for row in rows]
            data.append(parts.words(long, [], factors, [theme.INK] * len(rows), panel, corner="middle right")
                        | {"y": rows})  # fmt: skip
        heads.append(parts.heading(panel, head))
        y = {"type": "category", "categoryorder": "array", "categoryarray": list(LAYOUTS)[::-1], "showgrid": False,
             "ticks": "", "showticklabels": panel == 1, "range": [-0.6, len(LAYOUTS) - 0.4]}  # fmt: skip
        axes.append(({"title": {"text": f"time [{unit}]"}, "range": [0, 1.3 * max(long, default=1.0)]}, y))
    return parts.pair(data, axes[0], axes[1], height, margin=parts.MARGIN | {"l": 120}, annotations=heads)


def _here(here: Here) -> str:
    if not here.times:  # a rectangle of long prompts takes a CPU seconds
        return "this machine, measuring" if here.where else "this machine"
    return "here, measured" if here.shorter == 1 else f"measured, prompts {here.shorter} times shorter"


def _unit(longest: float) -> tuple[float, str]:
    return (1e6, "µs") if longest < 1e-3 else (1e3, "ms")


def by_hand(*, height: int = 240) -> go.Figure:
    """Three prompts as a rectangle and ragged."""
    prompts = (2, 5, 3)
    data = [*_padded(prompts, [5] * 3, 1), _ragged(prompts, sum(prompts), 2)]
    axes = []
    for panel, rows, wide in ((1, 3, 5), (2, 1, 10)):
        x = {"range": [0, 1.02 * wide], "dtick": 1, "title": {"text": "tokens" if panel == 1 else "rows of one array"}}
        y = {"range": [rows + 0.6, 0.4], "tickvals": list(range(1, rows + 1)) if panel == 1 else [], "showgrid": False,
             "title": {"text": "prompt" if panel == 1 else ""}}  # fmt: skip
        axes.append((x, y))
    heads = [parts.heading(1, "rectangle: 15 tokens, 5 of them padding"),
             parts.heading(2, "ragged: 10 tokens, offsets 0, 2, 7, 10")]  # fmt: skip
    return parts.pair(data, axes[0], axes[1], height, barmode="overlay", annotations=heads,
                      columns=((0.0, 0.4), (0.5, 1.0)))  # fmt: skip


def ticket(*, height: int = 280) -> go.Figure:
    """Left, tokens of prompts a second; right, the mean prompt."""
    day = tenant.day()
    hours = tenant.HOURS
    x = {"title": {"text": "hour"}, "range": [hours[0] - 0.2, hours[-1] + 0.2]}
    data = [
        parts.line(hours, [1e-3 * one.speed for one in day], "continuous", "thousand tokens/s"),
        parts.line(hours, [one.mean for one in day], "prefill", "tokens", 2),
    ]
    return parts.pair(
        data,
        (x, {"title": {"text": "thousand tokens/s"}, "range": [0, 22]}),
        (x, {"title": {"text": "tokens"}, "range": [0, 400]}),
        height,
        annotations=[parts.heading(1, "prompt tokens/s, without padding"), parts.heading(2, "mean length of a prompt")],
    )
