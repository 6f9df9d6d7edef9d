"""The two folders that several commands ask for."""

from typing import Annotated

import typer

Mine = Annotated[str | None, typer.Option(metavar="FOLDER", help="Your copies.  [default: MY_LABS, or my-labs]")]
HandedOut = Annotated[
    str | None, typer.Option("--labs", metavar="FOLDER", help="The handed-out labs.  [default: labs]")
]
