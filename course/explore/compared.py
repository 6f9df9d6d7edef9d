"""Cells for the table under a live view: what each way of serving took here, and whether the words are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course.explore.words import Spoken


def where(spoken: Mapping[str, Spoken]) -> str:
    """How the runs were timed, in words."""
    return "counted in steps" if any(one.counted for one in spoken.values()) else "measured on this machine"


def cells(found: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """A cell for each name; "-": not played yet."""
    return [found.get(name, "-") for name in names]


def said(spoken: Mapping[str, Spoken], names: Sequence[str]) -> dict[str, str]:
    """What the answers of each run are, compared word by word with those of the first that was played."""
    if not spoken:
        return {}
    first, *others = [name for name in names if name in spoken]
    words = spoken[first].run.words
    found = {first: f"{len(words)} answers"}
    for name in others:
        found[name] = "the same words" if spoken[name].run.words == words else "other words"
    return found
