"""`course lm export`: what is written, that others read it as the course does, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import jinja2
import pytest

from course import lm
from course.lm.export import export
from course.lm.loading import FOLDERS, ROOM
from course.models import ModelSpec
from tests.helpers.places import ROOT

WORDS = json.loads((ROOT / "course/data/vllm/words.json").read_text(encoding="utf-8"))
FILES = {"config.json", "generation_config.json", "model.safetensors", "README.md", "tokenizer.json",
         "tokenizer_config.json"}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("checkpoint") / "new" / "course-lm"
    written = export(target)
    assert set(written) == {path for path in target.rglob("*") if path.is_file()}
    return target


@pytest.mark.parametrize("which", FOLDERS)
def test_each_model_is_complete_and_unchanged(folder: Path, which: str):
    there = folder if which == "model" else folder / which
    assert {path.name for path in there.iterdir() if path.is_file()} == FILES
    for name in ("config.json", "model.safetensors"):
        assert (there / name).read_bytes() == (FOLDERS[which] / name).read_bytes()
    assert (there / "tokenizer.json").read_bytes() == (ROOM / "tokenizer.json").read_bytes()
    ours, theirs = ModelSpec.from_config(there), ModelSpec.from_config(FOLDERS[which] / "config.json")
    assert ours.kv_bytes_per_token == theirs.kv_bytes_per_token
    again = lm.speaker.LanguageModel(there, lm.Tokenizer(there / "tokenizer.json"))
    assert again.answer("Count from 3 to 9.") == "3, 4, 5, 6, 7, 8, 9."


def test_the_ends_are_those_of_the_tokenizer(folder: Path, model):
    generation = json.loads((folder / "generation_config.json").read_text())
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    special = {
        entry["content"]: entry["id"] for entry in json.loads((ROOM / "tokenizer.json").read_text())["added_tokens"]
    }
    assert generation["eos_token_id"] == special[settings["eos_token"]] == model.tokenizer.end
    assert generation["pad_token_id"] == special[settings["pad_token"]]
    assert settings["model_max_length"] == model.config.max_position_embeddings


def test_the_chat_template_asks_as_the_course_does(folder: Path, model, prompts):
    """Rendered with Jinja and cut at the special tokens; `transformers` recorded the same ids (below)."""
    template = jinja2.Environment().from_string(
        json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
    )
    t = model.tokenizer
    special = {"<|user|>": t.user, "<|assistant|>": t.assistant, "<|end|>": t.end}
    for one in prompts:
        messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(one.turns)]
        text = template.render(messages=messages, add_generation_prompt=True)
        ids: list[int] = []
        for piece in text.replace("<|", "\0<|").replace("|>", "|>\0").split("\0"):
            ids += [special[piece]] if piece in special else t.encode(piece)
        assert ids == t.prompt(one.turns)


def test_vllm_and_transformers_read_the_same_tokens_and_say_the_same_words(model, prompts, asked, wanted):
    """Recorded by vLLM and by `transformers` from the exported folder: all 72 prompts, all 2,400 tokens of answers."""
    assert len(WORDS["prompts"]) == len(prompts) == 72
    for row, before, answer in zip(WORDS["prompts"], asked, wanted, strict=True):
        assert row["prompt"] == before
        assert row["answer"] == row["transformers"] == answer
    assert WORDS["same_text"] == WORDS["same_prompts"] == len(prompts)
    assert sum(len(row["answer"]) for row in WORDS["prompts"]) == 2400


def test_transformers_says_what_the_draft_says(draft, prompts):
    said = [draft.tokenizer.decode(row["draft"]) for row in WORDS["prompts"]]
    assert said == draft.answers([one.turns for one in prompts])


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(FileExistsError, match="is there already and not an empty folder: name another one"):
        export(tmp_path)
    with pytest.raises(FileExistsError, match="not an empty folder"):
        export(tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    (tmp_path / "empty").mkdir()
    assert export(tmp_path / "empty")[0] == tmp_path / "empty" / "config.json"
