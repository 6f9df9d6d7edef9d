"""A Python process that may crash or hang without taking us with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import Any


class ProcessError(Exception):
    """The process did not answer; the message says how it ended."""


SECONDS = 90
"""For one question. Most take a few; the first import of everything from a slow disk takes the longest."""


def ask(question: str, *arguments: str) -> dict[str, Any]:
    """What the function `question` of children.py answers in a process of its own.

    Raises ImportError if a module is missing, and ProcessError if it crashes, or takes longer than SECONDS; then
    it and all that it started are ended.
    """
    command = [sys.executable, "-P", "-m", "course.desk.doctor.children", question, *arguments]
    # Files, not pipes: the end of a pipe comes only when every process that has inherited it is gone.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=os.name == "posix"
        )
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise ProcessError(f"took longer than {SECONDS:g} s{_last(errors)}") from None
        finally:
            if process.poll() is None:
                _end(process)
        if status == 0:
            with suppress(ValueError, IndexError):
                output.seek(0)
                return _whole(json.loads(output.read().decode().splitlines()[-1]))
        raise ProcessError(f"{_how(status)}{_last(errors)}")


def _whole(answer: dict[str, Any]) -> dict[str, Any]:
    if "missing" in answer:
        raise ImportError(answer["missing"])
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(subprocess.TimeoutExpired):  # stuck in a driver, it may not even die; we go on
        process.wait(2)


def _how(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def _last(complained: Any) -> str:
    complained.seek(0)
    lines = complained.read()[-4_000:].decode(errors="replace").strip().splitlines()
    return f" ({lines[-1].strip()[:200]})" if lines else ""
