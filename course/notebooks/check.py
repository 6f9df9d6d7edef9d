"""Every fault of a source and of its two notebooks. Pure functions that return sentences; an empty list is good."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import nbformat
from nbformat import NotebookNode

from course.desk.catalogue import PRIMER
from course.exercises.holes import Fact
from course.notebooks.canonical import WIDGET_VIEW, canonical, to_bytes
from course.notebooks.source import (
    BEGIN,
    END,
    HEADINGS,
    IGNORE_TAG,
    PRIMER_HEADINGS,
    SourceError,
    code_only,
    deeper_faults,
    heading_faults,
    marker_faults,
    parse,
    solution_blocks,
)

MAX_BYTES = 300_000
MIN_COMPARED = 3
FIGURE = "application/vnd.plotly.v1+json"
DIGITS = 10
"""Sums and powers differ in the 14th digit or so from one processor to the next; figures are rounded to 6."""
ANSWER = re.compile(r"^\s*(?:Answer|The lab showed(?: as well)?): ", re.MULTILINE)
MACHINE_PATH = re.compile(r"/(?:home|root|Users|tmp|var/folders)/[\w.-]+|[A-Z]:\\+Users\\|site-packages")


def source_faults(text: str, number: str, facts: Mapping[str, Fact] | None = None) -> list[str]:
    """Faults of a source: its headings, its solution markers, empty code cells, holes that cannot be filled.

    number: "03", deeper "03d". facts: of the lab, by name.
    """
    try:
        notebook = parse(text, number, facts)
    except SourceError as error:
        return [str(error)]
    headings = PRIMER_HEADINGS if number == PRIMER else HEADINGS
    faults = deeper_faults(notebook) if number.endswith("d") else heading_faults(notebook, headings)
    for index, cell in enumerate(notebook.cells):
        faults += marker_faults(cell, index)
        if cell.cell_type == "code" and not cell.source.strip():
            faults.append(f"cell {index}: empty code cell")
    return faults


def read(raw: bytes) -> NotebookNode:
    """The notebook in `raw`. Raises ValueError, with a sentence, for anything but a valid one of nbformat 4."""
    try:
        content = json.loads(raw)
        if not isinstance(content, dict) or content.get("nbformat") != 4:
            raise ValueError("no nbformat 4 in it")
        notebook = nbformat.from_dict(content)
        nbformat.validate(notebook)
        return nbformat.reads(raw.decode(), as_version=4)
    except RecursionError as error:
        raise ValueError("not a readable notebook: its brackets are nested too deeply") from error
    except Exception as error:  # nbformat validates after it has looked at parts that may be of any shape
        why = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise ValueError(f"not a readable notebook: {why}") from error


def notebook_faults(raw: bytes) -> list[str]:
    """Faults of one stored notebook that show without running it.

    nbval does not compare a code cell without an execution count, nor one tagged to be ignored: a notebook full of
    those is green whatever it holds, so each code cell must have run and some must have an output to compare.
    """
    try:
        notebook = read(raw)
    except ValueError as error:
        return [str(error)]
    faults, compared = [], 0
    if len(raw) > MAX_BYTES:
        faults.append(
            f"{len(raw):,} bytes; at most {MAX_BYTES:,} (a figure with a large template, or too many points?)"
        )
    if "widgets" in notebook.metadata:
        faults.append("widget state is stored in the metadata")
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        if not cell.source.strip():
            faults.append(f"cell {index}: empty code cell")
        elif cell.execution_count is None:
            faults.append(f"cell {index}: never executed, so nbval would not compare it")
        compared += bool(cell.outputs) and not is_ignored(cell)
        faults += [f"cell {index}: {fault}" for output in cell.outputs for fault in output_faults(output)]
    if compared < MIN_COMPARED:
        faults.append(f"{compared} cells have an output that nbval compares; at least {MIN_COMPARED}")
    return faults


def output_faults(output: NotebookNode) -> list[str]:
    """Faults of one stored output: an error, a widget view, a path of this machine, numbers that are too exact."""
    if output.output_type == "error":
        return [f"stored error {output.ename}: {output.evalue}"]
    data = output.get("data", {"stream": output.get("text", "")})
    faults = [f"stored widget view {WIDGET_VIEW}, which JupyterLab cannot show"] if WIDGET_VIEW in data else []
    for text in data.values():
        if isinstance(text, str) and (match := MACHINE_PATH.search(text)):
            faults.append(f"the output names a path of this machine: {match[0]!r}")
    if FIGURE in data and (number := unrounded(data[FIGURE])) is not None:
        faults.append(f"the figure has the number {number!r}, which differs between processors: use round_digits")
    return faults


def unrounded(part: Any) -> float | None:
    """Return the first number of a figure with more than `DIGITS` significant digits."""
    if isinstance(part, float):
        return part if float(f"{part:.{DIGITS}g}") != part else None
    values = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return next((number for value in values if (number := unrounded(value)) is not None), None)


def leak_faults(lab: NotebookNode, text: str) -> list[str]:
    """Solutions of the source `text` that can be read in a cell of the lab, and answers that stand in its outputs."""
    faults = [
        f"cell {index}: its output has the answer of a task, or what a recap says"
        for index, cell in enumerate(lab.cells)
        if ANSWER.search(text_of(cell.get("outputs", ())))
    ]
    blocks = solution_blocks(text)
    for index, cell in enumerate(lab.cells):
        if BEGIN in cell.source or END in cell.source:
            faults.append(f"cell {index}: solution markers in a lab")
        if cell.cell_type == "code":
            lines = [line.strip() for line in code_only(cell.source).splitlines()]
            for block in blocks:
                solution = [line.strip() for line in block.splitlines()]
                if any(lines[i : i + len(solution)] == solution for i in range(len(lines))):
                    faults.append(f"cell {index}: holds the solution that starts with {solution[0]!r}")
    return faults


def difference_faults(raw: bytes, fresh: NotebookNode, outputs: bool = True) -> list[str]:
    """Where a committed notebook differs from a fresh build of its source.

    `outputs=False` compares with an unexecuted build: sources, ids and tags only. Cells tagged nbval-ignore-output hold
    measured or learner-dependent results, so their outputs are never compared.
    """
    try:
        stored = read(raw)
    except ValueError as error:
        return [str(error)]
    if len(stored.cells) != len(fresh.cells):
        return [f"{len(stored.cells)} cells; a fresh build has {len(fresh.cells)}"]
    faults = []
    for index, (old, new) in enumerate(zip(stored.cells, fresh.cells, strict=True)):
        for part in ("cell_type", "id", "metadata", "source"):
            if old.get(part) != new.get(part):
                faults.append(f"cell {index}: {part} differs from a fresh build{first_difference(old, new, part)}")
        if outputs and new.cell_type == "code" and not is_ignored(new) and old.get("outputs") != new.outputs:
            faults.append(f"cell {index}: outputs differ from a fresh build{first_difference(old, new, 'outputs')}")
    if not faults and raw != to_bytes(canonical(stored)):
        faults.append("not in the canonical form (saved by an editor?)")
    return faults


def first_difference(old: NotebookNode, new: NotebookNode, part: str) -> str:
    """The first differing line of one part of two cells, or nothing if that says little."""
    if part == "outputs":
        old_lines, new_lines = (text_of(cell.get("outputs", ())).splitlines() for cell in (old, new))
    elif part == "source":
        old_lines, new_lines = old.source.splitlines(), new.source.splitlines()
    else:
        return f": {old.get(part)!r}, not {new.get(part)!r}"
    length = max(len(old_lines), len(new_lines))
    pad = [""]
    pairs = zip(old_lines + pad * (length - len(old_lines)), new_lines + pad * (length - len(new_lines)), strict=True)
    return next((f": {a[:100]!r}, not {b[:100]!r}" for a, b in pairs if a != b), "")


def text_of(outputs: list[NotebookNode]) -> str:
    """All texts of a cell's outputs, one after the other."""
    texts = []
    for output in outputs:
        texts += [str(value) for _, value in sorted(output.get("data", {"": output.get("text", "")}).items())]
    return "\n".join(texts)


def is_ignored(cell: NotebookNode) -> bool:
    """Whether nbval runs this cell without comparing its output."""
    return IGNORE_TAG in cell.metadata.get("tags", ())
