"""`sweep`: each settings with each seed through a design, by whatever executor, and the rows as they are done."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Future, as_completed
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import Any

from course.base.settings import flag, quote, reason
from course.sweep import rows_file
from course.sweep.executors import OneProcess, OwnPool, crosses, extra, process_pool
from course.sweep.grid import Settings, seeds_of, settings_of
from course.sweep.row import Design, Row, key_of, name_of, run_one
from course.sweep.table import Table

ALONE = (
    "These runs took turns in this process: the design is defined in a notebook's cell or has no name, so that no "
    "other process can import it. Put it into a file beside the notebook to use all cores"
)
Job = tuple[Settings, int]


def sweep(
    design: Design,
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    seeds: int | Iterable[int] = 1,
    executor: Any = None,
    resume: str | os.PathLike | None = None,
    tell: Callable[[int, int], object] | None = None,
    fast: bool = False,
) -> Table:
    """A row for each settings of the grid and each seed, in that order; the same from every executor, to the bit.

    design: a function of a module, called as design(seed=..., **settings), which returns a Run or a mapping of
        numbers. It draws its own requests, so that no worker is sent any. What it refuses is a row with the sentence.
    grid: lists of values by name, of which every combination is run, or an iterable of settings (`random_settings`).
    seeds: how many, from 0, or which.
    executor: anything with `submit` as in concurrent.futures; None is one process a core of this machine. Others:
        `OneProcess()`, `process_pool(4)`, `on_dask(address)`, `on_ray()`, `from_pool(pool)`.
    resume: a file to which each row is added when it is done. What is there of this design is not run again.
    tell: called with (runs done, runs) at the start and after each.
    fast: in the compiled loop, where a design calls `serve` with what that can do (`course.sweep.compiled`); the same
        rows, and `row.loop` says which served. It needs numba, the extra `[fast]`; a worker without it has the engine.

    Ctrl-C, and whatever else ends it, leaves what is done in the file. Raises ValueError for a grid, a file or an
    executor that cannot be used, OSError for a file that cannot be read or written, ConnectionError if workers
    are lost, ImportError for fast without numba.
    """
    if not callable(design):
        raise ValueError(f"design must be a function of a seed and settings, not {quote(design)}")
    if flag("fast", fast):
        extra("numba", "fast")
    jobs: list[Job] = list(product(settings_of(grid), seeds_of(seeds)))
    name = name_of(design)
    with rows_file.appended(resume) as (there, add):
        known = {row.key: row for row in there if not row.failed}
        keys = [key_of(name, *job) for job in jobs]
        todo = [job for job, key in zip(jobs, keys, strict=True) if key not in known]
        notes = _notes(known, keys)
        done = len(jobs) - len(todo)
        if tell is not None:
            tell(done, len(jobs))
        try:
            with _workers(executor, design, len(todo)) as workers:
                if isinstance(workers, OneProcess) and executor is None and len(todo) > 1 and not crosses(design):
                    notes.append(ALONE)
                for row in _rows(workers, name, design, todo, fast):
                    add(row)
                    known[row.key] = row
                    done += 1
                    if tell is not None:
                        tell(done, len(jobs))
        except KeyboardInterrupt:  # it may have come after a row and before the count of it
            if tell is not None and resume is not None:
                known |= {row.key: row for row in rows_file.read(resume) if not row.failed}
                tell(sum(key in known for key in keys), len(jobs))
            raise
    return Table(tuple(known[key] for key in keys), tuple(notes))


@contextmanager
def _workers(executor: Any, design: Design, runs: int) -> Iterator[Any]:
    if executor is None:
        with (
            process_pool(None if runs > 1 else 1) if runs > 1 and crosses(design) else nullcontext(OneProcess()) as mine
        ):
            yield mine
    elif hasattr(executor, "submit"):
        yield executor
    elif hasattr(executor, "__enter__"):  # one of ours, not opened yet
        with executor as opened:
            yield opened
    else:
        raise ValueError(f"an executor must have submit, as in concurrent.futures; {quote(executor)} has not")


def _rows(workers: Any, name: str, design: Design, jobs: list[Job], fast: bool) -> Iterator[Row]:
    """Rows in the order in which they are done."""
    waiting: list[Future[Row]] = []
    try:
        for settings, seed in jobs:
            future = workers.submit(run_one, name, design, settings, seed, fast)
            if future.done():
                yield future.result()
            else:
                waiting.append(future)
        for future in as_completed(waiting):
            yield future.result()
    except (BrokenExecutor, CancelledError) as error:
        raise ConnectionError(
            f"the workers are gone ({reason(error)}). A script that sweeps must do so under "
            '`if __name__ == "__main__":`; a machine short of memory ends processes. What was done is in the file, if '
            "there is one: the same call goes on from there"
        ) from None
    finally:
        for future in () if isinstance(workers, OwnPool) else waiting:
            future.cancel()


def _notes(known: Mapping[str, Row], keys: Iterable[str]) -> list[str]:
    """What to know of rows that were there."""
    from course.sweep.row import versions

    others = [row.versions for key in keys if (row := known.get(key)) is not None and row.versions != versions()]
    if not others:
        return []
    what = ", ".join(f"{name} {other}" for name, other in others[0].items() if versions().get(name) != other)
    return [f"{len(others):,} rows of the file were computed with {what}, not with what is here: they may differ"]
