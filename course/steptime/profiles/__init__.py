"""Step times recorded on real cards, with where and how they were recorded. Data: one JSON file a recording."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from course.base.settings import quote

COLUMNS = {
    **dict.fromkeys(("work", "threads", "batch"), np.int64),
    **dict.fromkeys(("seconds", "low", "high", "kernel_seconds"), np.float64),
}


@dataclass(frozen=True)
class Curve:
    """Seconds of a step, and of the kernel alone, for each batch size, which grow."""

    batch: np.ndarray
    seconds: np.ndarray
    kernel_seconds: np.ndarray


class Recorded:
    """What every recording says of itself, from its `provenance`."""

    provenance: Mapping[str, Any]

    @property
    def card(self) -> str:
        """The card, as its driver names it."""
        return self.provenance["card"]

    @property
    def badge(self) -> str:
        """Says where these numbers come from, in the form that figures and explorers take."""
        return f"recorded: {self.card}, {self.provenance['date']}"


@dataclass(frozen=True)
class DecodeProfile(Recorded):
    """Times of kernels/decode_step.cu on one card, over work, threads and batch. Arrays of one entry a measurement.

    seconds: median of one launch, by events around it. low, high: 10th and 90th percentile. empty_seconds: a launch of
    a kernel that does nothing, timed in the same way. kernel_seconds: a step as a node of a captured graph, where no
    program launches it, NaN where there is no such recording. provenance: card, driver, versions, date, command.
    """

    name: str
    work: np.ndarray
    threads: np.ndarray
    batch: np.ndarray
    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    kernel_seconds: np.ndarray
    empty_seconds: float
    provenance: Mapping[str, Any]

    def at(self, work: int, threads: int) -> Curve:
        """The curve over the batch for one setting. Raises ValueError where it was not recorded."""
        here = np.flatnonzero((self.work == work) & (self.threads == threads))
        if not len(here):
            raise ValueError(
                f"{self.name} has nothing for work {quote(work)} and {quote(threads)} threads: "
                f"recorded were work {_listed(self.work)} and threads {_listed(self.threads)}"
            )
        here = here[np.argsort(self.batch[here])]
        return Curve(self.batch[here], self.seconds[here], self.kernel_seconds[here])


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value}" for value in np.unique(values))


def names(kernel: str = "decode_step") -> tuple[str, ...]:
    """The recordings there are of this kernel."""
    files = [path for path in resources.files(__name__).iterdir() if path.name.endswith(".json")]
    ours = [path for path in files if json.loads(path.read_text(encoding="utf-8"))["kernel"] == kernel]
    return tuple(sorted(path.name.removesuffix(".json") for path in ours))


@cache
def decode_step(name: str = "h100_decode_step") -> DecodeProfile:
    """The recording of that name. Raises ValueError with the known names otherwise."""
    if name not in names():
        raise ValueError(f"no recording is called {quote(name)}; there are {', '.join(names())}")
    found = json.loads((resources.files(__name__) / f"{name}.json").read_text(encoding="utf-8"))
    # None becomes NaN where a column is of floats.
    points = {key: np.array(values, dtype=COLUMNS[key]) for key, values in found["points"].items()}
    for values in points.values():
        values.setflags(write=False)
    return DecodeProfile(name=name, **points, empty_seconds=found["empty_seconds"], provenance=found["provenance"])
