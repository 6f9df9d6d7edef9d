"""One at a time: JupyterLab gives what widgets say to a thread beside that of the cells, and at first to that one.

So a slider may move while a cell calls `explorer.set`. Whatever changes a view takes its turn: a callback of a widget,
a timer, a call from a cell. There is one lock, since views share records, caches and the machine that they measure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

TURN = RLock()
"""Held by the thread whose turn it is."""


def in_turn(work: Callable[P, T]) -> Callable[P, T]:
    """Let a function or method wait until no other thread is in one of these."""

    @wraps(work)
    def taken(*args: P.args, **kwargs: P.kwargs) -> T:
        with TURN:
            return work(*args, **kwargs)

    return taken
