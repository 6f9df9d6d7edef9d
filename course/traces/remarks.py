"""What to know of a trace before using it: rows left out, times coarser than they look, unusually long contexts."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

LONG_CONTEXT = 32_768
WORK = re.compile(r"image|video|audio|frame|pixel|adapter|lora|priorit|cache|beam|best_?of", re.I)
FEW = 20  # rows below which the pattern of their times says nothing


def left_out(name: str, dropped: Mapping[str, Sequence[int]], read: int) -> str:
    """How many rows are broken, of what kind, and where the first one is."""
    total = sum(map(len, dropped.values()))
    kinds = ", ".join(f"{len(rows):,} with {kind} (first: row {rows[0]})" for kind, rows in dropped.items())
    return f"{name}: {total:,} of {total + read:,} rows were left out: {kinds}"


def on_failures(name: str, rows: Mapping[str, Sequence[int]], total: int) -> str:
    """How many requests failed, by what sign."""
    count = sum(map(len, rows.values()))
    signs = ", ".join(f"{kind}, first: row {numbers[0]}" for kind, numbers in rows.items())
    return f"{name}: {count:,} of {total:,} requests failed ({signs}) and were left out"


def on_columns(name: str, unread: Sequence[str]) -> str:
    """Columns that are left out though they change the work of a request: "" if there are none."""
    names = [column for column in unread if WORK.search(column)]
    if not names:
        return ""
    one = len(names) == 1
    return (
        f"{name}: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''} {'is' if one else 'are'} not read, though "
        f"{'it changes' if one else 'they change'} what a request costs: the requests replayed are their prompt and "
        "output tokens alone"
    )


def on_times(name: str, arrival: np.ndarray) -> str:
    """Buckets, or whole seconds; "" if times are as fine as they look.

    Buckets: more than half of the requests share their time with another, and the times in use are evenly apart.
    """
    ticks = np.unique(arrival)
    if len(arrival) < FEW or len(ticks) < 2:
        return ""
    steps = np.diff(ticks)
    low, middle, high = np.percentile(steps, (10, 50, 90))
    if len(ticks) < len(arrival) / 2 and high - low <= 0.05 * middle:
        most = int(np.unique(arrival, return_counts=True)[1].max())
        return (
            f"{name}: its {len(arrival):,} requests arrive at {len(ticks):,} moments {middle:.3g} s apart, up to "
            f"{most:,} at once. These are buckets of the recording: replayed as they are, they are bursts that nobody "
            "sent. spread=True of traces.read spreads each bucket evenly over its time"
        )
    if (arrival == np.floor(arrival)).all():
        return f"{name}: its times are whole seconds, so what happened within a second is not known"
    return ""


def on_contexts(name: str, contexts: np.ndarray) -> str:
    """Requests that an engine may refuse: "" if all are of usual length. contexts: prompt + output tokens."""
    long = int((contexts > LONG_CONTEXT).sum())
    if not long:
        return ""
    return (
        f"{name}: {long:,} of {len(contexts):,} requests need more than {LONG_CONTEXT:,} tokens of context, the longest"
        f" {contexts.max():,}; an engine with a smaller max_model_len refuses them"
    )


def spread(arrival: np.ndarray) -> np.ndarray:
    """Each group of equal times spread evenly from its time to the next one's; the last over a usual step."""
    ticks, place, counts = np.unique(arrival, return_inverse=True, return_counts=True)
    if len(ticks) < 2:
        return arrival
    steps = np.append(np.diff(ticks), np.median(np.diff(ticks)))
    rank = np.arange(len(arrival)) - np.searchsorted(arrival, arrival, side="left")
    return arrival + steps[place] * rank / counts[place]
