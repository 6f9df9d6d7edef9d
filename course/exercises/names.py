"""Names of notebooks: `03_littles_law` is a lab, and `03b_littles_law` goes deeper than it.

JupyterLab compares the names in its list of files as the browser compares texts: "_" and "-" stand before ".", letters
behind all of them. So the lab comes before what goes deeper, there and wherever names are sorted by their characters.
"""

from __future__ import annotations

import re

NAME = re.compile(r"(\d\d)(b?)(_[^.]*)(.*)")
"""Number, mark of a deeper notebook, topic, and what follows the topic."""


def is_deeper(name: str) -> bool:
    """Whether a notebook, or its source, goes deeper than the lab of its number: optional, and nothing is asked."""
    return (found := NAME.match(name)) is not None and found[2] == "b"


def of_lab(name: str) -> str:
    """The same name without its mark: what `03b_littles_law.py` goes deeper than is `03_littles_law.py`."""
    found = NAME.match(name)
    return found[1] + found[3] + found[4] if found else name


def former(name: str) -> str:
    """How what goes deeper was called until November 2026, `03_littles_law_deeper.ipynb`; "" for every other name."""
    found = NAME.match(name)
    return f"{found[1]}{found[3]}_deeper{found[4]}" if found and found[2] else ""
