"""Lab 11, deeper: where an H200's second cache ends and what scattered reads cost, recorded by tests/bench/reach.py."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import plotly.graph_objects as go

from course.explore.table import Table, table
from course.figures import parts, theme
from course.steptime import files

MIB, TICKS = 2**20, (1, 4, 16, 64, 256, 1_024, 4_096)
SHOWN = (1_024, 4_096, 16_384)
"""Bytes that lie together, in the table."""


class Recorded(files.Recording):
    """Bytes/s by what is read."""

    def __init__(self, name: str) -> None:
        found = files.read("reach", name)
        self.provenance = found["provenance"]
        self.again = {int(size): speed for size, speed in found["again"].items()}
        self.scattered = {
            int(size): {int(piece): pair for piece, pair in by_piece.items()}
            for size, by_piece in found["scattered"].items()
        }

    def seconds(self, size: int) -> float:
        """Of one read of so many MiB, when they were read just before."""
        return size * MIB / self.again[size]

    def marginal(self) -> list[tuple[float, float]]:
        """(MiB, bytes/s) of what each size reads more than the size before: what a launch costs drops out."""
        return [
            ((one * other) ** 0.5, (other - one) * MIB / (self.seconds(other) - self.seconds(one)))
            for one, other in pairwise(self.again)
        ]

    def apart(self) -> list[float]:
        """Bytes/s at random over bytes/s in order, of all tables and pieces."""
        return [there / order for by_piece in self.scattered.values() for order, there in by_piece.values()]


@cache
def recording() -> Recorded:
    """The one that the notebook shows."""
    return Recorded("h200_reach")


def second_cache(*, height: int = 300) -> go.Figure:
    """How fast each further MiB is read, when all of it was read just before."""
    x, y = zip(*recording().marginal(), strict=True)
    data = [parts.line(x, [1e-12 * speed for speed in y], "recorded", "each further MiB")]
    data[0]["mode"] = "lines+markers"
    layout: parts.Part = {
        "template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN,
        "xaxis": {"type": "log", "title": {"text": "memory that is read again and again [MiB]"},
                  "tickvals": list(TICKS), "ticktext": [f"{tick:,}" for tick in TICKS],
                  "range": [0, 3.6]},
        "yaxis": {"title": {"text": "TB/s"}, "range": [0, 8.5]},
        "annotations": [parts.heading(1, "speed at which one MiB more is read")],
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def scattered() -> Table:
    """Pieces read in order and at random, by the size of what they are scattered over."""
    found = recording()
    head = [f"pieces of {piece // 1_024} KiB: in order, at random" for piece in SHOWN]
    rows: list[tuple[str, ...]] = [("scattered over", *head)]
    for size, by_piece in found.scattered.items():
        cells = (f"{by_piece[piece][0] / 1e12:.2f}, {by_piece[piece][1] / 1e12:.2f}" for piece in SHOWN)
        rows.append((f"{size / 1_024:g} GiB", *cells))
    return table(rows, f"TB/s read and copied [{found.badge}]")
