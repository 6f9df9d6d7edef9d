"""Real config files and what they keep, worked out elsewhere; skipped where the folder is not at hand."""

import json

import pytest

from course.models import ModelSpec
from tests.helpers.places import REAL

ORACLES = REAL / "oracles" / "kv_bytes_per_token.json"
CASES = json.loads(ORACLES.read_text(encoding="utf-8")) if ORACLES.is_file() else []

pytestmark = pytest.mark.skipif(not CASES, reason="no folder ../shared/realinputs with real config files")


@pytest.mark.parametrize("case", [case for case in CASES if case["flat"] is not None], ids=lambda case: case["name"])
def test_bytes_a_token(case):
    spec = ModelSpec.from_config(REAL / case["file"])
    assert spec.kv_bytes_per_token == case["flat"]
    assert spec.kv_bytes_after_window == case["asym"]
    assert spec.window_bytes == case["window_state_bytes"]
    if case["recurrent_state_bytes"]:
        assert spec.state_bytes == case["recurrent_state_bytes"]


def test_a_cache_in_8_bits_where_the_checkpoint_asks_for_it():
    spec = ModelSpec.from_config(REAL / "configs" / "qwen3-32b-fp8-static.json")
    assert spec.kv_cache_dtype == "fp8"
    assert spec.with_kv_dtype("auto").kv_bytes_per_token == spec.kv_bytes_per_token // 2 == 131_072


@pytest.mark.parametrize("path", sorted((REAL / "configs").glob("*.json")), ids=lambda path: path.stem)
def test_every_file_gives_a_value_or_a_sentence(path):
    if path.name.endswith("hf_quant_config.json"):
        with pytest.raises(ValueError, match="number of layers"):
            ModelSpec.from_config(path)
        return
    spec = ModelSpec.from_config(path)
    assert spec.kv_bytes_after_window <= spec.kv_bytes_per_token
    assert spec.kv_bytes_per_token or spec.state_bytes
