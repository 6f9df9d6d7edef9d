"""The decode-step benchmark: requests arrive on a simulated clock, and every step takes as long as it was measured to.

Two policies decide who is in a step, `policies.Window` and `policies.NoteWindow`. Both are simulated around real
launches: the clock moves by the waiting that a policy orders and by the measured seconds of each step, never by the
time that this program itself takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.base import settings
from course.engine import executor
from course.engine.executor import Executor, Work
from course.engine.serving import Engine, finish
from course.gpu.device import Device
from course.gpu.ops.decode_step import MAX_BATCH, MAX_WORK, DecodeStep, LiveStep, checked_threads
from course.gpu.sweep import FixedBatch, fixed_batches
from course.policies import NoteWindow, Window
from course.workload import Workload

LOOPS = ("window", "note")
MAX_REQUESTS = 1_000_000
MAX_STEPS = 20_000_000
MAX_SECONDS = 900.0
FULL = 2_048  # sequences that fill any card of today

StepSeconds = Callable[[int], float]
"""From the number of sequences in a step to the seconds that it took."""


@dataclass(frozen=True)
class Settings:
    """What the benchmark is asked for; the names are those of the command line.

    nreq: requests. rate: arrivals a second (--lambda). tokens: of every answer. bmax: the most sequences in a step.
    window_ms: the admission window in milliseconds. work, threads: of the kernel (see gpu.DecodeStep). seed: of the
    Poisson arrivals. loop: "window" or "note".

    Raises ValueError: a value that cannot be used, in a sentence that names the option.
    """

    nreq: int = 200
    rate: float = 80.0
    tokens: int = 32
    bmax: int = 16
    window_ms: float = 6.0
    work: int = 16_384
    threads: int = 256
    seed: int = 0
    loop: str = "window"

    def __post_init__(self) -> None:
        whole, real = settings.whole, settings.real
        clean = {
            "nreq": whole("--nreq", self.nreq, high=MAX_REQUESTS),
            "rate": real("--lambda", self.rate, low=1e-3, high=1e6),
            "tokens": whole("--tokens", self.tokens, high=MAX_REQUESTS),
            "bmax": whole("--bmax", self.bmax, high=MAX_BATCH),
            "window_ms": real("--window-ms", self.window_ms, low=0, high=60_000),
            "work": whole("--work", self.work, high=MAX_WORK),
            "threads": checked_threads(self.threads, "--threads"),
            "seed": whole("--seed", self.seed, low=0, high=2**64 - 1),
        }
        for name, value in clean.items():
            object.__setattr__(self, name, value)
        if self.loop not in LOOPS:
            raise ValueError(f"--loop must be {' or '.join(LOOPS)}, not {settings.quote(self.loop)}")
        if self.nreq * self.tokens > MAX_STEPS:
            raise ValueError(
                f"--nreq x --tokens is {self.nreq * self.tokens:,}, and at most {MAX_STEPS:,} tokens can be measured"
            )

    def arrivals(self) -> np.ndarray:
        """Poisson arrivals in seconds, shape (nreq,), the first one a gap after 0."""
        gaps = np.random.default_rng(settings.seed_sequence(self.seed)).exponential(1 / self.rate, self.nreq)
        return np.cumsum(gaps)


@dataclass(frozen=True)
class Outcome:
    """What happened: `ttft` and `e2e` of each request and `batch` and `seconds` of each step, all times in seconds."""

    ttft: np.ndarray
    e2e: np.ndarray
    batch: np.ndarray
    seconds: np.ndarray

    @property
    def busy(self) -> float:
        """Seconds that the steps took together."""
        return float(self.seconds.sum())

    @property
    def tokens(self) -> int:
        """Tokens of all requests."""
        return int(self.batch.sum())


class Launches(Executor):
    """Runs each step for real: `step` launches and times it. Every answer has `tokens` tokens."""

    def __init__(self, step: StepSeconds, tokens: int) -> None:
        self.step, self.tokens = step, tokens
        self.batch: list[int] = []
        self.seconds: list[float] = []

    def execute(self, work: Work) -> executor.Outcome:
        """Launch one step."""
        sequences = [*work.decodes, *(request for request, _ in work.chunks)]
        took = self.step(len(sequences))
        self.batch.append(len(sequences))
        self.seconds.append(took)
        return executor.Outcome(took, [request for request in sequences if request.emitted + 1 == self.tokens])


def run(settings: Settings, step: StepSeconds) -> Outcome:
    """Serve the requests with the loop that was asked for; `step` runs and times one step."""
    policy = (NoteWindow if settings.loop == "note" else Window)(settings.bmax, settings.window_ms / 1_000)
    # The kernel has no prompts: a request is one token that is there from the start.
    load = Workload(settings.arrivals(), np.ones(settings.nreq, np.int64), np.full(settings.nreq, settings.tokens))
    launches = Launches(step, settings.tokens)
    engine = Engine(policy, launches)
    engine.follow(load)
    result = finish(engine)
    return Outcome(result.ttft, result.e2e, np.array(launches.batch), np.array(launches.seconds))


def summary(outcome: Outcome) -> dict[str, float]:
    """The numbers of the report, in seconds and tokens a second."""
    numbers: dict[str, Any] = {"busy_seconds": outcome.busy, "tokens": outcome.tokens, "steps": len(outcome.batch)}
    numbers["tokens_per_second"] = outcome.tokens / outcome.busy if outcome.busy else math.nan
    numbers["mean_batch"] = float(outcome.batch.mean())
    numbers["step_median"] = float(np.median(outcome.seconds))
    for name, values in (("ttft", outcome.ttft), ("e2e", outcome.e2e)):
        numbers[f"{name}_mean"] = float(values.mean())
        numbers[f"{name}_p95"] = float(np.percentile(values, 95))
    return numbers


class LiveRun:
    """The benchmark on a device: everything is checked, and refused if it would take too long, before it begins.

    Raises ValueError: the run would take more than a quarter of an hour; the sentence says how long. Raises
    KernelError: the kernel cannot be compiled or launched.
    """

    def __init__(self, device: Device, settings: Settings) -> None:
        self.device, self.settings = device, settings
        self.step = DecodeStep(device, settings.work, settings.threads, settings.bmax)
        self._live: LiveStep | None = None
        self.overloaded = ""

    def run(self) -> Outcome:
        """Serve the requests, each step launched and timed."""
        tokens = self.settings.nreq * self.settings.tokens
        self._affordable(tokens * self._seconds_per_token(self.step), "fewer --nreq or --tokens, or less --work")
        self._live = LiveStep(self.step)
        outcome = run(self.settings, self._live)
        offered, served = self.settings.rate * self.settings.tokens, outcome.tokens / outcome.busy
        if offered > served and outcome.batch.mean() > 0.8 * self.settings.bmax:
            self.overloaded = (
                f"{offered:,.0f} tokens/s arrive and {served:,.0f} can be computed in steps of {self.settings.bmax}: "
                "the queue grows as long as requests come, and so do the times above"
            )
        return outcome

    def gaps(self) -> dict[str, float]:
        """Seconds between the end of a step and the beginning of the next in the last run, NaN for a single step."""
        between = self._live.gaps[1:] if self._live else []
        if not between:
            return {"median": math.nan, "longest": math.nan}
        return {"median": float(np.median(between)), "longest": max(between)}

    def fixed(self, batches: Sequence[int]) -> list[FixedBatch]:
        """Time steps of these batch sizes."""
        step = DecodeStep(self.device, self.settings.work, self.settings.threads, max(batches))
        # A few launches of each even if one takes longer than is set aside for it.
        self._affordable(5 * sum(batches) * self._seconds_per_token(step), "smaller batches or less --work")
        return fixed_batches(step, batches, launches=1_000 if self.device.is_gpu else 50, max_seconds=0.5)

    def _seconds_per_token(self, step: DecodeStep) -> float:
        """A lower bound [s]: of one sequence on a CPU, where a batch gains nothing; of a full card on a GPU."""
        batch = min(step.max_batch, FULL) if self.device.is_gpu else 1
        return step.time(batch, launches=3, max_seconds=0.0, warm=1).seconds / batch

    def _affordable(self, seconds: float, instead: str) -> None:
        if seconds > MAX_SECONDS:
            raise ValueError(
                f"this would take at least {seconds / 60:,.0f} minutes on {self.device.name} ({self.device.kind}), and "
                f"{MAX_SECONDS / 60:.0f} are allowed: ask for {instead}"
            )
