"""What the decision is about: a vision model behind Triton's dynamic batcher, and a minute of its metrics page."""

from __future__ import annotations

from functools import lru_cache

from course import policies, steptime
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab05.served import Served
from course.workload import Workload

T0_MS, EACH_MS = 4.0, 0.5  # of a batch, and of each image in it
STEP = steptime.PowerLaw(t0=T0_MS / 1e3, c=0, alpha=1, prefill=EACH_MS / 1e3)
RATE, LARGEST, MINUTE = 200, 32, 60  # images/s, the most in a batch, seconds
GOAL = 0.020  # seconds, p95 of an image
CHOICES_US = (0, 5_000, 10_000, 15_000, 20_000)
TWIN = {"rate": 400.0, "goal": 0.015}
BATCH = 8
"""Images of the batch that the vendor's tool timed."""


@lru_cache(maxsize=64)
def served(delay_us: float, rate: float = RATE, seed: int = 0) -> Served:
    """A minute of images behind this delay [microseconds]; an image is one token of prompt and one of answer."""
    load = Workload.poisson(rate, round(MINUTE * rate), 1, 1, seed)
    run: Run = serve(load, policies.Dynamic(LARGEST, delay_us / 1e6), STEP)
    return Served(delay_us / 1e6, run)


def largest(goal: float = GOAL, rate: float = RATE) -> int:
    """The largest delay to choose from [microseconds] with which the p95 is at most `goal` seconds."""
    return max(delay for delay in CHOICES_US if served(delay, rate).p95 <= goal)


def expected(delay_us: float, rate: float = RATE) -> float:
    """By hand [s]: the delay, and a batch of whoever opened it and those who come in it."""
    return delay_us / 1e6 + (T0_MS + EACH_MS * (1 + rate * delay_us / 1e6)) / 1e3


def page() -> list[str]:
    """What a metrics page says after that minute without delay: images, and batches that ran."""
    run = served(0).run
    numbers = {"nv_inference_count": len(run), "nv_inference_exec_count": len(run.steps)}
    return [f'{name}{{model="vision",version="1"}} {value}' for name, value in numbers.items()]
