"""Documents that remember which of their keys were read, so that a key with another name is noticed.

Readers look keys up one by one; what a tool renamed is not there, and would be missing without a word.
"""

from collections.abc import Iterator
from typing import Any

from course.results.rows import alike, statistic

ROWS = 64  # of a list: a file may have a million requests
DEEPEST = 12  # objects within objects; no tool's file has more


class Seen(dict):
    """An object of a JSON file. read: the keys that were looked up; missed: those that were not there."""

    def __init__(self, value: dict):
        super().__init__(value)
        self.read: set[Any] = set()
        self.missed: set[str] = set()

    def _look(self, key: Any) -> None:
        if dict.__contains__(self, key):
            self.read.add(key)
        elif isinstance(key, str):
            self.missed.add(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dict; the key counts as looked up."""
        self._look(key)
        return super().get(key, default)

    def __getitem__(self, key: Any) -> Any:
        self._look(key)
        return super().__getitem__(key)

    def __contains__(self, key: Any) -> bool:
        self._look(key)
        return super().__contains__(key)


def watched(value: Any, depth: int = 0) -> Any:
    """The same document with every object watched; of a list the first ones, as its rows have the same keys."""
    if depth > DEEPEST:
        return value
    if isinstance(value, dict):
        return Seen({key: watched(one, depth + 1) for key, one in value.items()})
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [*(watched(one, depth + 1) for one in value[:ROWS]), *value[ROWS:]]
    return value


def renamed(value: Any) -> Iterator[str]:
    """A sentence for each key that nobody read and whose name is almost one that was looked for in vain."""
    if isinstance(value, list):
        for one in value[:ROWS]:
            yield from renamed(one)
    if not isinstance(value, Seen):
        return
    names = [key for key in value if isinstance(key, str)]
    some = any(statistic(key) for key in value.read if isinstance(key, str))
    for key in names:
        if key in value.read:
            yield from renamed(dict.__getitem__(value, key))
            continue
        near = next((one for one in sorted(value.missed) if alike(key, one)), None)
        if near is not None:
            yield f"{key} is not read, and {near} is not there: was it renamed?"
        elif some and statistic(key.partition("_")[0]) and statistic(key) is None:
            yield f"{key} is not read: no statistic has that name or unit"
