"""Lab 17's exercise 2: how long a token bucket lets the second of two requests wait, and known wrong turns."""

from typing import NamedTuple


class Case(NamedTuple):
    """A bucket that held `level` tokens `seconds` ago, and fills by `rate` tokens/s up to `burst`; two requests."""

    level: float
    seconds: float
    rate: float
    burst: float
    first: float
    second: float


ASKED = Case(level=500, seconds=8, rate=100, burst=1_000, first=900, second=400)
TWIN = Case(level=100, seconds=4, rate=50, burst=600, first=250, second=250)


def level(case: Case) -> float:
    """What the bucket holds when the two come [tokens]."""
    return min(case.burst, case.level + case.rate * case.seconds)


def wait(case: Case) -> float:
    """How long the second one waits [s]: the first pays first."""
    return max(0.0, case.first + case.second - level(case)) / case.rate


def never_filled(case: Case) -> float:
    """The same with what came in since forgotten."""
    return max(0.0, case.first + case.second - case.level) / case.rate


def overflowing(case: Case) -> float:
    """The same with a bucket that holds any number of tokens."""
    return max(0.0, case.first + case.second - case.level - case.rate * case.seconds) / case.rate


def whole(case: Case) -> float:
    """The whole cost of the second comes in while it waits."""
    return case.second / case.rate


def missing(case: Case) -> float:
    """Tokens in place of seconds."""
    return wait(case) * case.rate
