"""Stubs in place of solutions, one byte form, and every kind of fault found. Nothing is executed here."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from course.notebooks import check, source
from course.notebooks.canonical import VOLATILE, WIDGET_VIEW, canonical, to_bytes
from tests.helpers.places import ROOT, SOLUTIONS
from tests.helpers.small_lab import GOOD, SMALL, code, executed

LABS = ROOT / "labs"

# Stubs and solutions


def test_a_stub_keeps_the_indentation_and_names_the_length() -> None:
    lab = source.notebooks(SMALL, "07").lab
    (cell,) = [cell for cell in lab.cells if cell.source.startswith("def little")]
    assert cell.source.splitlines() == [
        "def little(rate, seconds):",
        '    """Requests in the system."""',
        "    # Your code here: about 2 lines",
        "    ...",
    ]


def test_a_stub_at_the_end_of_a_cell_displays_nothing() -> None:
    """A final `...` would be shown as Ellipsis."""
    lab = source.notebooks(SMALL, "07").lab
    (cell,) = [cell for cell in lab.cells if cell.source.startswith("answer")]
    assert cell.source == "answer = None\n# Your code here: about 1 line"
    between = source.with_stubs("### BEGIN SOLUTION\nx = 1\n### END SOLUTION\ncheck(x)")
    assert between == "# Your code here: about 1 line\n...\ncheck(x)"


def test_the_solution_has_the_code_without_markers_and_the_same_ids() -> None:
    pair = source.notebooks(SMALL, "07")
    text = "\n".join(cell.source for cell in pair.solution.cells)
    assert "inside = rate * seconds" in text
    assert "SOLUTION" not in text
    assert [cell.id for cell in pair.solution.cells] == [cell.id for cell in pair.lab.cells]
    assert len({cell.id for cell in pair.lab.cells}) == len(pair.lab.cells)


def test_a_marked_block_is_gone_from_the_lab() -> None:
    pair = source.notebooks(SMALL, "07")
    assert check.leak_faults(pair.lab, SMALL) == []
    assert len(check.leak_faults(pair.solution, SMALL)) == 2


@pytest.mark.parametrize("text", ["Why?\n  Answer: b) No.\n", "Guess\n  The lab showed as well: c) No.\n"])
def test_an_answer_in_an_output_of_a_lab_is_a_fault(text: str) -> None:
    notebook = check.read(to_bytes(executed(("show()", text))))
    assert check.leak_faults(notebook, SMALL) == ["cell 0: its output has the answer of a task, or what a recap says"]
    assert check.leak_faults(check.read(to_bytes(executed(("show()", "Answer later.\n")))), SMALL) == []


@pytest.mark.parametrize("path", sorted(LABS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_lab_has_an_answer_in_it(path: Path) -> None:
    """What is handed out is what a learner opens first."""
    source_text = (SOLUTIONS / f"{path.stem}.py").read_text(encoding="utf-8")
    assert check.leak_faults(check.read(path.read_bytes()), source_text) == []


def test_tags_are_kept() -> None:
    lab = source.notebooks(SMALL, "07").lab
    assert [cell.metadata.tags for cell in lab.cells if "tags" in cell.metadata] == [[source.IGNORE_TAG]] * 2


# Faults of a source


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (("### BEGIN SOLUTION", "x = 1"), "without '### END SOLUTION'"),
        (("x = 1", "### END SOLUTION"), "without '### BEGIN SOLUTION'"),
        (("### BEGIN SOLUTION", "x = 1", "### BEGIN SOLUTION", "y = 2", "### END SOLUTION"), "a second"),
        (("### BEGIN SOLUTION", "### END SOLUTION"), "nothing between"),
        (("# BEGIN SOLUTION", "x = 1"), "looks like a marker"),
        (("### Begin solution", "x = 1"), "looks like a marker"),
        (("### BEGIN SOLUTION", "x = 1", "### END SOLUTIONS"), "looks like a marker"),
    ],
)
def test_solution_markers_must_pair_up(lines: tuple[str, ...], fault: str) -> None:
    assert any(fault in found for found in check.source_faults(code(*lines), "07"))
    if "looks like" not in fault:
        with pytest.raises(source.SourceError, match="cell 0"):
            source.notebooks(code(*lines), "07")


def test_markers_in_a_text_cell_are_refused() -> None:
    text = "# %% [markdown]\n# ### BEGIN SOLUTION\n# secret\n# ### END SOLUTION\n"
    assert any("text cell" in fault for fault in check.source_faults(text, "07"))


def test_a_marker_that_spans_cells_is_unbalanced_in_both() -> None:
    faults = check.source_faults(code("### BEGIN SOLUTION", "x = 1") + code("### END SOLUTION"), "07")
    assert any("cell 0" in fault for fault in faults)
    assert any("cell 1" in fault for fault in faults)


def test_the_eight_headings_are_required_in_order() -> None:
    assert check.source_faults(SMALL, "07") == []
    assert check.source_faults(SMALL.replace("## Predict", "## Guess"), "07") == ["heading '## Predict' is missing"]
    assert check.source_faults(SMALL.replace("## Explain", "## Explain\n# ## Explain"), "07") == [
        "heading '## Explain' appears 2 times"
    ]
    swapped = SMALL.replace("## Measure", "## X").replace("## Explain", "## Measure").replace("## X", "## Explain")
    assert any("in the order" in fault for fault in check.source_faults(swapped, "07"))


def test_the_primer_has_headings_of_its_own() -> None:
    parts = "# %% [markdown]\n# ## A model speaks\n#\n# ## Part 1: A\n#\n# ## Part 2: B\n#\n# ## Six questions\n"
    assert check.source_faults(parts, "00") == []
    assert "heading '## Predict' is missing" in check.source_faults(parts, "07")
    assert check.source_faults(parts.replace("## Part 2: B", ""), "00") == ["heading '## Part 2' is missing"]


def test_an_empty_code_cell_is_a_fault_of_the_source() -> None:
    assert "cell 0: empty code cell" in check.source_faults("# %%\n\n# %%\nx = 1\n", "07")


# Faults of a stored notebook


def test_a_good_notebook_has_no_faults() -> None:
    assert check.notebook_faults(to_bytes(executed(*GOOD))) == []


def test_all_faults_are_reported_together() -> None:
    notebook = executed(*GOOD)
    notebook.cells[0].execution_count = None
    notebook.cells[1].source = "  \n"
    notebook.cells[2].outputs = [nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]
    notebook.metadata.widgets = {}
    faults = "\n".join(check.notebook_faults(nbformat.writes(notebook).encode()))
    for fault in ("cell 0: never executed", "cell 1: empty", "cell 2: stored error ValueError: no", "widget state"):
        assert fault in faults


def test_too_big_and_too_little_to_compare() -> None:
    big = executed(("print(1)", "x" * 400_000), ("print(2)", ""), ("print(3)", ""))
    faults = check.notebook_faults(to_bytes(big))
    assert len(faults) == 2
    assert "at most 300,000" in faults[0]
    assert "1 cells have an output that nbval compares" in faults[1]


def test_ignored_cells_do_not_count_as_compared() -> None:
    notebook = executed(*GOOD)
    notebook.cells[0].metadata.tags = [source.IGNORE_TAG]
    assert "2 cells have an output" in check.notebook_faults(to_bytes(notebook))[0]


@pytest.mark.parametrize(
    "path", ["/home/ada/course/x.py:3: Warning", "/tmp/x", "C:\\Users\\ada\\x", "lib/site-packages/a.py"]
)
def test_a_path_of_the_authors_machine_is_a_fault(path: str) -> None:
    faults = check.notebook_faults(to_bytes(executed(*GOOD, ("print(4)", f"see {path}\n"))))
    assert len(faults) == 1
    assert "path of this machine" in faults[0]


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b"\xff", b'{"cells": 3}'])
def test_an_unreadable_notebook_is_one_fault(raw: bytes) -> None:
    (fault,) = check.notebook_faults(raw)
    assert fault.startswith("not a readable notebook")


def test_a_stored_widget_view_is_a_fault() -> None:
    notebook = executed(*GOOD)
    view = {WIDGET_VIEW: {"model_id": "1", "version_major": 2, "version_minor": 0}, "text/plain": "a table"}
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data=view)]
    assert any("widget view" in fault for fault in check.notebook_faults(to_bytes(notebook)))
    assert check.notebook_faults(to_bytes(canonical(notebook))) == []


@pytest.mark.parametrize("where", ["annotations", "data"])
def test_a_number_that_another_processor_computes_otherwise_is_a_fault(where: str) -> None:
    figure = {"data": [{"x": [0, 0.5, 1e-9, None]}], "layout": {"annotations": [{"x": 0.727927, "text": "a"}]}}
    notebook = executed(*GOOD)
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data={check.FIGURE: figure})]
    assert check.notebook_faults(to_bytes(notebook)) == []
    exact = 0.7279273779050186
    if where == "data":
        figure["data"][0]["x"][1] = exact
    else:
        figure["layout"]["annotations"][0]["x"] = exact
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data={check.FIGURE: figure})]
    (fault,) = check.notebook_faults(to_bytes(notebook))
    assert "0.7279273779050186" in fault and "round_digits" in fault


# Where a stored notebook differs from a fresh build


def test_differences_name_the_cell_and_the_first_line() -> None:
    fresh = canonical(executed(*GOOD))
    assert check.difference_faults(to_bytes(fresh), fresh) == []
    stored = executed(*GOOD)
    stored.cells[1].outputs[0].text = "2.5\n"
    stored.cells[2].source = "print(4)"
    assert check.difference_faults(to_bytes(stored), fresh) == [
        "cell 1: outputs differ from a fresh build: '2.5', not '2'",
        "cell 2: source differs from a fresh build: 'print(4)', not 'print(3)'",
    ]
    assert len(check.difference_faults(to_bytes(stored), fresh, outputs=False)) == 1


def test_outputs_of_ignored_cells_may_differ_their_source_may_not() -> None:
    fresh, stored = canonical(executed(*GOOD)), executed(*GOOD)
    for notebook in (fresh, stored):
        notebook.cells[0].metadata.tags = [source.IGNORE_TAG]
    stored.cells[0].outputs[0].text = "other\n"
    assert check.difference_faults(to_bytes(canonical(stored)), fresh) == []
    stored.cells[0].source = "print(0)"
    assert len(check.difference_faults(to_bytes(canonical(stored)), fresh)) == 1


def test_another_byte_form_and_another_cell_count_are_differences() -> None:
    fresh = canonical(executed(*GOOD))
    assert check.difference_faults(nbformat.writes(fresh, indent=4).encode(), fresh) == [
        "not in the canonical form (saved by an editor?)"
    ]
    assert "2 cells; a fresh build has 3" in check.difference_faults(to_bytes(canonical(executed(*GOOD[:2]))), fresh)


def test_canonical_form_removes_what_varies() -> None:
    notebook = executed(("f()", ""))
    figure = {"text/plain": f"Figure({{'uid': '{'0a' * 4}-1234-1234-1234-{'0b' * 6}'}})"}
    notebook.cells[0].execution_count = 17
    notebook.cells[0].metadata.execution = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
    notebook.cells[0].outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="a"),
        nbformat.v4.new_output("stream", name="stdout", text="b at 0x7f12ab"),
        nbformat.v4.new_output("stream", name="stderr", text="/tmp/ipykernel_12/345.py:1"),
        nbformat.v4.new_output("execute_result", data=figure, execution_count=17),
    ]
    notebook.metadata = {"language_info": {"name": "python", "version": "3.11.7"}, "widgets": {"state": {}}}
    result = canonical(notebook)
    (cell,) = result.cells
    assert [output.get("text") for output in cell.outputs] == ["ab at 0xADDR", "IPYKERNEL_FILE:1", None]
    assert cell.outputs[2].data == {"text/plain": "Figure({'uid': 'UID'})"}
    assert cell.execution_count == cell.outputs[2].execution_count == 1
    assert cell.metadata == {}
    assert "version" not in result.metadata.language_info
    assert "widgets" not in result.metadata
    assert canonical(result) == result


def test_nbval_replaces_the_same_words(root: Path) -> None:
    """What is stored and what nbval compares it with must lose the same details."""
    rules = re.findall(r"^regex: (.*)\nreplace: (.*)$", (root / "nbval.cfg").read_text(), re.MULTILINE)
    assert rules == [(pattern.pattern, word) for pattern, word in VOLATILE]
