"""A smaller model that drafts for a larger one, and the forward pass of rows that both need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course.engine.executor import Work
from course.lm.cache import Blocks
from course.lm.errors import LMError
from course.lm.speaker import LanguageModel
from course.policies.base import Request

Answer = Any  # course.lm.live.Answer, which stands above

Row = tuple[list[int], int, Sequence[int]]
"""Of a forward pass: tokens to compute, tokens before them, blocks."""


def forward(model: LanguageModel, rows: Sequence[Row], memory: Blocks, every: bool = False) -> np.ndarray:
    """The logits of one pass over these rows; with `every`, of each of their tokens."""
    tokens, before, tables = zip(*rows, strict=True)
    how = {"every": True} if every else {}
    return model.forward(np.concatenate(tokens), [len(one) for one in tokens], before, tables, memory, **how)


class Drafter:
    """A smaller model that runs ahead, greedily. Raises LMError for one with another vocabulary than the model's.

    It computes the prompts beside the model, in the same blocks, and what the model finds there of another prompt it
    finds too. computed: tokens of each row that it has cached.
    """

    def __init__(self, draft: LanguageModel, model: LanguageModel, num_blocks: int, block_size: int):
        if draft.config.vocab_size != model.config.vocab_size:
            raise LMError(
                f"The draft has {draft.config.vocab_size} tokens and the model {model.config.vocab_size}: a draft "
                "needs the model's own vocabulary."
            )
        self.draft, self.memory = draft, draft.paged_kv(num_blocks, block_size)
        self.computed: dict[int, int] = {}

    def drafts(
        self, work: Work, answers: Mapping[int, Answer], tables: Mapping[Request, Sequence[int]]
    ) -> dict[Request, list[int]]:
        """Drafts for those that decode, none beyond the limit of an answer; the prompts of the step on the way."""
        for request, count in work.chunks:
            row, tokens = request.index, answers[request.index].tokens
            begin = min(self.computed.get(row, request.computed), request.computed)
            upto = min(len(tokens), request.computed + count)
            forward(self.draft, [(tokens[begin:upto], begin, tables[request])], self.memory)
            self.computed[row] = upto
        wanted = {
            request: min(count, answers[request.index].limit - len(answers[request.index].tokens))
            for request, count in work.drafts.items()
            if not answers[request.index].ended
        }
        drafts: dict[Request, list[int]] = {request: [] for request, count in wanted.items() if count > 0}
        for place in range(max(wanted.values(), default=0)):
            going = [request for request in drafts if place < wanted[request]]
            rows: list[Row] = []
            for request in going:
                known = answers[request.index].tokens + drafts[request]
                rows.append((known[self.computed[request.index] :], self.computed[request.index], tables[request]))
                self.computed[request.index] = len(known)
            for request, logits in zip(going, forward(self.draft, rows, self.memory), strict=True):
                drafts[request].append(int(logits.argmax()))
        return drafts

    def verified(self, work: Work, answers: Mapping[int, Answer]) -> None:
        """What was drafted wrongly is computed again."""
        for request in work.drafts:
            row = request.index
            self.computed[row] = min(self.computed.get(row, 0), len(answers[row].tokens) - 1)
