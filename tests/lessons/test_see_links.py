"""A word that lights up names a mark of a figure of its lab: course/explore/see.js matches the names."""

from __future__ import annotations

import re
from functools import cache

import pytest

from course.notebooks.check import read
from tests.helpers.lesson_explorers import explorer, makers

LINK = re.compile(r"\[[^\]]+\]\(#see:([^)]*)\)")
PLOTLY = "application/vnd.plotly.v1+json"
BOARD = {"free", *(f"request-{number}" for number in range(1, 13))}
"""What every board's picture calls its marks (course/explore/board_picture.js), beside the kinds of work."""


def slug(name: str) -> str:
    """The name of a mark as `seeNames` of see.js makes it from a legend's."""
    return re.sub(r"^-|-$", "", re.sub(r"[^a-z0-9]+", "-", name.lower()))


def names(trace: dict) -> set[str]:
    said = (trace.get("meta") or {}).get("see")
    return set(said.split()) if said else {slug(trace["name"])} if trace.get("name") else set()


@cache
def notebook(root, name):
    return read((root / "labs" / name).read_bytes())


def links(cells) -> set[str]:
    return {name for cell in cells if cell.cell_type == "markdown" for name in LINK.findall(cell.source)}


def marks(cells) -> set[str]:
    """What the stored figures of a notebook call their traces."""
    return {
        name
        for cell in cells
        for output in cell.get("outputs", ())
        for trace in output.get("data", {}).get(PLOTLY, {}).get("data", ())
        for name in names(trace)
    }


def drawn(number: str) -> set[str]:
    """What the explorers of a lab call the traces of their figures, at their defaults."""
    found = [explorer(name) for name in makers() if name.startswith(f"lab{number}.")]
    figures = [one.figure(one.simulate(**one.defaults)) for one in found if one.pure]
    return {name for figure in figures for trace in figure.to_plotly_json()["data"] for name in names(trace)}


def with_links(root) -> list[str]:
    return [path.name for path in sorted((root / "labs").glob("*.ipynb")) if links(notebook(root, path.name).cells)]


def test_a_name_is_made_as_in_the_page():
    assert slug("KV blocks") == "kv-blocks"
    assert slug("K and V (GB)") == "k-and-v-gb"
    assert names({"name": "Waiting", "meta": {"see": "request-1 prefill"}}) == {"request-1", "prefill"}


@pytest.mark.parametrize("number", ["01", "02", "03", "04", "06", "07", "08", "11", "16"])
def test_each_link_names_a_mark(root, number):
    (name,) = [name for name in with_links(root) if name.startswith(f"{number}_")]
    cells = notebook(root, name).cells
    missing = links(cells) - marks(cells) - BOARD
    assert not missing or missing <= drawn(number)


def test_no_other_notebook_has_a_link_that_is_not_looked_at(root):
    assert {name[:3] for name in with_links(root)} <= {
        f"{n}_" for n in ("01", "02", "03", "04", "06", "07", "08", "11", "16")
    }
