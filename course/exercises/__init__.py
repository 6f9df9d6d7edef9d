"""Exercises, predictions and quizzes: what a lab asks, how an answer is judged, and where progress is kept.

A lab's own questions live in `course/lessons/labNN/exercises.py` as `LAB = LabSpec(...)`; a notebook only names them
by their ids:

    lab = Lab("03")
    lab.predict("p99")
    lab.check("little", answer)
    lab.recap("p99")
    lab.quiz()
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from course.exercises.lab import Lab, available, load
    from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction, Question, Ticket
    from course.exercises.task_record import TaskRecord

__all__ = [
    "Exercise", "Lab", "LabSpec", "Mistake", "Objective", "Prediction", "Question", "TaskRecord", "Ticket",
    "available", "load",
]  # fmt: skip


def __getattr__(name: str) -> "Any":
    """Fetched at first use (PEP 562): `course doctor` looks at the progress where IPython or NumPy may be broken."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = {"Lab": "lab", "available": "lab", "load": "lab", "TaskRecord": "task_record"}.get(name, "spec")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
