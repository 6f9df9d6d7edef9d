"""Figures of lab 06: what each step held, rules against each other, launches, the case by hand, the ticket's graphs.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.engine.run import Run
from course.figures import theme
from course.figures.operator import four_graphs
from course.figures.parts import INKS, MARGIN, Part, axis, dots, heading, line, note, pair, place, words
from course.figures.words import seconds
from course.lessons.lab06 import two_orders
from course.lessons.lab06.agents import SECONDS, Graphs
from course.lessons.lab06.by_hand import READERS, START, Case
from course.lessons.lab06.on_device import ATTENTION, DECODES, PRODUCT, PROMPT, TOGETHER, Here
from course.lessons.lab06.two_orders import MIXED, WINDOW, Served

BUDGETS = (512, 1_024, 2_048, 4_096, 8_192)
LANES = ("decodes", "tokens of prompts")


def _outline(run: Run, begin: float, end: float, column: str) -> tuple[np.ndarray, np.ndarray]:
    """What the steps between two times held of a column, as an outline that falls to 0 where nothing runs."""
    steps = run.steps
    here = (steps.end > begin) & (steps.start < end)
    starts, ends, values = steps.start[here], steps.end[here], getattr(steps, column)[here].astype(float)
    x = np.column_stack((starts, starts, ends, ends)).ravel()
    y = np.column_stack((np.zeros(len(values)), values, values, np.zeros(len(values)))).ravel()
    return x, y


def composition(found: Served, *, height: int = 300) -> go.Figure:
    """Around the longest gap, step by step: how many decoded, and how many tokens of prompts were computed."""
    begin, end = found.longest_gap
    start = (begin + end) / 2 - WINDOW / 2
    data, notes, layout = [], [], {"template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"t": 44}}
    shapes = []
    for panel, (column, colour, name, domain) in enumerate(
        (("decodes", "decode", LANES[0], [0.60, 1.0]), ("prefill_tokens", "prefill", LANES[1], [0.0, 0.40])), start=1
    ):
        x, y = _outline(found.run, start, start + WINDOW, column)
        look = {"fill": "tozeroy", "meta": {"see": name.split()[-1]}, "width": 1.0}
        fill = {key: value for key, value in look.items() if key != "width"}
        data.append(line(1e3 * (x - begin), y, colour, name, panel, width=1.0) | fill)
        layout[axis("xaxis", panel)] = {
            "anchor": axis("y", panel), "showticklabels": panel == 2,
            "range": theme.round_digits([1e3 * (start - begin), 1e3 * (start - begin + WINDOW)]),
            "title": {"text": "time since the last token before the gap [ms]" if panel == 2 else ""},
        }  # fmt: skip
        top = 100.0 if panel == 1 else 1.05 * max(found.budget, 2_048)
        layout[axis("yaxis", panel)] = {
            "anchor": axis("x", panel), "domain": domain, "nticks": 4,
            "range": theme.round_digits([0, max(top, 1.1 * float(y.max(initial=1.0)))], 3),
        }  # fmt: skip
        notes.append(heading(panel, f"{name} of each step"))
        shapes.append({"type": "rect", "x0": 0, "x1": theme.round_digits([1e3 * (end - begin)])[0], "y0": 0, "y1": 1,
                       "xref": axis("x", panel), "yref": axis("y", panel) + " domain", "opacity": 0.18,
                       "line": {"width": 0}, "fillcolor": theme.COLOURS["wasted"]})  # fmt: skip
    key = f'<span style="color:{INKS["wasted"]}">■</span> longest gap: {seconds(found.gap)}'
    notes.append(note(1, 1, key, xref="paper", yref="paper", anchor="right", yanchor="bottom"))
    return theme.plain_figure(data, layout | {"annotations": notes, "shapes": shapes})


def rules(found: Served, *, height: int = 300) -> go.Figure:
    """The longest gap over the mean TTFT: this rule, and mixed batches with several budgets beside it."""
    line_of = [two_orders.served(MIXED, max(budget, found.slots), found.slots, found.rate) for budget in BUDGETS]
    named = [
        (line_of[0], f"  mixed, {line_of[0].budget:,} tokens", "continuous", "middle right"),
        (line_of[-1], f"  mixed, {line_of[-1].budget:,}", "continuous", "top right"),
        *([] if found.rule == MIXED else [(found, found.rule, "wasted", "bottom left")]),
    ]
    data = [
        line([1e3 * one.ttft for one in line_of], [1e3 * one.gap for one in line_of], "continuous", "mixed, by budget",
             dash="dot") | {"mode": "lines+markers"},
        dots([1e3 * found.ttft], [1e3 * found.gap], ["wasted"], "this rule"),
        words([1e3 * one.ttft for one, *_ in named], [1e3 * one.gap for one, *_ in named],
              [said for _, said, *_ in named], [colour for *_, colour, _ in named],
              corner=[corner for *_, corner in named]),
    ]  # fmt: skip
    ticks = ((20, 100, 500, 2_000, 10_000), (10, 20, 50, 100, 200, 500, 1_000, 3_000))
    axes = [
        {"type": "log", "title": {"text": title}, "range": theme.round_digits([log10(low), log10(high)]),
         "tickvals": list(values), "ticktext": [f"{value:,}" for value in values]}
        for title, low, high, values in (
            ("mean TTFT [ms]", 15, 40_000, ticks[0]), ("longest gap [ms]", 8, 4_000, ticks[1]))
    ]  # fmt: skip
    layout = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN, "xaxis": axes[0], "yaxis": axes[1]}
    return theme.plain_figure(data, layout)


def launches(recorded: Here, here: Here, *, height: int = 270) -> go.Figure:
    """Two launches in a row and one, of the product and of the attention: on a card, and on this machine."""
    data, heads, axes = [], [heading(1, f"recorded: {recorded.where}")], []
    rows = [f"{what},<br>{way}" for what in ("product", "attention") for way in ("one launch", "two launches")]
    for panel, found in enumerate((recorded, here), start=1):
        longest = 0.0
        for what, (one, two) in zip((PRODUCT, ATTENTION), (rows[:2], rows[2:]), strict=True):
            ways = found.times.get(what, {})
            if len(ways) < 3:
                continue
            base = 0.0
            for way, colour in ((DECODES, "decode"), (PROMPT, "prefill")):
                data.append(_bar(two, base, 1e3 * ways[way], colour, way, panel))
                base += 1e3 * ways[way]
            data.append(_bar(one, 0.0, 1e3 * ways[TOGETHER], "continuous", "both together", panel))
            longest = max(longest, base)
        x = {
            "title": {"text": "time [ms]"},
            "rangemode": "tozero",
            "range": theme.round_digits([0, 1.1 * longest or 1], 3),
        }
        y = {"type": "category", "categoryorder": "array", "categoryarray": rows[::-1], "showgrid": False, "ticks": "",
             "showticklabels": panel == 1, "range": [-0.6, len(rows) - 0.4]}  # fmt: skip
        axes.append((x, y))
    if here.times:
        heads.append(heading(2, "measured here"))
    key = "  ".join(f'<span style="color:{INKS[colour]}">■</span> {what}' for colour, what in (
        ("decode", "decodes"), ("prefill", "prompt"), ("continuous", "both together")))  # fmt: skip
    heads.append(note(0, 1, key, xref="paper", yref="paper", yanchor="bottom", yshift=22))
    margin = MARGIN | {"l": 110, "t": 56}
    return pair(data, axes[0], axes[1], height, margin=margin, annotations=heads, barmode="overlay")


def _bar(row: str, base: float, length: float, colour: str, name: str, panel: int) -> Part:
    return {
        "type": "bar", "orientation": "h", "name": name, "y": [row], "x": theme.round_digits([length], 4),
        "base": theme.round_digits([base], 4), "width": 0.7, "hoverinfo": "name+x",
        "marker": {"color": theme.COLOURS[colour]},
    } | place(panel)  # fmt: skip


def by_hand(cases: Mapping[str, Case], *, height: int = 430) -> go.Figure:
    """Each step as a bar as wide as it lasts, with its tokens; below it a tick for each token of a reader."""
    end, data, notes = 40.0, [], []
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"t": 50}, "barmode": "stack"}
    for panel, (name, case) in enumerate(cases.items(), start=1):
        top, last = 1.0 - (panel - 1) * 0.36, panel == len(cases)
        steps = case.run.steps
        here = (steps.end > START - 8) & (steps.start < START + end)
        middle = (steps.start[here] + steps.end[here]) / 2 - START
        for column, colour in (("decodes", "decode"), ("prefill_tokens", "prefill")):
            data.append({
                "type": "bar", "x": theme.round_digits(middle), "y": getattr(steps, column)[here].tolist(),
                "name": colour,
                "width": theme.round_digits(steps.seconds[here]), "hoverinfo": "name+y",
                "marker": {"color": theme.COLOURS[colour], "line": {"width": 1, "color": theme.PAPER}},
            } | place(panel))  # fmt: skip
        times = case.run.token_times(0) - START
        times = times[(times >= -8) & (times <= end)]
        data.append({"type": "scatter", "mode": "markers", "x": theme.round_digits(times), "y": [-1.2] * len(times),
                     "name": "a token of reader A", "hoverinfo": "name+x",
                     "marker": {"symbol": "line-ns-open", "size": 10, "color": theme.COLOURS["decode"],
                                "line": {"width": 2}}} | place(panel))  # fmt: skip
        first, second = case.ttft
        says = f"<b>{name}</b>: longest gap {case.gap:g} ms, TTFT {first:g} and {second:g} ms"
        notes.append(note(0, top, says, xref="paper", yref="paper", yanchor="bottom"))
        layout[axis("xaxis", panel)] = {
            "anchor": axis("y", panel), "range": [-8, end], "showticklabels": last, "dtick": 4,
            "title": {"text": "time since both prompts arrived [ms]" if last else ""},
        }  # fmt: skip
        layout[axis("yaxis", panel)] = {
            "anchor": axis("x", panel), "domain": theme.round_digits([top - 0.24, top]), "range": [-2.4, 8.8],
            "tickvals": [0, 4, 8], "title": {"text": "tokens" if panel == 2 else ""},
        }  # fmt: skip
    key = "  ".join(f'<span style="color:{theme.COLOURS[colour]}">{mark}</span> {what}' for colour, mark, what in (
        ("decode", "■", f"{READERS} readers"), ("prefill", "■", "prompts"),
        ("decode", "|", "a token for A")))  # fmt: skip
    notes.append(note(0, 1, key, xref="paper", yref="paper", yanchor="bottom", yshift=22))
    return theme.plain_figure(data, layout | {"annotations": notes})


def operators_graphs(before: Graphs, now: Graphs, *, height: int = 380) -> go.Figure:
    """Four graphs of an operator, with one order and with the other: TTFT, both kinds of gaps, running."""
    panels: tuple[tuple[str, Any], ...] = (
        ("TTFT, mean [ms]", lambda found: 1e3 * found.ttft),
        ("ITL, p99 [ms]", lambda found: 1e3 * found.itl_p99),
        ("running [requests]", lambda found: found.running),
        ("longest gap [ms]", lambda found: 1e3 * found.longest),
    )
    data, notes, axes = four_graphs(panels, (("last week", "waiting", before), ("now", "wasted", now)), SECONDS)
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"t": 50}} | axes
    key = "  ".join(f'<span style="color:{INKS[colour]}">━</span> {what}' for colour, what in (
        ("waiting", "last week"), ("wasted", "now")))  # fmt: skip
    notes.append(note(0, 1, key, xref="paper", yref="paper", yanchor="bottom", yshift=22))
    return theme.plain_figure(data, layout | {"annotations": notes})
