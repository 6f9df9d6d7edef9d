"""Figures of lab 13: the speed-up over the batch, requests that share steps, words with their drafts, the ticket."""

from __future__ import annotations

from math import log10

import numpy as np
import plotly.graph_objects as go

from course.figures import parts, theme
from course.figures.parts import Part
from course.lessons.lab13 import pays, spoken
from course.lessons.lab13.pays import BATCHES, Pays, Served
from course.lessons.lab13.spoken import Spoken

GAIN_TICKS = (0.5, 1, 2, 3, 4)
FILL = {"drafting": "dynamic", "the model's step": "decode"}
WIDE = 46  # characters of a line of words
INKS = {"accepted": parts.INKS["continuous"], "rejected": parts.INKS["wasted"], "own": theme.INK}
DAY = (24, 32, 64, 128, 192, 256, 192, 96)
"""Requests that run, by the hour of the ticket."""


def _batches() -> Part:
    return {
        "type": "log", "title": {"text": "batch [sequences]"}, "range": [log10(0.9), log10(300)],
        "tickvals": [1, 4, 16, 64, 256], "ticktext": ["1", "4", "16", "64", "256"],
    }  # fmt: skip


def _gains() -> Part:
    return {
        "type": "log", "title": {"text": "speed-up [times]"}, "range": [log10(0.3), log10(5)],
        "tickvals": list(GAIN_TICKS), "ticktext": [f"{tick:g}" for tick in GAIN_TICKS],
    }  # fmt: skip


def _bars(found: Pays, panel: int) -> list[Part]:
    """Milliseconds for each token of a sequence, without drafts and with them."""
    rows = {"without": [("the model's step", found.plain)],
            f"{found.k} drafts": [("drafting", found.draft / found.tokens),
                                  ("the model's step", found.verification / found.tokens)]}  # fmt: skip
    data = []
    for row, pieces in rows.items():
        base = 0.0
        for name, value in pieces:
            data.append(
                {
                    "type": "bar", "orientation": "h", "name": name, "y": [row], "x": theme.round_digits([1e3 * value]),
                    "base": theme.round_digits([base]), "width": 0.5,
                    "marker": {"color": theme.COLOURS[FILL[name]], "line": {"width": 1, "color": theme.PAPER}},
                } | parts.place(panel)
            )  # fmt: skip
            base += 1e3 * value
    return data


def _rows_of(found: Pays, most: float) -> tuple[Part, Part]:
    return (
        {"title": {"text": "time for a token [ms]"}, "range": [0, most]},
        {"type": "category", "autorange": "reversed", "ticks": "", "categoryorder": "array",
         "categoryarray": ["without", f"{found.k} drafts"]},
    )  # fmt: skip


def _key() -> str:
    mark = '<span style="color:{}">■</span> {}'
    return "  ".join(mark.format(theme.COLOURS[colour], name) for name, colour in FILL.items())


def pays_off(found: Pays, *, height: int = 300) -> go.Figure:
    """Left, the speed-up over the batch; right, where the time of a token goes in this batch."""
    gains = pays.curve(found.drafter, found.k, found.accept)
    longest = 1e3 * max(found.plain, (found.draft + found.verification) / found.tokens)
    most = next(limit for limit in (6.0, 12.0, 24.0, 48.0, 96.0) if longest < limit)
    data = [
        parts.line([0.9, 300], [1, 1], "waiting", "no gain", dash="dot", width=1.5),
        parts.line(BATCHES, gains, "recorded", "with drafts"),
        parts.words([1.1], [0.93], ["slower than without"], ["waiting"], corner="bottom right"),
        *_bars(found, 2),
        parts.dots([found.batch], [found.speed_up], ["recorded"], "this batch"),
    ]
    return parts.pair(
        data, (_batches(), _gains()), _rows_of(found, most), height, columns=((0.0, 0.46), (0.62, 1.0)),
        barmode="overlay", annotations=[parts.heading(1, "tokens/s, times those without"), parts.heading(2, _key())],
    )  # fmt: skip


LEFT = (5, 1, 3)
"""Tokens that leave a sequence with three steps of the figure by hand: all drafts accepted, none, two."""


def three_steps(alone: Pays, many: Pays, *, height: int = 190) -> go.Figure:
    """Three steps with drafts beside steps without, alone and in a batch: how long each takes, and what leaves."""
    data: list[Part] = []
    for panel, found in ((1, alone), (2, many)):
        cycle = found.draft + found.verification
        for row, length, before, tokens in (
            (1, found.plain, 0.0, [1] * int(len(LEFT) * cycle / found.plain)),
            (0, found.verification, found.draft, LEFT),
        ):
            starts = [step * (before + length) for step in range(len(tokens))]
            data += [_box(row, start, before, "drafting", "", panel) for start in starts if before]
            data += [
                _box(row, start + before, length, "the model's step", f"{leaves}", panel)
                for start, leaves in zip(starts, tokens, strict=True)
            ]
    return parts.pair(
        data, _steps_of(alone), _steps_of(many), height, columns=((0.0, 0.44), (0.58, 1.0)), barmode="overlay",
        annotations=[parts.heading(1, f"alone: {_key()}"), parts.heading(2, f"with {many.batch} sequences")],
    )  # fmt: skip


def _steps_of(found: Pays) -> tuple[Part, Part]:
    return (
        {
            "title": {"text": "time [ms]"},
            "range": theme.round_digits([0, 3.2e3 * (found.draft + found.verification)]),
        },
        {"range": [-0.5, 1.5], "tickvals": [0, 1], "ticktext": [f"{found.k} drafts", "without"], "ticks": ""},
    )


def _box(row: int, start: float, seconds: float, name: str, text: str, panel: int) -> Part:
    return {
        "type": "bar", "orientation": "h", "name": name, "y": [row], "x": theme.round_digits([1e3 * seconds]),
        "base": theme.round_digits([1e3 * start]), "width": 0.6, "text": [text], "textposition": "inside",
        "insidetextanchor": "middle", "textangle": 0,
        "marker": {"color": theme.COLOURS[FILL[name]], "line": {"width": 1, "color": theme.PAPER}},
    } | parts.place(panel)  # fmt: skip


def shared_steps(found: Served, *, height: int = 300) -> go.Figure:
    """The TPOT of each request, from the fastest to the slowest, beside that without drafts."""
    values, plain = 1e3 * pays.tpots(found.run), 1e3 * found.plain_tpot
    data = []
    for accept, own, colour, _, symbol in _kinds(found):
        y = np.sort(values[own])
        data.append(parts.trace(np.linspace(0, 100, len(y)), y, f"accepts {accept:g}") | {
            "mode": "markers", "marker": {"color": theme.COLOURS[colour], "size": 8, "symbol": symbol}})  # fmt: skip
    data.append(parts.line([0, 100], [plain, plain], "waiting", "without drafts", dash="dot", width=1.5))
    data.append(parts.words([0], [plain], ["without drafts"], ["waiting"], corner="top right"))
    key = "   ".join(f'<span style="color:{theme.COLOURS[colour]}">{sign}</span> accepts {accept:g}'
                     for accept, _, colour, sign, _ in _kinds(found))  # fmt: skip
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN,
        "xaxis": {"title": {"text": "requests of a kind, fastest first [%]"}, "range": [-3, 103]},
        "yaxis": {"title": {"text": "TPOT [ms]"}, "range": theme.round_digits([0, 1.15 * max(plain, values.max())])},
        "annotations": [parts.heading(1, key)],
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def _kinds(found: Served) -> list[tuple[float, slice, str, str, str]]:
    """(acceptance, whose, colour, sign in a text, mark) of those that are unlike."""
    left, right = pays.MIXES[found.mix]
    if left == right:
        return [(left, slice(None), "continuous", "●", "circle")]
    return [
        (left, slice(0, None, 2), "continuous", "●", "circle"),
        (right, slice(1, None, 2), "wasted", "◆", "diamond"),
    ]


def words(found: Spoken, *, height: int = 240) -> go.Figure:
    """An answer, its drafts underlined if they were accepted and crossed out if not."""
    look = {"accepted": "<u>{}</u>", "rejected": "<s>{}</s>", "own": "<b>{}</b>"}
    lines, wide = [""], 0
    for text, kind in found.pieces:
        plain = text.replace("\n", " ")
        if wide + len(plain) > WIDE:
            lines.append("")
            wide = 0
        safe = plain.replace("&", "&amp;").replace("<", "&lt;")
        lines[-1] += f'<span style="color:{INKS[kind]}">{look[kind].format(safe)}</span>'
        wide += len(plain)
    if len(lines) > spoken.LINES:
        lines = [*lines[: spoken.LINES], "..."]
    key = "   ".join(f'<span style="color:{INKS[kind]}">{text.format(kind)}</span>' for kind, text in look.items())
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": {"l": 12, "r": 12, "t": 30, "b": 6},
        "xaxis": {"visible": False, "range": [0, 1]}, "yaxis": {"visible": False, "range": [0, 1]},
        "annotations": [
            parts.note(0, 1, "<br>".join(lines), xanchor="left", yanchor="top", align="left"),
            parts.note(0, 1.02, key, xanchor="left", yanchor="bottom"),
        ],
    }  # fmt: skip
    return theme.plain_figure([parts.trace([0], [0], "") | {"mode": "markers", "marker": {"opacity": 0}}], layout)


def ticket(*, height: int = 280) -> go.Figure:
    """Left, who runs by the hour; right, tokens/s. The share of drafts that is accepted does not change."""
    found = [pays.pays(accept=pays.TICKET_ACCEPT, batch=batch) for batch in DAY]
    hours = np.arange(9, 9 + len(DAY))
    speed = [1e-3 * one.batch * one.tokens / (one.draft + one.verification) for one in found]
    share = (found[0].tokens - 1) / found[0].k
    data = [
        parts.line(hours, DAY, "decode", "running"),
        parts.line(hours, speed, "continuous", "thousand tokens/s", 2),
    ]
    return parts.pair(
        data,
        ({"title": {"text": "hour"}, "range": [8.8, 16.2]}, {"title": {"text": "requests"}, "range": [0, 300]}),
        ({"title": {"text": "hour"}, "range": [8.8, 16.2]}, {"title": {"text": "thousand tokens/s"}, "range": [0, 16]}),
        height,
        annotations=[parts.heading(1, "requests running"),
                     parts.heading(2, f"{share:.0%} of drafts accepted, all day")],
    )  # fmt: skip
