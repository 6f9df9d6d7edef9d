"""What was promised to whom: service level objectives, which belong to requests and are mostly said by class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.base.settings import MAX_SECONDS, quote, real


@dataclass(frozen=True)
class SLO:
    """The most that a request may take, in seconds: TTFT, TPOT and E2E, each above 0; None where none is promised.

    SLO() promises nothing, and every answer keeps it. Raises ValueError for another number.
    """

    ttft: float | None = None
    tpot: float | None = None
    e2e: float | None = None

    def __post_init__(self) -> None:
        for name in ("ttft", "tpot", "e2e"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, real(f"{name} of an SLO [s]", value, above=0, high=MAX_SECONDS))


def of_requests(given: Any, n: int, classes: np.ndarray | None) -> tuple[SLO, ...] | None:
    """`given` as one SLO a request: one for all, a mapping by class, or one each (None: SLO()). None if there are none.

    n: requests. classes: of each, or None. Raises ValueError for a class that nobody has, a request whose class has no
    SLO, and anything that is no SLO.
    """
    if given is None:
        return None
    if isinstance(given, SLO):
        return (given,) * n
    if isinstance(given, Mapping):
        return _by_class(given, classes)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"slo must be an SLO, or a dict of SLOs by class, not {quote(given)}")
    each = tuple(_checked(f"slo of request {row}", SLO() if one is None else one) for row, one in enumerate(given))
    if len(each) != n:
        raise ValueError(
            f"there are {n:,} requests and {len(each):,} SLOs: give one for all, one by class, or one each"
        )
    return each


def _by_class(given: Mapping[Any, Any], classes: np.ndarray | None) -> tuple[SLO, ...]:
    slos = {label: _checked(f"slo of class {quote(label)}", one) for label, one in given.items()}
    if classes is None:
        raise ValueError("slo is said by class, and these requests have no class_: give them one, or one SLO for all")
    of = classes.tolist()
    there = dict.fromkeys(of)
    names = ", ".join(map(quote, sorted(there)[:8])) + (", ..." if len(there) > 8 else "")
    nobody = next((label for label in slos if label not in there), None)
    if nobody is not None:
        raise ValueError(f"slo names the class {quote(nobody)}, which no request has: the classes are {names}")
    without = next((label for label in there if label not in slos), None)
    if without is not None:
        raise ValueError(
            f"request {of.index(without)} has the class {quote(without)}, which has no SLO: add it to slo, as SLO() if "
            "nothing is promised"
        )
    return tuple(slos[label] for label in of)


def _checked(name: str, one: Any) -> SLO:
    if not isinstance(one, SLO):
        raise ValueError(f"{name} must be an SLO, such as SLO(ttft=0.5), not {quote(one)}")
    return one


def limits(slos: Iterable[SLO], metric: str) -> np.ndarray:
    """The most seconds of this metric ("ttft", "tpot", "e2e") for each; infinite where nothing is promised."""
    found = [getattr(one, metric) for one in slos]
    return np.array([np.inf if value is None else value for value in found], dtype=np.float64)
