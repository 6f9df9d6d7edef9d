"""What the notebook of lab 00 calls by name: its explorers, each one line there."""

from typing import Any

from course.exercises import tasks_of
from course.explore import Choice, Explorer, Slider, Toggle
from course.explore.live import LiveExplorer
from course.lessons.lab00 import answer, figures, tasks, together, traffic

__all__ = ["a_step_together", "one_answer", "requests_and_waits"]


def one_answer() -> Explorer:
    """The small language model answers, one step with each move; its steps are timed on this machine."""
    shared: dict[str, Any] = {
        "controls": [
            Choice("question", "Question", answer.NAMED, answer.QUESTIONS[0]),
            Slider("step", "Step", 1, answer.MOST_STEPS, 1, 1),
        ],
        "figure": figures.answer,
        "summary": answer.rows,
        "title": "One answer, step by step",
        "badge": "measured: the small language model, here",
    }
    return LiveExplorer(Explorer(answer.upto, **shared), answer.timed, **shared)


def a_step_together() -> Explorer:
    """A step for one to sixteen sequences, recorded on an H100 and timed on this machine."""
    shared: dict[str, Any] = {
        "controls": [Slider("sequences", "Sequences in the step", 1, together.MOST, 1, 1)],
        "figure": figures.step,
        "summary": together.rows,
        "title": "One step for several sequences",
        "badge": "recorded: H100, Llama-3.1-8B, 512 tokens each",
        **tasks_of("00", "a_step_together"),
    }
    return LiveExplorer(Explorer(together.step, **shared), together.step_here_too, **shared)


def requests_and_waits() -> Explorer:
    """When requests come, and how long people wait for their first token."""
    return Explorer(
        traffic.traffic,
        controls=[
            Slider("rate", "Rate", 2.0, 16.0, 1.0, tasks.START["rate"], unit="requests/s"),
            Toggle("log", "Log axis", bool(tasks.START["log"])),
            Slider("arrival_cv", "Spread of the gaps (CV)", 0.0, 5.0, 0.5, tasks.START["arrival_cv"]),
        ],
        figure=figures.traffic,
        summary=traffic.rows,
        title="Requests and waits",
        badge=together.STEP.simulated,
        **tasks_of("00", "requests_and_waits"),
    )
