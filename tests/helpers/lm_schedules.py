"""A language model under any schedule: any batch, any chunks, any blocks; and the logits behind its words."""

from __future__ import annotations

from random import Random

import numpy as np

from course.lm import GREEDY, LanguageModel, Sampling
from course.lm.sampling import cumulate, uniform


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
    cache = model.paged_kv(len(prompts) * -(-context // block_size), block_size)
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


def alone(model: LanguageModel, before: list[int], answer: list[int]) -> np.ndarray:
    """The logits before each token of an answer, the prompt alone and all in one step."""
    tokens = before + answer[:-1]
    cache = model.paged_kv(-(-len(tokens) // 16))
    logits = model.forward(tokens, [len(tokens)], [0], [range(cache.num_blocks)], cache, every=True)
    return logits[len(before) - 1 :]


def side_by_side(model: LanguageModel, prompts: list[list[int]], answers: list[list[int]]) -> list[np.ndarray]:
    """The same of all prompts, sixteen of them in a batch: first their chunks, then a decode of each."""
    found: list[list[np.ndarray]] = [[] for _ in prompts]
    for first in range(0, len(prompts), 16):
        rows = list(range(first, min(first + 16, len(prompts))))
        cache = model.paged_kv(32 * 16)
        tables = {i: range(32 * (i - first), 32 * (i - first) + 32) for i in rows}
        tokens = [token for i in rows for token in prompts[i]]
        counts, computed = [len(prompts[i]) for i in rows], [0] * len(rows)
        while rows:
            logits = model.forward(tokens, counts, computed, [tables[i] for i in rows], cache)
            for i, row in zip(rows, logits, strict=True):
                found[i].append(row)
            rows = [i for i in rows if len(found[i]) < len(answers[i])]
            tokens, counts = [answers[i][len(found[i]) - 1] for i in rows], [1] * len(rows)
            computed = [len(prompts[i]) + len(found[i]) - 1 for i in rows]
    return [np.stack(one) for one in found]


def is_certain(logits: np.ndarray, sampling: Sampling, number: int, first: int, error: float) -> bool:
    """Whether no random number falls so close to the edge between two tokens that an error can carry it over.

    logits: before each token of the answer of request `number`, the first of them at place `first`. An error e of all
    logits moves a cumulative probability by at most exp(2 e / temperature) - 1 times it.
    """
    places = np.arange(first, first + len(logits))
    drawn = uniform(sampling.seed, np.full(len(places), number), places)[:, None]
    edges = cumulate(logits, sampling.temperature)
    return bool(np.abs(edges - drawn).min() > np.expm1(2 * error / sampling.temperature))
