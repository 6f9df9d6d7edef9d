"""Ctrl-C while modules are imported: one sentence and status 130, whatever they make of an exception.

Python raises KeyboardInterrupt wherever it is. Within an import that is often lost, or turned into a traceback: a
library tries another one and takes any exception for its absence, a module in C reports that it cannot be loaded. There
is nothing to tidy up in an import, so the process ends on the spot; elsewhere the exception is raised as ever.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

STOPPED = "course: stopped by Ctrl-C"
STATUS = 130
IMPORT = "<frozen importlib"
"""How the files of Python's own import system are called."""


def listen() -> None:
    """Answer Ctrl-C like this from now on; where it is ignored, as in the background of a shell, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _pressed)


def rest() -> None:
    """Leave Ctrl-C to Python again."""
    if signal.getsignal(signal.SIGINT) is _pressed:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def outlive_connections() -> None:
    """For a server: a client that hangs up is an error of that connection, as everywhere in Python.

    `course` itself ends by SIGPIPE where the reader of its output has gone, and a browser that closes a connection
    would end the server in the same way.
    """
    with suppress(AttributeError):  # Windows has no SIGPIPE
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _pressed(_number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORT):
            try:
                sys.stdout.flush()
            finally:
                os.write(2, f"{STOPPED}\n".encode())
                os._exit(STATUS)
        frame = frame.f_back
    raise KeyboardInterrupt
