"""Make widgets work by keyboard and screen reader inside JupyterLab, which takes the arrow keys for itself."""

from __future__ import annotations

from pathlib import Path

import anywidget
import ipywidgets as widgets


class Keys(anywidget.AnyWidget):
    """Draws nothing; put one inside a box of class `course-keys`, see `with_keys`."""

    _esm = Path(__file__).parent / "keys.js"


def with_keys(box: widgets.Box) -> widgets.Box:
    """Give a box the keys that its controls understand (arrows, Home, End, Page, space, Enter).

    Each slider in it also says its name, and its value with its unit.
    """
    box.add_class("course-keys")
    box.children = (*box.children, Keys())
    return box
