"""The explorers of lab 03, each one line in the notebook."""

from course.exercises import TaskRecord
from course.explore import Choice, Explorer, Slider
from course.lessons.lab03 import figures, live_words, one_engine, tasks

__all__ = ["law_in_a_window", "law_on_live_words", "under_load"]


def under_load() -> Explorer:
    """One engine at one load, with theory for Poisson arrivals beside it."""
    return Explorer(
        one_engine.under_load,
        controls=[
            Slider("rate", "Arrival rate", 2.0, 30.0, 0.5, 10.0, unit="requests/s"),
            Slider("arrival_cv", "Spread of the gaps (CV)", 0.0, 5.0, 0.5, 1.0),
            Choice("max_num_seqs", "Slots (max_num_seqs)", [16, 32, 64, 128], 32),
            Choice("kind", "Requests", [("drawn", "drawn"), ("Azure-style trace", "trace")], "drawn"),
        ],
        figure=figures.latency_against_load,
        summary=one_engine.comparison,
        title="One engine under load",
        badge=one_engine.STEP.badge,
        tasks=tasks.LOAD,
        record=TaskRecord("03"),
    )


def law_in_a_window() -> Explorer:
    """The number in the system over time, and Little's law inside a window."""
    return Explorer(
        one_engine.window,
        controls=[
            Slider("rate", "Arrival rate", 4.0, 17.0, 1.0, 14.0, unit="requests/s"),
            Slider("arrival_cv", "Spread of the gaps (CV)", 0.0, 5.0, 0.5, 1.0),
            Slider("start", "Window starts at", 0, 80, 5, 70, unit="s"),
            Slider("length", "Window length", 1, 60, 1, 10, unit="s"),
        ],
        figure=figures.number_over_time,
        summary=one_engine.window_rows,
        title="Little's law in a window",
        badge=one_engine.STEP.badge,
        tasks=tasks.LAW,
        record=TaskRecord("03"),
    )


def law_on_live_words() -> Explorer:
    """The small language model answers on the machine at hand with every move, beside the recording."""
    return live_words.explorer()
