"""The decode-step kernel: time of a step and tokens a second over the batch, recorded on a card and measured here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.gpu.recordings import Curve

Points = tuple[Sequence[float], Sequence[float]]
"""Batch sizes and seconds of a step."""


def steps(
    recorded: Curve,
    empty_seconds: float,
    card: str,
    batch: int,
    measured: Points = ((), ()),
    here: str = "",
    *,
    height: int = 470,
) -> go.Figure:
    """Step time above, tokens a second below, both over the batch on logarithmic axes.

    recorded: of `card`, with the kernel alone as a dashed line where it was recorded; its gap to the step is the
    launch. empty_seconds: a launch of nothing, dotted. batch: the setting, a thin upright line. measured: on this
    machine, named by `here`; none where nothing ran.
    """
    figure = theme.new_panels(
        "batch [sequences]", ("step time [ms]", "throughput [tokens/s]"), height=height, margin={"r": 150}
    )
    batches, (mine, seconds) = recorded.batch, (np.asarray(part, dtype=float) for part in measured)
    _line(figure, 1, batches, 1e3 * recorded.seconds, "recorded", card)
    _line(figure, 2, batches, batches / recorded.seconds, "recorded", card)
    if not np.isnan(recorded.kernel_seconds).all():
        _line(figure, 1, batches, 1e3 * recorded.kernel_seconds, "recorded", "kernel alone", dash="dash")
    ends = np.array([batches[0], batches[-1]])
    _line(figure, 1, ends, np.full(2, 1e3 * empty_seconds), "waiting", "empty launch", dash="dot")
    if len(mine):
        _line(figure, 1, mine, 1e3 * seconds, "measured", here, markers=True)
        _line(figure, 2, mine, mine / seconds, "measured", here, markers=True)
    for row in (1, 2):
        figure.add_vline(x=batch, line_width=1, line_color=theme.INK, row=row, col=1)
    _labels(figure)
    ticks = [int(one) for one in batches]
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{one:,}" for one in ticks])
    figure.update_yaxes(type="log", exponentformat="none", separatethousands=True, dtick=1)
    return figure


def _line(
    figure: go.Figure,
    row: int,
    x: np.ndarray,
    y: np.ndarray,
    colour: str,
    name: str,
    *,
    dash: str = "solid",
    markers: bool = False,
) -> None:
    style = {"color": theme.COLOURS[colour], "width": 2.5, "dash": dash}
    mode = "lines+markers" if markers else "lines"
    figure.add_trace(
        go.Scatter(x=theme.round_digits(x), y=theme.round_digits(y), mode=mode, line=style, name=name, meta=colour),
        row=row,
        col=1,
    )


def _labels(figure: go.Figure, apart: float = 0.42) -> None:
    """Name every line of the upper panel behind its last point, at least `apart` decades from the next name."""
    ends = [(np.log10(line.y[-1]), line) for line in figure.data if line.yaxis in (None, "y")]
    height = -np.inf
    for end, line in sorted(ends, key=lambda pair: pair[0]):
        height = max(end, height + apart)
        figure.add_annotation(
            x=1, xref="x domain", xanchor="left", xshift=6, y=round(float(height), 4), yref="y", text=line.name,
            showarrow=False, font={"color": theme.ink(line.meta), "size": 14},
        )  # fmt: skip
