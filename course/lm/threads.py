"""How many threads the matrix products take."""

from __future__ import annotations

from contextlib import AbstractContextManager


def one_thread() -> AbstractContextManager[object]:
    """One BLAS thread inside of it. Several wait for each other as soon as another program wants a core."""
    from threadpoolctl import threadpool_limits  # looks through all loaded libraries, which only serving needs

    return threadpool_limits(1, user_api="blas")
