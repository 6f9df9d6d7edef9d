"""How many threads the matrix products take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_turn = Lock()
_inside: list[Any] = []
"""The limit, once for each that is inside: a view and a cell may compute in two threads at a time."""


@contextmanager
def one_thread() -> Iterator[None]:
    """A context with one BLAS thread: several wait for each other as soon as another program wants a core.

    The last one to leave gives the threads back: if each restored what it had found, the one that came second would
    leave the limit behind for good.
    """
    from threadpoolctl import threadpool_limits  # looks through all loaded libraries, which only serving needs

    with _turn:
        _inside.append(_inside[0] if _inside else threadpool_limits(1, user_api="blas"))
    try:
        yield
    finally:
        with _turn:
            limit = _inside.pop()
            if not _inside:
                limit.restore_original_limits()
