"""A key that is dropped, has another name or another unit: the answer stays, or a sentence names the key.

Without a key there is less to say, and no sentence names what an older version of a tool never wrote: then what is
still said must be as it was. Rows of requests may say it instead of a summary, within its digits.
"""

import csv
import json
import re

import pytest

from course import results
from tests.helpers import places
from tests.helpers.sizes import size

DATA = places.DATA / "results"
FILES = sorted(path.name for path in DATA.glob("*.json*") if path.name != "llmservingsim_meta.json")
TABLES = ("guidellm_v0.csv", "guidellm_v2.csv")
CLOSE = 1e-3  # of a time: what a summary's three digits and the clock of the rows may differ by
FEWEST = 3  # keys that matter in each file; a test in which every answer stays would show nothing


def loaded(path):
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def written(path, value):
    rows = value if path.suffix == ".jsonl" else [value]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def key_paths(value, above=()):
    """The way to each key, with * for the items of a list."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield (*above, key)
            yield from key_paths(inside, (*above, key))
    elif isinstance(value, list):
        for one in value:
            yield from key_paths(one, (*above, "*"))


def with_other_key(value, path, change):
    """The document with (name, value) = change(name, value) at that way, in every item of a list."""
    if path[0] == "*":
        return [with_other_key(one, path[1:], change) for one in value] if isinstance(value, list) else value
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return dict(
            change(key, one) if change and key == path[0] else (key, one)
            for key, one in value.items()
            if change or key != path[0]
        )
    return {key: with_other_key(one, path[1:], change) if key == path[0] else one for key, one in value.items()}


def renamed(key, value):
    return f"{key}_new", value


def other_unit(key, value):
    return (f"{key[:-3]}_us" if key.endswith("_ms") else f"{key}_ms"), times_1000(value)


def times_1000(value):
    if isinstance(value, list):
        return [times_1000(one) for one in value]
    return 1_000 * value if isinstance(value, int | float) and not isinstance(value, bool) else value


def answer(runs):
    return repr([(run.summary, run.ours, run.totals) for run in runs])


@pytest.mark.parametrize("change", [renamed, other_unit])
@pytest.mark.parametrize("name", FILES)
def test_a_key_that_is_not_understood_is_named(tmp_path, name, change):
    path, document = tmp_path / name, loaded(DATA / name)
    written(path, document)
    before = results.read_all(path)
    notes, matter = {note for run in before for note in run.notes}, 0
    ways = list(dict.fromkeys(key_paths(document)))
    for way in ways[:: max(1, len(ways) // size(small=120, whole=len(ways)))]:
        written(path, with_other_key(document, way, change))
        try:
            after = results.read_all(path)
        except ValueError as error:
            matter += 1
            # A file of no known tool is refused with the keys it has.
            assert way[-1] in str(error) or "not written by a tool" in str(error), way
            continue
        if answer(after) != answer(before):
            matter += 1
            said = {note for run in after for note in run.notes} - notes
            assert any(way[-1].removesuffix("_ms") in note for note in said), way
    assert matter >= FEWEST


def numbers(runs):
    """Every number that is said, by where it stands: a quantity of the tool's own is not the one of this course."""
    found = {}
    for i, run in enumerate(runs):
        found |= {(i, name): value for name, value in run.totals.items()}
        for metric, block in run.summary.items():
            ours = run.ours.get(metric, {})
            found |= {(i, "ours", metric, statistic): value for statistic, value in ours.items()}
            found |= {(i, metric, s): value for s, value in block.items() if value != ours.get(s)}
    return found


def other(before, after):
    """What is said in both, and is not the same."""
    both = before.keys() & after.keys()
    return [key for key in both if after[key] != pytest.approx(before[key], rel=CLOSE, nan_ok=True)]


@pytest.mark.parametrize("name", FILES)
def test_without_a_key_no_number_changes_in_silence(tmp_path, name):
    path, document = tmp_path / name, loaded(DATA / name)
    written(path, document)
    before = results.read_all(path)
    notes, fewer = {note for run in before for note in run.notes}, 0
    ways = list(dict.fromkeys(key_paths(document)))
    for way in ways[:: max(1, len(ways) // size(small=120, whole=len(ways)))]:
        written(path, with_other_key(document, way, None))
        try:
            after = results.read_all(path)
        except ValueError as error:
            fewer += 1
            assert way[-1] in str(error) or "not written by a tool" in str(error), way
            continue
        fewer += len(numbers(after)) < len(numbers(before))
        if found := other(numbers(before), numbers(after)):
            said = {note for run in after for note in run.notes} - notes
            assert any(way[-1] in note for note in said), (way, found)
    assert fewer >= FEWEST


def columns(name, change):
    """The table once for each column, changed: (the column's new name as a key, its rows)."""
    with (DATA / name).open(newline="") as file:
        rows = list(csv.reader(file))
    head = 1 if name == "guidellm_v0.csv" else 3
    for place in range(len(rows[0])):
        if change is None:
            yield "", [row[:place] + row[place + 1 :] for row in rows]
            continue
        titles = [row[place] for row in rows[:head]]
        last = max(i for i, title in enumerate(titles) if title)
        new, cells = change(titles[last], [json_or_text(row[place]) for row in rows[head:]])
        titles[last] = new.replace("_", " ")
        cells = [*titles, *(cell if isinstance(cell, str) else json.dumps(cell) for cell in cells)]
        yield new, [[*row[:place], cell, *row[place + 1 :]] for row, cell in zip(rows, cells, strict=True)]


def json_or_text(cell):
    try:
        return json.loads(cell)
    except ValueError:
        return cell


@pytest.mark.parametrize("change", [None, renamed, other_unit], ids=["dropped", "renamed", "other unit"])
@pytest.mark.parametrize("name", TABLES)
def test_a_column_of_a_table_likewise(tmp_path, name, change):
    path, before = tmp_path / name, results.read_all(DATA / name)
    notes, matter = {note for run in before for note in run.notes}, 0
    for key, rows in columns(name, change):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        try:
            after = results.read_all(path)
        except ValueError as error:
            matter += 1
            assert "Successful" in str(error) or "column" in str(error) or "not written by" in str(error), key
            continue
        there, here = numbers(before), numbers(after)
        if there != here:
            matter += 1
            said = " ".join({note for run in after for note in run.notes} - notes)
            if change is None:
                assert not other(there, here), rows[0]
                continue
            words = set(re.findall(r"[a-z]{3,}", key.lower().replace("arguments", "config"))) - {"successful", "new"}
            assert any(word in said for word in words), key
    assert matter >= FEWEST
