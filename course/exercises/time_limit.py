"""A learner's code ends: after so many seconds of CPU time it is stopped where it stands, and the kernel goes on.

A second thread watches the CPU time of the one that runs the code, and lets `OutOfTime` arrive in it. Nothing else
works in a kernel on every system: signals reach the main thread alone, a process of its own has none of the notebook's
variables, and a trace function from the start would slow everybody down. One call of C, such as `sum(range(10**12))`,
is stopped only when it returns, and waiting costs no CPU time: the stop button ends both.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

SECONDS = 5.0
"""CPU time of one answer. A right one takes a few milliseconds, and one that serves a thousand requests a tenth."""
AGAIN = 0.02
"""Seconds from one look at the clock to the next, and from one attempt to the next at code that catches everything."""


class OutOfTime(BaseException):
    """The time is up. It is no Exception, so `except Exception` lets it through.

    Whoever catches it all the same, as `while True: try: ... except BaseException: pass` does, meets another one in the
    next line, which is that of the handler. Two such loops in one another may go on for a while.
    """

    def __init__(self) -> None:
        super().__init__()
        trace = getattr(_HERE, "trace", None)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not TimeLimit.run.__code__:
            frame.f_trace = trace
            frame = frame.f_back
        sys.settrace(trace)


class TimeLimit:
    """`run(function, ...)`, as often as wanted: all runs together have `seconds` of CPU time, by default SECONDS."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = SECONDS if seconds is None else seconds
        self.used = 0.0

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what the function returns. Raises OutOfTime once the time is used up, whatever the function caught."""
        before, start, failure = sys.gettrace(), time.thread_time(), None
        one = _Run(threading.get_ident(), self.seconds - self.used)
        _HERE.trace = one.trace
        threading.Thread(target=one.watch, daemon=True).start()
        try:
            try:
                result = function(*arguments)
            except BaseException as error:
                failure = error
            one.over = True
            sys.settrace(before)  # what is on its way arrives after this call at the latest
        except OutOfTime as error:
            one.over = True
            sys.settrace(before)
            failure = error
        self.used += time.thread_time() - start
        if failure is None and self.used >= self.seconds:
            _HERE.trace = before
            failure = OutOfTime()
        if failure is not None:
            raise failure
        return result


class _Run:
    """One run: a thread that watches it, and a trace function for code that catches what arrives.

    thread: that of the learner's code. seconds: of its CPU time from now on. over: set when the code has returned.
    """

    def __init__(self, thread: int, seconds: float) -> None:
        self.thread, self.over = thread, False
        self.clock = _clock(thread)
        self.end = self.clock() + seconds

    def watch(self) -> None:
        """Let OutOfTime arrive when the time is up, again and again until the code is over."""
        while not self.over:
            time.sleep(AGAIN)
            # Nothing comes between the last question and the arrival: Python changes threads after calls and in loops.
            if self.clock() >= self.end and not self.over:
                _ARRIVE(self.thread, OutOfTime)

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """Stop the next line of the code too. Python ends the tracing where a trace function raises."""
        if self.over or str(frame.f_globals.get("__name__")).split(".")[0] in _NOT_THE_LEARNERS:
            return None  # this code lets it through, and the line to be named is the learner's
        if event == "line":
            raise OutOfTime
        return self.trace


_NOT_THE_LEARNERS = sys.stdlib_module_names | {"course"}
_HERE = threading.local()
"""`trace` of the run in this thread."""
_ARRIVE = ctypes.pythonapi.PyThreadState_SetAsyncExc
_ARRIVE.argtypes = (ctypes.c_ulong, ctypes.py_object)


def _clock(thread: int) -> Callable[[], float]:
    """The CPU time of a thread, as another one reads it; where no system call tells, that of the whole process."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    return partial(time.clock_gettime, time.pthread_getcpuclockid(thread))
