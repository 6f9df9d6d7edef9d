"""A learner's function with a limit on its work, so that an endless loop ends with a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

STEPS = 1_000_000
"""Bytecode instructions outside of this package that may run; a policy on a board takes some ten thousand."""

T = TypeVar("T")


class Endless(RuntimeError):
    """It ran more than STEPS instructions."""


def bounded(work: Callable[[], T], steps: int = STEPS) -> T:
    """Return what `work` returns. Raises Endless once code outside of this package has run so many instructions."""
    left, before = steps, sys.gettrace()

    def one(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Endless(f"it was still running after {steps:,} instructions: does a loop of yours never end?")
        return one

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        ours = str(frame.f_globals.get("__name__", "")).partition(".")[0] == __name__.partition(".")[0]
        if ours:
            return None
        frame.f_trace_opcodes = True  # a loop on a single line has no event of another kind
        return one

    sys.settrace(call)
    try:
        return work()
    finally:
        sys.settrace(before)
