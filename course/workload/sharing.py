"""Prompts that begin alike: what is the same is said by the hashes of their blocks (`Workload.prefix`)."""

from dataclasses import replace
from typing import Any

import numpy as np

from course.base.settings import MAX_REQUESTS, MAX_TOKENS, real, seed_sequence, whole

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


def with_documents(
    load: Workload, documents: int, tokens: int, skew: float, prefix_block_size: int, seed: int
) -> Workload:
    """See `Workload.with_documents`."""
    documents = whole("documents", documents, high=MAX_REQUESTS)
    tokens, skew = whole("tokens", tokens, high=MAX_TOKENS), real("skew", skew, low=0, high=100)
    size = whole("prefix_block_size", prefix_block_size, high=MAX_TOKENS)
    if load.prefix is not None:
        raise ValueError("these requests share prefixes already: put the documents in front when they are made")
    weights = 1 / np.arange(1, documents + 1) ** skew
    rng = np.random.default_rng(seed_sequence(seed))
    which = rng.choice(documents, len(load), p=weights / weights.sum())
    each = tokens // size  # the block in which a document ends belongs to each request alone
    prefix = tuple(tuple(range(each * one, each * one + each)) for one in which.tolist())
    return replace(load, prompt_tokens=load.prompt_tokens + tokens, prefix=prefix, prefix_block_size=size)


def forks(trunk: np.ndarray, whole_text: np.ndarray, system_tokens: int, size: int) -> tuple[tuple, ...]:
    """A hash for each block of requests that begin as another one's prompt and answer, and go on each in its own way.

    trunk: (agents,) tokens of that one's prompt and answer. whole_text: (agents, branches) of the others'. Rows stand
    agent by agent, the trunk first. The leading `system_tokens` are the same in all.
    """
    shared, number, rows = tuple(range(system_tokens // size)), system_tokens // size, list[tuple]()
    for tokens, branches in zip(trunk.tolist(), whole_text.tolist(), strict=True):
        first = (*shared, *range(number, number - len(shared) - (-tokens // size)))
        number, common = number + len(first), first[: tokens // size]
        rows.append(first)
        for text in branches:
            rows.append((*common, *range(number, number - len(common) - (-text // size))))
            number += len(rows[-1])
    return tuple(rows)


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
