"""What a workload looks like in numbers, and the columns of several workloads merged into one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from course.base.settings import quote
from course.workload.slo import SLO

Workload = Any  # course.workload.workload.Workload, which stands above


def describe(load: Workload) -> dict[str, float]:
    """See `Workload.describe`."""
    times = load.arrival[~np.isnan(load.arrival)]
    gaps = np.diff(times)
    some = gaps.size > 0
    nan = float("nan")
    numbers: dict[str, float] = {
        "n": len(load),
        "span_s": load.span,
        "rps": load.rate,
        "gap_mean_s": float(gaps.mean()) if some else nan,
        "gap_cv_population": float(gaps.std() / gaps.mean()) if some and gaps.any() else nan,
        "max_gap_s": float(gaps.max()) if some else nan,
        "ties": int((gaps == 0).sum()),
        "negative": int((gaps < 0).sum()),
    }
    for side, counts in (("in", load.prompt_tokens), ("out", load.output_tokens)):
        numbers[f"{side}_sum"] = int(counts.sum())
        numbers[f"{side}_mean"] = float(counts.mean())
        numbers[f"{side}_p50"] = float(np.percentile(counts, 50))
        numbers[f"{side}_p99"] = float(np.percentile(counts, 99))
        numbers[f"{side}_max"] = int(counts.max())
        numbers[f"{side}_min"] = int(counts.min())
    return numbers


def label_parts(parts: Any, kind: type) -> list[Workload]:
    """The parts of a mix, each with its label in `class_`; ValueError unless they are of this kind, one or more."""
    items: list[tuple[str | int, Any]]
    if isinstance(parts, Mapping):
        items = [(str(label), part) for label, part in parts.items()]
    elif isinstance(parts, Sequence) and not isinstance(parts, str):
        items = list(enumerate(parts))
    else:
        raise ValueError(f"mix takes a dict of workloads by label, or a list of workloads, not {quote(parts)}")
    if not items:
        raise ValueError("mix needs at least one workload, but none were given")
    for label, part in items:
        if not isinstance(part, kind):
            raise ValueError(f"part {label!r} of the mix must be a Workload, not {quote(part)}")
    return [replace(part, class_=np.full(len(part), label)) for label, part in items]


def merged(parts: Sequence[Workload]) -> dict[str, Any]:
    """All requests of `parts` as the arguments of a Workload, by the earliest time at which each could arrive.

    Equal times keep the order of parts. Raises ValueError for parts with a cap in their client.
    """
    if any(part.max_concurrency is not None for part in parts):
        raise ValueError("max_concurrency is of one client: merge the requests first, and cap them then")
    sizes = [len(part) for part in parts]
    # A stable sort by a key that never falls along a chain keeps every `after` in front of its follower.
    order = np.argsort(np.concatenate([_earliest(part) for part in parts]), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    columns: dict[str, Any] = {}
    for key in ("arrival", "prompt_tokens", "output_tokens"):
        columns[key] = np.concatenate([getattr(part, key) for part in parts])[order]
    for key in ("class_", "tenant"):
        columns[key] = _merged_labels([getattr(part, key) for part in parts], sizes, order)
    for key, nothing in (("prefix", ()), ("tags", ()), ("slo", SLO())):
        if any(getattr(part, key) is not None for part in parts):
            columns_of = [getattr(part, key) or (nothing,) * size for part, size in zip(parts, sizes, strict=True)]
            rows = [row for column in columns_of for row in column]
            columns[key] = tuple(rows[i] for i in order)
    blocks = {(part.prefix_block_size, part.prefix_answers) for part in parts if part.prefix is not None}
    if len(blocks) > 1:
        sizes_said = sorted(str(size) for size, _ in blocks)
        raise ValueError(
            f"prefixes of unlike blocks cannot be merged: prefix_block_size is {' and '.join(sizes_said)}, and "
            "prefix_answers must be the same too"
        )
    if blocks:
        ((columns["prefix_block_size"], columns["prefix_answers"]),) = blocks
    for key in ("guess", "deadline", "patience"):
        if any(getattr(part, key) is not None for part in parts):
            numbers = [getattr(part, key) for part in parts]
            filled = [np.full(size, np.nan) if one is None else one for one, size in zip(numbers, sizes, strict=True)]
            columns[key] = np.concatenate(filled)[order]
    if any(part.after is not None for part in parts):
        starts = np.cumsum([0, *sizes[:-1]])
        after = np.concatenate(
            [
                np.full(size, -1) if part.after is None else np.where(part.after < 0, -1, part.after + start)
                for part, size, start in zip(parts, sizes, starts, strict=True)
            ]
        )[order]
        columns["after"] = np.where(after < 0, -1, place[after])
        columns["think_time"] = np.concatenate(
            [
                np.zeros(size) if part.think_time is None else part.think_time
                for part, size in zip(parts, sizes, strict=True)
            ]
        )[order]
    return columns | {"notes": tuple(note for part in parts for note in part.notes)}


def _earliest(load: Workload) -> np.ndarray:
    """Arrival [s] if every answer took no time at all."""
    if load.after is None or load.think_time is None:
        return load.arrival
    key = load.arrival.tolist()
    for i, (before, pause) in enumerate(zip(load.after.tolist(), load.think_time.tolist(), strict=True)):
        if before >= 0:
            key[i] = key[before] + pause
    return np.array(key)


def _merged_labels(labels: list[np.ndarray | None], sizes: list[int], order: np.ndarray) -> np.ndarray | None:
    present = [label for label in labels if label is not None]
    if not present:
        return None
    as_text = any(label.dtype.kind == "U" for label in present)
    nothing = "" if as_text else -1
    columns = [np.full(size, nothing) if label is None else label for label, size in zip(labels, sizes, strict=True)]
    return np.concatenate([column.astype(str) if as_text else column for column in columns])[order]
