"""Any file at all: a workload or a sentence, never another exception and never a hang."""

import csv

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from course import traces
from course.workload import Workload

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
ROWS = [
    "2023-11-16 18:15:46.6805900,374,44",
    "2023-11-16 18:15:50.9951690,396,109",
    "2023-11-16 18:15:51.2225670,879,55",
]


def survives(path, content):
    """A workload or a sentence: any other exception fails the test."""
    path.write_bytes(content)
    for options in ({}, {"sort": True}, {"on_error": "skip"}):
        try:
            load = traces.read(path, **options)
        except ValueError as error:
            assert str(error) and "Traceback" not in str(error)
        else:
            assert isinstance(load, Workload)


GOOD = "\r\n".join([HEADER, *ROWS]).encode()
quietly = pytest.mark.filterwarnings("ignore:.*rows were left out")


@quietly
@settings(max_examples=150, deadline=None)
@given(cut=st.integers(0, len(GOOD)), junk=st.binary(max_size=8), at=st.integers(0, len(GOOD)))
def test_truncated_and_damaged_files(tmp_path_factory, cut, junk, at):
    path = tmp_path_factory.mktemp("fuzz") / "t.csv"
    survives(path, GOOD[:cut])
    survives(path, GOOD[:at] + junk + GOOD[at:])
    survives(path, GOOD[:at] + junk + GOOD[at + len(junk) :])


@quietly
@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=300))
@example(b'"')
@example(b"\r")
def test_random_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "t.csv"
    survives(path, content)
    survives(path, HEADER.encode() + b"\n" + content)


@quietly
@settings(max_examples=150, deadline=None)
@given(cells=st.lists(st.lists(st.text(max_size=30) | st.sampled_from(ROWS[0].split(",")), max_size=5), max_size=5))
def test_random_cells(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("fuzz") / "t.csv"
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        csv.writer(file).writerows([HEADER.split(","), *cells])
    survives(path, path.read_bytes())


@settings(max_examples=30, deadline=None)
@given(order=st.permutations(range(5)))
def test_reordered_columns_make_no_difference(tmp_path_factory, order):
    path = tmp_path_factory.mktemp("order") / "t.csv"
    table = [[*HEADER.split(","), "Model", "Id"], *([*row.split(","), "m", "7"] for row in ROWS)]
    path.write_text("\n".join(",".join(row[i] for i in order) for row in table))
    assert traces.read(path).prompt_tokens.tolist() == [374, 396, 879]
