"""Slides: one file that asks no network, with what the lab says and shows, and without what learners are to find."""

from __future__ import annotations

import json
import re
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

from course.exercises.lesson import available, find, load
from course.incidents import fitting, table
from course.notebooks import drill, slides
from course.notebooks.tex import mathml, with_formulas
from tests.helpers.places import ROOT
from tests.helpers.sizes import size

LABS = size(("04", "08"), available())


class Page(HTMLParser):
    """What a page fetches, its sections, and the figures in it. Scripts and styles are texts of their own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.figures: list[dict] = []
        self.sections = self.open = 0
        self.words: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        found = {name: value or "" for name, value in attributes}
        self.fetched += [found[name] for name in ("src", "href", "data", "poster", "srcset") if name in found]
        if "data-figure" in found:
            self.figures.append(json.loads(found["data-figure"]))
        self.open += tag == "section"
        self.sections += tag == "section"

    def handle_endtag(self, tag: str) -> None:
        self.open -= tag == "section"
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            self.words.append(data)


def notebook(number: str) -> nbformat.NotebookNode:
    (path,) = (ROOT / "labs").glob(f"{number}_*.ipynb")
    return nbformat.read(path, as_version=4)


@cache
def page(number: str) -> str:
    return slides.html(slides.deck(notebook(number), find(number)))


@pytest.mark.parametrize("number", LABS)
def test_a_deck_fetches_nothing_and_shows_what_the_lab_shows(number: str) -> None:
    found, spec = Page(page(number)), load(number)
    assert found.fetched == [] and found.open == 0 and found.sections > 20
    own = re.sub(r"<script>.*?</script>", "", page(number), flags=re.DOTALL)
    assert not re.search(
        r"@import|url\((?!data:)|https?://(?!www\.w3\.org)", re.sub(r"/\*.*?\*/", "", own, flags=re.DOTALL)
    )
    said = " ".join(" ".join(found.words).split())
    for prediction in spec.predictions:
        assert said.count(" ".join(prediction.question.split())) == 2  # before, and looking back
    for task in spec.tasks:
        assert " ".join(task.text.split())[:60] in said
    stored = json.dumps(notebook(number).cells).count(slides.PLOTLY)
    assert len(found.figures) > stored > 0  # the explorers at their start, too
    assert all(figure["data"] and "width" not in figure["layout"] for figure in found.figures)


@pytest.mark.parametrize("number", LABS)
def test_a_deck_says_nothing_that_learners_are_to_find(number: str) -> None:
    """No answers of tasks, no hints, no code; what was predicted is answered at the end alone."""
    text, spec = unescape(page(number)), load(number)
    for exercise in spec.exercises:
        assert exercise.hint not in text and all(mistake.hint not in text for mistake in exercise.mistakes)
    assert "BEGIN SOLUTION" not in text and "lab.check" not in text
    body = re.sub(r"<script>.*?</script>", "", page(number), flags=re.DOTALL)
    assert body.index("Predict.") < body.index("Looking back.") < body.index('class="right"')


def test_every_formula_of_the_labs_can_be_shown() -> None:
    many = 0
    for number in available():
        for cell in notebook(number).cells:
            for found in re.findall(
                r"<math.*?</math>", with_formulas(cell.source) if cell.cell_type == "markdown" else ""
            ):
                ElementTree.fromstring(re.sub(r"&(?!#|lt;|gt;|amp;)", "&amp;", found))
                assert "$" not in found and "\\" not in found
                many += 1
    assert many > 100


def test_a_formula_means_what_it_says() -> None:
    """By hand: a fraction, something below and above a letter, words; and faults are sentences."""
    row = r'<math display="inline"><mrow>{}</mrow></math>'
    assert mathml(r"\frac{N}{2}") == row.format("<mfrac><mrow><mi>N</mi></mrow><mrow><mn>2</mn></mrow></mfrac>")
    both = "<msubsup><mi>b</mi><mn>1</mn><mrow><mi>k</mi><mo>+</mo><mn>2</mn></mrow></msubsup>"
    assert mathml("b_1^{k+2}") == mathml("b^{k+2}_1") == row.format(both)
    assert mathml(r"\text{num\_blocks}") == row.format("<mtext>num&#95;blocks</mtext>")
    assert with_formulas("`$a$` costs $a$ and 5 $") == f"`$a$` costs {mathml('a')} and 5 $"
    for broken, said in (
        (r"\foo", "no slide can show"),
        ("a}", "without its {"),
        ("{a", "without its }"),
        ("a_", "middle"),
    ):
        with pytest.raises(ValueError, match=said):
            mathml(broken)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe\x00", b"[]", b"{}", b'{"cells": 3, "nbformat": 4}', b"[" * 10**5, None]
)
def test_what_is_no_notebook_is_a_sentence(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "labs").mkdir()
    path = tmp_path / "labs" / "04_x.ipynb"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        slides.main(["04", "--root", str(tmp_path), "--to", str(tmp_path / "out")])
    said = capsys.readouterr().err
    assert (
        ended.value.code == 2 and "Traceback" not in said and "04_x.ipynb" in said and not (tmp_path / "out").exists()
    )


@pytest.mark.parametrize("asked", ["99", "x", "../04", "0" * 5_000])
def test_a_lab_that_there_is_not_is_a_sentence(asked: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        slides.main([asked, "--root", str(ROOT), "--to", str(tmp_path)])
    assert "there is no lab" in capsys.readouterr().err


def test_a_folder_that_is_a_file_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(SystemExit):
        drill.main(["--to", str(tmp_path / "out")])
    assert "File exists" in capsys.readouterr().err and (tmp_path / "out").read_text() == "mine"


def test_every_incident_has_a_page_that_names_it_and_a_slide_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number says nothing: the order is none of the table's."""
    assert sorted(drill.numbered()) == sorted(table()) and drill.numbered() not in (list(table()), sorted(table()))
    some = drill.numbered()[: size(2, 100)]
    monkeypatch.setattr(drill, "numbered", lambda: some)
    *pages, deck = drill.write(tmp_path)
    assert len(pages) == len(some) and len(table()) >= 10
    found = Page(deck.read_text())
    assert found.fetched == [] and len(found.figures) == len(some)
    said = " ".join(" ".join(found.words).split())
    for number, (path, id) in enumerate(zip(pages, drill.numbered(), strict=True), 1):
        assert [row["incident"] for row in fitting(path.read_text())] == [id] and id not in path.name
        part = said.split(f"Page {number:02}: ")[1].split("Page ")[0]
        assert all(" ".join(str(table()[id][key]).split()) in part for key in ("symptom", "next", "cause", "repair"))
