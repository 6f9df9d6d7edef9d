"""What of lab 18 goes to whoever teaches: the design that was handed in, and what it is worth, served again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any

import numpy as np

from course.base import settings
from course.exercises.game_record import GameRecord
from course.exercises.progress import Progress
from course.lessons.lab18 import decision, scoring, search, service
from course.lessons.lab18.design import Design

KEPT = "design"
NAMES = tuple(field.name for field in fields(Design))


def keep(design: Design, progress: Progress | None = None) -> None:
    """Remember a design as the one that is handed in. progress: by default the learner's own."""
    GameRecord("18", KEPT, progress).keep(asdict(design))


def design_of(parts: Mapping[str, Any]) -> dict[str, Any] | None:
    """The design as all its flags; None if none was handed in, or what is stored is none."""
    kept = parts["boards"].get(KEPT)
    try:
        return None if kept is None else asdict(made(kept))
    except ValueError:
        return None


def score(design: Mapping[str, Any]) -> dict[str, float]:
    """Serve the seen day and, if it keeps its promises there, the other days of the decision.

    design: flags by their names in `Design`. Raises ValueError for what is no design, or what no engine can serve.
    """
    return dict(_worth(made(design)))


def made(stored: Any) -> Design:
    """The design of stored flags. Raises ValueError for a flag that there is not, and as `Design`."""
    if not isinstance(stored, Mapping):
        raise ValueError("the design of lab 18 is no table of settings")
    alien = next((name for name in stored if name not in NAMES), None)
    if alien is not None:
        raise ValueError(f"a design of lab 18 has no setting {settings.quote(alien)}: it has {', '.join(NAMES)}")
    return Design(**stored)


@lru_cache(maxsize=1_000)
def _worth(design: Design) -> tuple[tuple[str, float], ...]:
    seen = scoring.score(design, service.day())
    found = {
        "requests a dollar on the seen day": seen.score,
        **{f"share of {name} in time there": share for name, share in seen.share.items()},
    }
    if seen.passed:
        others = search.unseen(design, decision.OTHER_DAYS)
        found[f"of {len(others)} busier days held"] = sum(one > 0 for one in others)
        found["requests a dollar there"] = float(np.mean(others))
    return tuple(found.items())
