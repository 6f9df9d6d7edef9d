"""Tasks that read a value: numbers as they are typed, with and without units, and what counts as a miss."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from course.explore.amounts import parse_typed
from course.explore.tasks import DONE
from tests.explore.test_tasks import at, way
from tests.helpers.toy_tasks import READ


@pytest.mark.parametrize("text", ["30", " 30.0 ", "30 ms", "30ms", "3e1", "0.03 s", "30,000 us", "31.4", "28.6"])
def test_a_value_that_is_right(text):
    here = way(READ)
    here.typed(text, *at(rate=30))
    assert here.states == {"wait": DONE} and here.said == "At a load of 75%."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("31.6", "31.6 is not the value asked for."),
        ("-30", "-30 is not the value asked for."),
        ("30 s", "30 s is not the value asked for."),
        ("60", "That is there and back."),
        ("1" + "0" * 300, "1" + "0" * 36 + "... is not the value asked for."),
    ],
)
def test_a_value_that_is_wrong_is_a_miss(text, says):
    here = way(READ)
    here.typed(text, *at(rate=30))
    assert here.said == says and here.misses == 1 and here.open and not here.right


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Type a number."),
        (" \n ", "Type a number."),
        ("many", "'many' is not a number: type one such as 12.5."),
        ("1,5", "'1,5' is not a number: type one such as 12.5."),
        ("nan", "'nan' is not a number: type one such as 12.5."),
        ("1e999", "'1e999' is not a number: type one such as 12.5."),
        ("word " * 10_000, f"'{'word ' * 11}w... is not a number: type one such as 12.5."),
    ],
)
def test_what_is_no_number_is_no_miss(text, says):
    here = way(READ)
    for _ in range(3):
        here.typed(text, *at(rate=30))
    assert here.said == says and here.misses == 0 and not here.helps


def test_a_value_is_read_where_the_task_says():
    here = way(READ)
    here.typed("30", *at(rate=29))
    assert "Reset goes back to the start" in here.said and here.misses == 0 and here.open
    here = way(replace(READ, where=None))
    here.typed("29", *at(rate=29))
    assert here.states == {"wait": DONE}


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_nothing_is_right_where_there_is_no_number(value):
    here = way(replace(READ, value=lambda settings, result: value))
    for text in ("30", "0", "1e300"):
        here.typed(text, *at(rate=30))
        assert here.said == "There is no such number at this setting: move the controls."
    assert here.open and here.misses == 0


def test_a_value_of_zero_can_be_read():
    here = way(replace(READ, value=lambda settings, result: 0.0))
    here.typed("0.1", *at(rate=30))
    assert here.open
    here.typed("0", *at(rate=30))
    assert not here.open


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,024", 1024.0),
        ("1 024", 1024.0),
        ("1_024", 1024.0),
        ("1,234,567.5 tokens", 1_234_567.5),
        ("3.5 %", 3.5),
        ("3.5%", 3.5),
        (".5", 0.5),
        ("12.", 12.0),
        ("−4", -4.0),  # noqa: RUF001
        ("+4e-1", 0.4),
        ("12 in all, about", 12.0),
        ("1,0", None),
        ("10,24", None),
        ("1.2.3", None),
        ("about 12", None),
        ("-", None),
        (".", None),
        ("", None),
        ("ms", None),
    ],
)
def test_numbers_as_they_are_typed(text, number):
    assert parse_typed(text) == number


def test_a_typed_unit_of_time_counts_where_a_time_is_asked_for():
    assert (
        parse_typed("2 s", "ms") == 2000.0 and parse_typed("2 ms", "s") == 0.002 and parse_typed("2 min", "s") == 120.0
    )
    assert parse_typed("2 s", "requests") == parse_typed("2 s") == parse_typed("2 requests", "s") == 2.0
