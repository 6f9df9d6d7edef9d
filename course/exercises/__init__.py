"""Exercises, predictions and quizzes: what a lab asks, how an answer is judged, and where progress is kept.

A lab's own questions live in `course/lessons/labNN/asks.yaml`; a notebook only names them by their ids:

    lab = Lab("03")
    lab.predict("p99")
    lab.check("little", answer)
    lab.recap("p99")
    lab.quiz()
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from course.exercises.game_record import GameRecord
    from course.exercises.lab import Lab
    from course.exercises.lesson import available, load
    from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction, Question, Ticket
    from course.exercises.task_record import TaskRecord, tasks_of

__all__ = [
    "Exercise", "GameRecord", "Lab", "LabSpec", "Mistake", "Objective", "Prediction", "Question", "TaskRecord",
    "Ticket", "available", "load", "tasks_of",
]  # fmt: skip


def __getattr__(name: str) -> "Any":
    """Fetched at first use (PEP 562): `course doctor` looks at the progress even if IPython or NumPy may be broken."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = {
        "GameRecord": "game_record",
        "Lab": "lab",
        "available": "lesson",
        "load": "lesson",
        "TaskRecord": "task_record",
        "tasks_of": "task_record",
    }.get(name, "spec")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
