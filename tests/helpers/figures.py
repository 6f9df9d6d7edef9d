"""What explorer figures leave out for speed, made up for in tests."""

import json

import plotly.graph_objects as go


def valid(figure: go.Figure) -> None:
    """Plotly knows every property of the figure, and it is plain JSON."""
    assert json.loads(go.Figure(figure.to_dict()).to_json()) == json.loads(figure.to_json())
