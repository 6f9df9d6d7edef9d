"""A key of a config.json under another name: the numbers stay, or a sentence names the key.

A key that is dropped is no such case: a config.json says by leaving it out that the default of its family counts.
"""

import json
from importlib.resources import files

import pytest

from course.models import named_or_read

CONFIGS = sorted((files("course") / "data" / "configs").iterdir(), key=lambda path: path.name)
FEWEST = 5  # keys that matter in each file


def numbers(spec):
    return (
        spec.kv_bytes_per_token, spec.window_bytes, spec.state_bytes_with(0), spec.weights_bytes, spec.parameters,
        spec.max_position_embeddings, spec.kv_cache_dtype,
    )  # fmt: skip


def read(path, keys):
    path.write_text(json.dumps(keys))
    return named_or_read(str(path))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
@pytest.mark.parametrize("times", [1, 1000], ids=["renamed", "other unit"])
def test_a_key_that_is_not_understood_is_named(tmp_path, config, times):
    path, whole = tmp_path / "config.json", json.loads(config.read_text(encoding="utf-8"))
    before, matter = read(path, whole), 0
    for key, value in whole.items():
        new = value * times if type(value) in (int, float) else value
        changed = {(f"{key}_new" if one == key else one): (new if one == key else it) for one, it in whole.items()}
        try:
            after = read(path, changed)
        except ValueError as error:
            matter += 1
            assert key in str(error) or "is needed" in str(error), (key, error)
            continue
        if numbers(after) != numbers(before):
            matter += 1
            assert any(f"{key}_new" in note for note in after.notes), key
    assert matter >= FEWEST


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_no_such_sentence_of_a_config_as_it_is(config):
    assert not any("was it renamed" in note for note in named_or_read(str(config)).notes)
