"""The third scenario of lab 09, deeper: sessions that pause, whose memory is whose, and pools by class."""

from __future__ import annotations

from functools import cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab09.pool import BLOCK, BUDGET, SLOTS, STEP, TOKENS, VERSION
from course.memory.kvcache import KVCache
from course.workload import Workload, lengths

RATE, CHATS, TURNS, PAUSE = 1.0, 200, 4, 60.0  # chats/s, chats, turns of each, seconds between two turns on average
NEW, ANSWER = 150, 300  # tokens of a turn
SHORT, LONG = 20.0, 60.0  # seconds: pauses below, and above
POOLS = (TOKENS, 2 * TOKENS, 4 * TOKENS, 8 * TOKENS)  # tokens

QUESTIONS, DOCUMENTS = (10.0, 600, 150, 300), (1.0, 60, 3_000, 200)  # requests/s, requests, prompt, answer [tokens]
PARTS = 60  # moments at which the shares are read


@cache
def talks() -> Workload:
    """Chats whose turns are some seconds apart."""
    return Workload.turns(RATE, CHATS, TURNS, NEW, ANSWER, PAUSE, 1.0, 0, 0, BLOCK)


@cache
def paused(tokens: int, kept: bool = True) -> Run:
    """The chats in a pool; kept: blocks of an answer that has ended stay until their room is needed."""
    pool = KVCache(tokens // BLOCK, BLOCK, VERSION, prefix_caching=kept)
    return serve(talks(), policies.Continuous(SLOTS, BUDGET, engine_version=VERSION), STEP, pool)


def found(run: Run, low: float = 0.0, high: float = np.inf) -> float:
    """Share of the prompt tokens of later turns that were found, of those whose pause was in between."""
    if run.log.lookups is None:
        return 0.0
    row, known, hits = np.asarray(run.log.lookups).T
    later = row % TURNS > 0
    pause = run.arrival[row] - np.where(later, run.response[row - 1], np.nan)
    here = later & (pause >= low) & (pause < high)
    return float(hits[here].sum() / known[here].sum())


def idle_tokens() -> float:
    """Tokens of the chats that pause, on average, by Little's law: all but the last turn leave a history behind."""
    return RATE * PAUSE * (NEW + ANSWER) * sum(range(1, TURNS))


def idle_sessions() -> Table:
    """What becomes of the memory of a session that pauses."""
    rows: list[tuple[str, ...]] = [
        ("", "found", f"after less than {SHORT:g} s", f"after more than {LONG:g} s", "mean TTFT")
    ]
    named = [("given back at once", paused(TOKENS, False))]
    named += [(f"oldest evicted, {tokens:,} tokens", paused(tokens)) for tokens in POOLS]
    for name, run in named:
        shares = (f"{share:.0%}" for share in (found(run), found(run, 0, SHORT), found(run, LONG)))
        rows.append((name, *shares, seconds(float(run.ttft.mean()))))
    return table(rows, f"{CHATS} chats of {TURNS} turns, pauses of {PAUSE:g} s on average [{STEP.simulated}]")


@cache
def one_pool(seed: int = 0) -> Run:
    """Questions, and documents that come in bursts, in one pool."""
    rate, many, prompt, answer = QUESTIONS
    questions = Workload.poisson(rate, many, prompt, lengths.lognormal(answer, cv=1.0), seed)
    rate, many, prompt, answer = DOCUMENTS
    documents = Workload.on_off(rate, many, prompt, lengths.lognormal(answer, cv=1.0), 0.25, 20.0, seed)
    load = Workload.mix({"question": questions, "document": documents})
    pool = KVCache(TOKENS // BLOCK, BLOCK, VERSION)
    return serve(load, policies.Continuous(SLOTS, BUDGET, engine_version=VERSION), STEP, pool)


@cache
def held_by_class(seed: int = 0) -> dict[str, np.ndarray]:
    """The share of the pool that each class holds, at PARTS moments until the last arrival."""
    run = one_pool(seed)
    moments = np.linspace(0, float(run.arrival.max()), PARTS + 1)[1:]
    classes = np.asarray(run.workload.class_)
    held = {str(kind): np.zeros(PARTS) for kind in np.unique(classes)}
    for row in range(len(run)):
        runs = (moments >= run.admitted[row]) & (moments < run.response[row])
        said = np.searchsorted(run.token_times(row), moments[runs], side="right")
        held[str(classes[row])][runs] += (run.workload.prompt_tokens[row] + said) / TOKENS
    return held


def largest(seed: int = 0) -> dict[str, tuple[float, float]]:
    """The least and the most that each class holds of the pool."""
    return {kind: (float(share.min()), float(share.max())) for kind, share in held_by_class(seed).items()}


def beyond_half(seed: int = 0) -> float:
    """Share of the moments at which a class holds more than half of the pool, and both together fit."""
    shares = np.array(list(held_by_class(seed).values()))
    return float(((shares.max(axis=0) > 0.5) & (shares.sum(axis=0) <= 1)).mean())
