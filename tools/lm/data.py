"""Training rows: conversations as tokens, packed into rows of the context's length, in several processes."""

from __future__ import annotations

import multiprocessing
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from course.lm.tokenizer import Tokenizer
from tools.lm.text import TRAINING, Exchange, conversations, exchanges

LENGTH = 512
START = 4_096  # added to a conversation's first token; larger than any token
SHARD = 10_000  # conversations in one piece of work
OPEN = 100  # rows that wait for a conversation that fits


def encode(tokenizer: Tokenizer, said: list[tuple[str, str]]) -> list[int]:
    """The tokens of a conversation: user, prompt, assistant, answer, end, user, ..."""
    tokens: list[int] = []
    for prompt, answer in said:
        tokens += [
            tokenizer.user,
            *tokenizer.encode(prompt),
            tokenizer.assistant,
            *tokenizer.encode(answer),
            tokenizer.end,
        ]
    return tokens


def shard(seed: int, number: int, path: str) -> np.ndarray:
    """`number` conversations of one seed in rows, uint16 [rows, LENGTH]; what is longer than a row is left out."""
    tokenizer, rows, room = Tokenizer(path), [], np.zeros(0, int)
    waiting: list[list[int]] = []
    for said in islice(conversations(seed), number):
        tokens = encode(tokenizer, said)
        if len(tokens) > LENGTH:
            continue
        tokens[0] += START
        fits = np.flatnonzero(room >= len(tokens))
        if fits.size:
            place = fits[room[fits].argmin()]
            waiting[place] += tokens
            room[place] -= len(tokens)
        else:
            if len(waiting) == OPEN:
                fullest = int(room.argmin())
                rows.append(waiting.pop(fullest))
                room = np.delete(room, fullest)
            waiting.append(tokens)
            room = np.append(room, LENGTH - len(tokens))
    packed = np.zeros((len(rows) + len(waiting), LENGTH), np.uint16)
    for line, tokens in zip(packed, rows + waiting, strict=True):
        line[: len(tokens)] = tokens
    return packed


def training_rows(path: Path, *, seed: int, number: int, processes: int) -> np.ndarray:
    """The packed rows of `number` conversations, uint16, in the same order however many processes there are."""
    shards = -(-number // SHARD)
    work = partial(shard, number=min(SHARD, number), path=str(path))
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return np.concatenate(pool.map(work, range(1_000 * seed, 1_000 * seed + shards), chunksize=1))


def question(tokenizer: Tokenizer, exchange: Exchange) -> tuple[list[int], list[int]]:
    """The tokens before the answer, and those of the answer with the end."""
    return tokenizer.prompt(exchange.turns), [*tokenizer.encode(exchange.answer), tokenizer.end]


def held_out_mix(seed: int, number: int) -> list[Exchange]:
    """Held-out exchanges in the shares of the training text."""
    return list(islice(exchanges(seed, shares=TRAINING), number))
