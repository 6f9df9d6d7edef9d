"""Holes in texts: `{{gain:.2f}}` becomes a fact of the lab in the format behind the colon.

Code, formulas and what stands in backticks are left alone: braces mean something else there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Fact = int | float | str

HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
INSIDE = re.compile(r"([a-z][a-z0-9_]*)(?::([^{}:]+))?")
CLOSED = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)


class HoleError(ValueError):
    """A hole that cannot be filled. `hole` is its text, with the braces."""

    def __init__(self, hole: str, why: str) -> None:
        super().__init__(f"{hole}: {why}")
        self.hole = hole


def filled(text: str, facts: Mapping[str, Fact]) -> str:
    """Return the text with its holes filled.

    facts: by name. Raises HoleError: a hole without a name, a fact that is not there, a format that does not fit.
    """
    shut = [match.span() for match in CLOSED.finditer(text)]

    def fill(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in shut):
            return match[0]
        return _one(match, facts)

    return HOLE.sub(fill, text)


def names(text: str) -> list[str]:
    """Return the names of the facts that the text's holes ask for."""
    asked: list[str] = []
    shut = [match.span() for match in CLOSED.finditer(text)]
    for match in HOLE.finditer(text):
        if not any(start <= match.start() < end for start, end in shut):
            asked.append(match[1].partition(":")[0])
    return asked


def _one(match: re.Match[str], facts: Mapping[str, Fact]) -> str:
    parts = INSIDE.fullmatch(match[1])
    if parts is None:
        raise HoleError(match[0], "write a fact's name and perhaps a format, such as {{gain:.2f}}")
    name, form = parts[1], parts[2] or ""
    if name not in facts:
        raise HoleError(match[0], f"there is no fact {name!r}; there are {', '.join(facts) or 'none'}")
    try:
        return format(facts[name], form)
    except ValueError as error:
        raise HoleError(match[0], f"the format {form!r} does not fit {facts[name]!r} ({error})") from None
