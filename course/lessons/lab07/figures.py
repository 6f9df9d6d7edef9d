"""Figures of lab 07: one long prompt among chats, what a percentile hides, and what the real engine did.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.operator import four_graphs
from course.figures.parts import INKS, MARGIN, Part, axis, dots, heading, line, note, pair, place
from course.figures.words import seconds
from course.lessons.lab07.long_prompt import SLOTS, Hidden, Moment
from course.lessons.lab07.recorded_stops import Answer
from course.lessons.lab07.rush import SECONDS, Graphs

LANES = 5  # streaming chats that get a lane


def bars(begin: np.ndarray, end: np.ndarray, lane: Sequence[float], colour: str, name: str = "", **more: Any) -> Part:
    """Bars from begin to end in lanes, with a hair between two of them where there are few."""
    edge = 1 if len(begin) <= 80 else 0
    return {
        "type": "bar", "orientation": "h", "base": theme.round_digits(begin), "x": theme.round_digits(end - begin),
        "y": list(lane), "name": name or colour, "width": 0.8, "hoverinfo": "name",
        "marker": {"color": theme.COLOURS[colour], "line": {"width": edge, "color": theme.PAPER}},
    } | more  # fmt: skip


def _lanes(found: Moment, lanes: Sequence[int], end: float, panel: int = 1) -> list[Part]:
    """The lanes of some requests in a panel: waiting, chunks and prefills as bars, a tick for each token."""
    run, start = found.run, found.start
    row = {request: n for n, request in enumerate(lanes)}
    late = [request for request in lanes if request >= found.streaming]
    new = [request for request in late if request not in found.longs]
    spans = [(*span, row[request]) for request in found.longs for span in zip(*found.steps_of(request), strict=True)]
    begins, ends, places = np.array(spans).T
    tokens = [run.token_times(request) - start for request in lanes]
    tokens = [times[(times >= -0.15 * end) & (times <= end)] for times in tokens]
    data = [
        bars(run.arrival[late] - start, run.admitted[late] - start, [row[r] for r in late], "waiting", width=0.3),
        bars(begins - start, ends - start, places, "prefill", "a chunk of a long prompt"),
        bars(run.admitted[new] - start, run.first_computed[new] - start, [row[r] for r in new], "prefill"),
        {"type": "scatter", "mode": "markers", "x": theme.round_digits(np.concatenate(tokens), 4),
         "y": [n for n, times in enumerate(tokens) for _ in times], "name": "a token", "hoverinfo": "name+x",
         "marker": {"symbol": "line-ns-open", "size": 13, "color": theme.COLOURS["decode"], "line": {"width": 1.5}}},
    ]  # fmt: skip
    return [part | place(panel) for part in data]


def _names(names: Sequence[str]) -> Part:
    """An axis of lanes, the first one on top."""
    return {"range": [len(names) - 0.4, -0.6], "tickvals": list(range(len(names))), "ticktext": list(names),
            "showgrid": False, "showline": False, "ticks": ""}  # fmt: skip


def moment(found: Moment, *, height: int = 300) -> go.Figure:
    """Lanes: the long prompts, those who come just after them, and some who were streaming; a tick is a token."""
    start, late = found.start, [*found.longs, *found.newcomers]
    chats = min(LANES, found.streaming)
    names = ["long prompt", *(f"long prompt {n}" for n in range(2, found.at_once + 1))]
    names += [f"newcomer {n}" for n in range(1, len(found.newcomers) + 1)] + [f"chat {n + 1}" for n in range(chats)]
    names[-1] += f" of {found.streaming}" if found.streaming > chats else ""
    end = max(0.3, 1.12 * float(found.run.ttft[list(found.longs)].max()))
    before, after = theme.round_digits([edge - start for edge in found.longest_gap], 4)
    gap = {"type": "rect", "x0": before, "x1": after, "y0": len(late) - 0.5, "y1": len(late) - 0.5 + chats,
           "opacity": 0.18, "line": {"width": 0}, "fillcolor": theme.COLOURS["wasted"]}  # fmt: skip
    longest = seconds(float(np.diff(found.longest_gap)[0]))
    marks = (("waiting", "■", "waiting"), ("prefill", "■", "prefill"), ("decode", "|", "a token"),
             ("wasted", "■", f"longest: {longest}"))  # fmt: skip
    key = "  ".join(f'<span style="color:{theme.COLOURS[kind]}">{mark}</span> {what}' for kind, mark, what in marks)
    layout = {
        "template": theme.TEMPLATE, "height": height, "barmode": "overlay", "margin": MARGIN | {"l": 100},
        "xaxis": {"title": {"text": "time since the long prompt arrived [s]"},
                  "range": theme.round_digits([-0.1 * end, end], 4)},
        "yaxis": _names(names), "shapes": [gap],
        "annotations": [note(0, 1, key, xref="paper", yref="paper", yanchor="bottom", xshift=-92, yshift=4)],
    }  # fmt: skip
    return theme.plain_figure(_lanes(found, [*late, *range(chats)], end), layout)


def survival(values: np.ndarray, weights: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Share of the weight of the values that are above each of `at`."""
    order = np.argsort(values)
    upto = np.append(0, np.cumsum(weights[order]))
    return 1 - upto[np.searchsorted(values[order], at, side="right")] / upto[-1]


def hidden(result: Hidden, *, height: int = 300) -> go.Figure:
    """Share of the tokens, and of the chats, with a gap longer than that: the same gaps counted in two ways."""
    found = result.outcome
    at = np.geomspace(2.5e-3, 3.0, 240)
    one_each = np.ones(len(found.chat_gaps))
    rows = (
        ("decode", "tokens", survival(*found.run.itl_weighted, at), found.itl["p99"]),
        ("wasted", "chats", survival(found.chat_gaps, one_each, at), result.p99),
    )
    data, key = [], []
    for colour, name, shares, p99 in rows:
        none = shares <= 0
        shown = np.where(none, np.nan, shares)
        shown[none.argmax()] = 1e-6  # below the axis: the line drops where the longest gap is
        data += [line(at, shown, colour, name), dots([p99], [0.01], [colour], f"p99 of {name}")]
        key.append(f'<span style="color:{INKS[colour]}">● p99 of {name}: {seconds(p99)}</span>')
    limit = float(f"{result.limit:.6g}")
    right = limit > 0.3
    notes = [
        note(0, 1, "   ".join(key), xref="paper", yref="paper", yanchor="bottom", xshift=-50, yshift=4),
        note(log10(limit), 1, f"limit {seconds(limit)}", anchor="right" if right else "left", yref="paper",
             yanchor="top", xshift=-5 if right else 5),
    ]  # fmt: skip
    upright = {"type": "line", "x0": limit, "x1": limit, "y0": 0, "y1": 1, "yref": "paper"}
    level = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": 0.01, "y1": 0.01}
    times, parts = (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3), (1, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "xaxis": {"title": {"text": "gap between two tokens, log scale [ms]"}, "type": "log", "tickvals": list(times),
                  "range": theme.round_digits([log10(2.5e-3), log10(3)]), "tickangle": 0,
                  "ticktext": [f"{1e3 * time:,g}" for time in times]},
        "yaxis": {"title": {"text": "with a longer gap [%]"}, "type": "log", "range": [-5.2, 0.1],
                  "tickvals": list(parts), "ticktext": [f"{100 * part:g}" for part in parts]},
        "shapes": [upright | {"line": {"color": theme.INK, "width": 1}},
                   level | {"line": {"color": "#666666", "width": 1, "dash": "dot"}}],
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def by_hand(cases: Mapping[str, Moment], *, height: int = 480) -> go.Figure:
    """Four requests with each setting, one above the other."""
    end, data, notes = 32.0, [], []
    margin = MARGIN | {"l": 100, "t": 54}  # the figure's buttons are above its first line
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": margin, "barmode": "overlay"}
    for panel, (name, case) in enumerate(cases.items(), start=1):
        top, last = 1.0 - (panel - 1) * 0.345, panel == len(cases)
        data += _lanes(case, range(4), end, panel)
        gap, (long, new) = np.diff(case.longest_gap)[0], case.run.ttft[2:]
        says = f"<b>{name}</b>: longest gap {gap:g} ms, TTFT {long:g} ms (long) and {new:g} ms (new)"
        notes.append(note(0, top, says, xref="paper", yref="paper", yanchor="bottom"))
        layout[axis("xaxis", panel)] = {
            "anchor": axis("y", panel), "range": [-4.5, end], "showticklabels": last, "dtick": 4,
            "title": {"text": "time since the long prompt arrived [ms]" if last else ""},
        }  # fmt: skip
        layout[axis("yaxis", panel)] = _names(("chat A", "chat B", "long prompt", "new chat")) | {
            "anchor": axis("x", panel),
            "domain": theme.round_digits([top - 0.25, top]),
        }
    return theme.plain_figure(data, layout | {"annotations": notes})


def one_answer(answers: Sequence[Answer], label: str, *, height: int = 320) -> go.Figure:
    """The gap before each token of one answer, at two budgets; steps that also held a chunk have its colour."""
    most = 1.1e3 * max(one.gaps.max() for one in answers)
    data, notes = [], []
    for panel, one in enumerate(answers, start=1):
        colours = [theme.COLOURS["prefill" if tokens else "decode"] for tokens in one.chunk]
        data.append({"type": "bar", "x": list(range(2, len(one.gaps) + 2)), "y": theme.round_digits(1e3 * one.gaps, 4),
                     "name": "gap", "width": 1.0, "hoverinfo": "x+y",
                     "marker": {"color": colours, "line": {"width": 0}}} | place(panel))  # fmt: skip
        says = f"budget {one.budget}: {(one.chunk > 0).sum()} chunks, longest gap {seconds(one.longest)}"
        notes.append(heading(panel, says))
    x = {"title": {"text": "token of the answer [number]"}}
    y = {"title": {"text": "gap before it [ms]"}, "range": theme.round_digits([0, most], 3)}
    key = f'<span style="color:{theme.COLOURS["prefill"]}">■</span> beside a chunk of a long prompt'
    over: Part = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "yshift": 26}
    notes.append(note(0, 1, f"<b>{label}</b>, recorded   {key}", **over))
    return pair(data, (x, y), (x, y), height, margin=MARGIN | {"t": 84}, annotations=notes)


def operators_graphs(before: Graphs, now: Graphs, *, height: int = 400) -> go.Figure:
    """Four graphs of an operator, with one budget and with another: TTFT, gaps, running, waiting."""
    panels = (
        ("TTFT, p95 [s]", lambda found: found.ttft),
        ("ITL, p99 [ms]", lambda found: 1e3 * found.gap),
        (f"running, of {SLOTS} slots [requests]", lambda found: found.running),
        ("waiting [requests]", lambda found: found.waiting),
    )
    runs = (("yesterday", "waiting", before), ("today", "wasted", now))
    data, notes, axes = four_graphs(panels, runs, SECONDS)
    for name, colour, found in runs:
        x, y = (float(each[len(each) // 2]) for each in (found.at, found.ttft))
        notes.append(note(x, y, name, colour, "right", xshift=-6, yshift=14))
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN} | axes
    return theme.plain_figure(data, layout | {"annotations": notes})
