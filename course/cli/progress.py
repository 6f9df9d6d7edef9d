"""`course progress`: what a learner hands to whoever teaches."""

from pathlib import Path
from typing import Annotated

import typer

from course.cli.output import echo, json_text


def progress(
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it into this new file instead of printing it.")
    ] = None,
) -> None:
    """What you have done in the labs, as numbers: no names, no times, nothing that you have typed.

    \b
    course progress --export mine.json      for your instructor, who adds up a class with `course class`
    course labs                             the same in words, for yourself
    """
    from importlib.metadata import version

    import course.lessons  # noqa: F401  # each lab registers itself
    from course.base import files
    from course.exercises.export import export as made
    from course.exercises.progress import Progress

    own = Progress()
    content = made(own, version("llm-batching-course"))
    text = json_text(content)
    if export is None:
        echo(text)
    else:
        try:
            files.write_new(export, (text + "\n").encode())
        except FileExistsError:
            raise ValueError(f"{export} is there already: give the name of a new file") from None
        echo(f"{export}: {len(content['labs'])} labs, without your name.")
    for notice in own.notices:
        echo(f"note: {notice}", err=True)
