"""Lab 08: any config.json, from the list, from a path, from the browser; and what is refused."""

import json
from datetime import UTC, datetime

import pytest

from course.lessons.lab08 import card_memory
from course.lessons.lab08.config_picker import WIDGET_VIEW, ConfigPicker

OWN = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
}
TOKEN = 2 * 2 * 2 * 16 * 2
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def shown():
    picker = ConfigPicker()
    bundle = picker._repr_mimebundle_()
    assert bundle["text/plain"] == repr(picker) and bundle[WIDGET_VIEW]["model_id"] == picker.root.model_id
    return picker


def upload(picker, name, content):
    picker.widgets["file"].value = (
        {"name": name, "content": memoryview(content), "type": "", "size": len(content), "last_modified": WHEN},
    )


@pytest.mark.parametrize("card", card_memory.CARDS)
@pytest.mark.parametrize("name", card_memory.names())
def test_every_config_that_comes_with_the_course(name, card):
    picker = ConfigPicker(name, card)
    spec = card_memory.spec(name)
    assert f"{spec.kv_bytes_per_token:,} B" in repr(picker) and card in repr(picker)
    assert {len(row) for row in picker.rows()} == {3}


def test_the_text_stays_that_of_the_start(shown):
    before = repr(shown)
    shown.widgets["config"].value = "deepseek-v3"
    assert repr(shown) == before and shown.spec.name == "deepseek-v3"
    assert "70,272 B" in shown.table.value


def test_a_path_a_folder_and_an_upload(shown, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(OWN))
    for path in (tmp_path / "config.json", tmp_path):
        shown.widgets["path"].value = str(path)
        assert shown.spec.kv_bytes_per_token == TOKEN and f"{TOKEN:,} B" in shown.table.value
        assert shown.widgets["config"].value is None  # what is shown is not of the list
    shown.widgets["config"].value = "qwen2-7b"
    upload(shown, "mine.json", json.dumps(OWN).encode())
    assert (shown.spec.name, shown.spec.kv_bytes_per_token) == ("mine", TOKEN)


def test_what_does_not_fit_the_card_is_said(shown):
    shown.widgets["config"].value = "nemotron-h-56b"
    assert "do not fit" in shown.said.value and "104.90 GiB" in shown.table.value


def test_card_and_type(shown):
    assert "79.18 GiB" in shown.table.value and "131,072 B" in shown.table.value
    shown.widgets["card"].value = "RTX 4090"
    shown.widgets["kv"].value = "fp8"
    assert "23.52 GiB" in shown.table.value and "65,536 B" in shown.table.value


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "JSON"), (b"[1]", "JSON object"), (b"\xff\xfe\x00", ""), (b"", ""), (b"{}", "layers"),
     (json.dumps(OWN | {"num_key_value_heads": 3}).encode(), "3"),
     (json.dumps(OWN | {"kv_lora_rank": 2}).encode(), "")],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused_in_a_sentence_and_the_model_stays(shown, content, said):
    upload(shown, "config.json", content)
    assert shown.spec.name == "llama-3.1-8b" and "131,072 B" in shown.table.value
    assert said in shown.said.value and "Below is still llama-3.1-8b." in shown.said.value
    assert "Traceback" not in shown.said.value and "/tmp" not in shown.said.value
    shown.widgets["config"].value = "qwen2-7b"  # and the picker goes on
    assert "57,344 B" in shown.table.value and "Below" not in shown.said.value


def test_a_path_that_is_not_there(shown):
    shown.widgets["path"].value = "/nowhere/config.json"
    assert "cannot be read" in shown.said.value


def test_a_name_that_is_markup_is_shown_as_text(shown):
    upload(shown, "<b>x.json", json.dumps(OWN).encode())
    assert "&lt;b&gt;x" in shown.table.value


def test_an_unknown_card():
    with pytest.raises(ValueError, match="choose one of RTX 4090"):
        ConfigPicker(card="H999")
