"""`course doctor`: will the labs run here? One line an item, and a short code for the instructor."""

from typing import Annotated

import typer

from course.cli.common import HandedOut, Mine
from course.cli.output import echo, json_text


def doctor(
    to: Mine = None,
    handed_out: HandedOut = None,
    explain: Annotated[
        str | None, typer.Option(help="Check nothing here; say what a code means, or several separated by commas.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of lines.")] = False,
) -> None:
    """Check that the labs will run: packages, widgets, folders, compiler, GPU, and a decode step that is right.

    Changes nothing and needs no network. A note stops no lab; with a problem the exit status is 1. The code in the last
    line tells your instructor the same.
    """
    from course.desk.doctor import ITEMS, examine, in_code

    if explain is not None:
        _explain(explain, as_json)
        return
    echo(f"checking {len(ITEMS)} items; starting a kernel takes longest, up to a minute ...", err=True)
    width = max(map(len, ITEMS))
    answers = {}
    for name, answer in examine(handed_out, to):
        answers[name] = answer
        if not as_json:
            do = f". To do: {answer.do}" if answer.do else ""
            echo(f"{answer.status:<7}  {name:<{width}}  {' '.join(answer.says.split())}{do}")
    code = in_code([answer.status for answer in answers.values()])
    problems = [name for name, answer in answers.items() if answer.status == "problem"]
    if as_json:
        items = [
            {"name": name, "status": answer.status, "says": answer.says, "do": answer.do}
            for name, answer in answers.items()
        ]
        echo(json_text({"code": code, "ok": not problems, "items": items}))
    else:
        verdict = f"Look at: {', '.join(problems)}." if problems else "The labs will run."
        echo(f"{verdict} Code for the instructor: {code}")
    if problems:
        raise typer.Exit(1)


def _explain(text: str, as_json: bool) -> None:
    from course.desk.doctor import statuses_of

    codes = [part for part in text.replace(",", " ").split() if part] or [text]
    by_code = {code: statuses_of(code) for code in codes}
    if as_json:
        echo(json_text(by_code))
        return
    for code, statuses in by_code.items():
        findings = [
            f"{status}: {', '.join(name for name, one in statuses.items() if one == status)}"
            for status in ("problem", "note")
            if status in statuses.values()
        ]
        echo(f"{code}  {'; '.join(findings) or 'all ok'}")
