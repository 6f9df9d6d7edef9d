"""Make widgets work by keyboard and screen reader inside JupyterLab, which takes the arrow keys for itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anywidget
import ipywidgets as widgets
import traitlets


class Keys(anywidget.AnyWidget):
    """Draws nothing; put one inside a box of class `course-keys`, see `with_keys`."""

    _esm = Path(__file__).parent / "keys.js"
    sliders: traitlets.List = traitlets.List().tag(sync=True)
    """Ids of the slider models in the box."""


def with_keys(box: widgets.Box, controls: Sequence[widgets.Widget] = ()) -> widgets.Box:
    """Give a box the keys that its controls understand (arrows, Home, End, Page, space, Enter); name its sliders.

    controls: those of its widgets that are sliders say their value with its unit, and have a field to type it in.
    """
    box.add_class("course-keys")
    sliders = [w.model_id for w in controls if hasattr(w, "readout") and hasattr(w, "continuous_update")]
    box.children = (*box.children, Keys(sliders=sliders))
    return box
