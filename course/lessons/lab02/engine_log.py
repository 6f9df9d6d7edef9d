"""What the decision is about: lines that an engine writes while so many requests run, with the recorded steps."""

from __future__ import annotations

from course.exercises.decision import one_flag
from course.lessons.lab02.one_curve import CONTEXT
from course.lessons.lab02.one_step import recorded

RUNNING = (32, 64, 128, 256)
PROMISE, PROMISE_TWIN = 12.5e-3, 8e-3  # seconds of TPOT
POOL = 420_000
"""Tokens for which the engine has room: of 80 GB, what the weights and a tenth for other uses leave is 461,000."""
FLAG = "--max-num-seqs"
choice = one_flag(FLAG)


def step(running: int) -> float:
    """Seconds of the recorded step of so many."""
    return recorded(running, CONTEXT, 0)


def line(running: int) -> str:
    """The line of the log."""
    usage = running * CONTEXT / POOL
    return (
        f"Avg generation throughput: {running / step(running):.1f} tokens/s, Running: {running} reqs, "
        f"Waiting: 0 reqs, GPU KV cache usage: {usage:.1%}"
    )


def largest(promise: float) -> int:
    """The most that may run with a TPOT of at most `promise` seconds: the cheapest of the four that keeps it."""
    return max(running for running in RUNNING if step(running) <= promise)
