"""What starting kernels costs on a card: the recording of tests/bench/launches.py that lab 12 shows."""

from __future__ import annotations

from functools import cache
from typing import Any

from course.figures.words import seconds
from course.gpu.ops.generate import FEW
from course.lessons.lab12.on_device import DEPENDENT, GRAPH, LAUNCHES, PERSISTENT, Spent
from course.steptime import files

NAMES = {
    LAUNCHES: "launches, one by one",
    GRAPH: "a graph",
    DEPENDENT: "a graph, dependent launch",
    PERSISTENT: "one persistent kernel",
}
"""The forms as the lab calls them."""
SMALL, LARGE = "our small model", "Llama-3.1-8B"
_STEPS = {LAUNCHES: "launches", GRAPH: "graph", DEPENDENT: "graph dependent"}


class Recorded(files.Recording):
    """Steps of a card, by form."""

    def __init__(self, name: str = "h200_launches") -> None:
        found = files.read("launches", name)
        self.provenance, self._found = found["provenance"], found
        self.launches: int = found["toy"]["launches_a_step"]

    def toy(self, form: str, work: int) -> Spent:
        """A step of the note's kernel, of this many terms."""
        return _spent(self._found["toy"]["by_work"][f"{form} {work}"])

    def each(self, form: str, work: int) -> float:
        """Seconds of one kernel among many of a graph, or of one turn of the persistent kernel."""
        return float(self._found["toy"]["by_work"][f"{form} {work}"]["each"])

    def of_count(self, form: str, count: int) -> Spent:
        """A step of so many of the note's kernels, each of one term."""
        return _spent(self._found["toy"]["by_count"][f"{form} {count}"])

    def trace(self, form: str, work: int) -> tuple[list[list[float]], list[list[float]]]:
        """The program's calls and the kernels of a step: beginning and length [us]."""
        found = self._found["traces"][f"{form} {work}"]
        return found["calls"], found["kernels"]

    def small(self, kind: str, form: str, batch: int = 1) -> Spent:
        """A decode step of the small model in fp32 (by a library) or bf16 (fused)."""
        return _spent(self._found["small_model"]["times"][f"{kind} {_STEPS[form]} {batch}"])

    def kernels(self, kind: str) -> int:
        """Kernels of such a step."""
        return int(self._found["small_model"]["kernels"][f"{kind} launches"])

    def persistent(self, batch: int = 1) -> float:
        """Seconds a token of the kernel that writes whole answers, for each of so many side by side."""
        cluster = 16 if batch <= FEW else 8
        return float(self._found["persistent"]["each"][f"{cluster} 512 {batch}"])

    def large(self, form: str, batch: int) -> Spent:
        """A decode step of the 8B."""
        return _spent(self._found["large_model"]["times"][f"{form} {batch}"])

    def host(self, batch: int) -> dict[str, float]:
        """Seconds of the program's parts of a step of the small model."""
        return self._found["host"]["step"][str(batch)]

    def copy(self, kind: str, size: int) -> dict[str, float]:
        """Seconds until the call of a copy to the card returns, and until it is done. kind: pageable or pinned."""
        return self._found["host"]["copies"][f"{kind} {size}"]


def brief(value: float) -> str:
    """Seconds for people, below a millisecond as microseconds."""
    return f"{1e6 * value:.3g} µs" if value < 0.9995e-3 else seconds(value)


def _spent(found: dict[str, Any]) -> Spent:
    return Spent(*(float(found[name]) for name in ("host", "wall", "queued")))


@cache
def recording() -> Recorded:
    """The one that the lab shows."""
    return Recorded()
