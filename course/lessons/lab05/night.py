"""The night of the ticket: a chat behind a gateway's window while traffic falls and comes back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab05 import on_a_card
from course.workload import Workload

EVENING = 20  # o'clock, when the graphs begin
RATES = (12, 12, 8, 4, 1, 0.5, 0.5, 0.5, 1, 4, 8, 12)  # requests/s, hour by hour
PART = 240.0  # seconds of each hour that are simulated
WINDOW = 0.1  # seconds
QUIET = slice(5, 8)


@dataclass(frozen=True)
class Night:
    """One run, and a value for each hour: requests/s, seconds, shares."""

    run: Run
    p95: np.ndarray
    wait: np.ndarray
    busy: np.ndarray


def load(seed: int = 0, times: float = 1.0) -> Workload:
    """The chat at RATES, each hour a Poisson process. times: of the rates."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(times * np.array(RATES) * PART)
    arrival = np.concatenate([np.sort(rng.uniform(h * PART, (h + 1) * PART, n)) for h, n in enumerate(counts)])
    chat = on_a_card.load(on_a_card.CHAT, 1.0, len(arrival), seed)
    return Workload(arrival, chat.prompt_tokens, chat.output_tokens)


@lru_cache(maxsize=16)
def night(window: float = WINDOW, seed: int = 0, times: float = 1.0, slots: int = on_a_card.SLOTS) -> Night:
    """The night behind a window of so many seconds."""
    run = serve(load(seed, times), policies.Window(slots, window), on_a_card.step_time("H100"))
    hour = np.minimum(run.arrival // PART, len(RATES) - 1)
    begun = np.minimum(run.steps.start // PART, len(RATES) - 1)
    hours = range(len(RATES))
    return Night(
        run=run,
        p95=np.array([np.percentile(run.ttft[hour == h], 95) for h in hours]),
        wait=np.array([run.queue_wait[hour == h].mean() for h in hours]),
        busy=np.array([run.steps.seconds[begun == h].sum() / PART for h in hours]),
    )
