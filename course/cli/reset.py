"""`course reset LAB`: a pristine copy of a lab, once the learner's own has been put aside."""

from datetime import datetime
from typing import Annotated

import typer

from course.cli.folders import HandedOut, Mine


def reset(
    lab: Annotated[str, typer.Argument(help="Its number or the name of its file: 03, 03_littles_law.ipynb.")],
    to: Mine = None,
    handed_out: HandedOut = None,
    progress: Annotated[
        bool, typer.Option("--progress", help="Forget predictions, answers and quiz of this lab too; a copy is kept.")
    ] = False,
) -> None:
    """Start a lab again: your copy is renamed, never deleted, and a pristine one takes its place."""
    from course.desk import copies

    labs, mine = copies.folders(handed_out, to)
    name = copies.find(labs, lab)
    now = datetime.now()
    fresh, aside, remarks = copies.reset(labs, mine, name, now)
    if not fresh:
        typer.echo(f"{mine / name} is as it was handed out: nothing to reset.")
    else:
        typer.echo(f"A fresh copy: {mine / name}")
    if aside is not None:
        typer.echo(f"Yours is kept as: {aside}")
        typer.echo("Where it is open in JupyterLab, close its tab without saving before you open the fresh one.")
    for remark in remarks:
        typer.echo(f"note: {remark}", err=True)
    _progress(name[:2], now if progress else None)


def _progress(number: str, forget: datetime | None) -> None:
    from course.exercises.lab import done_so_far, in_words, load
    from course.exercises.progress import Progress

    stored = Progress()
    if forget is not None:
        kept = stored.forget(number, f"{forget:%Y-%m-%d_%H-%M-%S}")
        typer.echo(
            f"There is no progress of lab {number} to forget."
            if kept is None
            else f"The progress of lab {number} is forgotten. A copy is kept as: {kept}"
        )
    else:
        try:
            spec = load(number)
        except ValueError:  # a notebook without exercises
            return
        finished = done_so_far(spec, stored)
        if any(finished.values()):
            typer.echo(
                f"Your progress stays: {in_words(spec, finished)}. `course reset {number} --progress` forgets it."
            )
    for notice in stored.notices:
        typer.echo(f"note: {notice}", err=True)
