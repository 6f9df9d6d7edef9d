"""Figures of lab 18: who is within the promise, what designs earn on other days, and what comes with the ticket."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.operator import four_graphs
from course.figures.parts import INKS, MARGIN, Part, axis, dots, heading, line, note, pair
from course.lessons.lab18 import search, service
from course.lessons.lab18.decision import OTHER_DAYS
from course.lessons.lab18.scoring import Score, score
from course.lessons.lab18.search import REFERENCE, TUNED, defaults

COLOURS = {service.CHAT: "decode", service.DOCS: "prefill"}
SHARES = np.linspace(0, 1, 51)
TICKS = (0.1, 0.3, 1, 3, 10)
LEAST, MOST = 0.04, 30.0  # times the promise
TICKET_DAY = 102
DESIGNS = {"defaults": defaults, "tuned on one day": lambda: TUNED, "with headroom": lambda: REFERENCE}


def promises(found: Score, *, height: int = 290) -> go.Figure:
    """Of each class, how many requests are within so many times the promise: left of TTFT, right of TPOT."""
    data, load = list[Part](), found.load
    for panel, (metric, values) in enumerate((("ttft", found.ttft), ("tpot", found.tpot)), start=1):
        for name, promise in service.PROMISES.items():
            here = values[(load.class_ == name) & ~np.isnan(values)] / getattr(promise, metric)
            data.append(line(np.clip(np.quantile(here, SHARES), LEAST, MOST), 100 * SHARES, COLOURS[name], name, panel))
        data.append(line([1, 1], [0, 100], "waiting", "promise", panel, dash="dot", width=1.5))
    names = "   ".join(f'<span style="color:{INKS[colour]}">■ {name}</span>' for name, colour in COLOURS.items())
    share: Part = {"title": {"text": "within it [%]"}, "range": [0, 102], "dtick": 25}

    def times(metric: str) -> Part:
        return {
            "type": "log", "title": {"text": f"{metric} [times the promise]"}, "tickvals": list(TICKS),
            "ticktext": [f"{tick:g}" for tick in TICKS], "range": theme.round_digits([log10(LEAST), log10(MOST)]),
        }  # fmt: skip

    right = share | {"title": {"text": ""}}
    notes = [heading(1, names), heading(2, "dotted: the promise")]
    return pair(data, (times("TTFT"), share), (times("TPOT"), right), height, annotations=notes)


def other_days(*, height: int = 320) -> go.Figure:
    """The score of three designs on the seen day and on others; at 0 a class was below its share."""
    data, rows = list[Part](), list(DESIGNS)
    for place, (name, made) in enumerate(DESIGNS.items()):
        design = made()
        found = [one / 1_000 for one in search.unseen(design, OTHER_DAYS)]
        shift = np.linspace(-0.2, 0.2, len(found))
        data.append(dots(found, place + shift, ["decode"] * len(found), f"{name}, other days"))
        data.append(dots([search.tried(design) / 1_000], [place], ["wasted"], f"{name}, seen day"))
    key = "   ".join(
        f'<span style="color:{INKS[colour]}">● {what}</span>'
        for colour, what in (("wasted", "the seen day"), ("decode", f"{len(OTHER_DAYS)} busier days"))
    )
    layout: Part = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": [heading(1, key)],
        "xaxis": {"title": {"text": "score [1,000 requests within their promise a dollar]"}, "range": [-1, 40]},
        "yaxis": {"range": [-0.5, len(rows) - 0.3], "tickvals": list(range(len(rows))), "ticktext": rows},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


@dataclass(frozen=True)
class Graphs:
    """What an operator sees of a day, second by second.

    arriving: documents a second. chats: with a slot or waiting. documents: the same. in_time: documents that came
    within two seconds of it and were served as promised [%].
    """

    at: np.ndarray
    arriving: np.ndarray
    chats: np.ndarray
    documents: np.ndarray
    in_time: np.ndarray


def graphs(found: Score) -> Graphs:
    """The same of a run."""
    at = np.arange(1.0, service.SECONDS, 1.0)
    arrival, docs = found.load.arrival, found.load.class_ == service.DOCS
    promise = service.PROMISES[service.DOCS]
    kept = (found.ttft <= promise.ttft) & ~(found.tpot > promise.tpot)
    near = [docs & (np.abs(arrival - middle) <= 2) for middle in at]
    there = [(arrival <= middle) & (found.ended > middle) for middle in at]
    return Graphs(
        at, np.array([here.sum() / 4 for here in near]), np.array([(here & ~docs).sum() for here in there]),
        np.array([(here & docs).sum() for here in there]),
        np.array([100 * kept[here].mean() if here.any() else 100.0 for here in near]),
    )  # fmt: skip


def ticket(*, height: int = 400) -> go.Figure:
    """The four graphs of the ticket: yesterday and today."""
    panels = (
        ("documents arriving [requests/s]", lambda found: found.arriving),
        ("chats in the engines [requests]", lambda found: found.chats),
        ("documents in the engines [requests]", lambda found: found.documents),
        ("documents within their promise [%]", lambda found: found.in_time),
    )
    days = (("yesterday", "waiting", service.SEEN), ("today", "wasted", TICKET_DAY))
    runs = tuple((name, colour, graphs(score(TUNED, service.day(seed)))) for name, colour, seed in days)
    data, notes, axes = four_graphs(panels, runs, service.SECONDS, room=1.2)
    for place, (name, colour, _) in enumerate(runs):
        where = {"xref": axis("x", 3) + " domain", "yref": axis("y", 3) + " domain", "yanchor": "top"}
        notes.append(note(0.03, 0.98 - 0.16 * place, name, colour, **where))
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN} | axes
    return theme.plain_figure(data, layout | {"annotations": notes})
