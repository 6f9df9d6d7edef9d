"""Which settings a sweep runs: all of a grid, some of it at random, or a list."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from course.base.settings import quote, seed_sequence, whole

MOST_RUNS = 1_000_000
"""Of one sweep: their rows are about a gigabyte."""
Setting = bool | int | float | str | None
Settings = dict[str, Setting]


def settings_of(grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]) -> list[Settings]:
    """The settings of each run, without repetitions: every combination of a dict of lists, or those of an iterable.

    The last name of a dict changes fastest. Raises ValueError for values that no file of JSON lines can hold, a name
    without values, and more than a million runs.
    """
    if isinstance(grid, Mapping):
        lists = _lists(grid)
        _few_enough(prod(map(len, lists.values())))
        found: Iterable[Any] = (dict(zip(lists, values, strict=True)) for values in product(*lists.values()))
    elif isinstance(grid, Iterable) and not isinstance(grid, str):
        found = islice(grid, MOST_RUNS + 1)
    else:
        raise ValueError(f"grid must be a dict of lists, or an iterable of settings, not {quote(grid)}")
    unique: dict[str, Settings] = {}
    for one in found:
        if not isinstance(one, Mapping):
            raise ValueError(f"the settings of a run must be a dict, not {quote(one)}")
        plain = {_name(name): _plain(name, value) for name, value in one.items()}
        unique.setdefault(repr(sorted(plain.items())), plain)
    if not unique:
        raise ValueError("the grid is empty: there is nothing to run")
    _few_enough(len(unique))
    return list(unique.values())


def random_settings(grid: Mapping[str, Iterable[Any]], number: int, seed: int = 0) -> list[Settings]:
    """`number` different combinations of a dict of lists, each as likely as another, in an order drawn from `seed`.

    Raises ValueError if there are fewer, and as `sweep` does for its grid.
    """
    if not isinstance(grid, Mapping):
        raise ValueError(f"random settings are drawn from a dict of lists, not from {quote(grid)}")
    lists = {name: list(dict.fromkeys(values)) for name, values in _lists(grid).items()}
    total, number = prod(map(len, lists.values())), whole("number", number, high=MOST_RUNS)
    if number > total:
        raise ValueError(f"the grid has {total:,} combinations, fewer than the {number:,} to draw: run all of it")
    rng = np.random.default_rng(seed_sequence(seed))
    drawn: dict[tuple[int, ...], None] = {}
    if total <= 2 * number + 1_000:  # where repetitions would be many: the first of all in a random order
        every = list(product(*(range(len(values)) for values in lists.values())))
        drawn = dict.fromkeys(every[place] for place in rng.permutation(total)[:number])
    while len(drawn) < number:
        drawn.setdefault(tuple(int(rng.integers(len(values))) for values in lists.values()))
    return [
        {name: _plain(name, values[place]) for (name, values), place in zip(lists.items(), places, strict=True)}
        for places in drawn
    ]


def seeds_of(seeds: int | Iterable[int]) -> list[int]:
    """A number of seeds from 0, or those of an iterable, each once. ValueError for anything else."""
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        found = list(dict.fromkeys(whole("a seed", seed, low=0, high=2**63 - 1) for seed in seeds))
        if not found:
            raise ValueError("there are no seeds: give at least one")
        return found
    return list(range(whole("seeds", seeds, high=MOST_RUNS)))


def _lists(grid: Mapping[str, Iterable[Any]]) -> dict[str, Sequence[Any]]:
    lists: dict[str, Sequence[Any]] = {}
    for name, values in grid.items():
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise ValueError(f"{_name(name)} must have a list of values, such as [32, 64], not {quote(values)}")
        lists[_name(name)] = list(islice(values, MOST_RUNS + 1))
        if not lists[name]:
            raise ValueError(f"{name} has no values: give at least one, or leave it out")
    return lists


def _name(name: Any) -> str:
    if not isinstance(name, str) or name == "seed":
        raise ValueError(f"a setting is called by a word other than seed, not {quote(name)}; seeds= has the seeds")
    return name


def _plain(name: str, value: Any) -> Setting:
    """A value as JSON has it, so that a row that was read equals one that was run."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value)):
        return value
    raise ValueError(f"{name} must be a finite number, a word, True, False or None, not {quote(value)}")


def _few_enough(runs: int) -> None:
    if runs > MOST_RUNS:
        raise ValueError(f"the grid has {runs:,} combinations, more than {MOST_RUNS:,}: draw some with random_settings")
