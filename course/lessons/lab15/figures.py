"""Figures of lab 15: who kept which promise, who waits, and what comes with the ticket.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from math import log10

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.operator import four_graphs
from course.figures.parts import INKS, MARGIN, Part, axis, heading, line, note, pair, trace
from course.lessons.lab15.mixed import Graphs
from course.lessons.lab15.promises import SECONDS, TPOT, Outcome

SHOWN = 300  # requests that are drawn
LEAST, MOST = (0.02, 4.0), (90.0, 400.0)  # of TTFT over promised, and of TPOT in ms: what lies outside is at the edge
TIMES, TPOTS = (0.1, 1, 10), (5, 20, 100)
END = 90  # seconds: of the right panel
COLOURS = {"kept": "continuous", "late": "waiting", "slow": "wasted"}


def _marks(found: Outcome) -> list[Part]:
    """A mark for each of some requests: first token in time or not, stream fast enough or not."""
    run = found.run
    places = np.unique(np.linspace(0, len(run) - 1, SHOWN).astype(int))
    x = np.clip(run.ttft / found.promised, LEAST[0] * 1.1, MOST[0] / 1.1)[places]
    y = np.clip(np.nan_to_num(1e3 * run.tpot, nan=LEAST[1] * 1.1), LEAST[1] * 1.1, MOST[1] / 1.1)[places]
    kept, in_time = found.kept[places], found.in_time[places]
    groups = {"kept": kept, "late": ~in_time, "slow": in_time & ~kept}
    return [
        trace(x[rows], y[rows], name)
        | {"mode": "markers", "marker": {"color": theme.COLOURS[COLOURS[name]], "size": 6}, "cliponaxis": False}
        for name, rows in groups.items()
    ]


def promises(found: Outcome, *, height: int = 300) -> go.Figure:
    """Left a mark for each of some requests, within both promises or not; right who has a slot and who waits."""
    edges = np.arange(0, END + 1, 2.0)
    running, waiting = ([count(at) for at in edges] for count in (found.running, found.waiting))
    data = [
        *_marks(found),
        line([1, 1], [LEAST[1], MOST[1]], "theory", "promised", width=1.5, dash="dot"),
        line(list((LEAST[0], MOST[0])), [1e3 * TPOT] * 2, "theory", "promised", width=1.5, dash="dot"),
        line(edges, waiting, "waiting", "waiting", 2),
        line(edges, running, "decode", "with a slot", 2),
    ]
    keys = (
        (1, [("continuous", "kept"), ("waiting", "late"), ("wasted", "slow stream")]),
        (2, [("decode", "with a slot"), ("waiting", "waiting")]),
    )
    notes = [
        heading(panel, "   ".join(f'<span style="color:{INKS[colour]}">■ {name}</span>' for colour, name in names))
        for panel, names in keys
    ]
    notes[0]["text"] += f"   {min(SHOWN, len(found.run))} of {len(found.run):,}"
    ttft: Part = {"title": {"text": "TTFT / promised [times]"}, "type": "log", "tickvals": list(TIMES),
                  "ticktext": [f"{tick:g}" for tick in TIMES],
                  "range": theme.round_digits([log10(LEAST[0]), log10(MOST[0])])}  # fmt: skip
    tpot: Part = {"title": {"text": "TPOT [ms]"}, "type": "log", "tickvals": list(TPOTS),
                  "ticktext": [f"{tick:g}" for tick in TPOTS],
                  "range": theme.round_digits([log10(LEAST[1]), log10(MOST[1])])}  # fmt: skip
    time: Part = {"title": {"text": "time [s]"}, "range": [0, END], "dtick": 30}
    many: Part = {"title": {"text": "requests"}, "range": theme.round_digits([0, 1.1 * max(*running, *waiting, 9)], 3)}
    return pair(data, (ttft, tpot), (time, many), height, annotations=notes)


def operators_graphs(before: Graphs, now: Graphs, *, height: int = 400) -> go.Figure:
    """Four graphs of an operator, yesterday and today."""
    panels = (
        ("TTFT of chats, mean [s]", lambda found: found.ttft),
        ("waiting [requests]", lambda found: found.waiting),
        ("running [requests]", lambda found: found.running),
        ("prompts [thousand tokens/s]", lambda found: found.prompts / 1e3),
    )
    runs = (("yesterday", "waiting", before), ("today", "wasted", now))
    data, notes, axes = four_graphs(panels, runs, SECONDS, room=1.2)
    for name, colour, found in runs:
        x, y = float(found.at[2]), float(found.prompts[2] / 1e3)
        notes.append(note(x, y, name, colour, yshift=14, xref=axis("x", 4), yref=axis("y", 4)))
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN} | axes
    return theme.plain_figure(data, layout | {"annotations": notes})
