"""The rows of `incidents.yaml`, and which of them a paste fits."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from math import inf
from typing import Any

import yaml

from course.incidents.signals import has_samples, signals


@cache
def table() -> dict[str, dict[str, Any]]:
    """Every incident by its id: symptom, next, cause, repair, lab, fits (signal -> [at least, at most])."""
    return yaml.safe_load((files("course.incidents") / "incidents.yaml").read_text(encoding="utf-8"))


def fitting(text: str) -> list[dict[str, str]]:
    """The incidents that a paste fits: all of their signals are there and within their limits. Mostly none or one."""
    if not has_samples(text):
        return []
    found = signals(text)
    rows = []
    for id, one in table().items():
        if all(_within(found[name], limits) for name, limits in one["fits"].items()):
            shown = ", ".join(f"{name.replace('_', ' ')} {found[name]:.3g}" for name in one["fits"])
            words = {key: " ".join(str(one[key]).split()) for key in ("symptom", "next", "cause", "repair", "lab")}
            rows.append({"incident": id, "evidence": shown, **words})
    return rows


def _within(value: float, limits: list[float | None]) -> bool:
    low, high = (-inf if limits[0] is None else limits[0], inf if limits[1] is None else limits[1])
    return low <= value <= high
