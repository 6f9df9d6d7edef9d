"""Whether texts may hold answers: only in `solutions/`, whose builder asks for them.

What a cell shows is saved with its notebook. A learner who comes back to a copy must not find there what is asked.
"""

from __future__ import annotations

import os

VARIABLE = "COURSE_ANSWERS"
"""Of the environment of a kernel."""


def wanted() -> bool:
    """Return whether this process was asked for texts with answers."""
    return os.environ.get(VARIABLE) == "1"
