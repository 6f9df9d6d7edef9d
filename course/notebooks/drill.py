"""Incidents for a room: `python -m course.notebooks.drill [--to FOLDER]`, or `make incidents`.

A page for each pair of learners, as an engine printed it, under a number that does not tell its incident; and slides
with the graphs and the row of each number, for whoever teaches.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import nbformat
import numpy as np
from nbformat import NotebookNode

from course.base import files
from course.base.streams import forgiving
from course.incidents import graphs, page, scenes, table
from course.notebooks.slides import Part, as_cell, figure, html

SEED = 31
"""Of the order in which incidents get their numbers."""


def numbered() -> list[str]:
    """The incidents in the order of their numbers, the first of which is 1."""
    ids = sorted(table())
    return [ids[place] for place in np.random.default_rng(SEED).permutation(len(ids))]


def slides() -> NotebookNode:
    """Of each number the graphs before and after the repair, and below them what the incident is."""
    cells = [as_cell(Part(_first()), "slide")]
    for number, id in enumerate(numbered(), 1):
        row = table()[id]
        cells.append(as_cell(Part(f"## Page {number:02}\n\nWhat is wrong, and what would you measure next?"), "slide"))
        drawn = json.loads(graphs.figure(id).to_json())
        cells.append(as_cell(Part(figure(drawn), html=True, figure=True), "-"))
        lines = [f"## Page {number:02}: {id.replace('_', ' ')}", f"**Symptom:** {row['symptom']}"]
        lines += [f"**{name.capitalize()}:** {row[key]}"
                  for name, key in (("measure next", "next"), ("cause", "cause"), ("repair", "repair"))]  # fmt: skip
        cells.append(as_cell(Part("\n\n".join([*lines, f"Lab {row['lab']}."])), "subslide"))
    return nbformat.v4.new_notebook(cells=cells, metadata={"title": "Incidents"})


def _first() -> str:
    many = len(table())
    return (
        f"# {many} incidents\n\nEach pair has a page of one engine, simulated: read it, say what is wrong and what you"
        " would measure next. `course look page-NN.txt` names the row that fits.\n\nWhere both lines of a graph are the"
        " same, that graph does not tell: the page does."
    )


def write(to: Path) -> list[Path]:
    """Write pages and slides into a folder; returns the files, the slides last. Raises OSError."""
    to.mkdir(parents=True, exist_ok=True)
    made = []
    for number, id in enumerate(numbered(), 1):
        made.append(to / f"page-{number:02}.txt")
        files.replace(made[-1], page.text(scenes.seen(id)).encode())
    made.append(to / "incidents.html")
    files.replace(made[-1], html(slides()).encode())
    return made


def main(arguments: list[str] | None = None) -> int:
    """Write everything; 0, or 2 with a sentence."""
    parser = argparse.ArgumentParser(prog="python -m course.notebooks.drill", description="Incidents for a room.")
    parser.add_argument("--to", type=Path, default=Path("dist/incidents"), metavar="FOLDER", help="(dist/incidents)")
    options = parser.parse_args(arguments)
    forgiving()
    try:
        made = write(options.to)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(f"{made[-1]}: {len(made) - 1} pages beside it, for a pair each; the slides have the answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
