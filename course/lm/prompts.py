"""The committed prompts: a fixed list, answered with the same words under every policy, batch, chunk size and cache."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Prompt:
    """turns: prompt, answer, ..., prompt. answer: the right one, which the model gives."""

    kind: str
    turns: tuple[str, ...]
    answer: str


def held_out_prompts() -> list[Prompt]:
    """The prompts of `prompts.json`, held out of training: a serving mix of all kinds, then some long conversations."""
    data = json.loads((Path(__file__).parent / "prompts.json").read_text(encoding="utf-8"))
    return [Prompt(one["kind"], tuple(one["turns"]), one["answer"]) for one in data]
