"""Figures of lab 14: where a step goes and what it costs, TPOT of three layouts, words of two halves, the ticket."""

from __future__ import annotations

from math import log10

import numpy as np
import plotly.graph_objects as go

from course.figures import parts, theme
from course.lessons.lab14 import cards, decision, four
from course.lessons.lab14.apart import Apart
from course.lessons.lab14.cards import CARDS, Spread
from course.lessons.lab14.four import LAYOUTS, Four
from course.lessons.lab14.halves import Spoken

FILLS = {"shared": "decode", "stays": "theory", "all-reduces": "wasted"}
WIDE = 52  # characters of a line of words
MOST_STEP = (4.0, 8.0, 16.0)
SHORTEST_LONGEST_MS = (2.0, 100.0)  # of the axis of TPOT
TPOT_AXIS: parts.Part = {
    "title": {"text": "TPOT [ms]"}, "type": "log", "range": [log10(2), 2], "tickvals": [2, 4, 8, 16, 32, 64],
    "ticktext": ["2", "4", "8", "16", "32", "64"],
}  # fmt: skip


def _key(fills: dict[str, str]) -> str:
    mark = '<span style="color:{}">■</span> {}'
    return "  ".join(mark.format(theme.COLOURS[colour], name) for name, colour in fills.items())


def spread(found: Spread, *, height: int = 290) -> go.Figure:
    """Left, where a step of this batch goes on 1 to 8 cards; right, what a million tokens cost."""
    every = [cards.spread(count, found.batch, found.kind) for count in CARDS]
    names = [f"{count}" for count in CARDS]
    data, base = [], np.zeros(len(CARDS))
    pieces = {"shared": [one.shared for one in every], "stays": [one.stays for one in every],
              "all-reduces": [one.sums for one in every]}  # fmt: skip
    for name, values in pieces.items():
        length = 1e3 * np.array(values)
        data.append({
            "type": "bar", "name": name, "x": names, "y": theme.round_digits(length), "base": theme.round_digits(base),
            "width": 0.6, "marker": {"color": theme.COLOURS[FILLS[name]], "line": {"width": 1, "color": theme.PAPER}},
        } | parts.place(1))  # fmt: skip
        base = base + length
    most = next(limit for limit in MOST_STEP if base.max() < limit)
    costs = [one.cost for one in every]
    data.append(parts.line(CARDS, costs, "recorded", "dollars", 2) | {"mode": "lines+markers"})
    data.append(parts.dots([found.cards], [found.cost], ["recorded"], "these cards", 2))
    ticks = [0.05, 0.2, 1, 5, 20]
    return parts.pair(
        data,
        ({"title": {"text": "cards"}, "type": "category"}, {"title": {"text": "step [ms]"}, "range": [0, most]}),
        ({"title": {"text": "cards"}, "type": "log", "range": [-0.06, log10(9.4)], "tickvals": list(CARDS),
          "ticktext": names},
         {"title": {"text": "cost [$]"}, "type": "log", "range": [log10(0.04), log10(24)],
          "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}),
        height,
        columns=((0.0, 0.5), (0.64, 1.0)),
        barmode="overlay",
        annotations=[parts.heading(1, _key(FILLS)), parts.heading(2, f"1M tokens; {cards.PRICE:g} $/h, assumed")],
    )  # fmt: skip


def four_cards(found: Four, *, height: int = 290) -> go.Figure:
    """Left, the share of requests by TPOT; right, the share within both promises."""
    return _promises(found, dict(zip(LAYOUTS, ("replicas", "pairs", "one four"), strict=True)), height)


def prefill_and_decode(found: Apart, *, height: int = 290) -> go.Figure:
    """The same of cards that mix prompts and answers, and of cards apart."""
    return _promises(found, {name: name for name in found.runs}, height)


def _promises(found: Four | Apart, names: dict[str, str], height: int) -> go.Figure:
    """names: of the layouts, as the axis has them."""
    percents = np.arange(0, 101)
    colours = dict(zip(names, ("decode", "recorded", "wasted", "prefill"), strict=False))
    data = [parts.line([found.tpot_ms] * 2, [0, 104], "waiting", "promised", dash="dot", width=1.5)]
    for name, dash in zip(names, ("solid", "dash", "dot", "dashdot"), strict=False):
        values = np.clip(np.nanpercentile(1e3 * found.runs[name].tpot, percents), *SHORTEST_LONGEST_MS)
        data.append(parts.line(values, percents, colours[name], name, dash=dash))
    shares = [100 * found.share(name) for name in names]
    data.append({
        "type": "bar", "x": list(names), "y": theme.round_digits(shares), "width": 0.6, "name": "within both",
        "marker": {"color": [theme.COLOURS[colours[name]] for name in names]},
    } | parts.place(2))  # fmt: skip
    return parts.pair(
        data,
        (TPOT_AXIS,
         {"title": {"text": "requests [%]"}, "range": [0, 104], "tickvals": [0, 25, 50, 75, 100]}),
        ({"type": "category", "ticktext": list(names.values()), "tickvals": list(names)},
         {"title": {"text": "within both [%]"}, "range": [0, 104]}),
        height,
        columns=((0.0, 0.54), (0.66, 1.0)),
        annotations=[
            parts.heading(1, _key(colours)),
            parts.heading(2, f"TTFT {four.TTFT:g} s, TPOT {found.tpot_ms:g} ms"),
        ],
    )  # fmt: skip


def words(found: Spoken, *, height: int = 230) -> go.Figure:
    """What the whole model says, and what its halves say."""
    lines = []
    for name, text in (("whole", found.whole), ("halves", found.words)):
        lines.append(f"<b>{name}</b>")
        plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
        row = ""
        rows = []
        for word in plain.split(" "):
            if len(row) + len(word) > WIDE:
                rows.append(row)
                row = ""
            row += word + " "
        rows.append(row)
        lines += rows[:3] if len(rows) <= 3 else [*rows[:2], rows[2] + "..."]
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": {"l": 12, "r": 12, "t": 12, "b": 6},
        "xaxis": {"visible": False, "range": [0, 1]}, "yaxis": {"visible": False, "range": [0, 1]},
        "annotations": [parts.note(0, 1, "<br>".join(lines), xanchor="left", yanchor="top", align="left")],
    }  # fmt: skip
    return theme.plain_figure([parts.trace([0], [0], "") | {"mode": "markers", "marker": {"opacity": 0}}], layout)


def ticket(*, height: int = 270) -> go.Figure:
    """Left, TPOT by the hour; right, the watts of each card. The model moved to two cards in between."""
    first, moved = decision.FIRST_HOUR, decision.MOVED
    hours = [first + place for place in range(len(decision.USERS))]
    both = [(users, hour >= moved) for users, hour in zip(decision.USERS, hours, strict=True)]
    tpot = [decision.tpot_ms(*one) for one in both]
    watts = [decision.card_watts(*one) for one in both]
    line = [moved - 0.5] * 2
    axis = {"title": {"text": "o'clock"}, "range": [first - 0.3, hours[-1] + 0.3], "tickvals": hours[::2]}
    data = [
        parts.line(line, [0, 16], "theory", "moved", dash="dot", width=1.5),
        parts.line(hours, tpot, "waiting", "TPOT") | {"mode": "lines+markers"},
        parts.line(line, [0, 620], "theory", "moved", 2, dash="dot", width=1.5),
        parts.line(hours, watts, "continuous", "watts", 2) | {"mode": "lines+markers"},
        parts.words([moved - 0.65, moved - 0.35], [1, 1], ["one card", "two"], ["theory", "theory"],
                    corner=["middle left", "middle right"]),
    ]  # fmt: skip
    return parts.pair(
        data,
        (axis, {"title": {"text": "TPOT [ms]"}, "range": [0, 16]}),
        (axis, {"title": {"text": "watts of a card"}, "range": [0, 620]}),
        height,
        annotations=[parts.heading(1, "time per output token"), parts.heading(2, "power")],
    )
