"""The model with its tokenizer: load it, ask it, read its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from course.lm import weights
from course.lm.config import Config
from course.lm.errors import LMError
from course.lm.forward import Model
from course.lm.sampling import GREEDY, Sampling
from course.lm.tokenizer import Tokenizer

CHUNK = 256  # prompt tokens that `answers` computes in a step, of all rows together

Conversation = str | bytes | Sequence[str]


class LanguageModel(Model):
    """A model that reads and writes text.

    tokenizer: between text and tokens. `prompt` gives the tokens of a conversation, `answers` asks several at once.
    """

    def __init__(self, folder: str | Path, tokenizer: Tokenizer, expected: str | None = None):
        folder = Path(folder)
        super().__init__(Config.read(folder / "config.json"), weights.read(folder / "model.safetensors", expected))
        self.tokenizer = tokenizer
        if len(tokenizer) > self.config.vocab_size:
            raise LMError(
                f"The tokenizer has {len(tokenizer)} tokens, but {folder / 'config.json'} has {self.config.vocab_size}."
            )

    def prompt(self, conversation: Conversation, room: int = 1) -> list[int]:
        """The tokens that ask for an answer. conversation: a prompt, or prompt, answer, ..., prompt.

        LMError for an empty prompt, for what is no text, and if the context has no room for `room` tokens more.
        """
        tokens, context = self.tokenizer.prompt(conversation), self.config.max_position_embeddings
        if len(tokens) + room > context:
            raise LMError(
                f"The prompt has {len(tokens):,} tokens; the context of {context} has no room for it and an answer: "
                "make it shorter."
            )
        return tokens

    def answers(
        self,
        conversations: Iterable[Conversation],
        *,
        sampling: Sampling = GREEDY,
        block_size: int = 16,
    ) -> list[str]:
        """The answers to all conversations, computed as one batch; each until its end or until the context is full.

        The random numbers of the i-th depend on the seed, on i and on the position alone.
        """
        rows = [self.prompt(conversation) for conversation in conversations]
        if not rows:
            return []
        starts, context = [len(row) for row in rows], self.config.max_position_embeddings
        each = -(-context // block_size)
        cache = self.paged_kv(each * len(rows), block_size)
        computed, running = [0] * len(rows), list(range(len(rows)))
        while running:
            budget, counts = CHUNK, []
            for row in running:
                counts.append(min(len(rows[row]) - computed[row], budget))
                budget -= counts[-1]
            step = [(row, count) for row, count in zip(running, counts, strict=True) if count]
            logits = self.forward(
                np.concatenate([rows[row][computed[row] : computed[row] + count] for row, count in step]),
                [count for _, count in step],
                [computed[row] for row, _ in step],
                [range(row * each, (row + 1) * each) for row, _ in step],
                cache,
            )
            places = np.array([computed[row] + count for row, count in step])
            choices = sampling.choose(logits, np.array([row for row, _ in step]), places)
            for (row, count), token in zip(step, choices.tolist(), strict=True):
                computed[row] += count
                if computed[row] < len(rows[row]):
                    continue  # a prompt that is not complete says nothing yet
                rows[row].append(token)
                if token == self.tokenizer.end or len(rows[row]) == context:
                    running.remove(row)
        return [self.tokenizer.decode(row[start:]) for row, start in zip(rows, starts, strict=True)]

    def answer(self, conversation: Conversation, *, sampling: Sampling = GREEDY) -> str:
        """The answer to one conversation."""
        return self.answers([conversation], sampling=sampling)[0]
