"""What an explorer says in words: its table as text and as HTML, its warnings, its failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from course.explore.controls import show

Rows = tuple[tuple[str, ...], ...]


NOTHING, EARLIER = "-", " (earlier)"
"""A cell that nothing has filled yet, and what stands behind one that was filled before the kernel started."""


def rows_of(summary: Iterable[Sequence[Any]]) -> Rows:
    """Return the summary as rows of texts of one length.

    A row is (label, value) or (label, value, value, ...); if the first label is empty that row heads the columns.

    Raises ValueError: a row without a value, or rows of different lengths.
    """
    rows = tuple(tuple(show(part) for part in row) for row in summary)
    lengths = {len(row) for row in rows}
    if len(lengths) > 1 or (lengths and min(lengths) < 2):
        raise ValueError(f"the rows of a summary have {sorted(lengths)} parts: give each a label and as many values")
    return rows


def with_earlier(rows: Rows, kept: Any) -> Rows:
    """Return the rows with the cells of kept ones, marked, where they have NOTHING; unless those have another shape."""
    if not isinstance(kept, list) or len(kept) != len(rows):
        return rows

    def filled(row: tuple[str, ...], old: Any) -> tuple[str, ...]:
        if not isinstance(old, list) or len(old) != len(row) or old[0] != row[0]:
            return row
        pairs = zip(row, old, strict=True)
        return tuple(
            f"{was}{EARLIER}" if cell == NOTHING and isinstance(was, str) and was != NOTHING else cell
            for cell, was in pairs
        )

    return tuple(filled(row, old) for row, old in zip(rows, kept, strict=True))


def text_table(rows: Rows, indent: str = "") -> str:
    """Return the rows as aligned text, labels to the left and values to the right."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for label, *values in rows:
        cells = [label.ljust(widths[0])] + [v.rjust(w) for v, w in zip(values, widths[1:], strict=True)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def html_tables(rows: Rows, caption: str, before: Rows | None, blocks: int) -> str:
    """Return the rows as so many tables side by side, each with the heads."""
    if blocks < 2:
        return html_table(rows, caption, before)
    heads, body = (rows[:1], rows[1:]) if rows and not rows[0][0] else ((), rows)
    size = -(-len(body) // blocks)
    parts = [heads + body[start : start + size] for start in range(0, len(body), size)]
    return f'<div class="course-blocks">{"".join(html_table(part, caption, before) for part in parts)}</div>'


def html_table(rows: Rows, caption: str, before: Rows | None = None) -> str:
    """Return the rows as an HTML table.

    before: the rows of the setting before, () for none yet; they stand pale in a column of their own behind the first
    value, or, if a row has three values or more, within each cell that has changed. None: there is no such column.

    Roles are spelled out because a table that CSS lays out otherwise loses them in some browsers.
    """
    if not rows:
        return ""
    old = {row[0]: row[1:] for row in before or ()}
    heads, body = (rows[0], rows[1:]) if not rows[0][0] else (None, rows)
    column = before is not None and len(rows[0]) <= 3
    if heads is None and column:
        heads = ("", "now", *([""] * (len(rows[0]) - 2)))
    parts = [f'<table role="table" class="course-grid" aria-label="{escape(caption)}">']
    if heads:
        names = [f'<th role="columnheader" scope="col">{escape(text)}</th>' for text in heads]
        if column:
            names.insert(2, '<th role="columnheader" scope="col" class="course-before">before</th>')
        parts.append(f'<thead role="rowgroup"><tr role="row">{"".join(names)}</tr></thead>')
    parts.append('<tbody role="rowgroup">')
    for label, *values in body:
        was = old.get(label, ())
        cells = [f'<td role="cell">{escape(value)}</td>' for value in values]
        if column:
            cells.insert(1, f'<td role="cell" class="course-before">{escape(was[0]) if was else ""}</td>')
        elif before is not None and len(was) == len(values):
            cells = [
                f'<td role="cell">{escape(value)}'
                + (f'<span class="course-before"> was {escape(short(w, value))}</span>' if w != value else "")
                + "</td>"
                for value, w in zip(values, was, strict=True)
            ]
        parts.append(f'<tr role="row"><th role="rowheader" scope="row">{escape(label)}</th>{"".join(cells)}</tr>')
    parts.append("</tbody></table>")
    return "".join(parts)


def short(old: str, new: str) -> str:
    """Return the old value without its unit if the new one has the same, so that both fit where one did."""
    number, _, unit = old.partition(" ")
    return number if unit and unit == new.partition(" ")[2] else old


def failure(error: BaseException) -> str:
    """Return a sentence for a run that failed; a ValueError of the course already is one."""
    why = str(error).strip()
    if isinstance(error, ValueError) and why:
        knob = "_" in why.split()[0]  # the name of a setting keeps its spelling
        return (why if knob else why[0].upper() + why[1:]) + ("" if why.endswith((".", "?")) else ".")
    return f"This setting failed with {type(error).__name__}{': ' + why if why else ''}. Move back, or press Reset."


def warnings_of(result: Any) -> tuple[str, ...]:
    """Collect the warnings of a result: of itself, or of the runs in a mapping or a sequence that it is.

    A sentence that several runs of a mapping share is given once, with all their keys before it.
    """
    own = result.get("warnings") if isinstance(result, Mapping) else getattr(result, "warnings", None)
    keys_of: dict[str, list[str]] = {str(text): [] for text in ([own] if isinstance(own, str) else own or ())}
    inner: Iterable[tuple[str, Any]] = ()
    if isinstance(result, Mapping):
        inner = ((str(key), value) for key, value in result.items() if key != "warnings")
    elif isinstance(result, list | tuple):
        inner = (("", value) for value in result)
    for key, value in inner:
        nested = getattr(value, "warnings", None)
        for text in nested if isinstance(nested, list | tuple) else ():
            keys = keys_of.setdefault(str(text), [])
            if key and key not in keys:
                keys.append(key)
    return tuple((f"{', '.join(keys)}: " if keys else "") + text for text, keys in keys_of.items())


@dataclass(frozen=True)
class Table:
    """Rows of texts, the first of them the heads of the columns: as text for everyone, as HTML in a browser.

    End a cell of a notebook with one to show it.
    """

    rows: Rows
    caption: str

    def __repr__(self) -> str:
        return f"{self.caption}\n{text_table(self.rows, indent='  ')}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """As text, and as HTML with the caption in sight; to a screen reader the table itself says it."""
        caption = f'<div aria-hidden="true" style="font-size:14px">{escape(self.caption)}</div>'
        return {"text/plain": repr(self), "text/html": caption + html_table(self.rows, self.caption)}


def table(rows: Iterable[Sequence[Any]], caption: str) -> Table:
    """Return a table; ValueError if its rows differ in length."""
    return Table(rows_of(rows), caption)
