"""Figures of lab 08: what a token keeps, the ledger of a card, and what an operator sees when the pool is full.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import LEFT, MARGIN, RIGHT, Part, dots, line, note, place
from course.lessons.lab08.card_memory import CONTEXTS, GIB, LENGTHS, Fit, OneSequence, Shape
from course.lessons.lab08.kv_pool import POOL_BYTES, UnderLoad

KINDS = (("weights", "waiting"), ("activation", "prefill"), ("other", "modelled"), ("KV", "decode"))
"""Lines of the ledger in the order of the bar, each with the colour of what it is there for."""
BIN = 101  # points of a line over time


def _thousands(values: Sequence[int]) -> Part:
    """A log axis of tokens with a tick for each value: 512, 1k, 2k; a little wider, so that labels at its ends show."""
    ends = theme.round_digits([log10(values[0]) - 0.03, log10(values[-1]) + 0.03])
    return {
        "type": "log",
        "range": ends,
        "tickvals": list(values),
        "ticktext": [_short(value) for value in values],
        "tickangle": 0,
    }


def _short(value: int) -> str:
    """A number of tokens on an axis: 512, 4k, 1M."""
    for size, letter in ((2**20, "M"), (2**10, "k")):
        if value >= size:
            return f"{value // size}{letter}"
    return str(value)


def shape(result: Shape, *, height: int = 350) -> go.Figure:
    """Left, bytes a token for three numbers of KV heads; right, one sequence over its length."""
    heads = (result.query_heads, result.kv_heads, 1)
    names = [f"MHA<br>{heads[0]} heads", f"as set<br>{heads[1]}", "MQA<br>1 head"]
    sizes = [result.token_bytes(one) / 1024 for one in heads]
    colours = [theme.COLOURS[name] for name in ("waiting", "decode", "waiting")]
    data: list[Part] = [
        place(1) | {"type": "bar", "x": names, "y": theme.round_digits(sizes), "name": "a token",
                   "marker": {"color": colours}, "text": [f"{size:,.4g} KiB" for size in sizes],
                   "textposition": "outside", "cliponaxis": False}
    ]  # fmt: skip
    gib = [[result.token_bytes(one) * length / GIB for length in LENGTHS] for one in heads]
    for one, name, style in ((0, "MHA", "waiting"), (2, "MQA", "waiting"), (1, "as set", "decode")):
        data.append(line(LENGTHS, gib[one], style, name, 2, width=3.5 if one == 1 else 2))
    here = result.token_bytes() * result.length / GIB
    data.append(dots([result.length], [here], ["decode"], "this length", 2))
    pool = POOL_BYTES / GIB
    data.append(line([LENGTHS[0], LENGTHS[-1]], [pool, pool], "theory", "pool", 2, dash="dash", width=1.5))
    where: Part = {"xref": "x2", "yref": "y2"}
    notes = [
        note(log10(LENGTHS[0]), log10(pool), "pool of an RTX 4090", xshift=2, yshift=11, **where),
    ]
    for one, name, shift in ((0, "MHA", 8), (2, "MQA", -16)):
        if heads[one] != result.kv_heads:
            end = (log10(LENGTHS[-1]), log10(gib[one][-1]))
            notes.append(note(*end, name, "waiting", "right", xshift=-6, yshift=shift, **where))
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "xaxis": {"domain": LEFT, "anchor": "y"},
        "yaxis": {"title": {"text": "KV of a token [KiB]"}, "anchor": "x",
                  "range": theme.round_digits([0, 1.15 * max(sizes)])},
        "xaxis2": {"title": {"text": "sequence [tokens]"}, "domain": RIGHT, "anchor": "y2", **_thousands(LENGTHS)},
        "yaxis2": {"title": {"text": "KV of a sequence [GiB]"}, "type": "log", "anchor": "x2",
                   "tickvals": [1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000]},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def ledger(result: Fit, *, height: int = 350) -> go.Figure:
    """Left, the card as one bar; right, sequences that fit over their length, with 16-bit and with fp8 KV."""
    bar, bar_notes, shapes, top = _card(result)
    lines, line_notes = _sequences(result)
    most = max(max(result.lines["fp8"]), 2)
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": [*bar_notes, *line_notes],
        "shapes": shapes, "barmode": "overlay",
        "xaxis": {"domain": LEFT, "anchor": "y", "range": [-0.45, 1.6], "showticklabels": False, "ticks": "",
                  "showgrid": False, "title": {"text": result.card}},
        "yaxis": {"title": {"text": "memory [GiB]"}, "anchor": "x", "range": theme.round_digits([0, 1.03 * top])},
        "xaxis2": {"title": {"text": "sequence [tokens]"}, "domain": RIGHT, "anchor": "y2", **_thousands(LENGTHS)},
        "yaxis2": {"title": {"text": "fit [count]"}, "type": "log", "anchor": "x2",
                   "range": theme.round_digits([-0.1, log10(most) + 0.2]), "tickvals": [1, 10, 100, 1000, 10_000]},
    }  # fmt: skip
    return theme.plain_figure([*bar, *lines], layout)


def card(result: Fit, *, height: int = 320) -> go.Figure:
    """The card as one bar, from its weights at the bottom to what is not used."""
    bar, notes, shapes, top = _card(result)
    tokens, length = result.ledger.kv_tokens, result.ledger.max_model_len
    room = "" if tokens is None else f": {tokens:,} tokens, {result.ledger.concurrency(length):.1f} x {length:,}"
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"t": 12, "b": 40}, "annotations": notes,
        "shapes": shapes, "barmode": "overlay",
        "xaxis": {"range": [-0.45, 1.6], "showticklabels": False, "ticks": "", "showgrid": False,
                  "title": {"text": result.card + room}},
        "yaxis": {"title": {"text": "memory [GiB]"}, "range": theme.round_digits([0, 1.03 * top])},
    }  # fmt: skip
    return theme.plain_figure(bar, layout)


def _card(result: Fit) -> tuple[list[Part], list[Part], list[Part], float]:
    """The bar of the ledger's lines, its labels, its frame, and how high it reaches [GiB]."""
    card = result.ledger
    sizes = {"weights": card.weights_bytes, "activation": card.activation_bytes, "other": card.other_bytes,
             "KV": max(card.kv_bytes, 0)}  # fmt: skip
    data: list[Part] = []
    notes: list[Part] = []
    end, usable = card.total_bytes / GIB, card.usable_bytes / GIB
    top = max(end, sum(sizes.values()) / GIB)
    apart = 0.085 * top  # labels of thin parts would write over each other
    base, lowest = 0.0, -top
    for name, colour in KINDS:
        size = sizes[name] / GIB
        data.append(
            place(1) | {"type": "bar", "x": [0], "y": theme.round_digits([size]), "base": theme.round_digits([base]),
                       "name": name,
                       "width": [0.8], "marker": {"color": theme.COLOURS[colour]}, "hoverinfo": "name+y"}
        )  # fmt: skip
        middle = max(base + size / 2, lowest + apart)
        if size:
            notes.append(note(0.46, middle, f"{name} {size:.2f} GiB", colour, xref="x", yref="y"))
            lowest = middle
        base += size
    edge = {"type": "line", "xref": "x", "yref": "y", "line": {"color": theme.INK, "width": 1.5}}
    shapes: list[Part] = [
        {"type": "rect", "xref": "x", "yref": "y", "x0": -0.4, "x1": 0.4, "y0": 0, "y1": round(end, 4),
         "line": {"color": theme.INK, "width": 1.5}},
        edge | {"x0": -0.4, "x1": 0.4, "y0": round(usable, 4), "y1": round(usable, 4)},
    ]  # fmt: skip
    if top > end:
        notes.append(note(0.46, end, f"the card {end:.2f} GiB", xref="x", yref="y"))
    else:
        above = max((usable + end) / 2, lowest + apart)
        notes.append(note(0.46, above, f"not used {end - usable:.2f} GiB", xref="x", yref="y"))
    return data, notes, shapes, top


def _sequences(result: Fit) -> tuple[list[Part], list[Part]]:
    """The lines of sequences that fit, one a KV type, and their labels."""
    card = result.ledger
    data: list[Part] = []
    for dtype, dash in (("fp8", "dash"), ("bfloat16", "solid")):
        values = [float(value) if value else float("nan") for value in result.lines[dtype]]
        data.append(line(LENGTHS, values, "decode", dtype, 2, dash=dash))
    here = card.max_sequences(card.max_model_len)
    if here:
        data.append(dots([card.max_model_len], [here], ["decode"], "max_model_len", 2))
        notes = [note(log10(card.max_model_len), log10(here), f"{here:,}", "decode", "right", xshift=-11, yshift=-12,
                      xref="x2", yref="y2")]  # fmt: skip
    else:
        notes = [note(0.5, 0.5, f"no sequence of {card.max_model_len:,} fits", anchor="center",
                      xref="x2 domain", yref="y2 domain")]  # fmt: skip
    for dtype, name, at, anchor, shift in (
        ("fp8", "fp8 KV", 1, "left", 14),
        ("bfloat16", "16-bit KV", 5, "right", -12),
    ):
        if result.lines[dtype][at]:
            notes.append(
                note(log10(LENGTHS[at]), log10(result.lines[dtype][at]), name, "decode", anchor, xshift=shift / 2,
                     yshift=shift, xref="x2", yref="y2")
            )  # fmt: skip
    return data, notes


def operator(result: UnderLoad, *, height: int = 340) -> go.Figure:
    """Three graphs over time: blocks in use, who runs and who waits, preemptions."""
    run, steps = result.run, result.run.steps
    times = np.linspace(0, float(steps.end[-1]), BIN)
    at = np.minimum(np.searchsorted(steps.end, times), len(steps) - 1)
    waiting = queued(run.arrival, run.admitted, times)
    width = float(times[1])
    lost = np.bincount(
        np.minimum((steps.start / width).astype(int), BIN - 2), weights=steps.preemptions, minlength=BIN - 1
    )
    used = 100 * result.pool_used[at]
    data = [
        line(times, used, "decode", "blocks in use", 1, width=2),
        line(times, waiting, "waiting", "waiting", 2, width=2),
        line(times, steps.running[at], "decode", "running", 2, width=2),
        place(3) | {"type": "bar", "x": theme.round_digits(times[:-1] + width / 2), "y": theme.round_digits(lost),
                   "width": round(width, 4), "marker": {"color": theme.COLOURS["wasted"]}, "name": "preemptions"},
    ]  # fmt: skip
    right = {"xref": "x domain", "xanchor": "right", "showarrow": False, "x": 0.995, "yanchor": "bottom"}
    headings = (
        (1, "KV blocks in use", "decode"),
        (2, f"running (at most {steps.running.max()})", "decode"),
        (3, f"preemptions in {width:.1f} s, {result.preemptions:,} in all", "wasted"),
    )
    notes = [
        right | {"yref": f"y{'' if panel == 1 else panel} domain", "y": 1.0, "text": words,
                 "font": {"color": theme.ink(colour), "size": 15}}
        for panel, words, colour in headings
    ]  # fmt: skip
    notes.append(
        right | {"x": 0.5, "yref": "y2 domain", "y": 1.0, "text": f"waiting (at most {int(waiting.max()):,})",
                 "font": {"color": theme.ink("waiting"), "size": 15}}
    )  # fmt: skip
    layout: dict[str, Any] = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "xaxis": {"anchor": "y", "showticklabels": False, "matches": "x3"},
        "xaxis2": {"anchor": "y2", "showticklabels": False, "matches": "x3"},
        "xaxis3": {"anchor": "y3", "title": {"text": "time [s]"}, "range": theme.round_digits([0, times[-1]])},
        "yaxis": {"title": {"text": "%"}, "domain": [0.76, 0.98], "anchor": "x", "range": [0, 104],
                  "tickvals": [0, 50, 100]},
        "yaxis2": {"title": {"text": "count"}, "domain": [0.38, 0.62], "anchor": "x2", "rangemode": "tozero",
                   "nticks": 3},
        "yaxis3": {"title": {"text": "count"}, "domain": [0, 0.24], "anchor": "x3", "nticks": 3,
                   "range": theme.round_digits([0, max(float(lost.max()) * 1.1, 4)])},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def queued(arrival: np.ndarray, admitted: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Requests that have arrived and not been admitted yet, at each time; preempted ones are not among them."""
    arrived = np.searchsorted(np.sort(arrival), times, side="right")
    return (arrived - np.searchsorted(np.sort(admitted), times, side="right")).astype(float)


def slots(runs: Sequence[UnderLoad], *, height: int = 340) -> go.Figure:
    """Left, tokens/s over the slots; right, preemptions."""
    counts = [one.slots for one in runs]
    speeds, lost = [one.tokens_per_second for one in runs], [one.preemptions for one in runs]
    data = [
        line(counts, speeds, "decode", "tokens/s") | {"mode": "lines+markers"},
        line(counts, lost, "wasted", "preemptions", 2) | {"mode": "lines+markers"},
    ]
    shown = [n for n in counts if n in (4, 8, 16, 24, 32, 48)]
    slots_axis = {"type": "log", "tickvals": shown, "title": {"text": "slots [max_num_seqs]"}, "tickangle": 0}
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN,
        "xaxis": slots_axis | {"domain": LEFT, "anchor": "y"}, "xaxis2": slots_axis | {"domain": RIGHT, "anchor": "y2"},
        "yaxis": {"title": {"text": "output [tokens/s]"}, "anchor": "x", "rangemode": "tozero"},
        "yaxis2": {"title": {"text": "preemptions [count]"}, "anchor": "x2", "rangemode": "tozero"},
    }  # fmt: skip
    return go.Figure({"data": data, "layout": layout})


def architecture(result: OneSequence, *, height: int = 400) -> go.Figure:
    """Bytes of one sequence over its length: the architecture chosen among the others."""
    data = [
        line(CONTEXTS, [one / 2**20 for one in curve], "waiting", name, width=1.5)
        for name, curve in result.curves.items()
        if name != result.name
    ]
    mine = result.curves[result.name]
    data.append(line(CONTEXTS, [one / 2**20 for one in mine], "decode", result.name, width=3.5))
    data.append(dots([result.length], [result.bytes / 2**20], ["decode"], "this length"))
    notes = [
        note(log10(CONTEXTS[-1]), log10(curve[-1] / 2**20), name, "decode" if name == result.name else "waiting",
             xshift=8, yshift=shift, xref="x", yref="y")
        for (name, curve), shift in zip(result.curves.items(), _apart(result.curves), strict=True)
    ]  # fmt: skip
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"r": 150}, "annotations": notes,
        "xaxis": {"title": {"text": "sequence [tokens]"}, **_thousands(CONTEXTS[1::2])}
        | {"range": theme.round_digits([log10(CONTEXTS[0]) - 0.03, log10(CONTEXTS[-1]) + 0.03])},
        "yaxis": {"title": {"text": "kept of a sequence [MiB]"}, "type": "log",
                  "tickvals": [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def _apart(curves: Mapping[str, Sequence[int]], pixels: float = 17, decade: float = 48) -> list[float]:
    """Pixels by which the label of each curve moves up, so that no two labels at the right edge overlap."""
    ends = {name: decade * log10(curve[-1]) for name, curve in curves.items()}
    placed: dict[str, float] = {}
    for name in sorted(ends, key=lambda name: ends[name]):
        low = max(placed.values(), default=-1e9) + pixels
        placed[name] = max(ends[name], low)
    return [round(placed[name] - ends[name], 1) for name in curves]
