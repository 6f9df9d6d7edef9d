"""What the notebooks of lab 16 call by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from course.exercises import tasks_of
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.lessons.lab16 import figures, load_test, many_tools, pictures, steady_window, three_files
from course.lessons.lab16.launched import launch_explorer
from course.lessons.lab16.load_test import STEP, run_test, seconds

__all__ = [
    "a_client_by_hand", "a_client_that_waits", "one_run_many_tools", "one_test_two_clocks", "report_and_users",
    "result_file", "the_window_that_counts", "ticket_graphs", "what_a_limit_hides",
]  # fmt: skip


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
        f"The same stall [{STEP.simulated}]",
    )


def one_test_two_clocks() -> Explorer:
    """One load test with one document in its middle: TTFT as the client writes it down, and from the plan."""
    return Explorer(
        load_test.run_test,
        controls=[
            Slider("rate", "Rate asked for", 2, 40, 1, 12, unit="requests/s"),
            Choice("max_concurrency", "Limit in flight", list(load_test.LIMITS), 16),
            Slider("document_tokens", "Document", 0, 98_304, 16_384, 65_536, "tokens"),
        ],
        figure=lambda result: figures.two_clocks(result, height=330),
        summary=load_test.rows,
        title="One test, two clocks",
        badge=STEP.simulated,
        beside=False,
        **tasks_of("16", "one_test_two_clocks"),
    )


def one_run_many_tools() -> Explorer:
    """One run, and the time per token that each tool reads from it."""
    return Explorer(
        many_tools.read_by_all,
        controls=[
            Slider("rate", "Arrival rate", 4, 128, 2, 64, unit="requests/s", log=True),
            Slider("output_cv", "Spread of the answers (CV)", 0.0, 2.0, 0.25, 1.0),
            Slider("tokens_per_piece", "Tokens in a piece", 1, 8, 1, 1),
        ],
        figure=lambda result: figures.many_tools(result, height=330),
        summary=many_tools.few_rows,
        title="One run, many tools",
        badge=STEP.simulated,
        beside=False,
        **tasks_of("16", "one_run_many_tools"),
    )


def a_client_that_waits() -> Explorer:
    """The language model with one stall, launched through a client with a limit, beside the same on a recorded H100."""
    return launch_explorer()


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
    return table(rows, f"One stall of 5 s and more, 12 requests/s [{STEP.simulated}]")


def the_window_that_counts() -> Explorer:
    """A closed-loop test, a window of it, and how sure the percentiles in that window are."""
    steady_window.compute_tests()  # the tests, once
    return Explorer(
        steady_window.window,
        controls=[
            Choice("users", "Users", list(steady_window.USERS), 64),
            Slider("start", "Window starts at", 0, 100, 1, 0, unit="s"),
            Slider("length", "Window length", 1, 60, 1, 20, unit="s"),
        ],
        figure=lambda result: figures.window(result, height=330),
        summary=steady_window.rows,
        title="The window that counts",
        badge=STEP.simulated,
    )


def result_file(name: str) -> Table:
    """What one of the three files says, without what no question needs."""
    needed = ("num", "request_", "max", "duration", "completed", "failed", "mean", "p99", "output", "total_output")
    rows = [
        (key, f"{value:g}" if isinstance(value, int | float) else str(value))
        for key, value in three_files.contents(name).items()
        if key.startswith(needed) and value is not None
    ]
    return table([("", "value"), *rows], name)
