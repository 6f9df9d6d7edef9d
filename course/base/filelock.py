"""A lock between processes, for the moment in which the progress file is read, changed and written back."""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PATIENCE = 60.0
"""Seconds to wait for others. A process holds the lock for milliseconds, or tenths of a second on a slow disk, so
twenty writers are through long before. A process that was stopped while it held the lock must not stop the others.
"""


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`; the operating system frees it if the process dies.

    OSError if the lock file cannot be made, as in a read-only folder.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    is_ours = False
    try:
        end = time.monotonic() + PATIENCE
        with suppress(OSError):  # a file system without locks
            while not (is_ours := _take(handle)) and time.monotonic() < end:
                # Each process waits a different time, so that none is late at every attempt.
                time.sleep(random.uniform(0.001, 0.02))
        yield
    finally:
        if is_ours:
            with suppress(OSError):
                _free(handle)
        os.close(handle)


def _take(handle: int) -> bool:
    """Try to take the lock; returns whether it is ours. Raises OSError on a file system without locks."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _free(handle: int) -> None:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        import msvcrt

        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
