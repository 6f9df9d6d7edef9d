"""Notebooks that go deeper: built, checked and counted beside their labs."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.notebooks import check, counts
from course.notebooks.build import build, sources, targets
from course.notebooks.source import name_of
from tests.helpers.sizes import in_test_all
from tests.helpers.small_lab import SMALL

DEEPER = """\
# %% [markdown]
# # 07 A small lab, deeper
#
# ## The question
# Where does it come from?

# %%
print("one")

# %%
print("two")

# %%
print("three")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "98_small.py").write_text(SMALL)
    (tmp_path / "solutions" / "98b_small.py").write_text(DEEPER)
    return tmp_path


def test_it_comes_with_its_lab(project):
    names = [path.name for path in sources(project)]
    assert names == ["98_small.py", "98b_small.py"] == [path.name for path in sources(project, ["98"])]


def test_it_is_built_and_needs_none_of_the_eight_sections(project):
    assert build(project) == []
    for folder in ("labs", "solutions"):
        assert (project / folder / "98b_small.ipynb").exists()
    assert build(project, write=False, run=False) == []


def test_its_cells_have_ids_of_their_own(project):
    core, deeper = (targets(path, path.read_text())[0].notebook for path in sources(project))
    assert core.cells[0].id == "lab98-000" and deeper.cells[0].id == "lab98d-000"
    assert name_of(Path("98_small.py")) == "98"


def test_without_its_lab_or_beside_another_topic_it_is_refused(project):
    (project / "solutions" / "98_small.py").rename(project / "solutions" / "98_other.py")
    with pytest.raises(ValueError, match=r"goes deeper than 98_small\.py, which is not there"):
        sources(project)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## The question", "## Derivations", "the first section is not '## The question'"),
        ('print("two")', 'lab.check("little", 3)', "cell 2: asks a question of the lab"),
    ],
)
def test_what_is_wrong_with_one(old, new, says):
    (fault,) = check.source_faults(DEEPER.replace(old, new), "98d")
    assert says in fault


@in_test_all
def test_minutes_are_stored_for_both_and_a_change_is_noticed(project, root, monkeypatch):
    """With the lesson of lab 03 standing in, since a count needs to know what a lab asks."""
    for path in (project / "solutions").iterdir():
        path.rename(path.with_name(path.name.replace("98", "03")))
    home = project / "course" / "lessons" / "lab03"
    home.mkdir(parents=True)
    assert build(project) == []
    assert set(counts._stored(home / "counted.json")) == {"core", "deeper"}
    labs = sorted((project / "labs").glob("*.ipynb"))
    assert counts.store(project, labs) == [] == counts.faults(project, labs)
    (home / "counted.json").write_text('{"core": {"minutes": 999}}')
    found = counts.faults(project, labs)
    assert len(found) == 2 and "counted.json says 999" in found[0] and "says None" in found[1]
    assert counts.store(project, labs) == ["03"]


def test_tables_are_written_only_where_they_belong():
    assert counts.readme("| 98 | x | 3 |") == "| 98 | x | 3 |", "no lesson, no count"
    assert counts.readme("| 03 | Little's law | 3 | Why? |").startswith("| 03 | Little's law | ")
    assert counts.readme("| 03 | Little's law | 3 | Why? |").endswith(" | Why? |")
    assert counts.instructor("no comments here") == "no comments here"
    text = f"a\n{counts.BEGIN}\nold\n{counts.END}\nb"
    written = counts.instructor(text)
    assert "old" not in written and counts.instructor(written) == written and "**Lab**" in written
