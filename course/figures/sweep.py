"""The figure of a sweep: all designs as points, and the line through those that no other beats."""

from html import escape

import plotly.graph_objects as go

from course.figures import parts, theme
from course.sweep import Table
from course.sweep import front as pareto
from course.sweep.words import words_of

FAR = 20  # times the smallest value, from which an axis is logarithmic


def front(table: Table, most: str, least: str, *, height: int = 460) -> go.Figure:
    """Means over seeds, a point a design: `least` to the right, `most` upwards, and its Pareto front as a line.

    A point says its settings. The axis of `least` is logarithmic where its values are far apart: an overload would push
    the front against the edge. ValueError as `course.sweep.front`.
    """
    best = pareto(table, most, least)
    (right, right_unit, across), (up, up_unit, upwards) = words_of(least), words_of(most)
    served = [one for one in table.designs if most in one.numbers and least in one.numbers]
    said = [escape(", ".join(f"{name} {value}" for name, value in one.settings.items())) for one in served]
    places = [across * one[least] for one in served]
    points = parts.dots(
        places, [upwards * one[most] for one in served],
        ["modelled"] * len(served), "a design",
    ) | {"text": said, "hovertemplate": "%{text}<br>%{x:.4g}, %{y:.4g}<extra></extra>"}  # fmt: skip
    line = parts.line([across * one[least] for one in best], [upwards * one[most] for one in best], "theory", "front")
    figure = theme.new_figure(f"{right} [{right_unit}]", f"{up} [{up_unit}]", height=height, yaxis_rangemode="tozero")
    if min(places) > 0 and max(places) > FAR * min(places):
        figure.update_xaxes(type="log", dtick=1)  # powers of ten: more numbers would be written over each other
    figure.update_xaxes(tickformat=",")
    figure.update_yaxes(tickformat=",")
    title = f"{len(served):,} designs, simulated; none beats those on the line"
    figure.update_layout(showlegend=False, title={"text": title, "font": {"size": 15}})
    figure.add_traces([line | {"hoverinfo": "skip"}, points])
    return figure
