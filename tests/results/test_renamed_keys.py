"""A key under another name or with another unit: the answer stays, or a sentence names the key."""

import json

import pytest

from course import results
from tests.helpers import places
from tests.helpers.sizes import size

DATA = places.DATA / "results"
FILES = sorted(path.name for path in DATA.glob("*.json*") if path.name != "llmservingsim_meta.json")
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
        return dict(change(key, one) if key == path[0] else (key, one) for key, one in value.items())
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
