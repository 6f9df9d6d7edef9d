"""What the toy's notebook calls by name."""

import plotly.graph_objects as go

from course.engine.run import Run
from course.exercises.lesson import Lesson
from course.explore import Explorer, Slider
from course.explore.table import Table, table
from tests.data.lab97 import one_engine
from tests.data.lab97.one_engine import ANSWER, RATE, SLOTS, Full

__all__ = ["engine", "line", "room"]
SPEC = Lesson("tests.data.lab97").spec


def engine() -> Table:
    """The engine at a few numbers of slots."""
    rows = [("slots", "tokens/s"), *((f"{n}", f"{one_engine.full(n).tokens_per_s:.0f}") for n in (1, 2, 4, 8))]
    return table(rows, "A full batch")


def room() -> Explorer:
    """A full batch."""
    return Explorer(
        one_engine.full,
        controls=[Slider("slots", "Slots", 1, 16, 1, SLOTS), Slider("answer", "Answer", 10, 200, 10, ANSWER)],
        figure=lambda result: _bar(result.tokens_per_s, "tokens/s"),
        summary=_full_rows,
        title="Room",
        tasks=SPEC.by_explorer["room"],
    )


def line() -> Explorer:
    """Arrivals at the engine."""
    return Explorer(
        one_engine.busy,
        controls=[Slider("rate", "Rate", 1, 12, 1, RATE, unit="requests/s"), Slider("slots", "Slots", 2, 16, 2, SLOTS)],
        figure=lambda run: _bar(float(run.queue_wait.mean()), "wait [s]"),
        summary=_line_rows,
        title="A line",
        tasks=SPEC.by_explorer["line"],
    )


def _full_rows(result: Full) -> list[tuple[str, str]]:
    return [("step", f"{result.step_ms:g} ms"), ("tokens/s", f"{result.tokens_per_s:.0f}"),
            ("an answer", f"{result.answer_s:.2f} s")]  # fmt: skip


def _line_rows(run: Run) -> list[tuple[str, str]]:
    return [("wait, mean", f"{run.queue_wait.mean():.2f} s"), ("running, most", f"{run.steps.running.max()}")]


def _bar(value: float, title: str) -> go.Figure:
    return go.Figure(go.Bar(x=["now"], y=[value]), layout={"height": 300, "yaxis": {"title": {"text": title}}})
