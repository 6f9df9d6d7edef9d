"""What the real vLLM wrote while its runs were recorded: its metrics pages, and the result file of its own load test.

The files are in course/data/vllm, and the README there says what is in them.
"""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from typing import Any

from course.calibration import vllm_live
from course.results import exposition

FOLDER = vllm_live.FOLDER
WHEN = ("before", "within", "after")
"""Moments of the metrics pages of the load `preempted`: the engine is empty before and after it."""


@cache
def label() -> str:
    """What stands beside each number of these recordings: who wrote it, with which model, where and when."""
    engine = vllm_live.read("preempted").engine
    day = date.fromisoformat(engine["date"])
    return f"vLLM {engine['version']}, small model, two cores, {day.day} {day:%b %Y}"


@cache
def metrics(when: str) -> exposition.Page:
    """VLLM's page /metrics before, within or after the load `preempted`. ValueError for another moment."""
    if when not in WHEN:
        raise ValueError(f"there is no page {when!r} of vLLM: choose {', '.join(WHEN)}")
    path = FOLDER / f"metrics_preempted_{when}.txt"
    (page,) = exposition.pages(path, path.read_text(encoding="utf-8"))
    return page


@cache
def bench() -> dict[str, Any]:
    """What `vllm bench serve --save-detailed` wrote about the server `wide`."""
    return json.loads((FOLDER / "bench_serve.json").read_text(encoding="utf-8"))
