"""What a check answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """`status` is "ok", "note" (the labs run, something is worth knowing) or "problem" (they do not, or wrongly).

    says: what was found. do: what to do about it, if there is something.
    """

    status: str
    says: str
    do: str = ""


def ok(says: str) -> Answer:
    """Nothing to do."""
    return Answer("ok", says)


def note(says: str, do: str = "") -> Answer:
    """Worth knowing, and no reason to stop; `do` says what could be done."""
    return Answer("note", says, do)


def problem(says: str, do: str = "") -> Answer:
    """Something that keeps a lab from running; `do` says what to do."""
    return Answer("problem", says, do)
