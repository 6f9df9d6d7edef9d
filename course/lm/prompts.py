"""The committed prompts: a fixed list, answered with the same words under every policy, batch, chunk size and cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from course.lm.loading import ROOM
from course.lm.tokenizer import Tokenizer
from course.workload import Workload


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


def as_workload(prompts: Sequence[Prompt], arrival: Sequence[float] | np.ndarray) -> Workload:
    """The prompts and the answers that the model gives, in tokens, for a simulator: no weights are needed.

    arrival: of each prompt [s], in order. LMError if the tokenizer cannot be read.
    """
    tokenizer = Tokenizer(ROOM / "tokenizer.json")
    prompt_tokens = [len(tokenizer.prompt(prompt.turns)) for prompt in prompts]
    output_tokens = [len(tokenizer.encode(prompt.answer)) + 1 for prompt in prompts]  # the end is a token too
    return Workload(np.asarray(arrival), np.array(prompt_tokens), np.array(output_tokens))
