"""How every command prints: no letter from a file or a name that commands a terminal; tables, numbers, JSON."""

import io
import json
import sys
from math import isfinite
from pathlib import Path
from typing import Any

import typer

from course.base.streams import printable


def echo(text: str, err: bool = False) -> None:
    """Print `text` and a newline, to stderr if `err`. Bold and dim of a table stay if a terminal shows them."""
    styles = not err and sys.stdout is not None and sys.stdout.isatty()
    typer.echo(printable(text, styles), err=err)


def json_text(content: Any) -> str:
    """Indented JSON; what is no number (NaN, infinity) is null."""
    return json.dumps(_finite(content), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def one_line(name: str) -> str:
    """A name from a file in one line: what no terminal prints is shown as Python writes it."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)


def digits(value: float) -> str:
    """Four digits that count, and all of a whole number; a dash for no number."""
    if not isfinite(value):
        return "-"
    if float(value).is_integer() or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.2e}"


def new_table(*heads: str) -> Any:
    """A rich table with these columns to the left."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in heads:
        table.add_column(head, style="dim" if head == "unit" else None)
    return table


def tables_text(width: int, *parts: Any) -> str:
    """Lines of text and rich tables below each other; `width` letters wide unless a terminal has a width of its own.

    However narrow that is, a table keeps its least width: a line that the terminal breaks can still be read, a number
    that is cut off cannot.
    """
    from rich.console import Console
    from rich.measure import Measurement
    from rich.text import Text

    terminal = sys.stdout.isatty()
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=None if terminal else width, highlight=False)
    options = console.options.update(width=max(width, console.width))
    tables = [part for part in parts if not isinstance(part, str)]
    console.width = max(console.width, *(Measurement.get(console, options, table).minimum for table in tables))
    for part in parts:
        console.print(Text(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def page_of(figure: Any, name: str) -> bytes:
    """An HTML page with one figure, which needs no network."""
    page = figure.to_html(include_plotlyjs=True, full_html=True, div_id=name, config={"displaylogo": False})
    return page.encode()


def write_over(path: Path, content: bytes, ours: bytes, source: Path | None = None) -> None:
    """Write a file; one that exists is replaced only if it is an earlier one of the same kind: if `ours` is in it.

    source: a file that must never be replaced. Raises ValueError where that would be, or there is no such folder.
    """
    from course.base import files

    if files.ordinary(path):
        with path.open("rb") as file:
            old = file.read(2**23)
        if ours not in old or (source is not None and path.resolve() == source.resolve()):
            raise ValueError(f"{path} exists and is something else: choose another name, or move it away first")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} to write {path.name} into")
    files.replace(path, content)
