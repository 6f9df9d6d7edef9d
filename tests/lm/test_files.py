"""What is in the package: weights that fit their size, their config and their checksums, and what happens otherwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from course import lm
from course.lm import weights
from course.lm.loading import FOLDERS, ROOM, load_folder
from course.models import ModelSpec
from tools.lm.text import KINDS


def parameters(name: str) -> int:
    """Parameters in the file, all of them float16."""
    tensors = weights.read(FOLDERS[name] / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype(np.float16)}
    return sum(tensor.size for tensor in tensors.values())


def test_the_models_have_the_size_that_they_should_have():
    main, draft = parameters("model"), parameters("draft")
    assert 3e6 <= main <= 4.5e6
    assert draft <= main / 10
    files = [path for path in ROOM.rglob("*") if path.suffix in (".json", ".safetensors")]
    assert sum(path.stat().st_size for path in files) <= 10e6


@pytest.mark.parametrize("name", FOLDERS)
def test_its_config_is_read_like_any_other(name: str):
    spec = ModelSpec.from_config(FOLDERS[name] / "config.json")
    config = lm.Config.read(FOLDERS[name] / "config.json")
    per_layer = 2 * config.num_key_value_heads * config.head_dim
    assert spec.kv_bytes_per_token == 2 * config.num_hidden_layers * per_layer  # two bytes an element
    assert parameters(name) == sum(int(np.prod(shape)) for shape in config.shapes().values())


def test_every_checksum_is_right():
    lines = (ROOM / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 5
    for line in lines:
        digest, name = line.split("  ")
        assert weights.checksum(ROOM / name) == digest


def test_both_models_share_the_vocabulary(model, draft):
    assert model.config.vocab_size == draft.config.vocab_size == len(model.tokenizer) == 2048
    assert draft.answer("Count from 3 to 9.") == model.answer("Count from 3 to 9.") == "3, 4, 5, 6, 7, 8, 9."


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A copy of the draft with its tokenizer and checksums."""
    for name in ("tokenizer.json", "SHA256SUMS"):
        shutil.copy(ROOM / name, tmp_path)
    shutil.copytree(FOLDERS["draft"], tmp_path / "draft")
    return tmp_path


def test_one_changed_bit_is_noticed(room: Path):
    load_folder(room / "draft", room)
    path = room / "draft" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(lm.LMError, match="are damaged: their checksum is not the expected one"):
        load_folder(room / "draft", room)


def test_a_missing_file_gets_a_sentence(room: Path):
    (room / "draft" / "model.safetensors").unlink()
    with pytest.raises(lm.LMError, match=r"The weights .* cannot be read: No such file"):
        load_folder(room / "draft", room)
    (room / "draft" / "config.json").unlink()
    with pytest.raises(lm.LMError, match=r"config\.json cannot be read: No such file"):
        load_folder(room / "draft", room)
    (room / "SHA256SUMS").write_text("")
    with pytest.raises(lm.LMError, match=r"has no checksum of draft/model\.safetensors"):
        load_folder(room / "draft", room)
    (room / "SHA256SUMS").unlink()
    with pytest.raises(lm.LMError, match=r"The checksums .* cannot be read"):
        load_folder(room / "draft", room)


def test_an_unknown_name_gets_a_sentence():
    with pytest.raises(lm.LMError, match="no model 'gpt': choose model or draft"):
        lm.load("gpt")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"hidden_size": None}, "has no 'hidden_size'"),
        ({"model_type": "gpt2"}, "only Llama"),
        ({"tie_word_embeddings": False}, "only Llama"),
        ({"num_key_value_heads": 2}, "only Llama"),
        ({"hidden_size": 97}, "embed_tokens.weight should have shape \\(2048, 97\\)"),
        ({"num_hidden_layers": 3}, "layers.2.* should have .*; there is nothing"),
    ],
)
def test_a_config_that_does_not_fit_gets_a_sentence(room: Path, change: dict, sentence: str):
    path = room / "draft" / "config.json"
    data = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    with pytest.raises(lm.LMError, match=sentence):
        load_folder(room / "draft", room)


@pytest.mark.parametrize("data", [b"", b"12345678", (2).to_bytes(8, "little") + b"[]", b"\xff" * 64])
def test_other_bytes_are_no_weights(data: bytes, tmp_path: Path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(lm.LMError, match="is not a safetensors file"):
        weights.read(path)


def test_what_is_written_is_read(tmp_path: Path):
    draw = np.random.default_rng(0)
    tensors = {"b": draw.normal(size=(3, 5)).astype(np.float16), "a": draw.normal(size=7), "c": np.float32([[1]])}
    weights.write(tmp_path / "one", tensors)
    found = weights.read(tmp_path / "one", weights.checksum(tmp_path / "one"))
    assert list(found) == ["a", "b", "c"]
    assert all(
        np.array_equal(found[name], tensors[name]) and found[name].dtype == tensors[name].dtype for name in found
    )


def test_a_prompt_longer_than_the_context_gets_a_sentence(model):
    with pytest.raises(lm.LMError, match="The prompt has 602 tokens; the context of 512 has no room"):
        model.answer(" the" * 600)
    with pytest.raises(lm.LMError, match="The prompt has 512 tokens; the context of 512 has no room"):
        model.answer(" the" * 510)


def test_an_answer_stops_where_the_context_ends(model):
    """A prompt that fills the context but for two tokens gets two tokens at most."""
    prompt = " the" * 508
    assert len(model.prompt(prompt)) == 510
    assert len(model.tokenizer.encode(model.answer(prompt))) <= 2


def test_nothing_asked_is_nothing_answered(model):
    assert model.answers([]) == []


def test_the_card_says_how_each_kind_is_answered():
    rows = [line.split("|") for line in (ROOM / "CARD.md").read_text(encoding="utf-8").splitlines() if "%" in line]
    right = {row[1].split(" (")[0].strip(): float(row[3].strip(" %")) for row in rows if len(row) == 9}
    assert set(right) == set(KINDS)
    assert min(right.values()) >= 95
