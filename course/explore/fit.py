"""How an explorer fits on one screen: where its table stands, and how high its figure may be.

The screen is JupyterLab with its side bar at 1280 x 720, which leaves 599 pixels of notebook, 848 of them wide inside a
cell. The figure gets what the other parts leave; tests/browser measures that it is enough.
"""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go

from course.explore.table import Rows
from course.figures.theme import HEIGHT

Explorer = Any  # course.explore.explorer.Explorer, which stands above

SCREEN = 582
HEAD, CONTROLS, ROW, TASKS, CHANGED = 32, 28, 20, 138, 22
COLUMNS = 2
"""Controls side by side."""
LEAST, MOST = 178, 420
BLOCK = 4
"""Rows of a label and one value that a table below the figure may have before it goes on in a second block."""


def beside(explorer: Explorer, rows: Rows, figure: go.Figure) -> bool:
    """Whether the table stands beside the figure: if asked for, else if rows are short and panels few."""
    if explorer.beside is not None:
        return explorer.beside
    return bool(rows) and len(rows[0]) <= 3 and "xaxis2" not in figure.to_dict()["layout"]


def blocks(rows: Rows) -> int:
    """Return in how many blocks side by side a table stands below the figure."""
    return 2 if rows and len(rows[0]) == 2 and len(rows) > BLOCK else 1


def lines(rows: Rows) -> int:
    """Return how many lines a table below the figure takes, with its head."""
    headed = bool(rows) and not rows[0][0]
    return math.ceil((len(rows) - headed) / blocks(rows)) + 1 if rows else 0


def figure_height(explorer: Explorer, rows: Rows, figure: go.Figure) -> int:
    """Return the height of the figure in pixels: its own, or less if the screen has less."""
    used = HEAD + CONTROLS * math.ceil(len(explorer.controls) / COLUMNS) + CHANGED
    used += TASKS if explorer.tasks else 0
    if not beside(explorer, rows, figure):
        used += ROW * lines(rows) + 6
    own = figure.layout.height or HEIGHT
    return int(min(own, MOST, max(LEAST, SCREEN - used)))
