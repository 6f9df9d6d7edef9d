"""What refutes a belief, computed again: `python -m tools.misconceptions NAME` for a row of docs/misconceptions.md.

    .venv/bin/python -m tools.misconceptions [NAME...]     all of them without a name: some 40 CPU seconds
    .venv/bin/python -m tools.misconceptions --write       put what is computed into the page

It runs what the lab's texts speak of (`facts`, `keys` and curves of its lesson): simulations, and recordings where the
lab has some. Of a question with options it says which is true and why; of a curve that is drawn, the column in which
whoever believes it is farthest from the true one. A belief that the runs no longer refute ends it with a sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from course.exercises import asks
from course.exercises.curve import Drawing
from course.exercises.lesson import ASKS
from course.exercises.spec import LabSpec, Prediction
from course.lessons import available, find

PAGE = Path(__file__).parent.parent / "docs" / "misconceptions.md"
COLUMN, PLACE = "computed", 4


@cache
def asked() -> dict[str, tuple[str, str]]:
    """Lab and prediction of each belief, by its name, in the order of the labs."""
    found: dict[str, tuple[str, str]] = {}
    for number in available():
        for prediction in find(number).spec.predictions:
            names = prediction.sketch.beliefs if isinstance(prediction, Drawing) else prediction.beliefs
            for name in names:
                found.setdefault(name, (number, prediction.id))
    return {name: place for name, place in found.items() if name}


@cache
def lab(number: str) -> tuple[LabSpec, Mapping[str, Any]]:
    """What the lab asks, with its numbers computed now, and which options are true."""
    lesson = find(number)
    spec = asks.read(lesson.folder / ASKS, number, lesson.computed(), lesson.named)
    return spec, import_module(f"{lesson.package}.facts").keys()


def computed(name: str) -> str:
    """One line. Raises SystemExit for a belief that is not there, or that the runs do not refute."""
    if name not in asked():
        raise SystemExit(f"no lab answers a belief called {name!r}: docs/misconceptions.md lists them")
    number, id = asked()[name]
    spec, keys = lab(number)
    (prediction,) = (one for one in spec.predictions if one.id == id)
    line = _drawn(name, prediction) if isinstance(prediction, Drawing) else _chosen(name, prediction, keys[id])
    if line is None:
        raise SystemExit(f"lab {number} no longer refutes {name!r}: its runs say what the belief says")
    return line


def _chosen(name: str, prediction: Prediction, true: tuple[bool, ...]) -> str | None:
    place, right = prediction.beliefs.index(name), int(prediction.right)
    if true[place] or not true[right]:
        return None
    return f"{prediction.options[right].rstrip('.')}. {prediction.why}"


def _drawn(name: str, drawing: Drawing) -> str | None:
    sketch = drawing.sketch
    believed = sketch.cleaned([sketch.beliefs[name].example(x) for x in sketch.columns]) or ()
    judged = sketch.judge(believed)
    if judged.close or sketch.beliefs[name].when(sketch.true):
        return None
    there = sketch.named.format(x=sketch.columns[judged.worst])
    return f"{there}: {sketch.words(sketch.true[judged.worst])}, not {sketch.words(believed[judged.worst])}"


def written(page: str) -> str:
    """The page with what is computed in its column."""
    lines = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| belief "):
            new = COLUMN
        elif line.startswith("|---"):
            new = "---"
        elif line.startswith("| `"):
            new = computed(cells[0].strip("`"))
        else:
            lines.append(line)
            continue
        cells[PLACE : PLACE + len(cells) - PLACE - 1] = [new]
        lines.append("|" + "|".join(cells) + "|" if new == "---" else f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    """Print the line of each belief, or write them into the page."""
    if names == ["--write"]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    for name in names or asked():
        print(f"{name}: {computed(name)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
