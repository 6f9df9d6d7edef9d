"""The points of a recording of steps: what a file must have, and which of its points a step time can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from course.base.settings import MAX_SECONDS, MAX_TOKENS, quote, whole
from course.engine.step import SHORTEST

KERNEL = "llama_step"
COUNTS = {"decodes": 2**17, "decode_context": MAX_TOKENS, "chunk": 2**17, "cached": MAX_TOKENS}  # the most of each
COLUMNS = COUNTS | dict.fromkeys(("seconds", "low", "high"), MAX_SECONDS)
FACTS = ("kernel", "model", "weight_bytes", "provenance", "points")


def bad(name: str, why: str) -> ValueError:
    """Says that this is no recording, and why."""
    return ValueError(f"{name} is not a recording of steps: {why}")


def checked(name: str, recording: Any) -> dict[str, np.ndarray]:
    """The columns of a recording, int64 and float64. Raises ValueError for one that cannot be."""
    wanted = {"provenance": ("card", "date"), "points": COLUMNS}
    missing = [key for key in FACTS if not isinstance(recording, dict) or key not in recording]
    if not missing:
        missing = [
            f"{part}.{key}"
            for part, keys in wanted.items()
            for key in keys
            if not isinstance(recording[part], dict) or key not in recording[part]
        ]
    if missing:
        raise bad(name, f"it has no {', '.join(missing)}")
    if recording["kernel"] != KERNEL:
        raise bad(name, f"it is one of {quote(recording['kernel'])}, not of {KERNEL}")
    texts = {"model": recording["model"], **{key: recording["provenance"][key] for key in wanted["provenance"]}}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise bad(name, f"its {key} must be text, not {quote(text)}")
    points = {}
    for key, high in COLUMNS.items():
        try:
            points[key] = np.array(recording["points"][key], dtype=np.float64)
        except (OverflowError, TypeError, ValueError):
            points[key] = np.full(1, np.nan)
        low, values = (0, np.floor(points[key])) if key in COUNTS else (SHORTEST, points[key])
        if points[key].ndim != 1 or not ((values == points[key]) & (values >= low) & (values <= high)).all():
            kind = "whole" if key in COUNTS else "finite"
            raise bad(name, f"{key} must be a list of {kind} numbers from {low:g} to {high:g}")
    for wrong, why in _faults(points, whole(f"weight_bytes of {name}", recording["weight_bytes"], high=10**15)):
        if wrong:
            raise bad(name, why)
    return {key: values.astype(np.int64) if key in COUNTS else values for key, values in points.items()}


def _faults(points: Mapping[str, np.ndarray], weight_bytes: int) -> Iterator[tuple[Any, str]]:
    """Whether columns of numbers contradict each other, and in what; to be asked one after the other."""
    sizes = {len(values) for values in points.values()}
    yield (
        len(sizes) > 1 or 0 in sizes,
        "its columns must have one value per point, with at least one point and all of the same length",
    )
    decodes, context, chunk, cached, seconds, low, high = (points[key] for key in COLUMNS)
    yield ((low > seconds) | (seconds > high)).any(), "low, seconds and high must be sorted in each point"
    rate = weight_bytes / seconds.min()  # a card reads 1e11 to 1e13 bytes a second
    odd = weight_bytes >= 1e9 and not 1e10 <= rate <= 1e14
    yield odd, f"its fastest step reads the weights at {rate:.1e} bytes/s: are the times in seconds?"
    no_sum = (context < decodes) | (context > 0) & (decodes == 0) | (cached > 0) & (chunk == 0)
    yield no_sum.any(), "decode_context is a sum over the decodes, each of which attends to itself, and 0 without any"
    rows = np.stack([decodes, context, chunk, cached], axis=1)
    yield len(np.unique(rows, axis=0)) < len(rows), "it has the same point twice"
    both = (chunk == 0).any() and (decodes == 0).any()
    yield not both, "it needs steps of decodes alone and steps of a chunk alone"
    most = decodes[chunk == 0].max()
    yield decodes.max() > most, f"beside a chunk it has more decodes than the {most:g} of any step of decodes alone"


def usable(points: Mapping[str, np.ndarray]) -> np.ndarray:
    """Which points have what a line needs: a batch another context, a chunk's size two points without decodes.

    A recording that was stopped has some that do not: the last ones to be measured. A chunk needs one of its two points
    with nothing cached, and beside it no more decodes than a usable batch of decodes alone.
    """
    decodes, context, chunk, cached = (points[key] for key in COUNTS)
    found = np.zeros(len(decodes), bool)
    for batch in np.unique(decodes[chunk == 0]):
        here = (chunk == 0) & (decodes == batch)
        found |= here & (len(np.unique(context[here])) > 1)
    for size in np.unique(chunk[chunk > 0]):
        here = chunk == size
        levels = cached[here & (decodes == 0)]
        found |= here & (0 in levels and len(levels) > 1)
    alone = decodes[found & (chunk == 0)]
    return found & (decodes <= alone.max(initial=0))
