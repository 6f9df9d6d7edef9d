"""A scheduler that does anything that a policy may do with a language model: any batch, any chunks, any blocks."""

from __future__ import annotations

from random import Random

import numpy as np

from course.lm import GREEDY, LanguageModel, PagedKV, Sampling


def speak(
    model: LanguageModel,
    prompts: list[list[int]],
    draw: Random,
    *,
    block_size: int = 16,
    longest_chunk: int = 64,
    preempt: float = 0.0,
    sampling: Sampling = GREEDY,
    requests: list[int] | None = None,
) -> list[list[int]]:
    """The tokens that each prompt is answered with, the end included, under random decisions.

    In each step some of the requests compute a chunk of random length (a decode is a chunk of one); blocks come from a
    shuffled heap; with probability `preempt` one request loses all its blocks and is computed again, its own words too.
    """
    numbers = list(range(len(prompts))) if requests is None else requests
    context = model.config.max_position_embeddings
    cache = PagedKV(model.config, len(prompts) * -(-context // block_size), block_size)
    heap = list(range(cache.num_blocks))
    draw.shuffle(heap)
    rows, tables = [list(prompt) for prompt in prompts], [[] for _ in prompts]
    computed, running = [0] * len(prompts), set(range(len(prompts)))
    while running:
        if draw.random() < preempt:
            victim = draw.choice(sorted(running))
            heap += tables[victim]
            draw.shuffle(heap)
            tables[victim], computed[victim] = [], 0
        batch = draw.sample(sorted(running), draw.randint(1, len(running)))
        counts = [min(len(rows[row]) - computed[row], draw.randint(1, longest_chunk)) for row in batch]
        for row, count in zip(batch, counts, strict=True):
            while len(tables[row]) * block_size < computed[row] + count:
                tables[row].append(heap.pop())
        tokens = [token for row, n in zip(batch, counts, strict=True) for token in rows[row][computed[row] :][:n]]
        logits = model.forward(tokens, counts, [computed[row] for row in batch], [tables[row] for row in batch], cache)
        places = np.array([computed[row] + count for row, count in zip(batch, counts, strict=True)])
        chosen = sampling.choose(logits, np.array([numbers[row] for row in batch]), places)
        for row, place, token in zip(batch, places.tolist(), chosen.tolist(), strict=True):
            computed[row] = place
            if place == len(rows[row]):
                rows[row].append(token)
                if token == model.tokenizer.end or len(rows[row]) == context:
                    running.remove(row)
                    heap += tables[row]
    return [row[len(prompt) :] for row, prompt in zip(rows, prompts, strict=True)]
