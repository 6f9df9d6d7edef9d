"""Something to see during long runs: a progress bar on a terminal, else one line when it starts."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from course.cli.output import echo
from course.steptime import StepTimeModel
from course.workload import Workload

LONG = 50_000  # requests; fewer are done within a second or two
LARGE = 10_000_000  # bytes of a trace; fewer are read within a second or two


class WatchedStepTime(StepTimeModel):
    """The same step times, to the bit; tells how many prompt tokens have been computed so far, now and then."""

    def __init__(self, model: StepTimeModel, every: int, tell: Callable[[int], None]):
        self.source, self.longest, self.straight = model.source, model.longest, model.straight
        self._model, self._every, self._tell = model, every, tell
        self._done = self._told = 0

    @property
    def badge(self) -> str:
        """See StepTimeModel."""
        return self._model.badge

    def beyond(self, **step: int) -> str:
        """See StepTimeModel."""
        return self._model.beyond(**step)

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        return self._model.decode_line(decodes)

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        self._done += tokens
        if self._done - self._told >= self._every:
            self._tell(self._done)
            self._told = self._done
        return self._model.seconds(decodes, decode_context, tokens, pairs, prefill_context)


@contextmanager
def progress_bar(model: StepTimeModel, load: Workload, name: str) -> Iterator[StepTimeModel]:
    """`model`, behind a progress bar on stderr if the run is long and stderr is a terminal; else a line is written.

    The bar counts prompt tokens: every request computes its prompt once, and few of them again after a preemption.
    Padding makes batches of static and dynamic compute more, so their bar may be full early.
    """
    if len(load) < LONG or sys.stderr is None:
        yield model
        return
    if not sys.stderr.isatty():
        echo(f"serving {len(load):,} requests, {name} ...", err=True)
        yield model
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    total = int(load.prompt_tokens.sum())
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"{name}, {len(load):,} requests", total=total)
        yield WatchedStepTime(model, total // 200, lambda tokens: progress.update(task, completed=min(tokens, total)))


def say_reading(path: str | None) -> None:
    """Say on stderr that a large file is being read, which takes seconds a million rows."""
    try:
        size = 0 if path is None else os.stat(path).st_size
    except (OSError, ValueError):
        return  # reading it later says why it cannot be read
    if size > LARGE and sys.stderr is not None:
        echo(f"reading {size / 1e6:,.0f} MB ...", err=True)


@contextmanager
def count_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function of (done, all) that keeps one line on stderr up to date; what is no terminal gets one line."""
    if sys.stderr is None:
        yield lambda done, total: None
        return
    if not sys.stderr.isatty():
        announced = False

        def say(done: int, total: int) -> None:
            nonlocal announced
            if not announced:
                echo(f"{total - done:,} {what} to do, {done:,} done before ...", err=True)
            announced = True

        yield say
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what)
        yield lambda done, total: progress.update(task, completed=done, total=total)
