"""The code for the instructor: every set of answers has one, and what is heard wrongly is noticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.desk.doctor.code import DIGITS, ITEMS, STATUSES, in_code, statuses_of

ALL_OK = ["ok"] * len(ITEMS)


def with_one(item: str, status: str) -> list[str]:
    return [status if name == item else "ok" for name in ITEMS]


def test_known_codes():
    """Worked out by hand: 9 a + 3 b + c a character, then the weighted sum modulo 27."""
    assert in_code(ALL_OK) == "D1-00000"
    assert in_code(with_one("gpu", "note")) == "D1-0003F"  # 3; 5 x 3 = 15
    assert in_code(with_one("python", "problem")) == "D1-J000J"  # 18; 18
    assert in_code(["problem"] * len(ITEMS)) == "D1-TTTTF"  # 26 each; 12 x 26 = 312 = 11 x 27 + 15


@given(st.lists(st.sampled_from(STATUSES), min_size=len(ITEMS), max_size=len(ITEMS)))
def test_there_and_back(statuses):
    code = in_code(statuses)
    assert re.fullmatch(r"D1-[0-9A-HJKMNP-T]{5}", code)
    assert list(statuses_of(code).items()) == list(zip(ITEMS, statuses, strict=True))


@given(st.lists(st.sampled_from(STATUSES), min_size=len(ITEMS), max_size=len(ITEMS)), st.integers(3, 7), st.data())
def test_one_character_heard_wrongly_is_noticed(statuses, at, data):
    code = in_code(statuses)
    wrong = data.draw(st.sampled_from([digit for digit in DIGITS if digit != code[at]]))
    with pytest.raises(ValueError, match="does not add up"):
        statuses_of(code[:at] + wrong + code[at + 1 :])


@pytest.mark.parametrize(
    "heard", ["d1-0003f", " D1 0003F ", "d1 ooo3f", "DI-0003F", "D10003F", "D1-0-0-0-3-F", "dl-ooo3f"]
)
def test_how_it_was_written_down_does_not_matter(heard):
    assert statuses_of(heard) == statuses_of("D1-0003F")


@pytest.mark.parametrize("text", ["", "D1", "D2-00000", "D1-0000", "D1-000000", "00000", "x" * 10_000, "D1-0000\u0663"])
def test_what_is_no_code_is_refused(text):
    with pytest.raises(ValueError, match=r"is not a code: a code looks like D1-00000|has a character that no code has"):
        statuses_of(text)


@pytest.mark.parametrize("text", ["D1-0000U", "D1-Z0000"])
def test_a_character_that_no_code_has_is_refused(text):
    with pytest.raises(ValueError, match="has a character that no code has: ask for the code again"):
        statuses_of(text)


def test_every_item_has_a_status():
    with pytest.raises(ValueError, match="12 items have a status, not 9"):
        in_code(["ok"] * 9)


def test_the_instructor_page_decodes_as_the_program_does(root: Path):
    """Its table of items, and every code that it mentions."""
    page = (root / "docs" / "instructor.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| ([\w ]+), ([\w ]+), ([\w ]+) \|", page, re.MULTILINE)
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4]
    assert [item for row in rows for item in row[1:]] == list(ITEMS)
    codes = dict(re.findall(r"`(D1-\w{5})`: ([^.;]*)[.;]", page))
    assert len(codes) >= 3
    for code, meaning in codes.items():
        off = [f"{status}: {name}" for name, status in statuses_of(code).items() if status != "ok"]
        assert meaning == (", ".join(off) or "all ok")
