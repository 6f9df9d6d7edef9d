"""`course labs`: which labs there are, what the learner has done, and what the copies were made from."""

from pathlib import Path
from typing import Annotated, Any

import typer

from course.cli.common import HandedOut, Mine
from course.cli.output import echo, json_text

COPIES = {
    "none": "not copied yet",
    "pristine": "copied, not changed",
    "old": "copied, not changed; `make lab` copies the newer version",
    "yours": "yours",
    "outdated": "changed by you; the handed-out lab has changed since",
    "unreadable": "no file that can be read",
}


def labs(
    to: Mine = None,
    handed_out: HandedOut = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """List the labs: number, counted minutes, what you have done in each, and your copy of it."""
    from course.desk import copies
    from course.exercises.progress import Progress

    labs, mine = copies.folders(handed_out, to)
    contents, notes = copies.read_labs(labs)
    progress, record = Progress(), copies.Record(mine)
    rows = [_row(name, content, mine, record, progress) for name, content in contents.items()]
    notes += progress.notices
    if as_json:
        rows = [{key: value for key, value in row.items() if key != "in_words"} for row in rows]
        listing = {"labs": rows, "copies": str(mine), "progress": str(progress.path), "notes": notes}
        echo(json_text(listing))
    else:
        echo(_table(rows, mine, progress.path))
    for note in notes:
        echo(f"note: {note}", err=True)


def _row(name: str, content: bytes, mine: Path, record: Any, progress: Any) -> dict[str, Any]:
    from course.desk.catalogue import catalogue
    from course.desk.copies import state
    from course.exercises.names import is_deeper
    from course.exercises.standing import done_so_far, in_words

    row: dict[str, Any] = {"lab": name[:2], "file": name, "title": None, "minutes": None, "done": None, "in_words": ""}
    spec = catalogue().get(name[:2])
    if spec is not None and is_deeper(name):
        row |= {"title": f"{spec.title}, deeper (optional)", "minutes": spec.deeper}
    elif spec is not None:
        finished = done_so_far(spec, progress)
        row |= {"title": spec.title, "minutes": spec.minutes, "in_words": in_words(spec, finished)}
        totals = {part: len(getattr(spec, part)) for part in finished}
        row["done"] = {part: {"done": len(ids), "of": totals[part]} for part, ids in finished.items() if totals[part]}
    return row | {"copy": state(mine / name, content, record)}


def _table(rows: list[dict[str, Any]], mine: Path, progress: Path) -> str:
    lines = []
    for row in rows:
        minutes = "" if row["minutes"] is None else f", {row['minutes']} minutes"
        lines.append(f"{row['lab']}  {row['title'] or row['file']}{minutes}")
        if row["in_words"]:
            lines.append(f"    done: {row['in_words']}")
        lines.append(f"    copy: {COPIES[row['copy']]}")
    return "\n".join([*lines, "", f"Your copies: {mine}", f"Your progress: {progress}"])
