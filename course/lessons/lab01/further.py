"""The tables of lab 01's optional notebook."""

from __future__ import annotations

import numpy as np

from course.calibration import vllm_live, vllm_pages
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab01 import chat
from course.lessons.lab01.chat import PARTS, STEP

__all__ = ["parts_of_a_p99", "twenty_draws", "vllm_by_parts", "windows"]

DRAWS = 20
BUSY = 12  # requests/s


def windows() -> Table:
    """Mean wait in a window of 100 ms, simulated and by formula, over rates."""
    rows: list[tuple[str, ...]] = [("", "half of it", "formula", "simulated", "tokens/s of the chat")]
    for rate in (1, 2, 5, 10, 14):
        found = chat.chat(rate=rate, num_requests=5_000)
        formula = chat.mean_window_wait(found.window, rate)
        waits = (found.window / 2, formula, found.mean("window"))
        rows.append((f"{rate} requests/s", *map(seconds, waits), f"{found.tokens_per_second:,.0f}"))
    return table(rows, f"A window of {chat.WINDOW_MS} ms [{STEP.simulated}]")


def vllm_by_parts() -> Table:
    """Mean TTFT of 24 questions to vLLM with 8 slots and with 4, from sending to the client's first token, in parts."""
    columns: list[list[str]] = []
    for slots in (8, 4):
        run = vllm_live.read(f"questions_{slots}")
        parts = [*run.around.values(), run.queue_wait, run.ttft - run.queue_wait]
        columns.append([f"{slots} slots", *(seconds(float(part.mean())) for part in (*parts, sum(parts)))])
    names = ("", "read by the API server", "handed to the scheduler", "back to the client", "queue", "prefill", "TTFT")
    return table(zip(names, *columns, strict=True), f"The same 24 questions, means [{vllm_pages.label()}]")


def draws(num_requests: int) -> list[float]:
    """The p99 of TTFT of twenty draws of so many requests [s]."""
    return [chat.chat(rate=BUSY, num_requests=num_requests, seed=seed).percentile(99) for seed in range(DRAWS)]


def twenty_draws() -> Table:
    """The p99 of TTFT of twenty draws, over the length of the test."""
    rows: list[tuple[str, ...]] = [("", "least", "median", "most")]
    for count in (100, 500, 2_000):
        rows.append(
            (f"{count:,} requests", *(seconds(float(value)) for value in np.percentile(draws(count), (0, 50, 100))))
        )
    return table(rows, f"p99 of TTFT, {DRAWS} draws at {BUSY} requests/s [{STEP.simulated}]")


def parts_of_a_p99() -> Table:
    """The p99 of each part, their sum, and the p99 of the sum."""
    rows: list[tuple[str, ...]] = [("", f"{chat.RATE} requests/s", f"{BUSY} requests/s")]
    both = [chat.chat(rate=rate) for rate in (chat.RATE, BUSY)]
    tails = [[float(np.percentile(found.parts[part], 99)) for part in PARTS] for found in both]
    rows += [(f"p99 of {part}", *(seconds(tail[at]) for tail in tails)) for at, part in enumerate(PARTS)]
    rows.append(("sum of the four", *(seconds(sum(tail)) for tail in tails)))
    rows.append(("p99 of TTFT", *(seconds(found.percentile(99)) for found in both)))
    return table(rows, f"Percentiles do not add up [{STEP.simulated}]")
