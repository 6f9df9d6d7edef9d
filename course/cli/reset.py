"""`course reset LAB`: a pristine copy of a lab, once the learner's own has been put aside."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from course.cli.common import HandedOut, Mine
from course.cli.output import echo

if TYPE_CHECKING:
    from course.exercises.progress import Progress


def reset(
    lab: Annotated[str, typer.Argument(help="The lab's number or the name of its file: 03, 03_littles_law.ipynb.")],
    to: Mine = None,
    handed_out: HandedOut = None,
    progress: Annotated[
        bool, typer.Option("--progress", help="Forget predictions, answers and quiz of this lab too; a copy is kept.")
    ] = False,
) -> None:
    """Start a lab again: your copy is renamed, never deleted, and a pristine one takes its place."""
    from course.desk import copies
    from course.exercises.progress import Progress

    labs, mine = copies.folders(handed_out, to)
    name = copies.find(labs, lab)
    number, now, stored = name[:2], datetime.now(), Progress()
    forgotten: list[Path | None] = []

    def forget() -> None:
        if progress:
            forgotten.append(stored.forget(number, f"{now:%Y-%m-%d_%H-%M-%S}"))

    fresh, aside, remarks = copies.reset(labs, mine, name, now, forget)
    if not fresh:
        echo(f"{mine / name} is as it was handed out: nothing to reset.")
    else:
        echo(f"A fresh copy: {mine / name}")
    if aside is not None:
        echo(f"Yours is kept as: {aside}")
        echo("If it is open in JupyterLab, close its tab without saving before you open the fresh one.")
    for copy in forgotten:
        echo(
            f"There is no progress of lab {number} to forget."
            if copy is None
            else f"The progress of lab {number} is forgotten. A copy is kept as: {copy}"
        )
    if not progress:
        _say_what_stays(number, stored)
    for remark in (*remarks, *stored.notices):
        echo(f"note: {remark}", err=True)


def _say_what_stays(number: str, stored: "Progress") -> None:
    from course.desk.catalogue import catalogue
    from course.exercises.standing import done_so_far, in_words

    spec = catalogue().get(number)
    finished = done_so_far(spec, stored) if spec else {}
    if any(finished.values()):
        echo(f"Your progress is kept: {in_words(spec, finished)}. `course reset {number} --progress` forgets it.")
