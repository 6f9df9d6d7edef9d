"""What the notebooks of lab 16 call by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from course.exercises import tasks_of
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.lessons.lab16 import figures, load_test, many_tools, pictures
from course.lessons.lab16.launched import launch_explorer
from course.lessons.lab16.load_test import STEP, run_test, seconds

__all__ = [
    "a_client_by_hand", "a_client_that_waits", "one_run_many_tools", "one_test_two_clocks", "report_and_users",
    "ticket_graphs", "vllms_own_file", "vllms_own_page",
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


def vllms_own_file() -> Table:
    """What vLLM's benchmark wrote of a real run, and what other tools would have."""
    found, seen = many_tools.vllms_file(), many_tools.from_vllms_file()
    rows = [("", "mean", "how"), ("its own TPOT", f"{found['mean_tpot_ms']:.2f} ms", "(E2E - TTFT) / (n - 1)"),
            ("its own ITL", f"{found['mean_itl_ms']:.2f} ms", "gaps between pieces")]  # fmt: skip
    others = (("this course", "ITL"), ("llmperf", "inter token latency"), ("guidellm 0.2, 0.3", "TPOT"))
    for one in many_tools.readings(seen):
        if (one.tool, one.metric) in others:
            rows.append((f"{one.tool}: {one.metric}", f"{one.mean * 1e3:.2f} ms", one.how.split(", mean")[0]))
    return table(rows, f"{len(seen.tokens)} answers, a file of vllm bench serve [{many_tools.LIVE.label}]")


def vllms_own_page() -> Table:
    """TTFT and E2E of a real run by the client's two clocks and by vLLM's page, scraped before and after."""
    run, server = many_tools.LIVE, many_tools.vllms_page()
    rows: list[tuple[str, ...]] = [("", "from the plan", "from sending", "vLLM's /metrics")]
    for name, at in (("ttft", run.client_first), ("e2e", run.client_last)):
        ways = (at - run.due).mean(), (at - run.sent).mean(), server.summary[name]["mean"]
        rows.append((f"mean {name.upper()}", *(f"{1e3 * float(way):,.0f} ms" for way in ways)))
    return table(rows, f"{len(run)} requests [{run.label}]")
