"""The exercises in numbers: the mean wait in a window, and the longest window that a promise leaves. All in ms."""

from __future__ import annotations

WAIT, WAIT_TWIN = (10.0, 150.0), (4.0, 500.0)  # ms of the window, requests/s
WORKED = (6.0, 80.0)
NAMES = ("slo", "t0", "each", "batch", "margin")  # ms, ms, ms a sequence, sequences, ms
PROMISE, GATE = (5.0, 0.5, 0.1, 8, 0.5), (40.0, 5.0, 0.2, 20, 4.0)
GATE_MS = 15.0


def mean_wait(window: float, rate: float) -> float:
    """Mean wait in a window that a request opens [ms]: D (1 + λ D / 2) / (1 + λ D). rate: requests/s.

    Who opens it waits all of it; λ D more come in it on average, each at a uniform moment, and wait half.
    """
    more = rate * window / 1e3
    return window * (1 + more / 2) / (1 + more)


def longest_window(slo: float, t0: float, each: float, batch: float, margin: float) -> float:
    """What the promise leaves for the window; nothing where it leaves nothing."""
    return max(0.0, slo - (t0 + each * batch) - margin)
