"""`course lab`: the labs in JupyterLab, on copies of the learner's own."""

from typing import Annotated

import typer

from course.cli.common import HandedOut, Mine


def lab(
    options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTIONS]", help="For JupyterLab: -- --no-browser --port=9000")
    ] = None,
    to: Mine = None,
    handed_out: HandedOut = None,
) -> None:
    """Copy the labs that you lack into my-labs/ and open JupyterLab there.

    Copies that you have changed are never overwritten. Ctrl-C stops it.

    \b
    course lab
    course lab --to ~/batching -- --no-browser --ip=0.0.0.0
    """
    from course.desk import workspace

    folders = [f"--{name}={folder}" for name, folder in (("labs", handed_out), ("to", to)) if folder]
    raise typer.Exit(workspace.main([*folders, *(options or ())], name="course lab"))
