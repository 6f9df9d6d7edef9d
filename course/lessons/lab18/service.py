"""The service that is to be run: who asks, what is promised, and what a card costs an hour.

Six assistants, each behind a system prompt of its own, and people who ask three questions about a document. A day in
little: chat rises and falls, in bursts; documents come all the time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from course.models.prices import per_hour
from course.workload import Workload
from course.workload.slo import SLO

MODEL = "llama-3.1-8b"
CHAT, DOCS = "chat", "docs"
NEED = 0.95  # of each class must be within its promise
PRICES = {card: per_hour(card) for card in ("H100", "H200")} | {"A100": 1.40, "L40S": 0.75}
"""Dollars an hour of one card: assumed, those of A100 and L40S for this lab."""
BLOCK = 16  # tokens
SECONDS = 20.0
RATE, DOCUMENTS, BURSTS = 48.0, 0.09, 2.0  # requests/s, share of questions about documents, variation of the gaps
MORE, MORE_DOCUMENTS, MORE_BURSTS = 1.03, 0.10, 2.2  # on a day that was not seen
SEEN, BEFORE = 0, 1  # seeds: of the day that is scored, and of the day before, which the explorers show
UNSEEN = tuple(range(101, 121))  # of days that nobody has seen
SHAPE = (0.6, 1.0, 1.5, 0.9)  # of the chat's rate, quarter by quarter
ASSISTANTS = {1_600: 6, 800: 5, 2_400: 4, 400: 3, 1_200: 2, 3_200: 1}  # tokens of a system prompt: how often it is used
QUESTIONS = 3  # about each document
LONGEST = 32_768  # tokens of prompt and answer, with room
PROMISES: dict[str, Any] = {CHAT: SLO(ttft=0.8, tpot=0.030), DOCS: SLO(ttft=6.0, tpot=0.050)}


@lru_cache(maxsize=64)
def day(seed: int = SEEN) -> Workload:
    """The requests of one day. From seed UNSEEN[0] on it is busier, with more documents and in larger bursts."""
    seen = seed < UNSEEN[0]
    rng = np.random.default_rng([18, seed])
    rate = RATE if seen else MORE * RATE
    documents, bursts = (DOCUMENTS, BURSTS) if seen else (MORE_DOCUMENTS, MORE_BURSTS)
    rows = [*_chat(rng, rate * (1 - documents), bursts), *_documents(rng, rate * documents)]
    rows.sort(key=lambda row: row[0])
    arrival, prompt, output, class_, prefix = zip(*rows, strict=True)
    slo: Any = PROMISES  # by class, which a Workload turns into one for each request
    return Workload(
        np.array(arrival), np.array(prompt), np.array(output), class_=np.array(class_), prefix=prefix,
        prefix_block_size=BLOCK, slo=slo, name=f"day {seed}",
    )  # fmt: skip


def _chat(rng: np.random.Generator, rate: float, bursts: float) -> list[tuple]:
    """(arrival, prompt, output, class, prefix) of each question to an assistant."""
    times, now = [], 0.0
    while True:
        here = rate * SHAPE[int(len(SHAPE) * now / SECONDS)]
        now += rng.gamma(1 / bursts**2, bursts**2 / here)
        if now >= SECONDS:
            break
        times.append(now)
    tokens, weights = np.array(list(ASSISTANTS)), np.array(list(ASSISTANTS.values()))
    which = rng.choice(len(tokens), len(times), p=weights / weights.sum())
    ends = np.cumsum(tokens // BLOCK)
    shared = [tuple(range(end - size // BLOCK, end)) for size, end in zip(tokens.tolist(), ends.tolist(), strict=True)]
    prompts = tokens[which] + _lognormal(rng, len(times), 400, 1.2, 16, 4_000)
    outputs = _lognormal(rng, len(times), 180, 0.9, 8, 900)
    columns = zip(times, prompts.tolist(), outputs.tolist(), which.tolist(), strict=True)
    return [(time, prompt, output, CHAT, shared[one]) for time, prompt, output, one in columns]


def _documents(rng: np.random.Generator, rate: float) -> list[tuple]:
    """The same of each question about a document; what all its questions begin with is the document."""
    rows, first = [], 10**6
    for _ in range(round(rate * SECONDS / QUESTIONS)):
        blocks = int(_lognormal(rng, 1, 7_000, 0.5, 1_500, 20_000)[0]) // BLOCK
        shared, first = tuple(range(first, first + blocks)), first + blocks
        time = rng.uniform(0, 0.85 * SECONDS)
        for _ in range(QUESTIONS):
            prompt = blocks * BLOCK + int(rng.integers(30, 200))
            output = int(_lognormal(rng, 1, 250, 0.6, 16, 900)[0])
            if time < SECONDS:
                rows.append((time, prompt, output, DOCS, shared))
            time += 1 + rng.exponential(4.0)
    return rows


def _lognormal(rng: np.random.Generator, n: int, mean: float, cv: float, low: int, high: int) -> np.ndarray:
    """Whole numbers around a mean; cv: their standard deviation over it, before those outside are moved to the edge."""
    sigma = np.sqrt(np.log(1 + cv * cv))
    return np.clip(np.exp(rng.normal(np.log(mean) - sigma**2 / 2, sigma, n)), low, high).astype(int)
