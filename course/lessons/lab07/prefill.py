"""Figures of lab 07's measurements: steps with a chunk as recorded and in theory, and a prompt's steps in time."""

from collections.abc import Sequence
from math import log10

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import LEFT, MARGIN, RIGHT, Part, line, note
from course.figures.words import seconds
from course.lessons.lab07.figures import TIME_TICKS, bars
from course.lessons.lab07.prompt_chunks import seconds_of_steps
from course.steptime import StepTime


def by_chunk(
    recorded: StepTime, theory: StepTime, prompt: int, chunks: Sequence[int], *, height: int = 380
) -> go.Figure:
    """Left, a step at the beginning and at the end of a prompt; right, the whole prompt; over the chunk size.

    Lines with dots are recorded, dashed ones theory. Every step holds the decodes of the recording as well.
    """
    data, notes = [], []
    took = {chunk: seconds_of_steps(prompt, chunk, recorded) for chunk in chunks}
    model = {chunk: seconds_of_steps(prompt, chunk, theory) for chunk in chunks}
    rows = (
        (1, "first step", lambda steps: steps[0]),
        (1, "last step", lambda steps: steps[-1]),
        (2, "", sum),
    )
    for panel, name, value in rows:
        for source, kind, dash in ((took, "recorded", "solid"), (model, "theory", "dash")):
            values = [float(value(source[chunk])) for chunk in chunks]
            trace = line(chunks, values, kind, f"{kind} {name}".strip(), panel, dash=dash)
            dots = {"mode": "lines+markers", "marker": {"color": theme.COLOURS[kind], "size": 7}}
            data.append(trace | (dots if kind == "recorded" else {}))
    x = {"xref": "x", "yref": "y"}
    last = took[chunks[2]][-1]
    notes += [
        note(log10(chunks[2]), log10(last), "last step", anchor="right", xshift=-4, yshift=16, **x),
        note(log10(chunks[4]), log10(model[chunks[4]][0]), "first step", xshift=10, yshift=-14, **x),
    ]
    x = {"xref": "x2", "yref": "y2"}
    notes += [
        note(log10(chunks[0]), log10(took[chunks[0]].sum()), "recorded", "recorded", xshift=14, yshift=6, **x),
        note(log10(chunks[2]), log10(sum(model[chunks[2]])), "theory", "theory", "right", yshift=-12, **x),
    ]
    short = [f"{chunk // 1024}k" if chunk >= 1024 else str(chunk) for chunk in chunks]
    sizes = {"type": "log", "title": {"text": "chunk [tokens]"}, "tickvals": list(chunks), "ticktext": short}
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "xaxis": sizes | {"domain": LEFT, "anchor": "y"}, "xaxis2": sizes | {"domain": RIGHT, "anchor": "y2"},
        "yaxis": {"title": {"text": "one step, log scale [s]"}, "type": "log", "anchor": "x", **TIME_TICKS},
        "yaxis2": {"title": {"text": f"{prompt:,} tokens, log scale [s]"}, "type": "log", "anchor": "x2",
                   "range": theme.round_digits([log10(0.7), log10(8)]), "tickvals": [0.7, 1, 1.5, 2, 3, 5, 8],
                   "ticktext": [f"{value:g} s" for value in (0.7, 1, 1.5, 2, 3, 5, 8)]},
    }  # fmt: skip
    return go.Figure({"data": data, "layout": layout})


def in_time(runs: dict[str, tuple[str, np.ndarray]], *, height: int = 360) -> go.Figure:
    """The steps of a prompt one after the other, a panel for each machine with a clock of its own.

    runs: by a heading, the badge ("recorded", "measured") and the seconds of each step.
    """
    data, notes, layout = [], [], {"template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"l": 24}}
    for panel, (heading, (kind, steps)) in enumerate(runs.items(), start=1):
        ends = np.cumsum(steps)
        end = "" if panel == 1 else str(panel)
        where: Part = {"xaxis": f"x{end}", "yaxis": f"y{end}"}
        data.append(bars(ends - steps, ends, [0] * len(steps), "prefill", "a step", hoverinfo="x") | where)
        top = 1.04 - (panel - 1) * 0.56
        layout[f"xaxis{end}"] = {
            "title": {"text": "time [s]"}, "anchor": f"y{end}", "range": theme.round_digits([0, 1.02 * ends[-1]], 4),
        }  # fmt: skip
        layout[f"yaxis{end}"] = {
            "domain": theme.round_digits([top - 0.3, top - 0.08]), "anchor": f"x{end}",
            "showticklabels": False, "ticks": "", "showgrid": False, "range": [-0.5, 0.5],
        }  # fmt: skip
        words = f"<b>{heading}</b>   {len(steps):,} steps, the longest {seconds(float(steps.max()))}"
        notes.append(note(0, top - 0.07, words, kind, xref="paper", yref="paper", yanchor="bottom"))
    return theme.plain_figure(data, layout | {"annotations": notes, "barmode": "overlay"})
