"""Any file in the likeness of a result: a result or a sentence, never another exception and never a hang."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course import results
from tests.helpers import places

DATA = places.DATA / "results"
FILES = sorted(path.name for path in DATA.glob("*.json*"))


def survives(path, content, **options):
    path.write_bytes(content)
    try:
        found = results.read_all(path, **options)
    except ValueError as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 700
        return
    for run in found:
        assert isinstance(run, results.Result) and repr(run)
        for stats in [*run.summary.values(), *run.ours.values()]:
            for name, value in stats.items():
                assert name == "std" or 0 <= value <= 1e6 * (1 + 1e-9)
        try:
            run.workload()
        except ValueError as error:
            assert str(error)


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_truncated_damaged_and_reordered(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("fuzz") / "r.json"
    good = (DATA / name).read_bytes()
    survives(path, good[: data.draw(st.integers(0, len(good)))])
    at, junk = data.draw(st.integers(0, len(good))), data.draw(st.binary(max_size=6))
    survives(path, good[:at] + junk + good[at:])
    survives(path, b"\n".join(data.draw(st.permutations(good.splitlines()))))
    survives(path, good, format=data.draw(st.sampled_from([*results.READERS])))


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.sampled_from(
        [0, -1, 1, 1.5, -0.0, 1e308, -1e308, 10**400, "", "7", "inf", "x" * 200, [], {}, [[]], [None], [-1]]
    ),
    st.sampled_from([{"unit": "ms", "avg": -1}, {"value": [1, "a"]}, {"mean": None}, {"successful": {"count": 1e300}}]),
)


def replaced(value, path, leaf):
    """`value` with the item at `path` (numbers, taken modulo the size) replaced."""
    if not path or not isinstance(value, dict | list) or not value:
        return leaf
    if isinstance(value, dict):
        key = sorted(value)[path[0] % len(value)]
        return value | {key: replaced(value[key], path[1:], leaf)}
    place = path[0] % len(value)
    return [*value[:place], replaced(value[place], path[1:], leaf), *value[place + 1 :]]


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=60, deadline=None)
@given(path=st.lists(st.integers(0, 50), min_size=1, max_size=7), leaf=LEAVES, line=st.integers(0, 5))
def test_wrong_types_and_huge_numbers(tmp_path_factory, name, path, leaf, line):
    file = tmp_path_factory.mktemp("fuzz") / "r.json"
    text = (DATA / name).read_text()
    if name.endswith("jsonl"):
        lines = text.splitlines()
        line %= len(lines)
        lines[line] = json.dumps(replaced(json.loads(lines[line]), path, leaf))
        text = "\n".join(lines)
    else:
        text = json.dumps(replaced(json.loads(text), path, leaf))
    survives(file, text.encode())


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200))
def test_random_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "r.json"
    survives(path, content)
    survives(path, b'{"duration": 1, "completed": 1, "request_throughput": ' + content)


def test_deep_and_long(tmp_path):
    path = tmp_path / "r.json"
    for content in (
        b"[" * 10**6, b'{"benchmarks":' * 10**5, b'{"a": ' + b"9" * 10**6 + b"}", b'{"a": 1e' + b"9" * 1000 + b"}",
        b'{"a": "' + b"x" * 10**8, b"\n" * 10**6, b"{}\n" * 10**5, b"\xff\xfe{}", b"\x1f\x8b\x08", b"{\x00}",
        b"\xef\xbb\xbf{}",
    ):  # fmt: skip
        survives(path, content)


def test_a_file_above_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("course.results.reading.MAX_JSON_BYTES", 100)
    (tmp_path / "r.json").write_text("[" + "1," * 100)
    with pytest.raises(ValueError, match="is larger than 0 MiB: split it"):
        results.read(tmp_path / "r.json")
