"""The tables and the figure of lab 01's optional notebook."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab01 import chat, figures, replicas
from course.lessons.lab01.chat import PARTS, STEP

__all__ = ["a_user_a_month", "parts_of_a_p99", "replicas_and_all", "the_last_token", "twenty_draws", "windows"]

DRAWS = 20
BUSY = 12  # requests/s
QUESTIONS = 100
"""Of each user in a month."""


def windows() -> Table:
    """Mean wait in a window of 100 ms, simulated and by formula, over rates."""
    rows: list[tuple[str, ...]] = [("", "half of it", "formula", "simulated", "tokens/s of the chat")]
    for rate in (1, 2, 5, 10, 14):
        found = chat.chat(rate=rate, num_requests=5_000)
        formula = chat.mean_window_wait(found.window, rate)
        waits = (found.window / 2, formula, found.mean("window"))
        rows.append((f"{rate} requests/s", *map(seconds, waits), f"{found.tokens_per_second:,.0f}"))
    return table(rows, f"A window of {chat.WINDOW_MS} ms [{STEP.simulated}]")


def the_last_token() -> Table:
    """E2E of some requests, and two formulas for it."""
    run = chat.chat().run
    rows: list[tuple[str, ...]] = [("", "tokens", "E2E", "TTFT + (N - 1) TPOT", "TTFT + N TPOT")]
    order = np.argsort(run.workload.output_tokens, kind="stable")
    for place in (20, 1_000, 1_980):
        one = int(order[place])
        tokens = int(run.workload.output_tokens[one])
        ttft, tpot = float(run.ttft[one]), float(run.tpot[one])
        sums = (ttft + (tokens - 1) * tpot, ttft + tokens * tpot)
        cells = [f"{1e3 * value:,.1f} ms" for value in (float(run.e2e[one]), *sums)]
        rows.append((f"request {one + 1}", f"{tokens:,}", *cells))
    return table(rows, f"The time to the last token [{STEP.simulated}]")


def draws(num_requests: int) -> list[float]:
    """The p99 of TTFT of twenty draws of so many requests [s]."""
    return [chat.chat(rate=BUSY, num_requests=num_requests, seed=seed).percentile(99) for seed in range(DRAWS)]


def twenty_draws() -> go.Figure:
    """The p99 of TTFT of twenty draws: tests of 100, 500 and 2,000 requests."""
    return figures.draws({f"{count:,} requests": draws(count) for count in (100, 500, 2_000)})


def parts_of_a_p99() -> Table:
    """The p99 of each part, their sum, and the p99 of the sum."""
    rows: list[tuple[str, ...]] = [("", f"{chat.RATE} requests/s", f"{BUSY} requests/s")]
    both = [chat.chat(rate=rate) for rate in (chat.RATE, BUSY)]
    tails = [[float(np.percentile(found.parts[part], 99)) for part in PARTS] for found in both]
    rows += [(f"p99 of {part}", *(seconds(tail[at]) for tail in tails)) for at, part in enumerate(PARTS)]
    rows.append(("sum of the four", *(seconds(sum(tail)) for tail in tails)))
    rows.append(("p99 of TTFT", *(seconds(found.percentile(99)) for found in both)))
    return table(rows, f"Percentiles do not add up [{STEP.simulated}]")


def share_of_users(questions: int, seed: int = 0) -> float:
    """Share of users who meet a TTFT above the p99 at least once; each request belongs to a user drawn at random."""
    ttft = chat.chat(rate=BUSY, num_requests=20_000).ttft
    late = ttft > np.percentile(ttft, 99)
    asked = np.random.default_rng(seed).permutation(len(ttft)).reshape(-1, questions)
    return float(late[asked].any(axis=1).mean())


def a_user_a_month() -> Table:
    """Share of users who meet the p99, drawn and by formula, over questions a month."""
    rows: list[tuple[str, ...]] = [("", "drawn", "1 - 0.99 to the power of n")]
    rows += [
        (f"{count} questions" if count > 1 else "1 question", f"{share_of_users(count):.0%}", f"{1 - 0.99**count:.0%}")
        for count in (1, 10, QUESTIONS)
    ]
    return table(rows, f"Users who see a TTFT above the p99 [{STEP.simulated}]")


def replicas_and_all() -> Table:
    """The p99s of the ticket: each replica's, three ways to make one of them, and that of all requests."""
    found = replicas.service()
    each = [float(np.percentile(run.ttft, 99)) for run in found.runs]
    counts = [len(run) for run in found.runs]
    values = {
        **{f"replica {name}": value for name, value in zip("ABC", each, strict=True)},
        "mean of the three": float(np.mean(each)),
        "mean weighted by requests": float(np.average(each, weights=counts)),
        "median of the three": float(np.median(each)),
        "of all requests": float(np.percentile(found.ttft, 99)),
    }
    return table([(name, seconds(value)) for name, value in values.items()], f"p99 of TTFT [{STEP.simulated}]")
