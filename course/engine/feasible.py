"""Requests that no engine of these settings can serve, found before the first step."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.base import settings
from course.memory.contiguous_pool import piece
from course.memory.kvcache import KVCache
from course.policies.base import Policy
from course.policies.continuous import Continuous


def check_feasible(
    prompt: np.ndarray, output: np.ndarray, row: int, policy: Policy, budget: float, cache: KVCache | None
) -> None:
    """Raises ValueError for a request that can never be served, and for an endless run.

    prompt, output: tokens; of requests whose numbers count from `row`.
    """
    threshold = policy.cap_among(1) if isinstance(policy, Continuous) else 0
    steps = np.maximum(np.ceil(prompt / min(threshold or budget, budget)), 1) + output - 1
    most = int(steps.argmax())
    if steps[most] > settings.MAX_STEPS:
        raise ValueError(
            f"request {row + most} alone, with {prompt[most]:,} prompt and {output[most]:,} output "
            f"tokens, takes {steps[most]:,.0f} steps, and a run holds at most {settings.MAX_STEPS:,}: shorten it, or "
            "raise the token budget"
        )
    longest = prompt + output - 1  # tokens in the cache when the last one is sampled
    worst = int(longest.argmax())
    blocks = cache.blocks_for(int(longest[worst])) if cache else 0
    if cache is not None and blocks > cache.num_blocks:
        raise ValueError(
            f"request {row + worst} needs {longest[worst]} tokens of KV cache, {blocks} blocks, and num_blocks is "
            f"{cache.num_blocks}: it can never be served; raise num_blocks or shorten the request"
        )
    if isinstance(policy, Continuous) and not policy.enable_chunked_prefill and longest[worst] > budget:
        raise ValueError(
            f"request {row + worst} may need {longest[worst]} tokens in one step (its prompt, or all of it after a "
            f"preemption), and max_num_batched_tokens is {budget} with enable_chunked_prefill=False: raise the budget "
            f"to {longest[worst]}, or turn chunking on"
        )


def check_pieces(
    cache: KVCache | None, prompt: np.ndarray, output: np.ndarray, guess: np.ndarray | None, row: int
) -> None:
    """Raises ValueError for a request that outgrows the piece that is reserved for it.

    prompt, output: tokens; guess: of the answer, NaN where nobody guessed; of requests whose numbers count from `row`.
    """
    if cache is None or not cache.reserve:
        return
    guesses = [None] * len(prompt) if guess is None else [None if np.isnan(g) else float(g) for g in guess]
    for place, answer in enumerate(guesses):
        reserved = piece(cache.reserve, cache.max_model_len or 0, int(prompt[place]), answer)
        if prompt[place] + output[place] - 1 > reserved:
            raise ValueError(
                f"request {row + place} grows to {prompt[place] + output[place] - 1} tokens, and {reserved} are "
                "reserved for it: raise max_model_len, or the guess of its answer"
            )


def check_prefixes(cache: KVCache | None, prefixes: Sequence[Sequence], size: Any, row: int) -> None:
    """Raises ValueError for hashes of blocks that a prefix cache can make no blocks of its own of.

    prefixes: of requests whose numbers count from `row`. size: tokens of a block that a hash stands for.
    """
    if cache is None or not cache.prefix_caching or not any(prefixes):
        return
    if size is None:
        raise ValueError(
            f"request {row + next(place for place, ids in enumerate(prefixes) if ids)} has prefix hashes, and nobody "
            "said of how many tokens each: set prefix_block_size"
        )
    if size % cache.block_size and cache.block_size % size:
        raise ValueError(
            f"a prefix hash stands for {size} tokens and a block of the cache has {cache.block_size}: choose a "
            "block_size that divides the former, or is a multiple of it"
        )
