"""Figures of lab 07: one long prompt among chats, the trade over all budgets, and what a percentile hides.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import LEFT, MARGIN, RIGHT, Part, axis, dots, line, note
from course.figures.words import seconds
from course.lessons.lab07.by_hand import CHATS, LONG, NEW, Case
from course.lessons.lab07.long_prompt import BUDGETS, SLOTS, Hidden, Moment, Trade
from course.lessons.lab07.rush import SECONDS, Graphs

LANES = 5  # streaming chats that get a lane
TIMES = [1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3]
TIME_TICKS = {"tickvals": TIMES, "ticktext": [seconds(value) for value in TIMES]}


def bars(begin: np.ndarray, end: np.ndarray, lane: Sequence[float], colour: str, name: str, **more: Any) -> Part:
    """Bars from begin to end in lanes, with a hair between two of them where there are few."""
    edge = 1 if len(begin) <= 80 else 0
    return {
        "type": "bar", "orientation": "h", "base": theme.round_digits(begin), "x": theme.round_digits(end - begin),
        "y": list(lane), "name": name, "width": 0.8, "hoverinfo": "name",
        "marker": {"color": theme.COLOURS[colour], "line": {"width": edge, "color": theme.PAPER}},
    } | more  # fmt: skip


def moment(found: Moment, *, height: int = 300) -> go.Figure:
    """Lanes: the long prompts, those who come just after them, and some who were streaming; a tick is a token."""
    run, start = found.run, found.start
    chats = min(LANES, found.streaming)
    late, new = [*found.longs, *found.newcomers], list(found.newcomers)
    lanes = {request: row for row, request in enumerate([*late, *range(chats)])}
    names = ["long prompt", *(f"long prompt {n}" for n in range(2, found.at_once + 1))]
    names += [f"newcomer {n}" for n in range(1, len(new) + 1)] + [f"chat {n}" for n in range(1, chats + 1)]
    names[-1] += f" of {found.streaming}" if found.streaming > chats else ""
    end = max(0.3, 1.12 * float(run.ttft[list(found.longs)].max()))

    place = [lanes[request] for request in late]
    chunks = [found.steps_of(request) for request in found.longs]
    begins, ends = (np.concatenate(edges) for edges in zip(*chunks, strict=True))
    rows_of = [lanes[request] for request, (begun, _) in zip(found.longs, chunks, strict=True) for _ in begun]
    data = [
        bars(run.arrival[late] - start, run.admitted[late] - start, place, "waiting", "waiting", width=0.3),
        bars(begins - start, ends - start, rows_of, "prefill", "a chunk of a long prompt"),
        bars(run.admitted[new] - start, run.first_computed[new] - start, place[-len(new) :], "prefill", "prefill"),
    ]
    times, rows = [], []
    for request, row in lanes.items():
        tokens = run.token_times(request) - start
        tokens = tokens[(tokens >= -0.1 * end) & (tokens <= end)]
        times.append(tokens)
        rows += [row] * len(tokens)
    data.append(
        {"type": "scatter", "mode": "markers", "x": theme.round_digits(np.concatenate(times), 4), "y": rows,
         "name": "a token", "hovertemplate": "%{x:.3f} s<extra>a token</extra>",
         "marker": {"symbol": "line-ns-open", "size": 13, "color": theme.COLOURS["decode"], "line": {"width": 1.5}}}
    )  # fmt: skip
    before, after = theme.round_digits([edge - start for edge in found.longest_gap], 4)
    top, bottom = len(late) - 0.5, len(late) - 0.5 + chats
    gap = {"type": "rect", "x0": before, "x1": after, "y0": top, "y1": bottom, "opacity": 0.18, "line": {"width": 0}}
    key = [f'<span style="color:{theme.COLOURS[kind]}">■</span> {kind}' for kind in ("waiting", "prefill")]
    longest = seconds(float(np.diff(found.longest_gap)[0]))
    key.append(f'<span style="color:{theme.COLOURS["decode"]}">|</span> a token')
    key.append(f'<span style="color:{theme.ink("wasted")}">■</span> longest: {longest}')
    layout = {
        "template": theme.TEMPLATE, "height": height, "barmode": "overlay", "margin": MARGIN | {"l": 100},
        "xaxis": {"title": {"text": "time since the long prompt arrived [s]"},
                  "range": theme.round_digits([-0.1 * end, end], 4)},
        "yaxis": {"range": [len(names) - 0.4, -0.6], "tickvals": list(range(len(names))), "ticktext": names,
                  "showgrid": False, "showline": False, "ticks": ""},
        "shapes": [gap | {"fillcolor": theme.COLOURS["wasted"]}],
        "annotations": [note(0, 1, "  ".join(key), xref="paper", yref="paper", yanchor="bottom", xshift=-92, yshift=4)],
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def trade(result: Trade, *, height: int = 340) -> go.Figure:
    """Left, who waits for a first token; right, who waits for the next one; both over the token budget of a step."""
    lines = (
        (1, "prefill", "the long prompt", lambda o: o.long_ttft, 4, "center", 14),
        (1, "waiting", "new chats, p99", lambda o: o.chat_ttft["p99"], 6, "center", -16),
        (2, "wasted", "longest", lambda o: o.itl["max"], 6, "right", 12),
        (2, "decode", "p99 of all tokens", lambda o: o.itl["p99"], 6, "center", -16),
    )
    data, notes = [], []
    for panel, colour, name, value, at, anchor, up in lines:
        values = [value(found) for found in result.line]
        data.append(line(BUDGETS, values, colour, name, panel))
        where = {"xref": axis("x", panel), "yref": axis("y", panel), "yshift": up}
        notes.append(note(log10(BUDGETS[at]), log10(values[at]), name, colour, anchor, **where))
        data.append(dots([result.budget], [value(result.here)], [colour], name, panel))
    budgets = {
        "type": "log", "title": {"text": "token budget of a step [tokens]"}, "tickvals": BUDGETS[::2] + BUDGETS[-1:],
        "ticktext": ["128", "512", "2k", "8k", "", "64k"], "range": theme.round_digits([log10(110), log10(76_000)]),
    }  # fmt: skip
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "xaxis": budgets | {"domain": LEFT, "anchor": "y"}, "xaxis2": budgets | {"domain": RIGHT, "anchor": "y2"},
        "yaxis": {"title": {"text": "TTFT, log scale [s]"}, "type": "log", "anchor": "x", "range": [-2.1, 1.1],
                  **TIME_TICKS},
        "yaxis2": {"title": {"text": "ITL, log scale [s]"}, "type": "log", "anchor": "x2",
                   "range": [-2.5, 0.6], **TIME_TICKS},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def survival(values: np.ndarray, weights: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Share of the weight of the values that are above each of `at`."""
    order = np.argsort(values)
    upto = np.append(0, np.cumsum(weights[order]))
    return 1 - upto[np.searchsorted(values[order], at, side="right")] / upto[-1]


def hidden(result: Hidden, *, height: int = 300) -> go.Figure:
    """Share of the tokens, and of the chats, with a gap longer than that: the same gaps counted in two ways."""
    found = result.outcome
    at = np.geomspace(2.5e-3, 3.0, 240)
    by_token = survival(*found.run.itl_weighted, at)
    by_chat = survival(found.chat_gaps, np.ones(len(found.chat_gaps)), at)
    data, notes = [], []
    rows = (
        ("decode", by_token, found.itl["p99"], "tokens, by the gap before each", 14),
        ("wasted", by_chat, float(np.percentile(found.chat_gaps, 99)), "chats, by the longest gap of each", -14),
    )
    for colour, shares, p99, name, up in rows:
        none = shares <= 0
        shown = np.where(none, np.nan, shares)
        shown[none.argmax()] = 1e-6  # below the axis: the line drops where the longest gap is
        data.append(line(at, shown, colour, name))
        data.append(dots([p99], [0.01], [colour], f"p99 of {name}"))
        right = p99 > 0.3
        notes.append(
            note(log10(p99), -2, f"p99 of {name.split(',')[0]}: {seconds(p99)}", colour, "right" if right else "left",
                 xshift=-10 if right else 10, yshift=up)
        )  # fmt: skip
    limit = float(f"{result.limit:.6g}")
    right = limit > 0.3
    notes.append(
        note(log10(limit), 1, f"limit {seconds(limit)}", anchor="right" if right else "left", yref="paper",
             yanchor="top", xshift=-5 if right else 5)
    )  # fmt: skip
    upright = {"type": "line", "x0": limit, "x1": limit, "y0": 0, "y1": 1, "yref": "paper"}
    level = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": 0.01, "y1": 0.01}
    ticks = [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5]
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "xaxis": {"title": {"text": "gap between two tokens, log scale [s]"}, "type": "log",
                  "range": theme.round_digits([log10(2.5e-3), log10(3)]), **TIME_TICKS},
        "yaxis": {"title": {"text": "with a longer gap [share]"}, "type": "log", "range": [-5.2, 0.1],
                  "tickvals": ticks, "ticktext": ["100%", "10%", "1%", "0.1%", "0.01%", "0.001%"]},
        "shapes": [upright | {"line": {"color": theme.INK, "width": 1}},
                   level | {"line": {"color": "#666666", "width": 1, "dash": "dot"}}],
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def by_hand(cases: Mapping[str, Case], *, height: int = 470) -> go.Figure:
    """Four requests with each setting, one above the other: chunks with their tokens, and a tick for each token."""
    lanes = {"chat A": CHATS[0], "chat B": CHATS[1], "long prompt": LONG, "new chat": NEW}
    end, data, notes = 32.0, [], []
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"l": 100}, "barmode": "overlay"}
    for row, (name, case) in enumerate(cases.items(), start=1):
        where: Part = {"xaxis": axis("x", row), "yaxis": axis("y", row)}
        run, top = case.run, 1.0 - (row - 1) * 0.345
        late = np.array([LONG, NEW])
        data.append(
            bars(run.arrival[late] - case.start, run.first_computed[late] - case.start, [2, 3], "waiting", "waiting",
                 width=0.25) | where
        )  # fmt: skip
        begins, ends = case.steps.T
        data.append(bars(begins, ends, [2] * len(begins), "prefill", "a chunk of the long prompt") | where)
        new_end = float(run.first_computed[NEW]) - case.start
        (new_step,) = np.flatnonzero(np.isclose(run.steps.end - case.start, new_end))
        data.append(
            bars(run.steps.start[[new_step]] - case.start, np.array([new_end]), [3], "prefill", "prefill") | where
        )
        times = [case.tokens(request) for request in lanes.values()]
        shown = [tokens[(tokens >= -4) & (tokens <= end)] for tokens in times]
        data.append(
            {"type": "scatter", "mode": "markers", "x": theme.round_digits(np.concatenate(shown), 4),
             "y": [lane for lane, tokens in enumerate(shown) for _ in tokens], "name": "a token", "hoverinfo": "name+x",
             "marker": {"symbol": "line-ns-open", "size": 12, "color": theme.COLOURS["decode"], "line": {"width": 2}}}
            | where
        )  # fmt: skip
        waits = f"TTFT {case.new_ttft:g} ms (new chat) and {case.long_ttft:g} ms (long prompt)"
        says = f"<b>{name}</b>: longest gap {case.longest_gap:g} ms, {waits}"
        notes.append(note(0, top, says, xref="paper", yref="paper", yanchor="bottom"))
        last = row == len(cases)
        layout[axis("xaxis", row)] = {
            "anchor": axis("y", row), "range": [-4.5, end], "showticklabels": last, "dtick": 4,
            "title": {"text": "time since the long prompt arrived [ms]" if last else ""},
        }  # fmt: skip
        layout[axis("yaxis", row)] = {
            "anchor": axis("x", row), "domain": theme.round_digits([top - 0.25, top]), "range": [3.6, -0.6],
            "tickvals": [0, 1, 2, 3], "ticktext": list(lanes), "showgrid": False, "showline": False, "ticks": "",
        }  # fmt: skip
    return theme.plain_figure(data, layout | {"annotations": notes})


def operators_graphs(before: Graphs, now: Graphs, *, height: int = 400) -> go.Figure:
    """Four graphs of an operator, with one budget and with another: TTFT, gaps, running, waiting."""
    panels = (
        ("TTFT, p95 [s]", lambda found: found.ttft, [0, 14]),
        ("ITL, p99 [ms]", lambda found: 1e3 * found.gap, [0, 65]),
        (f"running, of {SLOTS} slots", lambda found: found.running, [0, 70]),
        ("waiting [requests]", lambda found: found.waiting, [0, 150]),
    )
    data, notes = [], []
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN}
    for panel, (title, value, span) in enumerate(panels, start=1):
        left, upper = panel % 2 == 1, panel <= 2
        for name, colour, found in (("yesterday", "waiting", before), ("today", "wasted", now)):
            data.append(line(found.at, value(found), colour, name, panel))
            if panel == 1:
                up = 12 if name == "today" else 10
                notes.append(note(found.at[-2], float(value(found)[-2]), name, colour, "right", xref="x", yref="y",
                                  yshift=up + 4))  # fmt: skip
        layout[axis("xaxis", panel)] = {
            "anchor": axis("y", panel), "domain": list(LEFT if left else RIGHT), "range": [0, SECONDS],
            "showticklabels": not upper, "title": {"text": "" if upper else "time [s]"},
        }  # fmt: skip
        layout[axis("yaxis", panel)] = {
            "anchor": axis("x", panel), "domain": [0.56, 1.0] if upper else [0.0, 0.44], "range": span, "nticks": 4,
            "title": {"text": title},
        }  # fmt: skip
    return theme.plain_figure(data, layout | {"annotations": notes})
