"""`course look`: what a pasted log, some periodic lines or a printed result shows."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from course.cli.output import echo

if TYPE_CHECKING:
    from course.look import Answer

MOST_BYTES = 2**27


def look(
    files: Annotated[list[Path] | None, typer.Argument(help="Text files; standard input if none is named.")] = None,
    config: Annotated[
        str | None,
        typer.Option(help="The model: a config.json, its folder, or a name; its KV cache is computed again."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="The card, whose default --max-num-seqs counts if the paste gives none.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """What an engine's log, its periodic lines, a metrics page or a printed benchmark result shows.

    The limit with its evidence, the next measurement, the flag and the lab; printed numbers computed again; what
    cannot be told.

    \b
    course look server.log --config llama-3.1-8b
    kubectl logs my-pod | course look
    """
    from course.base.textfiles import text
    from course.incidents import fitting, has_samples
    from course.look import Answer
    from course.look import look as read
    from course.models import gpus, named_or_read

    if files:
        content = "\n".join(text(one, "log", "text", MOST_BYTES) for one in files)
    else:
        content = sys.stdin.buffer.read(MOST_BYTES).decode("utf-8", "replace")
    rows = fitting(content)
    try:
        answer = read(content, named_or_read(config) if config else None, gpus.gpu(gpu) if gpu else None)
    except ValueError:
        if not rows or config or gpu:
            raise
        answer = Answer("", (), (), (), (), (0, len(content.splitlines())))
    found = {**asdict(answer), "incidents": rows}
    none = "\n\nIncidents: none of the known ones fits this page." if has_samples(content) else ""
    incidents = f"\n\n{_of_incidents(rows)}" if rows else none
    echo(json.dumps(found, indent=2, ensure_ascii=False) if as_json else f"{_as_text(answer)}{incidents}")


def _of_incidents(rows: list[dict[str, str]]) -> str:
    """The rows of `course/incidents` that the page fits."""
    form = "Incident: {incident}: {evidence}.\n  {symptom}.\n  Next: {next}.\n  Cause: {cause}.\n  Repair: {repair}."
    return "\n".join(form.format(**row) + f" Lab {row['lab']} teaches it." for row in rows)


def _as_text(answer: "Answer") -> str:
    parts = ["{:,} of {:,} lines read".format(*answer.lines) + (f", {answer.engine}." if answer.engine else ".")]
    for one in answer.limits:
        lab = f" Lab {one['lab']} teaches it." if one["lab"] else ""
        parts.append("\nLimit: {limit}: {evidence}.\n  Next: {next}.\n  Flag: {flag}.".format(**one) + lab)
    parts += ["\nComputed again:"] if answer.checks else []
    for check in answer.checks:
        why = f" ({check.why})" if check.why else ""
        parts.append(f"  {check.verdict:<9} {check.name}: printed {check.printed}, computed {check.computed}{why}")
    parts += ["\nCannot be told:"] if answer.cannot_tell else []
    parts += [f"  {one}" for one in answer.cannot_tell] + [f"note: {one}" for one in answer.notes]
    return "\n".join(parts)
