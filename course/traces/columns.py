"""The rows of a trace, column by column, and the workload that they make."""

from array import array
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from course.base.settings import seed_sequence
from course.traces import remarks
from course.traces.rows import PICOSECONDS, Row
from course.workload import Workload, arrivals


class Columns:
    """Rows as they are read. Columns of numbers are arrays: five million rows must fit a laptop."""

    def __init__(self) -> None:
        self.times: list[int | None] = []  # picoseconds, which int64 could not hold over half a year
        self.prompt, self.output, self.number = array("q"), array("q"), array("q")
        self.labels: list[str | None] = []
        self.prefixes: list[tuple | None] = []

    def __len__(self) -> int:
        return len(self.times)

    def add(self, row: Row, number: int) -> None:
        """One more row, with its number in the file."""
        self.times.append(row.time)
        self.prompt.append(row.prompt)
        self.output.append(row.output)
        self.number.append(number)
        self.labels.append(row.class_)
        self.prefixes.append(row.prefix)

    def workload(
        self, path: Path, *, sort: bool, spread: bool, rate: float | None, seed: int, block_tokens: int | None
    ) -> tuple[Workload, list[str]]:
        """The workload, and sentences about its times. ValueError, with the row, if time runs back.

        block_tokens: what a prefix id stands for.
        """
        order: Sequence[int] = range(len(self))
        times = [time for time in self.times if time is not None]
        if not times:
            arrival, sentence = _draw(path, len(self), rate, seed)
        else:
            if rate is not None:
                raise ValueError(f"{path.name} has arrival times, so leave rate out: change it with .scaled(rate)")
            if sort:
                order = sorted(order, key=lambda i: times[i])
            arrival = self._arrival(path, times, order)
            sentence = remarks.on_times(path.name, arrival)
            if spread:
                arrival, sentence = remarks.spread(arrival), ""
        some_label = any(label is not None for label in self.labels)
        some_prefix = any(prefix is not None for prefix in self.prefixes)
        load = Workload(
            arrival=arrival,
            prompt_tokens=np.array(self.prompt, dtype=np.int64)[order],
            output_tokens=np.array(self.output, dtype=np.int64)[order],
            class_=np.array([self.labels[i] or "" for i in order]) if some_label else None,
            prefix=tuple(self.prefixes[i] or () for i in order) if some_prefix else None,
            prefix_block_size=block_tokens if some_prefix else None,
        )
        return load, [sentence] if sentence else []

    def _arrival(self, path: Path, times: Sequence[int], order: Sequence[int]) -> np.ndarray:
        for i, j in pairwise(order):
            before, moment = times[i], times[j]
            if moment < before:
                raise ValueError(
                    f"{path.name}, row {self.number[j]}: its time is {(before - moment) / PICOSECONDS:.7g} s before "
                    f"that of row {self.number[i]}. Check that the file is complete, then read it with sort=True"
                )
        first = times[order[0]]
        # A quotient of two Python integers is the float64 nearest to it.
        return np.array([(times[i] - first) / PICOSECONDS for i in order])


def _draw(path: Path, n: int, rate: float | None, seed: int) -> tuple[np.ndarray, str]:
    """Arrivals for a file that has none."""
    if rate is None:
        sentence = f"{path.name} has lengths and no times: all {n:,} requests arrive at 0. rate= draws arrivals"
        return np.zeros(n), sentence
    times = arrivals.renewal(np.random.default_rng(seed_sequence(seed)), n=n, rate=rate, cv=1.0)
    return times, f"{path.name} has lengths and no times: Poisson arrivals at {rate:g}/s were drawn with seed {seed}"
