"""From a percent-format source to the lab (with stubs) and the solution, both unexecuted. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import jupytext
from nbformat import NotebookNode

from course.base import files
from course.exercises import holes
from course.exercises.holes import Fact
from course.exercises.names import is_deeper

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
IGNORE_TAG = "nbval-ignore-output"
HEADINGS = ("The question", "Predict", "Explore", "Measure", "Explain", "Exercises", "Break it", "Take away")
PRIMER_HEADINGS = ("A model speaks", "Part 1", "Part 2", "Six questions")
"""Those of the primer, which is exempt from the eight sections."""

# The kernel's patch version would differ between 3.11 and 3.13, so the metadata says only what every Python 3 shares.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
KEPT_CELL_METADATA = {"tags": list, "jupyter": dict, "slideshow": dict}
LARGEST = 10_000_000  # bytes of a source


class SourceError(ValueError):
    """A source that cannot be turned into notebooks; the message is a sentence that names the cell."""


@dataclass(frozen=True)
class Pair:
    """The two notebooks of one lab."""

    lab: NotebookNode
    solution: NotebookNode


def read(path: Path) -> str:
    """The text of a source. Raises SourceError where there is none that can be read."""
    try:
        content = files.read(path, LARGEST)
    except (OSError, files.TooLarge) as error:
        raise SourceError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"line {line}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None


def parse(text: str, number: str, facts: Mapping[str, Fact] | None = None) -> NotebookNode:
    """The notebook written in `text` (percent format), markers still in it, the holes of its texts filled.

    `number` ("03", or "03d" for what goes deeper) goes into the cell ids, which are the lab's number and the cell's
    index: two builds of one source have the same ids, and so have the lab and its solution. facts: what the holes ask
    for, by name. Raises SourceError for what is no such text, and for a hole that cannot be filled.
    """
    try:
        notebook = jupytext.reads(text, fmt="py:percent")
    except Exception as error:  # jupytext checks little of what stands after a %%
        why = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise SourceError(f"jupytext cannot read it ({why}); check what comes after each %%") from error
    notebook.metadata = NotebookNode(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for index, cell in enumerate(notebook.cells):
        cell.metadata = NotebookNode({key: cell.metadata[key] for key in KEPT_CELL_METADATA if key in cell.metadata})
        for key, value in cell.metadata.items():
            names = value if isinstance(value, list) else []
            if not isinstance(value, KEPT_CELL_METADATA[key]) or not all(isinstance(name, str) for name in names):
                raise SourceError(f'cell {index}: {key} is {value!r}; write a list such as tags=["{IGNORE_TAG}"]')
        cell.id = f"lab{number}-{index:03d}"
        if cell.cell_type == "markdown":
            try:
                cell.source = holes.filled(cell.source, facts or {})
            except holes.HoleError as error:
                raise SourceError(f"line {_line_of(error.hole, text)}: {error}") from None
    return notebook


def _line_of(hole: str, text: str) -> int:
    """The first line of a source's texts that has this hole, from 1."""
    lines = enumerate(text.splitlines(), start=1)
    return next((number for number, line in lines if line.startswith("#") and hole in line), 1)


SOLUTION_NOTE = (
    '<div class="alert alert-block alert-warning">These are the solutions of the course. Your own copy of the lab is '
    "in the folder above.</div>"
)


def notebooks(text: str, number: str, facts: Mapping[str, Fact] | None = None) -> Pair:
    """The lab and the solution that `text` describes. Raises SourceError as `parse`, or for unpaired markers."""
    lab, solution = parse(text, number, facts), parse(text, number, facts)
    for index, (lab_cell, solution_cell) in enumerate(zip(lab.cells, solution.cells, strict=True)):
        faults = marker_faults(lab_cell, index)
        if faults:
            raise SourceError(faults[0])
        if lab_cell.cell_type == "code":
            lab_cell.source = with_stubs(lab_cell.source)
            solution_cell.source = without_markers(solution_cell.source)
    if any(mine.source != its.source for mine, its in zip(lab.cells, solution.cells, strict=True)):
        _mark_as_solution(solution.cells[0])
    return Pair(lab=lab, solution=solution)


def _mark_as_solution(title: NotebookNode) -> None:
    """Say in the title cell, and in colour, that this is not the learner's own copy."""
    heading, _, rest = title.source.partition("\n")
    title.source = f"{heading.replace('# Lab', '# Solutions of lab', 1)}\n\n{SOLUTION_NOTE}\n{rest}".rstrip("\n")


def marker_faults(cell: NotebookNode, index: int) -> list[str]:
    """What is wrong with the solution markers of one cell: unbalanced, nested, misspelt, empty, or in a text cell."""
    faults, inside, lines_inside = [], False, 0
    for line in cell.source.splitlines():
        bare = line.strip()
        if cell.cell_type != "code" and bare in (BEGIN, END):
            return [f"cell {index}: {bare!r} is in a text cell; only code can be hidden"]
        if bare == BEGIN:
            if inside:
                faults.append(f"cell {index}: a second {BEGIN!r} before {END!r}")
            inside, lines_inside = True, 0
        elif bare == END:
            if not inside:
                faults.append(f"cell {index}: {END!r} without {BEGIN!r}")
            elif not lines_inside:
                faults.append(f"cell {index}: nothing between {BEGIN!r} and {END!r}")
            inside = False
        elif re.match(r"#+\s*(begin|end)\s+solutions?\b", bare, re.IGNORECASE):
            faults.append(f"cell {index}: {bare!r} looks like a marker; write {BEGIN!r} or {END!r}")
        elif bare:
            lines_inside += 1
    if inside:
        faults.append(f"cell {index}: {BEGIN!r} without {END!r}")
    return faults


def with_stubs(source: str) -> str:
    """`source` with each marked solution replaced by a stub that says how long the answer is.

    The stub is a comment and `...`, indented like the marker. At the end of a cell and outside a block the `...` is
    left out: Python does not need it there, and Jupyter would display it as `Ellipsis`.
    """
    kept: list[str] = []
    block: list[str] | None = None
    for line in source.splitlines():
        bare = line.strip()
        if bare == BEGIN:
            block = []
            indent = line[: len(line) - len(line.lstrip())]
        elif bare == END:
            count = sum(1 for inner in block or () if inner.strip() and not inner.strip().startswith("#"))
            kept.append(f"{indent}# Your code here: about {count} line{'' if count == 1 else 's'}")
            kept.append(f"{indent}...")
            block = None
        elif block is None:
            kept.append(line)
        else:
            block.append(line)
    if kept and kept[-1] == "...":
        kept.pop()
    return "\n".join(kept)


def without_markers(source: str) -> str:
    """`source` with the solution in place and the two marker lines removed."""
    return "\n".join(line for line in source.splitlines() if line.strip() not in (BEGIN, END))


def solution_blocks(text: str) -> list[str]:
    """Every marked solution of a source, dedented, without blank lines and comments."""
    blocks: list[str] = []
    block: list[str] | None = None
    for line in text.splitlines():
        bare = line.strip()
        if bare == BEGIN:
            block = []
        elif bare == END and block is not None:
            blocks.append(code_only("\n".join(block)))
            block = None
        elif block is not None:
            block.append(line)
    return [block for block in blocks if block]


def code_only(source: str) -> str:
    """`source` dedented, without blank lines and whole-line comments."""
    lines = [line.rstrip() for line in source.splitlines() if line.strip() and not line.strip().startswith("#")]
    return dedent("\n".join(lines))


def name_of(path: Path) -> str:
    """The name that goes into cell ids: the lab's number, with a "d" for what goes deeper."""
    return path.name[:2] + ("d" if is_deeper(path.name) else "")


ASKS = re.compile(r"\blab\.(?:check|predict|recap|quiz|earlier|ticket|solution)\(")


def deeper_faults(notebook: NotebookNode) -> list[str]:
    """What is wrong with a notebook that goes deeper: no question on top, or something asked that progress keeps."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    first = re.search(r"^## +(.*?)\s*$", "\n".join(texts), re.MULTILINE)
    faults = []
    if not first or not first[1].startswith(HEADINGS[0]):
        faults.append(f"the first section is not '## {HEADINGS[0]}': say which question this notebook answers")
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and ASKS.search(cell.source):
            faults.append(f"cell {index}: asks a question of the lab; what is asked and checked belongs to the core")
    return faults


def heading_faults(notebook: NotebookNode, headings: Sequence[str] = HEADINGS) -> list[str]:
    """What is wrong with the section headings: each of these once, as `## Heading`, in that order."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                match = re.match(r"##\s+(?:\d+\.?\s+)?(.*?)\s*$", line)
                if match and (name := next((h for h in headings if match[1].startswith(h)), None)):
                    found.append(name)
    missing = [name for name in headings if name not in found]
    faults = [f"heading '## {name}' is missing" for name in missing]
    faults += [f"heading '## {name}' appears {found.count(name)} times" for name in headings if found.count(name) > 1]
    if not faults and found != list(headings):
        faults.append(f"headings are in the order {', '.join(found)}; they must be {', '.join(headings)}")
    return faults
