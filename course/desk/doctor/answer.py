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
    """An answer that asks for nothing."""
    return Answer("ok", says)


def note(says: str, do: str = "") -> Answer:
    """An answer worth knowing that stops no lab; `do` says what could be done."""
    return Answer("note", says, do)


def problem(says: str, do: str = "") -> Answer:
    """An answer about what keeps a lab from running; `do` says what to do."""
    return Answer("problem", says, do)
