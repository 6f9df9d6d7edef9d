"""The same window in front of a language model on a card: a chat, and answers of one token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from course import policies, steptime
from course.engine.serving import serve
from course.figures.words import seconds
from course.lessons.lab05.served import Served
from course.workload import Workload, lengths

CARDS = {"H100": "h100-llama3-8b", "H200": "h200-llama3-8b-flash"}
CHAT, ONE = "chat", "one token"
REQUESTS, SLOTS = 1_000, 64
PROMPT, ANSWER, LONGEST_PROMPT, LONGEST_ANSWER = 512, 128, 4_096, 1_024  # tokens of the chat
SHORT = 64  # tokens of a prompt with an answer of one token
RATE, WINDOW_MS = 1.5, 50.0


@cache
def step_time(card: str) -> steptime.Recorded:
    """The recorded steps of Llama-3.1-8B on that card."""
    return steptime.recorded(CARDS[card])


def load(work: str, rate: float, num_requests: int = REQUESTS, seed: int = 0) -> Workload:
    """Poisson arrivals [requests/s] of a chat, or of short prompts whose answer is one token."""
    if work == ONE:
        return Workload.poisson(rate, num_requests, SHORT, 1, seed)
    prompts, answers = lengths.lognormal(PROMPT, 1, 1, LONGEST_PROMPT), lengths.lognormal(ANSWER, 1, 1, LONGEST_ANSWER)
    return Workload.poisson(rate, num_requests, prompts, answers, seed)


@lru_cache(maxsize=256)
def served(
    work: str, rate: float, window_ms: float, card: str = "H100", num_requests: int = REQUESTS, seed: int = 0,
    slots: int = SLOTS,
) -> Served:  # fmt: skip
    """Serve it behind a window of so many milliseconds. Raises ValueError for a window below 0."""
    window = window_ms / 1e3
    run = serve(load(work, rate, num_requests, seed), policies.Window(slots, window), step_time(card))
    return Served(window, run)


@dataclass(frozen=True)
class Both:
    """The same requests with the window and without."""

    waits: Served
    never: Served

    @property
    def later(self) -> float:
        """How much longer the p95 of TTFT is with the window [s]."""
        return self.waits.p95 - self.never.p95

    @property
    def spared(self) -> float:
        """Share of all time that the card no longer computes."""
        return self.never.busy - self.waits.busy

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the run, such as an overload."""
        return self.waits.warnings


def both(work: str = CHAT, rate: float = RATE, window_ms: float = WINDOW_MS, card: str = "H100") -> Both:
    """Serve it with the window and without."""
    return Both(served(work, rate, window_ms, card), served(work, rate, 0.0, card))


def rows(found: Both) -> list[tuple[str, ...]]:
    """Rows for a table: users, then the card."""
    runs = (found.waits, found.never)
    return [
        ("", "with the window", "without"),
        ("TTFT, mean", *(seconds(run.ttft) for run in runs)),
        ("TTFT, p95", *(seconds(run.p95) for run in runs)),
        ("came to an idle engine", *(f"{run.idle.mean():.0%}" for run in runs)),
        ("batch, mean", *(f"{run.batch:.2f}" for run in runs)),
        ("GPU computes", *(f"{run.busy:.1%}" for run in runs)),
    ]
