"""How every command prints: no letter from a file or a name that commands a terminal."""

import sys

import typer

from course.base.streams import printable


def echo(text: str, err: bool = False) -> None:
    """Print `text` and a newline, to stderr if `err`. Bold and dim of a table stay if a terminal shows them."""
    styles = not err and sys.stdout is not None and sys.stdout.isatty()
    typer.echo(printable(text, styles), err=err)
