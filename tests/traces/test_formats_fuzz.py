"""Any file in the likeness of any format: a workload or a sentence, never another exception and never a hang."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course import traces
from course.workload import Workload
from tests.helpers import places

DATA = places.DATA / "traces"
FILES = sorted(path for path in DATA.iterdir() if path.suffix in (".csv", ".jsonl"))
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def survives(path, content, **options):
    path.write_bytes(content)
    (path.parent / "t-dataset.json").write_bytes((DATA / "servegen_chunk-0-dataset.json").read_bytes())
    for extra in ({}, {"on_error": "skip", "sort": True}):
        try:
            load = traces.read(path, **extra, **options)
        except ValueError as error:
            assert str(error) and "\n" not in str(error) and len(str(error)) < 700
        else:
            assert isinstance(load, Workload)


@pytest.mark.parametrize("name", [path.name for path in FILES])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_truncated_and_damaged(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("fuzz") / "t-trace.csv"
    good = (DATA / name).read_bytes()
    survives(path, good[: data.draw(st.integers(0, len(good)))])
    at, junk = data.draw(st.integers(0, len(good))), data.draw(st.binary(max_size=6))
    survives(path, good[:at] + junk + good[at:])
    survives(path, good[:at] + junk + good[at + len(junk) :])


@pytest.mark.parametrize("name", [path.name for path in FILES])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_reordered_lines_and_the_wrong_reader(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("fuzz") / "t-trace.csv"
    lines = (DATA / name).read_bytes().splitlines(keepends=True)
    survives(path, b"".join(data.draw(st.permutations(lines))))
    survives(path, b"".join(lines), format=data.draw(st.sampled_from(traces.FORMATS)))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400) | st.just(-1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(
    row=st.fixed_dictionaries(
        {"timestamp": VALUES, "input_length": VALUES, "output_length": VALUES},
        optional={"hash_ids": VALUES | st.lists(VALUES, max_size=2), "chat_id": VALUES, "type": VALUES},
    ),
    whole=st.booleans(),
)
def test_wrong_types_in_json(tmp_path_factory, row, whole):
    if whole:
        row |= {"timestamp": 0, "input_length": 10, "output_length": 1}
    path = tmp_path_factory.mktemp("fuzz") / "t.jsonl"
    survives(path, json.dumps(row).encode())


CELLS = st.sampled_from(
    ["", "0", "1", "-1", "1e99", "1e-99", "9" * 400, "nan", "inf", "Gamma", "0x1", " ", "1_0", "\u0663"]
)


@settings(max_examples=150, deadline=None)
@given(
    header=st.sampled_from([path.read_text().splitlines()[0] for path in FILES if path.suffix == ".csv"]),
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=8), max_size=3),
)
def test_wrong_cells(tmp_path_factory, header, rows):
    path = tmp_path_factory.mktemp("fuzz") / "t-trace.csv"
    survives(path, "\n".join([header, *map(",".join, rows)]).encode())


@settings(max_examples=100, deadline=None)
@given(row=st.lists(CELLS, min_size=6, max_size=6))
def test_wrong_windows(tmp_path_factory, row):
    path = tmp_path_factory.mktemp("fuzz") / "t-trace.csv"
    survives(path, ("0,0.1,2.5,Gamma,0.16,60.0\n600," + ",".join(row[1:]) + "\n" + ",".join(row)).encode())


def test_deep_and_long(tmp_path):
    path = tmp_path / "t-trace.csv"
    for content in (
        b"[" * 10**6, b'{"timestamp":' * 10**5, b"{" * 10**6, b'{"timestamp": ' + b"9" * 10**6 + b"}",
        b'{"timestamp": 1e' + b"9" * 1000 + b', "input_length": 1, "output_length": 1}', b"," * 10**7, b"1" * 10**7,
        b'{"a": "' + b"x" * 10**7, b'"' + b"x\n" * 10**6, b"arrival,prompt_tokens,output_tokens\n" + b"\n" * 10**6,
    ):  # fmt: skip
        survives(path, content)
