"""The first use of a term is linked to its entry in the glossary, and the entry is there."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from course.lessons import available, load
from course.notebooks import glossary
from course.notebooks.build import sources, targets
from course.notebooks.source import read

PAGE = """# Glossary

| term | meaning |
|---|---|
| <a id="ttft"></a>TTFT | time to first token |
| KV cache | keys and values |
| <a id="mha"></a>MHA, GQA | heads |
| arrival rate λ | requests a second |
| load | arrival rate / capacity |
| slot-step | one slot during one step |

| tool | meaning |
|---|---|
| vLLM | no term |
"""
TERMS = glossary.entries(PAGE)
LINK = re.compile(r"\[([^\]]+)\]\(glossary\.md#([\w-]+)\)")


def linked(*texts: str, new: tuple[str, ...] = ()) -> list[str]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text) for text in texts])
    return [cell.source for cell in glossary.linked(notebook, TERMS, new).cells]


def test_entries_are_the_rows_of_tables_of_terms():
    assert TERMS == {
        "TTFT": "ttft", "KV cache": "kv-cache", "MHA": "mha", "GQA": "mha", "arrival rate": "arrival-rate",
        "load": "load", "slot-step": "slot-step",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("The TTFT of a chat", "The [TTFT](glossary.md#ttft) of a chat"),
        ("two KV caches.", "two [KV caches](glossary.md#kv-cache)."),
        ("The *arrival rate* grows", "The *[arrival rate](glossary.md#arrival-rate)* grows"),
        ("Arrival\nrate", "[Arrival\nrate](glossary.md#arrival-rate)"),
        ("slot-steps", "[slot-steps](glossary.md#slot-step)"),
    ],
)
def test_a_first_use_is_linked(text, after):
    assert linked(text) == [after]


@pytest.mark.parametrize(
    "text",
    [
        "## TTFT",
        "| TTFT | 3 |",
        "`TTFT` and ``` TTFT ```",
        "```\nTTFT\n```",
        "$TTFT$",
        "[TTFT](here.md) and ![TTFT](picture.png)",
        "ttft and TTFTs-like, p99-TTFT",
        "https://example.org/TTFT",
        '<a id="TTFT"></a>',
        "the load of a truck",
    ],
)
def test_what_is_left_alone(text):
    assert linked(text) == [text]


def test_only_the_first_use_in_a_notebook_is_linked_and_headings_do_not_count():
    first, second = linked("# TTFT\n\nMHA first. TTFT, then TTFT.", "TTFT and GQA again")
    assert first == "# TTFT\n\n[MHA](glossary.md#mha) first. [TTFT](glossary.md#ttft), then TTFT."
    assert second == "TTFT and GQA again", "MHA and GQA share an entry"


def test_an_ordinary_word_is_linked_where_the_lab_introduces_it():
    assert linked("the load grows", new=("load",)) == ["the [load](glossary.md#load) grows"]


def test_links_change_neither_words_nor_cells_of_code():
    from course.exercises.minutes import words

    text = "The KV cache and the TTFT"
    assert words(linked(text)[0]) == words(text)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("TTFT = 1")])
    assert glossary.linked(notebook, TERMS).cells[0].source == "TTFT = 1"


# This project's own glossary and labs


def test_every_entry_has_an_anchor_of_its_own(root: Path):
    page = (root / "docs" / "glossary.md").read_text(encoding="utf-8")
    anchors = re.findall(r'<a id="([\w-]+)"></a>', page)
    assert len(anchors) == len(set(anchors))
    assert set(glossary.entries(page).values()) == set(anchors)


@pytest.mark.parametrize("number", available())
def test_the_labs_link_to_entries_that_are_there(root: Path, number: str):
    terms = glossary.entries((root / "docs" / "glossary.md").read_text(encoding="utf-8"))
    for path in sources(root, [number]):
        for target in targets(path, read(path)):
            texts = "\n".join(cell.source for cell in target.notebook.cells if cell.cell_type == "markdown")
            found = [anchor for _, anchor in LINK.findall(texts)]
            assert found, f"{path.name}: no text cell names one of the lab's `terms`, or another one of the glossary"
            assert len(found) == len(set(found)) and set(found) <= set(terms.values())


@pytest.mark.parametrize("number", available())
def test_new_terms_are_in_the_glossary(root: Path, number: str):
    terms = glossary.entries((root / "docs" / "glossary.md").read_text(encoding="utf-8"))
    assert set(load(number).terms) <= set(terms)
