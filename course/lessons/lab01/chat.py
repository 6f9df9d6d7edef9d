"""The chat of lab 01: one H100 behind a gateway that holds requests for a window. TTFT as its users see it, in parts.

Pure functions of the settings of the sliders, and the rows of their tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from course import policies, steptime
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.workload import Workload, lengths

STEP = steptime.recorded("h100-llama3-8b")
REQUESTS, PROMPT, OUTPUT, CV = 2_000, 512, 256, 1.0
SLOTS, BUDGET = 32, 2_048
RATE, WINDOW_MS, OUTSIDE_MS = 10, 100, 60  # requests/s, and milliseconds
POLICY = policies.Continuous(max_num_seqs=SLOTS, max_num_batched_tokens=BUDGET)
PARTS = ("outside", "window", "queue", "prefill")
AROUND = 0.005
"""Share of all requests on either side of a percentile whose parts stand for it."""


def requests(rate: float, num_requests: int = REQUESTS, prompt: int = PROMPT, seed: int = 0) -> Workload:
    """Poisson arrivals at the gateway [requests/s]; answers of 256 tokens on average, with a CV of 1."""
    return Workload.poisson(rate, num_requests, prompt, lengths.lognormal(OUTPUT, CV), seed)


def passed_on(arrival: np.ndarray, window: float) -> np.ndarray:
    """When a gateway passes each request on to the engine.

    A window opens when a request comes and none is open; at its end all that came in it are passed on. arrival:
    seconds, non-decreasing, shape (n,). window: seconds. Returns seconds, shape (n,).
    """
    released, first = np.empty(len(arrival)), 0
    while first < len(arrival):
        end = arrival[first] + window
        last = max(first + 1, int(np.searchsorted(arrival, end, side="right")))
        released[first:last], first = end, last
    return released


def mean_window_wait(window: float, rate: float) -> float:
    """Mean wait [s] in such a window under Poisson arrivals, D (1 + λ D / 2) / (1 + λ D).

    Whoever opens it waits all of it; λ D more come on average, each at a uniform moment of it, and wait half.
    """
    more = rate * window
    return window * (1 + more / 2) / (1 + more)


@dataclass(frozen=True)
class Chat:
    """One run as its users see it.

    rate: requests/s. sent: when each request reached the gateway [s]. window: seconds. outside: seconds of network,
    tokenizer and text, there and back, the same for each request. run: the engine's part, which begins at the end of
    the window.
    """

    rate: float
    window: float
    outside: float
    sent: np.ndarray
    run: Run

    @cached_property
    def parts(self) -> Mapping[str, np.ndarray]:
        """Seconds of each part of TTFT, shape (requests,) each; they add up to `ttft`."""
        return {
            "outside": np.full(len(self.run), self.outside),
            "window": self.run.arrival - self.sent,
            "queue": self.run.queue_wait,
            "prefill": self.run.first_computed - self.run.admitted,
        }

    @cached_property
    def ttft(self) -> np.ndarray:
        """From the user's click to the first token on the screen [s]."""
        return self.outside + (self.run.first_computed - self.sent)

    @cached_property
    def e2e(self) -> np.ndarray:
        """From the click to the last token [s]."""
        return self.outside + (self.run.response - self.sent)

    def percentile(self, percent: float) -> float:
        """A percentile of TTFT [s]."""
        return float(np.percentile(self.ttft, percent))

    def mean(self, part: str) -> float:
        """Mean of a part [s]."""
        return float(self.parts[part].mean())

    def near(self, part: str, percent: float) -> float:
        """Mean of a part [s] over those requests whose TTFT is nearest to this percentile of it."""
        order, many = np.argsort(self.ttft, kind="stable"), len(self.run)
        low, high = (round((percent / 100 + side * AROUND) * many) for side in (-1, 1))
        return float(self.parts[part][order[max(0, low) : high]].mean())

    @property
    def engine(self) -> float:
        """Mean TTFT as the engine sees it: queue and prefill [s]."""
        return self.mean("queue") + self.mean("prefill")

    @property
    def tokens_per_gpu_second(self) -> float:
        """Tokens of answers for each second in which the GPU computes."""
        return float(self.run.workload.output_tokens.sum() / self.run.steps.seconds.sum())

    @property
    def tokens_per_second(self) -> float:
        """Tokens of answers from the first arrival to the last answer."""
        return float(self.run.workload.output_tokens.sum() / (self.run.response.max() - self.sent.min()))

    @property
    def reader(self) -> float:
        """Tokens/s that the median user gets, from the click to the last token."""
        return float(np.median(self.run.workload.output_tokens / self.e2e))


@lru_cache(maxsize=256)
def chat(
    rate: float = RATE, window_ms: float = WINDOW_MS, prompt: int = PROMPT, outside_ms: float = OUTSIDE_MS,
    num_requests: int = REQUESTS, seed: int = 0,
) -> Chat:  # fmt: skip
    """Serve the chat: rate in requests/s, window and the time outside in milliseconds, prompts in tokens."""
    load = requests(rate, num_requests, prompt, seed)
    held = Workload(passed_on(load.arrival, window_ms / 1e3), load.prompt_tokens, load.output_tokens)
    return Chat(rate, window_ms / 1e3, outside_ms / 1e3, load.arrival, serve(held, POLICY, STEP))


def rows(found: Chat) -> list[tuple[str, ...]]:
    """Rows for a table: TTFT and its parts, in the mean and around two percentiles."""
    table: list[tuple[str, ...]] = [("", "mean", "p50", "p99")]
    table += [
        (part, seconds(found.mean(part)), seconds(found.near(part, 50)), seconds(found.near(part, 99)))
        for part in PARTS
    ]
    values = (float(found.ttft.mean()), found.percentile(50), found.percentile(99))
    return [*table, ("TTFT", *map(seconds, values))]


def two_clocks() -> list[tuple[str, ...]]:
    """The question's table: what the engine's dashboard shows, and what users see."""
    found = chat()
    inside = found.run.ttft
    return [
        ("", "engine's dashboard", "users"),
        ("TTFT, mean", seconds(float(inside.mean())), seconds(float(found.ttft.mean()))),
        ("TTFT, p99", seconds(float(np.percentile(inside, 99))), seconds(found.percentile(99))),
        ("tokens/s", f"{found.tokens_per_gpu_second:,.0f} of the GPU", f"{found.reader:,.0f} of one answer"),
    ]


BY_HAND = {"arrival": (0.0, 0.0, 1.0, 1.5), "output": (4, 2, 3, 2)}
"""Seconds and tokens of four requests that one can follow on paper."""


@lru_cache(maxsize=1)
def by_hand() -> Run:
    """Those four with two slots and steps of one second; a prompt takes one step."""
    load = Workload(np.array(BY_HAND["arrival"]), np.ones(4, dtype=int), np.array(BY_HAND["output"]))
    return serve(load, policies.Continuous(2, 64), steptime.PowerLaw(t0=1, c=0, alpha=1))
