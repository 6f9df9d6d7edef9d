"""ServeGen's clients: not requests, but how many came in each window, how unevenly, and of what lengths.

    600,1.33,8.6,Weibull,0.375,0.397         window's start [s], requests/s, CV of the gaps, pattern, its two parameters
    1200,0,0,,0,0                            nobody came

and beside chunk-0-trace.csv a chunk-0-dataset.json, whose distributions are written as text inside the JSON:

    {"0": {"input_tokens": "{81: 0.25, 82: 0.75}", "output_tokens": "{5: 1.0}"}, "21600": ...}

The requests are drawn with a seed: in each window as many as were counted, with gaps of the pattern's shape, prompts
and outputs independent of each other. The format is that of Xiang et al., ServeGen, arXiv 2505.09999.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path

import numpy as np

from course.base.settings import MAX_REQUESTS, MAX_TOKENS, quote, seed_sequence
from course.base.textfiles import MAX_JSON_BYTES, json_value, text
from course.traces import table
from course.traces.rows import BrokenRow
from course.workload import Workload

PATTERNS = ("Gamma", "Weibull", "Exponential", "Poisson")
SHAPES = (0.01, 1e6)  # of Gamma and Weibull; beyond, a gap has no float64
SIDES = ("input_tokens", "output_tokens")


@dataclass(frozen=True)
class Window:
    """`requests` between start and start + length seconds, with gaps of that pattern and shape."""

    start: float
    length: float
    requests: int
    pattern: str
    shape: float


def matches(cells: list[str]) -> bool:
    """Whether the first row of a file is a window: six cells and no header."""
    cells = [cell.strip() for cell in cells]
    if len(cells) != 6 or not (cells[3] == "" or cells[3] in PATTERNS):
        return False
    try:
        return all(isfinite(float(cell or 0)) for i, cell in enumerate(cells) if i != 3)
    except ValueError:
        return False


def read(path: Path, content: str, dataset: Path | None, seed: int, on_error: str) -> tuple[Workload, str]:
    """The drawn requests, and the sentence that says how. ValueError, with the row, for a broken window."""
    windows, empty, dropped = _windows(path, content, on_error)
    busy = [window for window in windows if window.requests]
    total = sum(window.requests for window in busy)
    if not total:
        raise ValueError(f"{path.name}: no window has a request, so there is nothing to replay")
    if total > MAX_REQUESTS:
        raise ValueError(f"{path.name} describes {total:,} requests: cut it into files of at most {MAX_REQUESTS:,}")
    beside, lengths, zeros = _lengths(path, dataset)
    for_arrivals, for_lengths = (np.random.default_rng(s) for s in seed_sequence(seed).spawn(2))
    arrival = np.concatenate([_arrivals(for_arrivals, window) for window in busy])
    tokens, early = _tokens(for_lengths, busy, lengths)
    note = (
        f"{total:,} requests drawn with seed {seed} from {len(busy):,} windows ({empty:,} without requests): as many a "
        f"window as the file counts, gaps of its shapes, lengths from {beside.name} independent of each other"
    )
    if early:
        note += f"; {early:,} windows before its first lengths take those"
    if zeros:
        note += f"; lengths of 0, up to {zeros:.2%} of a distribution, are not drawn"
    if dropped:
        note += f"; {len(dropped):,} broken windows were left out (first: row {dropped[0]})"
    return Workload(arrival - arrival[0], tokens[0], tokens[1]), note


def _windows(path: Path, content: str, on_error: str) -> tuple[list[Window], int, list[int]]:
    """The windows, how many are empty, and the rows left out."""
    rows: list[tuple[int, float, float, str, float]] = []
    dropped: list[int] = []
    for number, cells in table.lines(path, content):
        try:
            rows.append((number, *_row(cells)))
        except BrokenRow as broken:
            if on_error == "raise":
                raise ValueError(
                    f'{path.name}, row {number}: {broken}. Correct it, or leave such windows out with on_error="skip"'
                ) from None
            dropped.append(number)
    starts = [row[1] for row in rows]
    for (number, start, *_), before in zip(rows[1:], starts[:-1], strict=True):
        if start <= before:
            raise ValueError(f"{path.name}, row {number}: the window at {start:g} s does not come after {before:g} s")
    gaps = [after - start for start, after in pairwise(starts)]
    usual = min(gaps, default=600.0)  # a gap may stand for windows that were left out
    windows = [Window(start, usual, round(rate * usual), pattern, shape) for _, start, rate, pattern, shape in rows]
    return windows, sum(not window.requests for window in windows), dropped


def _row(cells: list[str]) -> tuple[float, float, str, float]:
    """Start, rate, pattern and shape of a window."""
    if len(cells) != 6:
        raise BrokenRow(f"it has {len(cells)} cells where a window has 6", "the wrong number of cells")
    start, rate, cv, pattern, shape, scale = (cell.strip() for cell in cells)
    values = [_number(name, cell) for name, cell in (("start", start), ("rate", rate), ("CV", cv))]
    if values[1] == 0:
        return values[0], 0.0, "", 1.0
    if pattern not in PATTERNS:
        raise BrokenRow(f"its pattern is {quote(pattern)}, not one of {', '.join(PATTERNS)}", "another pattern")
    _number("scale", scale)
    number = _number("shape", shape) if pattern in ("Gamma", "Weibull") else 1.0
    if not SHAPES[0] <= number <= SHAPES[1]:
        raise BrokenRow(f"its shape is {quote(shape)}, not from {SHAPES[0]:g} to {SHAPES[1]:g}", "a broken shape")
    return values[0], values[1], pattern, number


def _number(name: str, cell: str) -> float:
    try:
        value = float(cell or 0)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1e9:
        raise BrokenRow(f"its {name} is {quote(cell)}, not a number from 0 to 1e9", f"a broken {name}")
    return value


def _arrivals(rng: np.random.Generator, window: Window) -> np.ndarray:
    """The arrivals in a window: one gap more than there are requests, of the shape, scaled to fill it."""
    n = window.requests + 1
    if window.pattern == "Gamma":
        gaps = rng.gamma(window.shape, size=n)
    elif window.pattern == "Weibull":
        gaps = rng.weibull(window.shape, size=n)
    else:
        gaps = rng.exponential(size=n)
    total = gaps.sum()
    gaps = gaps / total if total > 0 else np.full(n, 1 / n)
    return window.start + window.length * np.minimum(np.cumsum(gaps[:-1]), 1.0)


Distribution = tuple[np.ndarray, np.ndarray]  # lengths in tokens, probabilities


def _lengths(path: Path, dataset: Path | None) -> tuple[Path, dict[float, tuple[Distribution, Distribution]], float]:
    """(file, distributions of prompts and outputs by start of the period, the most weight on 0)."""
    beside = path.with_name(path.name.replace("-trace.csv", "-dataset.json")) if dataset is None else dataset
    if beside == path or not beside.is_file():
        raise ValueError(
            f"{path.name} has rates and no lengths. They are in a file of the same client that ends in -dataset.json: "
            "put it beside the trace, or name it with dataset="
        )
    periods = json_value(beside, text(beside, "dataset", "JSON", MAX_JSON_BYTES))
    if not isinstance(periods, dict):
        raise ValueError(f"{beside.name} is not a dataset of ServeGen: an object of periods was expected")
    windows: dict[float, tuple[Distribution, Distribution]] = {}
    zeros = 0.0
    for start, sides in periods.items():
        place = f"{beside.name}, period {quote(start)}"
        if not start.isascii() or not start.isdigit() or len(start) > 12 or not isinstance(sides, dict):
            raise ValueError(f"{place}: a start in seconds with distributions was expected")
        missing = [side for side in SIDES if not isinstance(sides.get(side), str)]
        if missing:
            raise ValueError(f"{place}: no {missing[0]}. Only language clients can be read, with {' and '.join(SIDES)}")
        prompts, outputs = (_distribution(f"{place}, {side}", sides[side]) for side in SIDES)
        if prompts and outputs:
            zeros = max(zeros, prompts[2], outputs[2])
            windows[float(start)] = (prompts[:2], outputs[:2])
    if not windows:
        raise ValueError(f"{beside.name} has no lengths in any period")
    return beside, dict(sorted(windows.items())), zeros


def _distribution(place: str, cell: str) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Lengths, probabilities, and the weight that was on 0; None for an empty one."""
    inside = cell.strip().removeprefix("{").removesuffix("}").strip()
    if not inside:
        return None
    try:
        pairs = [(int(key), float(value)) for key, _, value in (part.partition(":") for part in inside.split(","))]
    except ValueError:
        raise ValueError(f"{place}: {quote(cell)} is not a distribution like '{{81: 0.25, 82: 0.75}}'") from None
    values, weights = np.array([key for key, _ in pairs], dtype=object), np.array([weight for _, weight in pairs])
    if not all(0 <= key <= MAX_TOKENS for key in values) or not (weights >= 0).all():
        raise ValueError(f"{place}: lengths and probabilities cannot be negative, nor above {MAX_TOKENS:,}")
    if not abs(weights.sum() - 1) < 0.01:
        raise ValueError(f"{place}: its probabilities add up to {weights.sum():.6g}, not to 1")
    values = values.astype(np.int64)
    some = values > 0
    if not weights[some].sum() > 0:
        return None
    return values[some], weights[some] / weights[some].sum(), float(weights[~some].sum() / weights.sum())


def _tokens(
    rng: np.random.Generator, windows: list[Window], lengths: Mapping[float, tuple[Distribution, Distribution]]
) -> tuple[list[np.ndarray], int]:
    """Prompt and output tokens of all requests, and how many windows lie before the first period with lengths."""
    starts = np.array(list(lengths))
    pairs = list(lengths.values())
    samples: list[list[np.ndarray]] = [[], []]
    early = 0
    for window in windows:
        place = int(np.searchsorted(starts, window.start, side="right")) - 1
        early += place < 0
        for side, (values, weights) in enumerate(pairs[max(place, 0)]):
            samples[side].append(rng.choice(values, size=window.requests, p=weights))
    return [np.concatenate(parts) for parts in samples], early
