"""The ticket of lab 15: since today long documents share the steps with chats, and a shorter window changes nothing."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab15.promises import (
    BUDGET,
    CHAT,
    CHAT_ANSWER,
    CHAT_PROMPT,
    DOCUMENT,
    POOL,
    SECONDS,
    SLOTS,
    STEP,
)  # fmt: skip
from course.policies import Continuous
from course.workload import Workload, lengths

CHATS, DOCUMENTS, LONG = 8, 1, 12_000  # requests/s of each, and prompt tokens of a document, on average
CAP = 1_024  # the repair: the most tokens of one prompt in a step
EVERY = 5  # seconds of a point of the graphs


def requests(documents: float = DOCUMENTS, seed: int = 0) -> Workload:
    """Chats that come steadily, with so many documents a second."""
    prompts, answers = lengths.lognormal(CHAT_PROMPT, 1.0, 16, 4_096), lengths.lognormal(CHAT_ANSWER, 1.0, 4, 1_024)
    parts = {CHAT: Workload.poisson(CHATS, CHATS * SECONDS, prompts, answers, seed=seed)}
    if documents:
        long = lengths.lognormal(LONG, 0.3, 2_000, 32_000), lengths.lognormal(64, 0.5, 16, 1_024)
        parts[DOCUMENT] = Workload.poisson(documents, int(documents * SECONDS), *long, seed=seed + 5)
    return Workload.mix(parts)


@lru_cache(maxsize=16)
def served(documents: float = DOCUMENTS, seed: int = 0, cap: int = 0, slots: int = SLOTS, **others: Any) -> Run:
    """The minute with the engine's defaults, but for these settings."""
    policy = Continuous(slots, BUDGET, long_prefill_token_threshold=cap, **others)
    return serve(requests(documents, seed), policy, STEP, POOL)


def ttft(run: Run) -> float:
    """p95 of the chats [s]."""
    return float(np.percentile(run.ttft[np.asarray(run.workload.class_) == CHAT], 95))


def documents_ttft(run: Run) -> float:
    """p95 of the documents [s]."""
    return float(np.percentile(run.ttft[np.asarray(run.workload.class_) == DOCUMENT], 95))


@dataclass(frozen=True)
class Graphs:
    """A run and its graphs, a value for each EVERY seconds: seconds, requests, tokens/s."""

    run: Run
    ttft: np.ndarray
    waiting: np.ndarray
    running: np.ndarray
    prompts: np.ndarray

    @property
    def at(self) -> np.ndarray:
        """The middle of each interval [s]."""
        return (np.arange(len(self.ttft)) + 0.5) * EVERY


@lru_cache(maxsize=2)
def graphs(documents: float) -> Graphs:
    """The minute as an operator sees it."""
    run, edges = served(documents), np.arange(0, SECONDS + 1, EVERY)
    chat = np.asarray(run.workload.class_) == CHAT
    came = np.digitize(run.arrival, edges) - 1
    middle = np.digitize((run.steps.start + run.steps.end) / 2, edges) - 1
    points = range(len(edges) - 1)
    return Graphs(
        run=run,
        ttft=np.array([run.ttft[chat & (came == k)].mean() for k in points]),
        waiting=np.array([((run.arrival <= at) & (run.admitted > at)).sum() for at in edges[1:]]),
        running=np.array([((run.admitted <= at) & (run.response > at)).sum() for at in edges[1:]]),
        prompts=np.array([run.steps.prefill_tokens[middle == k].sum() / EVERY for k in points]),
    )
