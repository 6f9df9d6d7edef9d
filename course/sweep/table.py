"""The rows of a sweep together: means over seeds, the best, what was refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, nan

from course.base.settings import quote
from course.sweep.grid import Settings
from course.sweep.row import Row


@dataclass(frozen=True)
class Design:
    """All rows of one settings. seeds: how many. numbers: the mean over them of each number that every row has.

    refused: the first sentence, if a seed was refused; the means are then of nothing, since they would flatter it.
    """

    settings: Settings
    seeds: int
    numbers: Mapping[str, float] = field(repr=False)
    refused: str | None

    def __getitem__(self, name: str) -> float:
        """The mean of this number; NaN if it was refused or has none."""
        return self.numbers.get(name, nan)


@dataclass(frozen=True)
class Table:
    """The rows, in the order of the grid and the seeds, and sentences that a reader of them must know."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        refused = sum(row.refused is not None for row in self.rows)
        return f"Table({len(self):,} runs of {len(self.designs):,} settings, {refused:,} refused)"

    @cached_property
    def designs(self) -> tuple[Design, ...]:
        """One entry for each settings, in their order."""
        together: dict[str, list[Row]] = {}
        for row in self.rows:
            together.setdefault(repr((row.sweep, sorted(row.settings.items()))), []).append(row)
        return tuple(_design(rows) for rows in together.values())

    @property
    def cpu_seconds(self) -> float:
        """Of all rows, wherever and whenever they ran."""
        return sum(row.cpu_seconds for row in self.rows)

    def best(self, name: str) -> Design:
        """The settings with the highest mean of this number, the first of equals. ValueError if no row has it."""
        self.known(name)
        return max(self.designs, key=lambda one: one.numbers.get(name, -inf))

    def known(self, *names: str) -> None:
        """ValueError, with the names that there are, if no settings has one of these numbers."""
        there = dict.fromkeys(name for one in self.designs for name in one.numbers)
        for name in names:
            if name not in there:
                why = f"there are {', '.join(there)}" if there else "every run was refused"
                raise ValueError(f"no row has a number called {quote(name)}: {why}")


def _design(rows: list[Row]) -> Design:
    refused = next((row.refused for row in rows if row.refused is not None), None)
    numbers = {}
    for name in rows[0].summary if refused is None else ():
        values = [row.summary.get(name) for row in rows]
        kept = [float(value) for value in values if isinstance(value, int | float)]
        if len(kept) == len(rows):
            numbers[name] = sum(kept) / len(kept)
    return Design(rows[0].settings, len(rows), numbers, refused)
