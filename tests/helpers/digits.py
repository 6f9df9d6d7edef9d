"""Digits in the texts of a lab that are no hole: which of them are names, formulas or sums, and which are left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jupytext

from course.exercises import holes, nodes
from course.exercises.lesson import ASKS, Lesson

TEXTS = {
    "title",
    "needs",
    "ask",
    "draw",
    "why",
    "read",
    "find",
    "answer",
    "miss",
    "hint",
    "plain",
    "worked",
    "story",
    "setting",
}
KEYED = {"options", "objectives", "mistakes", "slips", "beliefs"}
"""Fields whose values are texts; of the first two the keys as well."""
VALUES = {"show", "start", "solution", "probes"}
"""Fields without texts."""
LEFT_OUT = re.compile(
    r"""
    ```.*?``` | `[^`\n]*` | \$\$.*?\$\$ | \$[^$\n]+\$         # code and formulas
    | \{\{.*?\}\} | \{[^{}]*\}                                # holes, and what a task fills in
    | ^\#+[ ].*?$ | ^\s*\d+\.[ ] | \*\*\d+\.\*\*              # headings, numbers of a list
    | arXiv:[\d.]+ | \b[A-Za-z]+\d*[.-]\d[\w.-]*\b | --[\w-]+ # Llama-3.1-8B, Qwen2.5-7B, --chunk-2
    | \b[A-Za-z_]+\d\w*                                       # H100, fp8, p99, V1
    | \b[A-Za-z-]*[A-Z][\w-]*[ ]\d+(?:\.\d+){1,2}\b             # vLLM 0.11.0
    | \b(?:19|20)\d\d\b                                       # a year: thousands have a comma
    | \b(?:CACM|Research)[ ]\d+(?:\(\d+\))?                    # volume and issue of a journal
    | \bRTX[ ]\d+ | \b10[⁰¹²³⁴-⁹]+                             # a card, a power
    | \b1/\w+                                                 # a reciprocal
    | \b(?:[Ll]abs?|[Ee]xercise)[ ]\d+(?:[ ]and[ ]\d+)?         # which lab, which exercise
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
WORKED = re.compile(r"^\*\*Worked example\.\*\*.*?(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
"""A paragraph whose numbers are its own; its sums add up."""
NUMBER = r"\d[\d,]*(?:\.\d+)?"
SUM = re.compile(rf"({NUMBER}(?: [-x/+] {NUMBER})+) = ({NUMBER})")
DIGITS = re.compile(rf"(?<![\w.,]){NUMBER}")
NAMES_NOTHING = {0.0, 1.0}
"""None and one: a spread of 0, one step."""


def of_notebook(path: Path) -> list[str]:
    """Return the text cells of a source, their holes unfilled."""
    cells = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent").cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def of_asks(lesson: Lesson) -> list[str]:
    """Return every text of a lab's questions, its holes unfilled."""
    path = lesson.folder / ASKS
    return list(_texts(nodes.read(path.read_text(encoding="utf-8"), ASKS)))


def typed(text: str) -> list[float]:
    """Return the numbers of a text that are typed in. Raises AssertionError: a sum that does not add up."""
    check_sums(text)
    rest = SUM.sub(" ", LEFT_OUT.sub(" ", WORKED.sub("", text)))
    return [float(found.replace(",", "")) for found in DIGITS.findall(rest)]


def check_sums(text: str) -> None:
    """Raise AssertionError for a sum in the text that does not add up to the last digit shown."""
    for sum_, result in SUM.findall(LEFT_OUT.sub(" ", text)):
        value = eval(re.sub(",", "", sum_).replace("x", "*"))  # digits and four signs
        shown = result.replace(",", "")
        slack = 0.5 * 10.0 ** -len(shown.partition(".")[2])
        assert abs(value - float(shown)) <= slack * (1 + 1e-9), f"{sum_} is {value:g}, not {result}"


def asked_for(lesson: Lesson, notebooks: list[Path]) -> set[str]:
    """Return the names of the facts that the lab's texts and answers use."""
    raw = (lesson.folder / ASKS).read_text(encoding="utf-8")
    used = {name for text in [*of_asks(lesson), *(t for p in notebooks for t in of_notebook(p))]
            for name in holes.names(text)}  # fmt: skip
    scalars = list(nodes.scalars(nodes.read(raw, ASKS).raw))
    plain = {scalar.value for scalar in scalars if scalar.style is None}
    return used | {name for scalar in scalars for name in holes.names(scalar.value)} | (plain & set(lesson.facts))


def _texts(node: nodes.Node, field: str = "") -> Iterator[str]:
    if field in KEYED:
        for key, value in node.pairs():
            if field in ("options", "objectives"):
                yield key.text()
            if value.is_mapping:
                yield from (inner.text() for inner in value.entries().values() if field == "options")
            elif not nodes.as_number(value.text()):
                yield value.text()
    elif node.is_mapping:
        for key, value in node.pairs():
            if key.text() not in VALUES:
                yield from _texts(value, key.text())
    elif field in TEXTS and not node.is_list:
        yield node.text()
