"""What a learner has done of a lab, counted from the stored progress. Imports neither widgets nor NumPy."""

from __future__ import annotations

from typing import Any

from course.exercises.progress import Progress

WORDS = {"predictions": "predictions", "tasks": "tasks", "exercises": "exercises", "quiz": "quiz questions"}
"""The parts of a lab in their order, and how they are called in a sentence."""
TASK_STATES = ("done", "shown")


def done_so_far(spec: Any, progress: Progress) -> dict[str, list[str]]:
    """The ids of what is done, under the names of WORDS; a task that was shown counts as done with.

    spec: a LabSpec, or anything else with `number` and a sequence of items with an `id` for each part.
    """
    stored = progress.lab(spec.number)
    return {
        part: [item.id for item in getattr(spec, part, ()) if _is_done(part, stored.get(part, {}).get(item.id))]
        for part in WORDS
    }


def in_words(spec: Any, finished: dict[str, list[str]]) -> str:
    """What `done_so_far` found as "1 of 3 predictions, 0 of 4 exercises", without parts that the lab lacks."""
    counts = ((len(ids), len(getattr(spec, part, ())), WORDS[part]) for part, ids in finished.items())
    return ", ".join(f"{done} of {all_} {word}" for done, all_, word in counts if all_)


def attempted(number: str, progress: Progress) -> bool:
    """Whether an answer to an exercise of the lab has been checked, right or wrong."""
    return any(isinstance(entry, dict) for entry in progress.lab(number)["exercises"].values())


def exercise_done(entry: Any) -> bool:
    """Whether what is stored for an exercise says that it was solved."""
    return isinstance(entry, dict) and entry.get("done") is True


def task_state(entry: Any) -> str:
    """What is stored for a task: "done", "shown", or "" for anything else."""
    state = entry.get("state") if isinstance(entry, dict) else None
    return state if state in TASK_STATES else ""


def answers(entry: Any) -> list[dict[str, str]]:
    """A stored list of answers; anything of another shape counts as no answer."""
    if not isinstance(entry, list):
        return []
    return [a for a in entry if isinstance(a, dict) and isinstance(a.get("answer"), str)]


def drawn(entry: Any) -> bool:
    """Whether what is stored for a prediction is a curve that was drawn."""
    return isinstance(entry, dict) and isinstance(entry.get("drawings"), list) and bool(entry["drawings"])


def _is_done(part: str, entry: Any) -> bool:
    if part == "exercises":
        return exercise_done(entry)
    return bool(task_state(entry) if part == "tasks" else answers(entry) or (part == "predictions" and drawn(entry)))
