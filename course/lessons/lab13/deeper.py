"""Lab 13, deeper: the acceptance at which drafts tie, suffixes of many answers, and a verification by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

import numpy as np

from course.lessons.lab13 import spoken

K = 4
OTHERS = 30  # answers whose suffixes draft: most of these drafts are wrong
TIED = (1, 64, 128, 256)  # batches
SEEN = Path(__file__).parent / "seen.json"  # of tools.lm.seen

After = Callable[[Sequence[int]], list[int]]
Step = Callable[[list[int], list[int], After], list[int]]
"""(known tokens, drafts, what the model says after each token) to the tokens that leave the step."""


def suffixes_seen() -> dict[int, float]:
    """The acceptance of suffix drafts by answers seen, measured by `python -m tools.lm.seen`."""
    return {int(seen): share for seen, share in json.loads(SEEN.read_text(encoding="utf-8")).items()}


# A verification by hand


@dataclass(frozen=True)
class Verified:
    """wrong: of the first token that is not the model's own, a sentence. steps, passes: of the model."""

    wrong: str | None
    steps: int
    passes: int
    tokens: int


def by_hand(step: Step, kind: str = "a story") -> Verified:
    """One answer, whose steps the function verifies, with up to K drafts in each from the suffixes of OTHERS answers.

    Raises ValueError for what is no list of tokens, an empty one, and one longer than a step can give.
    """
    model, place = spoken.models()[0], spoken.PROMPTS[kind]
    prompt, answer = spoken.answers()[place]
    table, known, steps, passes = spoken.of_others(place, OTHERS), list(prompt), 0, 0
    table.read(known, len(known))

    def after(tokens: Sequence[int]) -> list[int]:
        nonlocal passes
        passes += 1
        memory = model.paged_kv(-(-len(tokens) // 16))
        rows = model.forward(np.array(tokens), [len(tokens)], [0], [range(memory.num_blocks)], memory, every=True)
        return [int(token) for token in rows.argmax(axis=1)]

    while len(known) < len(prompt) + len(answer):
        leaving = _tokens(step(list(known), table.drafts(known, K), after))
        steps += 1
        for token, own in zip(leaving, answer[len(known) - len(prompt) :], strict=False):
            if token != own:
                said, says = (repr(model.tokenizer.decode([one])) for one in (token, own))
                done = len(known) - len(prompt)
                return Verified(f"Token {done + 1} is {said}; the model alone says {says}.", steps, passes, done)
            known.append(token)
            table.read(known, 1)
    return Verified(None, steps, passes, len(answer))


def _tokens(given: object) -> list[int]:
    if not isinstance(given, list) or not all(isinstance(token, Integral) for token in given):
        raise ValueError("Return a list of tokens: those that leave the step.")
    if not given:
        raise ValueError("Your step gives no token: where no draft is right, the model's own token leaves.")
    if len(given) > K + 1:
        raise ValueError(f"Your step gives {len(given)} tokens; {K} drafts and the model's own are {K + 1}.")
    return [int(token) for token in given]


def verified(known: list[int], drafts: list[int], after: After) -> list[int]:
    """The package's own: accepted drafts up to the first wrong one, and the model's token in its place."""
    said = after(known + drafts)[len(known) - 1 :]
    right = 0
    while right < len(drafts) and drafts[right] == said[right]:
        right += 1
    return [*drafts[:right], said[right]]
