"""The models as Hugging Face checkpoints, which `transformers`, vLLM and other engines read as they read any Llama."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from course.lm.config import Config
from course.lm.loading import FOLDERS, ROOM, load
from course.lm.tokenizer import ASSISTANT, END, USER

NAME = "course-lm"  # as `course serve` calls it
PAD = "<|pad|>"
# What `Tokenizer.prompt` does, in Jinja: <|user|>prompt<|assistant|>answer<|end|>, and the opening of the next answer.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}" + USER + "{{ message['content'] }}"
    "{% elif message['role'] == 'assistant' %}"
    + ASSISTANT
    + "{{ message['content'] }}"
    + END
    + "{% else %}{{ raise_exception('There are user and assistant messages only.') }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}" + ASSISTANT + "{% endif %}"
)
FRONT = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-generation
---
"""
SERVED = f"""
## Served by other engines

This folder is the course's {{which}} as a Llama checkpoint in float16. With vLLM on a GPU:

    vllm serve FOLDER --served-model-name {NAME} --dtype float32

The committed answers were computed in float32, and the smallest margin between the first and the second token is 12.0.
A user's text that has `<|end|>`, `<|user|>`, `<|assistant|>` or `{PAD}` in it is plain text for the course's own
tokenizer, and special tokens for that of `transformers`.
"""


def export(folder: str | Path) -> list[Path]:
    """Write the model into `folder` and its draft into `folder`/draft; return the files, in order.

    Each has config.json, model.safetensors, tokenizer.json, tokenizer_config.json with the chat template,
    generation_config.json and a card, README.md. FileExistsError for a folder that has something in it already, and
    LMError where the weights are damaged.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is there already and not an empty folder: name another one")
    written = []
    for which, source in FOLDERS.items():
        load(which)  # the checksum, and that the weights have the shapes of the config
        target = folder if which == "model" else folder / which
        target.mkdir(parents=True, exist_ok=True)
        for path in (source / "config.json", source / "model.safetensors", ROOM / "tokenizer.json"):
            written.append(Path(shutil.copyfile(path, target / path.name)))
        for name, document in _documents(Config.read(source / "config.json")).items():
            written.append(target / name)
            written[-1].write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        card = (ROOM / "CARD.md").read_text(encoding="utf-8")
        written.append(target / "README.md")
        written[-1].write_text(FRONT + card + SERVED.format(which=which), encoding="utf-8")
    return written


def _documents(config: Config) -> dict[str, dict[str, Any]]:
    """The files that the course itself does not need."""
    special = {entry["content"]: entry["id"] for entry in _added_tokens()}
    return {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": config.max_position_embeddings,
            "model_input_names": ["input_ids", "attention_mask"],
            "eos_token": END,
            "pad_token": PAD,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
        "generation_config.json": {"eos_token_id": special[END], "pad_token_id": special[PAD], "do_sample": False},
    }


def _added_tokens() -> list[dict[str, Any]]:
    return json.loads((ROOM / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
