"""Steps that verify drafts, read off a recording: so many sequences, each with its drafts and one row more."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.base.settings import MAX_SECONDS, MAX_TOKENS, whole
from course.engine.step import SHORTEST
from course.steptime import files, points
from course.steptime.recorded import Recorded, recorded

COLUMNS = {"sequences": 2**17, "drafts": 2**10, "context": MAX_TOKENS}


class Verification(files.Recording):
    """Seconds of a step in which each sequence computes its drafts and one token more.

    Keys and values are read once for all rows of a sequence.

    Between the recorded batches, numbers of drafts and contexts all is read off straight lines, and beyond the longest
    recorded context off the same line; no drafts are a step of decodes of the same recording.
    """

    def __init__(self, recording: Recorded, table: dict[str, Any]):
        self.recording, self.provenance = recording, recording.provenance
        found = _checked(recording.name, table)
        self._sequences, drafts = (np.unique(found[key]) for key in ("sequences", "drafts"))
        self._drafts = np.array([0, *drafts])
        # Seconds without context, and seconds a token that each sequence attends to.
        self._base, self._each = np.empty((2, len(self._drafts), len(self._sequences)))
        lines = [recording.decode_line(int(many)) for many in self._sequences]
        self._base[0], self._each[0] = [base for base, _ in lines], [slope for _, slope in lines] * self._sequences
        for i, k in enumerate(drafts, 1):
            for j, many in enumerate(self._sequences):
                here = (found["drafts"] == k) & (found["sequences"] == many)
                context, seconds = found["context"][here] / many, found["seconds"][here]
                if not len(context):
                    raise points.bad(recording.name, f"it verifies {k:g} drafts, but not of {many:g} sequences")
                if len(np.unique(context)) > 1:
                    each, base = np.polyfit(context, seconds, 1, w=1 / seconds)
                else:  # a long one had no room in the cache: the context costs in proportion to the rows
                    each = self._each[i, j - 1] * many / self._sequences[j - 1] if j else self._each[0, j]
                    base = seconds[0] - each * context[0]
                self._base[i, j], self._each[i, j] = max(base, SHORTEST), max(each, 0.0)

    def seconds(self, sequences: int, drafts: int, context: float) -> float:
        """Seconds of a step of these sequences with so many drafts each; context: tokens that one attends to.

        Raises ValueError for more sequences or drafts than were recorded.
        """
        many = whole("sequences", sequences, high=int(self._sequences[-1]))
        k = whole("drafts", drafts, low=0, high=int(self._drafts[-1]))
        context = whole("context", context, low=k + 1)
        found = [np.interp(many, self._sequences, seconds) for seconds in self._base + self._each * context]
        return float(np.interp(k, self._drafts, found))


def _checked(name: str, table: Any) -> dict[str, np.ndarray]:
    """Its columns. Raises ValueError for a table that cannot be."""
    found = {}
    for key, high in (COLUMNS | {"seconds": MAX_SECONDS}).items():
        try:
            found[key] = np.array(table[key], dtype=np.float64)
        except (KeyError, OverflowError, TypeError, ValueError):
            raise points.bad(name, f"what it verified has no list of numbers {key}") from None
        low = SHORTEST if key == "seconds" else 1
        values = found[key] if key == "seconds" else np.floor(found[key])
        if found[key].ndim != 1 or not ((values == found[key]) & (values >= low) & (values <= high)).all():
            raise points.bad(name, f"{key} of what it verified must be numbers from {low:g} to {high:g}")
    if len({len(values) for values in found.values()}) > 1 or not len(found["seconds"]):
        raise points.bad(name, "the columns of what it verified must have one value per point, and at least one point")
    return found


def verify(name: str = "h200-llama3-8b-verify") -> Verification:
    """The steps that verify drafts in a recording of the course. Raises ValueError if it has none."""
    table = files.read(points.KERNEL, str(name).replace("-", "_")).get("verify")
    if table is None:
        raise ValueError(f"{name} has no steps that verify drafts: h200-llama3-8b-verify has")
    return Verification(recorded(name), table)
