"""What a learner gets of a notebook: everything but the outputs that give answers away."""

from __future__ import annotations

import json

import pytest

from course.desk.copies import copy_labs, read_labs, reset
from course.desk.handed_out import handed_out
from tests.helpers.places import ROOT
from tests.notebooks.test_check import executed, to_bytes

LABS = ROOT / "labs"
ANSWERS = ("\n  Answer: ", "The lab showed")


def texts(content: bytes) -> str:
    """All stored outputs of a notebook."""
    return "".join(
        "".join(text) for cell in json.loads(content)["cells"] for output in cell.get("outputs", [])
        for text in (*output.get("data", {}).values(), output.get("text", "")) if isinstance(text, str | list)
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(path.name for path in LABS.glob("*.ipynb")))
def test_no_copy_shows_an_answer_before_it_is_run(name: str) -> None:
    handed = (LABS / name).read_bytes()
    copy = read_labs(LABS)[0][name]
    assert not any(mark in texts(copy) for mark in ANSWERS)
    before, after = json.loads(handed), json.loads(copy)
    assert before["metadata"] == after["metadata"] and len(before["cells"]) == len(after["cells"])
    cleared = 0
    for one, other in zip(before["cells"], after["cells"], strict=True):
        assert one["source"] == other["source"] and one["id"] == other["id"]
        if one != other:
            assert other["outputs"] == [] and other["execution_count"] is None
            cleared += 1
    told = texts(handed)
    assert (cleared > 0) == any(mark in told for mark in ANSWERS)
    if not name.endswith("_deeper.ipynb"):
        assert cleared >= 3  # explorers and recaps; the card on top and the figures are still there
        assert "After this lab you can" in texts(copy) or name.startswith("00")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"cells": 3}', b'{"cells": [1]}', b"[" * 100_000])
def test_what_is_no_notebook_stays_as_it_is(content: bytes) -> None:
    assert handed_out(content) == content


def test_a_notebook_without_answers_stays_as_it_is_to_the_byte() -> None:
    content = to_bytes(executed(("print(1)", "1\n"))).replace(b"\n", b"\r\n")
    assert handed_out(content) == content


def test_copies_and_resets_are_the_same(tmp_path) -> None:
    from datetime import datetime

    name = "01_the_first_token.ipynb"
    copy_labs(LABS, tmp_path)
    assert (tmp_path / name).read_bytes() == handed_out((LABS / name).read_bytes())
    assert reset(LABS, tmp_path, name, datetime(2026, 11, 29))[0] is False  # it is pristine
    (tmp_path / name).write_text("mine")
    assert reset(LABS, tmp_path, name, datetime(2026, 11, 29))[0] is True
    assert (tmp_path / name).read_bytes() == handed_out((LABS / name).read_bytes())


def test_an_untouched_copy_of_before_gets_the_version_without_answers(tmp_path) -> None:
    """Copies of earlier versions have all outputs; where nobody changed them they are replaced."""
    from course.desk.record import Record

    name = "01_the_first_token.ipynb"
    old = (LABS / name).read_bytes()
    (tmp_path / name).write_bytes(old)
    record = Record(tmp_path)
    record.note(name, old)
    record.save()
    assert name in copy_labs(LABS, tmp_path).refreshed
    assert "The lab showed" not in (tmp_path / name).read_text(encoding="utf-8")
