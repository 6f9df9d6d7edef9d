"""What a learner's answer prints while it is judged: shown, up to a limit for the whole check."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MOST = 10_000
"""Letters. An answer is run on several inputs, and each run prints again; a page of it is read, a hundred are not."""


class _Limited(io.TextIOBase):
    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._left = stream, most
        self.left_out = 0

    def write(self, text: str) -> int:
        shown = text[: self._left]
        if shown:
            self._stream.write(shown)
        self._left -= len(shown)
        self.left_out += len(text) - len(shown)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # fileno, encoding, and what Jupyter's streams have of their own


@contextmanager
def limited(most: int = MOST) -> Iterator[None]:
    """Let through at most `most` letters to stdout and as many to stderr; say how many were left out."""
    before = sys.stdout, sys.stderr
    now = tuple(stream if stream is None else _Limited(stream, most) for stream in before)
    sys.stdout, sys.stderr = now
    try:
        yield
    finally:
        # A learner's code may have put streams of its own in their place: those are not ours to keep.
        sys.stdout, sys.stderr = before
        for stream in now:
            if stream is not None and stream.left_out:
                stream._stream.write(f"\n... and {stream.left_out:,} more characters that your answer printed.\n")
