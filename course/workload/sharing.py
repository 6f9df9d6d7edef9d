"""Prompts that begin alike: what is the same is said by the hashes of their blocks (`Workload.prefix`)."""

from dataclasses import replace
from typing import Any

import numpy as np

from course.base.settings import MAX_TOKENS, whole

Workload = Any  # course.workload.workload.Workload, which stands above


def with_system_prompt(load: Workload, tokens: int, prefix_block_size: int) -> Workload:
    """See `Workload.with_system_prompt`."""
    tokens = whole("tokens", tokens, high=MAX_TOKENS)
    size = whole("prefix_block_size", prefix_block_size, high=MAX_TOKENS)
    if load.prefix is not None:
        raise ValueError("these requests share prefixes already: put the system prompt in front when they are made")
    shared = tuple(range(tokens // size))  # the block in which it ends belongs to each request alone
    return replace(
        load, prompt_tokens=load.prompt_tokens + tokens, prefix=(shared,) * len(load), prefix_block_size=size
    )


def histories(conversation: np.ndarray, tokens: np.ndarray, system_tokens: int, size: int) -> tuple[tuple, ...]:
    """A hash for each block of each turn, prompt and answer: the same in all turns of a conversation.

    conversation: of each turn, a number from 0. tokens: of its prompt and answer. The leading `system_tokens` are the
    same in all conversations.
    """
    system = system_tokens // size
    blocks = -(-tokens // size)
    most = np.zeros(int(conversation.max()) + 1, dtype=np.int64)
    np.maximum.at(most, conversation, blocks)
    first = (np.cumsum(most) - most)[conversation].tolist()  # of its own numbers, of which `system` are left out
    shared = tuple(range(system))
    return tuple(
        (*shared[:count], *range(start + system, start + count))
        for start, count in zip(first, blocks.tolist(), strict=True)
    )
