"""How a prediction that is drawn is asked, kept and come back to.

It is stored among the predictions, as {"drawings": [the first, the last], "belief": ..., "close": ..., "at": ...}; the
prediction of a chosen option is a list of answers.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from course.base.answers import wanted as answers_wanted
from course.exercises.cards import Card
from course.exercises.curve import Drawing
from course.exercises.progress import Progress
from course.explore.sketch_view import SketchForm


def stored(drawing: Drawing, progress: Progress, number: str) -> list[tuple[float, ...]]:
    """The first and the last drawing; what has another shape, such as a chosen option, counts as none."""
    entry = progress.lab(number)["predictions"].get(drawing.id)
    raw = entry.get("drawings") if isinstance(entry, dict) else None
    found = [drawing.sketch.cleaned(one) for one in raw] if isinstance(raw, list) else []
    return [one for one in found if one is not None][:2]


def keep(drawing: Drawing, progress: Progress, number: str, drawn: tuple[float, ...]) -> None:
    """Store a drawing, and what it shows. The first one stays, and so do options chosen in an earlier version."""
    first, judged = stored(drawing, progress, number)[:1], drawing.sketch.judge(drawn)

    def edit(entry: Any) -> dict[str, Any]:
        before = entry if isinstance(entry, dict) else {"answers": entry} if isinstance(entry, list) else {}
        return {
            **before,
            "drawings": [list(one) for one in (*first, drawn)],
            "belief": judged.belief,
            "close": judged.close,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    progress.change(number, "predictions", drawing.id, edit)


def too_early(drawing: Drawing, progress: Progress, number: str) -> str:
    """Why it cannot be committed yet; "" if it can, or was."""
    entries = progress.lab(number)["predictions"]
    if not drawing.after or entries.get(drawing.after) or stored(drawing, progress, number):
        return ""
    return "Commit the prediction above first: this curve shows its answer."


def ask(drawing: Drawing, progress: Progress, number: str) -> SketchForm:
    """The form in which it is drawn."""

    def commit(drawn: tuple[float, ...]) -> None:
        if early := too_early(drawing, progress, number):
            raise ValueError(early.rstrip("."))
        keep(drawing, progress, number, drawn)

    before, call = stored(drawing, progress, number), f'lab.predict("{drawing.id}", [...])'
    return SketchForm(drawing.sketch, drawing.question, before, commit, call)


def from_python(drawing: Drawing, progress: Progress, number: str, values: Any) -> Card:
    """Commit a drawing that was given as a list of values."""
    head = f"Draw: {drawing.question}"
    if early := too_early(drawing, progress, number):
        return Card(head, [early])
    try:
        said = ask(drawing, progress, number).commit(list(values) if isinstance(values, tuple | list) else values)
    except ValueError as error:
        return Card(head, [f"{error}, for {_columns(drawing)}."])
    return Card(head, [said], kept="Your drawing is stored.")


def recap(drawing: Drawing, progress: Progress, number: str) -> Card:
    """What was drawn beside what the lab showed."""
    head, given = f"Drawn: {drawing.question}", stored(drawing, progress, number)
    if not given and not answers_wanted():
        return Card(head, ["Nothing is drawn yet: draw it above."])
    lines = [f"You drew {drawing.in_words(given[0])}." if given else "You drew nothing here."]
    if len(given) > 1 and given[1] != given[0]:
        lines.append(f"Later you drew {drawing.in_words(given[1])}.")
    kept = Card(head, lines).text()
    said = drawing.said(given[0]) if given else drawing.why
    return Card(head, [*lines, f"The lab showed {drawing.in_words(drawing.sketch.true)}.", said], kept=kept)


def _columns(drawing: Drawing) -> str:
    return ", ".join(drawing.sketch.place(x) for x in drawing.sketch.columns)
