"""The scenario of lab 03: one engine under load, and what theory says beside each run.

Llama-3.1-8B on one H100, with its recorded steps; prompts of 512 tokens, answers of 256 on average (lognormal, CV 1).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course import memory, policies, queueing, traces
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.steptime import recorded
from course.workload import Workload, lengths

STEP = recorded("h100-llama3-8b")
SLOTS, BUDGET = 32, 2048
CHOICES = (16, 32, 64, 128, 256, 512, 1_024)
"""Slots to choose from: beyond 256 decodes the step time goes on by the model fitted to the recording."""
PROMPT, OUTPUT, OUTPUT_CV = 512, 256, 1.0
CONTEXT = PROMPT + OUTPUT
"""Tokens to which a decode attends on average: with a CV of 1 the prompt and a whole mean answer."""
DRAWS, TRACE = "drawn", "trace"
GRID = 45  # points on a theory curve


def requests(rate: float, arrival_cv: float = 1.0, num_requests: int = 2_000, seed: int = 0) -> Workload:
    """The scenario's requests at `rate` requests/s. arrival_cv: coefficient of variation of the gaps, 1 for Poisson.

    The lengths do not change with rate and arrival_cv: only the times between arrivals do.
    """
    return Workload.gamma(
        rate=rate,
        cv=arrival_cv,
        num_requests=num_requests,
        prompt_tokens=PROMPT,
        output_tokens=lengths.lognormal(OUTPUT, OUTPUT_CV),
        seed=seed,
    )


@lru_cache(maxsize=1)
def room() -> int:
    """Tokens for which the KV cache of the card has room, at the engine's defaults."""
    return memory.ledger("llama-3.1-8b", "H100").kv_tokens or 0


@lru_cache(maxsize=1)
def trace() -> Workload:
    """The Azure-style trace that comes with the course, as it was written down."""
    return traces.read(traces.example())


def engine(max_num_seqs: int = SLOTS) -> policies.Continuous:
    """The scenario's policy: continuous batching, 2,048 tokens a step."""
    return policies.Continuous(max_num_seqs=max_num_seqs, max_num_batched_tokens=BUDGET)


@lru_cache(maxsize=2)
def need(kind: str = DRAWS) -> queueing.Demand:
    """What an average request asks for: of the drawn ones, or of the trace."""
    if kind == TRACE:
        return queueing.demand_of(trace())
    return queueing.demand(prompt_tokens=PROMPT, output_tokens=OUTPUT, output_cv=OUTPUT_CV)


@lru_cache(maxsize=32)
def _rates(max_num_seqs: int, kind: str) -> tuple[float, ...]:
    """Service rates mu(1) ... mu(slots) in requests/s."""
    mu = queueing.service_rates(need(kind), STEP, max_num_seqs=max_num_seqs, max_num_batched_tokens=BUDGET)
    return tuple(mu.tolist())


def capacity(max_num_seqs: int = SLOTS, kind: str = DRAWS) -> float:
    """Requests/s that the engine can sustain, by hand."""
    return _rates(max_num_seqs, kind)[-1]


def forecast(rate: float, max_num_seqs: int = SLOTS, kind: str = DRAWS) -> queueing.BatchingForecast:
    """Theory for Poisson arrivals. ValueError where the rate reaches capacity."""
    return queueing.continuous_batching(
        need(kind),
        STEP,
        arrival_rate=rate,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=BUDGET,
        rates=_rates(max_num_seqs, kind),
    )


@dataclass(frozen=True)
class Curve:
    """Theory against load, for Poisson arrivals: requests/s and seconds."""

    rate: np.ndarray
    mean_ttft: np.ndarray
    p99_ttft: np.ndarray
    mean_e2e: np.ndarray
    capacity: float


@lru_cache(maxsize=32)
def curve(max_num_seqs: int = SLOTS, kind: str = DRAWS) -> Curve:
    """The theory curve from a load of 0.05 to one of 0.985."""
    most = capacity(max_num_seqs, kind)
    rates = np.linspace(0.05, 0.985, GRID) * most
    known = [forecast(float(rate), max_num_seqs, kind) for rate in rates]
    return Curve(
        rates,
        np.array([f.mean_ttft_s for f in known]),
        np.array([f.ttft_percentile_s(0.99) for f in known]),
        np.array([f.mean_e2e_s for f in known]),
        most,
    )


@dataclass(frozen=True)
class UnderLoad:
    """One run at one load with the theory for it. `forecast` is None at and above capacity, where no mean exists."""

    rate: float
    run: Run
    forecast: queueing.BatchingForecast | None
    curve: Curve
    gaps_cv: float

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the run, and beyond what its steps are modelled."""
        beyond, held = self.run.steptime.partition("; ")[2], int(self.run.steps.decode_context.max())
        return (
            *self.run.warnings,
            *([f"Its steps are {beyond}."] if beyond else []),
            *([f"Its KV cache would need {held:,} tokens; the card has room for {room():,}."] if held > room() else []),
        )


@lru_cache(maxsize=16)  # a hand on a slider goes back and forth; a run is some 3 MB
def _run(rate: float, arrival_cv: float, max_num_seqs: int, kind: str, num_requests: int) -> Run:
    load = trace().scaled(rate=rate) if kind == TRACE else requests(rate, arrival_cv, num_requests)
    return serve(load, engine(max_num_seqs), STEP)


def under_load(
    rate: float,
    arrival_cv: float = 1.0,
    max_num_seqs: int = SLOTS,
    kind: str = DRAWS,
    num_requests: int = 2_000,
) -> UnderLoad:
    """Serve 2,000 requests at `rate` requests/s: drawn ones, or the trace with its arrivals sped up to that rate.

    arrival_cv changes the drawn ones only; a trace keeps its own gaps.
    """
    run = _run(rate, 1.0 if kind == TRACE else arrival_cv, max_num_seqs, kind, num_requests)
    gaps = np.diff(run.workload.arrival)
    stable = rate < capacity(max_num_seqs, kind)
    return UnderLoad(
        rate,
        run,
        forecast(rate, max_num_seqs, kind) if stable else None,
        curve(max_num_seqs, kind),
        float(gaps.std() / gaps.mean()),
    )


def slots_taken(run: Run) -> float:
    """Share of requests that found all slots taken on arrival, and waited for one."""
    answered = np.searchsorted(np.sort(run.response), run.arrival, side="right")
    return float((np.arange(len(run)) - answered >= run.policy.max_num_seqs).mean())


def comparison(result: UnderLoad) -> list[tuple[str, str, str]]:
    """Rows for a table: what the run showed, and theory for Poisson arrivals at the same rate."""
    run, known = result.run, result.forecast
    theory = [np.inf] * 3 if known is None else [
        known.mean_ttft_s, known.ttft_percentile_s(0.99), known.mean_e2e_s
    ]  # fmt: skip
    simulated = [run.ttft.mean(), np.percentile(run.ttft, 99), run.e2e.mean()]
    names = ("TTFT, mean", "TTFT, p99", "E2E, mean")
    tpot = seconds(float(np.nanmean(run.tpot)))
    rows = [("", "simulated", "theory")]
    rows += [(name, seconds(a), seconds(b)) for name, a, b in zip(names, simulated, theory, strict=True)]
    in_system = "no limit" if known is None else f"{known.sharing.mean_in_system_requests:.3g}"
    waits = "all" if known is None else f"{known.sharing.p_wait:.2%}"
    return [
        *rows,
        ("TPOT, mean", tpot, ""),
        ("in the system, mean", f"{run.little().L:.3g}", in_system),
        ("wait for a slot", f"{slots_taken(run):.2%}", waits),
        ("load", f"{result.rate / result.curve.capacity:.2f}", ""),
        ("CV of the gaps", f"{result.gaps_cv:.2f}", "1"),
    ]


@dataclass(frozen=True)
class Window:
    """A run and a window [start, end) of it in seconds, with Little's law inside the window."""

    run: Run
    start: float
    end: float

    @property
    def little(self):
        """Little's law inside the window."""
        return self.run.little(self.start, self.end)


def window(rate: float, arrival_cv: float, start: float, length: float) -> Window:
    """A run of 2,000 requests at `rate` requests/s, and the window of `length` seconds that starts at `start`."""
    return Window(_run(rate, arrival_cv, SLOTS, DRAWS, 2_000), start, start + length)


def window_rows(result: Window) -> list[tuple[str, str]]:
    """Rows for a table: both sides of Little's law in the window, and what joins them."""
    law = result.little
    product = law.arrival_rate * law.W
    share = round(product / law.L - 1, 3) if law.L else 0.0
    return [
        ("L, mean in the system", f"{law.L:.2f}"),
        ("λ, arrivals per second", f"{law.arrival_rate:.2f}"),
        ("W, their mean E2E", f"{law.W:.2f} s"),
        ("λ W", f"{product:.2f}"),
        ("λ W against L", f"{share:+.1%}" if law.L else "nobody was there"),
        ("+ carried in at the start", f"{law.carried_in:.2f}"),
        ("- carried out at the end", f"{law.carried_out:.2f}"),
        ("left unexplained", f"{abs(round(law.residual, 6)):.2f}"),
    ]
