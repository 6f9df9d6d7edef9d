"""Slides of a lab from the lab itself: `python -m course.notebooks.slides [NN ...] [--to FOLDER]`, or `make slides`.

A slide for each text with the figure or table behind it, for each prediction, for what an explorer asks, and at the end
for what the predictions have shown. Exercises, quiz and code stay in the lab. nbconvert makes one HTML file a lab of
it, with reveal.js and plotly inside: it asks nothing of a network.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import SlidesExporter
from nbformat import NotebookNode
from plotly.offline import get_plotlyjs

import course.lessons  # noqa: F401  # each lab registers itself
from course.base import files
from course.base.streams import forgiving
from course.exercises import minutes
from course.exercises.lesson import Lesson, available, find
from course.explore import Explorer
from course.explore.live import LiveExplorer
from course.explore.words import WordsExplorer
from course.notebooks.source import IGNORE_TAG
from course.notebooks.tex import with_formulas

TEMPLATES = Path(__file__).with_name("templates")
LARGEST = 10_000_000  # bytes of a notebook
FULL = 900
"""Characters of a text that fill a slide."""
BESIDE = 330
"""Characters of a text above a figure on the same slide."""
PLOTLY = "application/vnd.plotly.v1+json"
UNUSABLE = (files.TooLarge, AttributeError, KeyError, RecursionError, TypeError, ValueError)
"""What a notebook of the wrong shape raises."""
SHORT = 30
"""Characters of a text that is no slide, such as "A good place for a break."."""
HEADING = re.compile(r"#+ .*")
LINK = re.compile(r"\[([^\]]+)\]\([^)\s]*\)")
CALL = re.compile(r"lab\d\d\.(\w+)\(\)")
ASKED = re.compile(r"lab\.(predict|recap|ticket)\((?:\"(\w+)\")?\)")
PRINTED = re.compile(r"print\(lab\d\d\.\w+\(\)\)")


@dataclass(frozen=True)
class Part:
    """One piece of a slide: Markdown or, if `html`, what goes into the page as it is. figure: whether it is drawn."""

    text: str
    html: bool = False
    figure: bool = False


Slide = list[Part]


def deck(notebook: NotebookNode, lesson: Lesson) -> NotebookNode:
    """The slides of a lab as a notebook whose cells say where a slide begins.

    notebook: the lab as it is handed out, with its outputs. Raises ValueError for a formula that cannot be shown.
    """
    cells, section = [], ""
    for slide in [_title(lesson), *_slides(notebook.cells, lesson)]:
        head = re.match(r"##? (.+)", slide[0].text)
        begins, section = bool(head), head[1] if head else section
        whole = slide if begins else [Part(f'<p class="where">{escape(section)}</p>', True), *slide]
        if not whole[-1].html and whole[-1].text.endswith(":"):  # what it announces runs in the lab
            whole = [*whole[:-1], replace(whole[-1], text=f"{whole[-1].text[:-1]}.")]
        for place, part in enumerate(whole):
            kind = "-" if place else "slide" if begins else "subslide"
            cells.append(as_cell(part, kind))
    return nbformat.v4.new_notebook(cells=cells, metadata={"title": f"Lab {lesson.number}, {lesson.spec.title}"})


def html(slides: NotebookNode) -> str:
    """The page of a deck."""
    exporter = SlidesExporter(extra_template_basedirs=[str(TEMPLATES)], template_name="deck", exclude_anchor_links=True)
    return exporter.from_notebook_node(slides, {"deck": _parts_of_the_page()})[0]


@cache
def _parts_of_the_page() -> dict[str, str]:
    found = {name.replace(".", "_"): (TEMPLATES / "deck" / name).read_text(encoding="utf-8")
             for name in ("reveal.js", "reveal.css")}  # fmt: skip
    own = {f"own_{kind}": (TEMPLATES / "deck" / f"slides.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")}
    return {**found, **own, "plotly_js": get_plotlyjs()}


def as_cell(part: Part, kind: str) -> NotebookNode:
    """A part as a cell. kind: "slide" or "subslide" where one begins, "-" where it goes on."""
    metadata = {"slideshow": {"slide_type": kind}}
    if not part.html:
        return nbformat.v4.new_markdown_cell(part.text, metadata=metadata)
    output = nbformat.v4.new_output("display_data", {"text/html": part.text})
    return nbformat.v4.new_code_cell("", outputs=[output], metadata=metadata)


def _title(lesson: Lesson) -> Slide:
    spec = lesson.spec
    about = spec.minutes or minutes.stored(spec.number)
    lines = [f"# Lab {spec.number}: {spec.title}", "After this lab you can", ""]
    lines += [f"- {objective.text}" for objective in spec.objectives]
    return [Part("\n".join([*lines, "", f"About {about} minutes." if about else ""]))]


def _slides(cells: list[NotebookNode], lesson: Lesson) -> Iterator[Slide]:
    """Every other slide, in the order of the lab."""
    waiting: Slide = []
    for cell in cells:
        if cell.cell_type == "markdown":
            for text in _texts(cell.source):
                if text.startswith("# ") or (len(text) < SHORT and not text.startswith("#")):
                    continue
                if waiting and not HEADING.fullmatch(waiting[-1].text):
                    yield waiting
                    waiting = []
                waiting = [Part("\n\n".join([*(part.text for part in waiting), text]))]
            continue
        for slide in _shown(cell, lesson):
            if waiting and _fits(waiting, slide):
                waiting = [*waiting, *slide]
            else:
                if waiting:
                    yield waiting
                waiting = slide
    if waiting:
        yield waiting


def _fits(before: Slide, slide: Slide) -> bool:
    """Whether something goes below a text on its slide: nothing below a figure or a table, and room for all."""
    if any(part.html for part in before):
        return False
    many = sum(_read(part.text) for part in before)
    if not slide[0].html:
        return many + sum(_read(part.text) for part in slide) <= FULL
    return many <= (BESIDE if slide[0].figure else FULL // 2)


def _read(text: str) -> int:
    """Characters that are read: those of a formula, and not of its elements."""
    return len(re.sub(r"<[^>]+>", "", text))


def _texts(source: str) -> Iterator[str]:
    """A text cell, cut at its headings and where a slide is full."""
    plain = with_formulas(LINK.sub(r"\1", source))
    for text in re.split(r"\n(?=##+ )", plain.strip()):
        held = ""
        for paragraph in re.split(r"\n\s*\n", text):
            if held and not HEADING.fullmatch(held) and _read(held) + _read(paragraph) > FULL:
                yield held
                held = ""
            held = f"{held}\n\n{paragraph}".strip()
        yield held


def _shown(cell: NotebookNode, lesson: Lesson) -> Iterator[Slide]:
    """What a code cell puts on the screen, as slides; nothing for exercises, quiz and imports."""
    source = cell.source.strip()
    if asked := ASKED.fullmatch(source):
        yield from _asked(lesson, asked[1], asked[2])
    elif (call := CALL.fullmatch(source)) and IGNORE_TAG not in cell.metadata.get("tags", ()):  # not timed elsewhere
        stored = [output.get("data", {}) for output in cell.outputs]
        figures = [data[PLOTLY] for data in stored if PLOTLY in data]
        tables = [data["text/html"] for data in stored if "text/html" in data]
        if figures or tables:
            yield from ([Part(figure(one), True, True)] for one in figures)
            yield from ([Part("".join(_whole(table)), True)] for table in tables)
        else:
            yield from _explorer(lesson.named(f"lab.{call[1]}")())
    elif PRINTED.fullmatch(source):
        said = "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")
        yield [Part(f"<pre>{escape(said.rstrip())}</pre>", True)]


def _asked(lesson: Lesson, kind: str, id: str | None) -> Iterator[Slide]:
    spec = lesson.spec
    if kind == "ticket":
        if spec.ticket is not None:
            yield [Part(f"**A ticket.** {spec.ticket.story}")]
        return
    (prediction,) = (one for one in spec.predictions if one.id == id)
    options = getattr(prediction, "options", ())
    right = getattr(prediction, "right", -1) if kind == "recap" else -1
    rows = [f'<li class="right">{escape(one)} ✓</li>' if place == right else f"<li>{escape(one)}</li>"
            for place, one in enumerate(options)]  # fmt: skip
    listed = f'<ol class="options" type="a">{"".join(rows)}</ol>' if rows else ""
    if kind == "recap":
        head, behind = "Looking back.", prediction.why
    else:
        head, behind = "Predict.", "" if rows else "Draw it in the lab."
    yield [Part(f"<p><b>{head}</b> {escape(prediction.question)}</p>{listed}<p>{escape(behind)}</p>", True)]


def _explorer(shown: Any) -> Iterator[Slide]:
    """An explorer at its start, and what it asks; of a board, and of what runs on the machine, what they are."""
    tasks = getattr(shown, "tasks", ())
    if isinstance(shown, Explorer) and not isinstance(shown, LiveExplorer | WordsExplorer):
        yield [Part(figure(json.loads(shown.drawn(shown.default_result()).to_json())), True, True)]
    else:
        yield [Part(f"In the lab: {repr(shown).splitlines()[0]}")]
    if tasks:
        yield [Part("\n".join(["**Find out**", "", *(f"{n}. {task.text}" for n, task in enumerate(tasks, 1))]))]


def figure(drawn: dict[str, Any]) -> str:
    """A plotly figure, as JSON, as HTML that the page draws when its slide is shown."""
    data = json.dumps({"data": drawn["data"], "layout": drawn["layout"]}, separators=(",", ":"))
    return f'<div class="figure" data-figure="{escape(data)}"></div>'


def _whole(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def write(root: Path, number: str, to: Path) -> Path:
    """Write the deck of a lab into the folder `to`; returns the file.

    root: the project's folder. Raises ValueError: there is no such lab, or its notebook cannot be read; OSError.
    """
    lesson = find(number)
    paths = sorted((root / "labs").glob(f"{lesson.number}_*.ipynb"))
    if not paths:
        raise ValueError(f"there is no labs/{lesson.number}_*.ipynb in {root}: start this in the project's folder")
    try:
        notebook = nbformat.reads(files.read(paths[0], LARGEST).decode("utf-8"), as_version=4)
        page = html(deck(notebook, lesson))
    except (*UNUSABLE, nbformat.ValidationError) as error:
        raise ValueError(f"{paths[0].name} cannot be shown ({type(error).__name__}: {error})") from None
    to.mkdir(parents=True, exist_ok=True)
    target = to / f"{paths[0].stem}.html"
    files.replace(target, page.encode())
    return target


def main(arguments: list[str] | None = None) -> int:
    """Write the decks that are asked for; 0, or 2 with a sentence."""
    parser = argparse.ArgumentParser(prog="python -m course.notebooks.slides", description="Slides of the labs.")
    parser.add_argument("numbers", nargs="*", metavar="NN", help="lab numbers; without any, all labs")
    parser.add_argument("--to", type=Path, default=Path("dist/slides"), metavar="FOLDER", help="(dist/slides)")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    options = parser.parse_args(arguments)
    forgiving()
    try:
        for number in options.numbers or available():
            made = write(options.root, number, options.to)
            print(f"{made}: {made.stat().st_size / 1e6:.1f} MB, needs no network")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
