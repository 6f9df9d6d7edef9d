"""The explorers of lab 16, each one line in a notebook."""

from course.exercises import TaskRecord
from course.explore import Choice, Explorer, Slider
from course.lessons.lab16 import figures, load_test, many_tools, steady_window, tasks
from course.lessons.lab16.launched import launch_explorer

__all__ = ["a_client_that_waits", "one_run_many_tools", "one_test_two_clocks", "the_window_that_counts"]


def one_test_two_clocks() -> Explorer:
    """One load test with one document in its middle: TTFT as the client writes it down, and from the plan."""
    return Explorer(
        load_test.run_test,
        controls=[
            Slider("rate", "Rate asked for", 2.0, 40.0, 1.0, 12.0, unit="requests/s"),
            Choice("max_concurrency", "Limit in flight", list(load_test.LIMITS), 16),
            Slider("document_tokens", "Document", 0, 98_304, 16_384, 65_536, "tokens"),
        ],
        figure=lambda result: figures.two_clocks(result, height=330),
        summary=load_test.rows,
        title="One test, two clocks",
        badge=load_test.STEP.badge,
        tasks=tasks.CLOCKS,
        record=TaskRecord("16"),
        beside=False,
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
        badge=load_test.STEP.badge,
        tasks=tasks.TOOLS,
        record=TaskRecord("16"),
        beside=False,
    )


def a_client_that_waits() -> Explorer:
    """The language model with one stall, launched through a client with a limit, beside the same on a recorded H100."""
    return launch_explorer()


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
        badge=load_test.STEP.badge,
    )
