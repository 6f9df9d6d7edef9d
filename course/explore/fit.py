"""How an explorer fits on one screen: where its table stands, and how high its figure may be.

The screen is JupyterLab with its side bar at 1280 x 720, which leaves 599 pixels of notebook, 848 of them wide inside a
cell. The figure gets what the other parts leave; tests/browser measures that it is enough.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from course.explore.table import Rows
from course.figures.theme import HEIGHT

if TYPE_CHECKING:
    from course.explore.explorer import Explorer

SCREEN = 588
HEAD, CONTROLS, ROW, TASKS, CHANGED = 32, 32, 20, 138, 22
COLUMNS = 2
"""Controls side by side."""
LEAST, MOST = 220, 420


def beside(explorer: Explorer, rows: Rows, figure: go.Figure) -> bool:
    """Whether the table stands beside the figure: if asked for, else where rows are short and panels few."""
    if explorer.beside is not None:
        return explorer.beside
    narrow = bool(rows) and len(rows[0]) <= 3
    return narrow and "xaxis2" not in figure.to_dict()["layout"]


def figure_height(explorer: Explorer, rows: Rows, figure: go.Figure) -> int:
    """Return the height of the figure in pixels: its own, or less where the screen has less."""
    taken = HEAD + CONTROLS * math.ceil(len(explorer.controls) / COLUMNS) + CHANGED
    taken += TASKS if explorer.tasks else 0
    if not beside(explorer, rows, figure):
        taken += ROW * (len(rows) + (1 if rows and rows[0][0] else 0)) + 6
    own = figure.layout.height or HEIGHT
    return int(min(own, MOST, max(LEAST, SCREEN - taken)))
