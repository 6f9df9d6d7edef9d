"""What the decision is about: what vLLM's own load test wrote beside a small engine, and a gateway before it."""

from __future__ import annotations

import numpy as np

from course.calibration import vllm_pages
from course.lessons.lab01 import chat

SLOTS = 8  # of the engine: the first line of its log, course/data/vllm/serve_wide.log
CHOICES_US = (0, 5_000, 10_000, 20_000, 50_000)  # max_queue_delay_microseconds to choose from
GOAL = 0.135  # seconds, mean TTFT of users
TWIN = {"rate": 2.0, "inside": 0.020, "outside": 0.040}  # requests/s and seconds: another engine and its users
GOAL_TWIN = 0.072


def rate() -> float:
    """Requests/s that the engine served."""
    return float(vllm_pages.bench()["request_throughput"])


def engine() -> float:
    """Mean TTFT beside the engine [s]: what `vllm bench serve` measured, without gateway and network."""
    return float(vllm_pages.bench()["mean_ttft_ms"]) / 1e3


def users(delay_us: float, *, rate: float, inside: float, outside: float = chat.OUTSIDE_MS / 1e3) -> float:
    """Mean TTFT of users with this delay [s]: the time outside, the window, and inside the engine."""
    return outside + chat.mean_window_wait(delay_us / 1e6, rate) + inside


def replayed(delay_us: float, sent: np.ndarray | None = None) -> float:
    """The same mean if a gateway had held vLLM's own requests [s]: each takes as long in the engine as it took.

    sent: other moments at which they could have come [s], non-decreasing, shape (requests,).
    """
    found = vllm_pages.bench()
    begun, ttfts = (np.array(found[name]) for name in ("start_times", "ttfts"))
    order = np.argsort(begun)
    came = begun[order] if sent is None else sent
    held = chat.passed_on(came, delay_us / 1e6) - came
    return float((chat.OUTSIDE_MS / 1e3 + held + ttfts[order]).mean())


def largest(goal: float, **where: float) -> int:
    """The largest delay to choose from [microseconds] with which users wait at most `goal` seconds on average."""
    return max(delay for delay in CHOICES_US if users(delay, **where) <= goal)
