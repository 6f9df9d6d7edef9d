"""docs/symptoms.md: from what a log shows to the lab, written from the table of limits that `course look` names."""

from typing import Any

from course.desk.places import PACKAGE
from course.exercises import minutes
from course.lessons import available
from course.look.limits import table

FILE = PACKAGE.parent / "docs" / "symptoms.md"
HEAD = """# From symptom to lab

What logs show, why, what to measure next, and the lab that teaches it. `course look FILE` finds these limits in a log,
in some periodic lines, in a metrics page or in a printed benchmark result, and says when it cannot tell. Flags are
vLLM's, then SGLang's. `make notebooks` writes this page from `course/data/limits.yaml`.

| limit | symptom | cause | next | flag | lab |
|---|---|---|---|---|---|
"""


def text() -> str:
    """The page."""
    return HEAD + "".join(_row(name, one) for name, one in table().items())


def _row(name: str, one: dict[str, Any]) -> str:
    flags = one["vLLM"] if one["vLLM"] == one["SGLang"] else f"{one['vLLM']}; {one['SGLang']}"
    lab = "none teaches it"
    if one["lab"]:
        counted = minutes.stored(one["lab"]) if one["lab"] in available() else None
        lab = f"{one['lab']}, {counted} minutes" if counted else one["lab"]
    return f"| `{name}` | {one['symptom']} | {one['cause']} | {one['next']} | {flags} | {lab} |\n"
