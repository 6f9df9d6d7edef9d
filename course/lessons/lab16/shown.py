"""Tables and figures of lab 16 that are no explorers, each one line in the notebook."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from course.explore.table import Table, table
from course.lessons.lab16 import pictures, three_files
from course.lessons.lab16.load_test import STEP, run_test, seconds

__all__ = ["a_client_by_hand", "report_and_users", "result_file", "ticket_graphs", "what_a_limit_hides"]


def report_and_users() -> Table:
    """One test with the document: TTFT in the report, and for users who come without a limit."""
    test = run_test(12, 16, 65_536)
    ways = (test.written, test.free.ttft)
    return table(
        [
            ("", "in the report", "for users"),
            *((f"TTFT p{q}", *(seconds(float(np.percentile(way, q))) for way in ways)) for q in (50, 99)),
            ("waited longer than 1 s", *(f"{int((way > 1).sum())} of {len(way):,}" for way in ways)),
        ],
        f"The same stall [{STEP.badge}]",
    )


def a_client_by_hand() -> go.Figure:
    """Four requests through a client with one in flight."""
    return pictures.by_hand()


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return pictures.ticket()


def what_a_limit_hides() -> Table:
    """p99 of TTFT by three clocks, for several limits in flight."""
    rows: list[tuple[str, ...]] = [("", "written above 1 s", "p99 written", "p99 from the plan", "p99 no limit")]
    for limit in (8, 16, 32, 64, 256):
        test = run_test(12, limit, 65_536)
        tails = (seconds(float(np.percentile(way, 99))) for way in (test.written, test.run.ttft, test.free.ttft))
        rows.append((f"limit {limit}", f"{int((test.written > 1).sum())} of {len(test.run):,}", *tails))
    return table(rows, f"One stall of 5 s and more, 12 requests/s [{STEP.badge}]")


def result_file(name: str) -> Table:
    """What one of the three files says, without what no question needs."""
    kept = ("num", "request_", "max", "duration", "completed", "failed", "mean", "p99", "output", "total_output")
    said = three_files.contents(name).items()
    rows = [(key, f"{value:g}" if isinstance(value, int | float) else str(value))
            for key, value in said if key.startswith(kept) and value is not None]  # fmt: skip
    return table([("", "value"), *rows], name)
