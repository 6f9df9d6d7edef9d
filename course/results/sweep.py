"""Several runs at several loads as one table, and where its knee and its collapse are.

An open loop has its knee where the engine no longer answers at the rate that was asked for. A closed loop has none of
that kind: its knee is where throughput over latency, the "power" of Kleinrock (ICC 1979), is largest. Beyond it more in
flight buys little throughput and much waiting. A collapse is throughput that falls with more load, or gaps between
tokens that grow many times while throughput does not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, nan
from typing import Any

from course.results.load import SHORTFALL
from course.results.result import Result

FEWEST = 3  # loads: two have no shape
FALLEN = 0.9  # of the most: throughput below it, at a higher load, has collapsed
STUCK = 1.1  # times the throughput before: growth below it is none
BURST_OF_GAPS = 5.0  # times the gaps before
LOADS = {"requested_rate": "requests/s asked for", "max_concurrency": "in flight, at most"}
NO_AXIS = frozenset({"run_number", "num_prompts", "num_requests", "date", "seed", "version"})


@dataclass(frozen=True)
class Sweep:
    """Runs that differ in one number, in its order.

    axis: its key. label: it in words. fixed: what the runs share among the other things that vary, as text. runs: in
    the order of the axis, with equal ones next to each other.
    """

    axis: str
    label: str
    fixed: str
    runs: tuple[Result, ...]

    @property
    def loads(self) -> tuple[float, ...]:
        """The different values of the axis, ascending."""
        return tuple(dict.fromkeys(_setting(run, self.axis) for run in self.runs))

    def mean(self, read: Callable[[Result], float]) -> list[float]:
        """The mean, for each load, of what `read` takes from its runs; NaN if one of them lacks it."""
        means = []
        for load in self.loads:
            values = [read(run) for run in self.runs if _setting(run, self.axis) == load]
            means.append(sum(values) / len(values))
        return means


def sweeps(runs: Sequence[Result]) -> list[Sweep]:
    """The sweeps among some runs; empty if fewer than three loads differ."""
    groups = []
    for tool in dict.fromkeys(run.tool for run in runs):
        mine = [run for run in runs if run.tool == tool]
        axis = _axis(mine)
        if axis is None:
            continue
        placed = [run for run in mine if isfinite(_setting(run, axis))]
        others = [key for key in _varying(placed) if key != axis]
        for fixed in dict.fromkeys(_text(run, others) for run in placed):
            group = sorted((r for r in placed if _text(r, others) == fixed), key=lambda run: _setting(run, axis))
            one = Sweep(axis, LOADS.get(axis, axis), fixed, tuple(group))
            if len(one.loads) >= FEWEST:
                groups.append(one)
    return groups


def _setting(run: Result, key: str) -> float:
    value = run.totals.get(key, run.setup.get(key, nan))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else nan


def _varying(runs: Sequence[Result]) -> list[str]:
    """Settings that not all the runs share; those that only follow from the load are left out."""
    keys = dict.fromkeys(key for run in runs for key in (*LOADS, *run.setup))
    varying = []
    for key in keys:
        values = {_text(run, [key]) for run in runs}
        if key not in NO_AXIS and len(values) > 1 and key not in ("type_", "rate", "request_rate", "streams"):
            varying.append(key)
    return varying


def _axis(runs: Sequence[Result]) -> str | None:
    """The load that takes three values or more, else another setting that does."""
    numbers = [
        key for key in _varying(runs) if len({_setting(r, key) for r in runs if isfinite(_setting(r, key))}) >= FEWEST
    ]
    return next((key for key in (*LOADS, *numbers) if key in numbers), None)


def _text(run: Result, keys: Sequence[str]) -> str:
    def value(key: str) -> Any:
        number = _setting(run, key)
        return f"{number:g}" if isfinite(number) else run.setup.get(key)

    return ", ".join(f"{key}={value(key)}" for key in keys if value(key) is not None)


def sentences(sweep: Sweep) -> list[str]:
    """Knee and collapse of a sweep, in sentences."""
    where = f" ({sweep.fixed})" if sweep.fixed else ""
    rates = sweep.mean(lambda run: run.totals.get("requests_per_second", nan))
    knee = _kept_up(sweep, rates) if sweep.axis == "requested_rate" else _most_power(sweep, rates)
    return [f"{sentence}{where}" for sentence in (*knee, *_collapse(sweep, rates), *_gaps(sweep, rates))]


def _kept_up(sweep: Sweep, rates: list[float]) -> list[str]:
    # A run ends with an answer after its last request, which lowers its rate: by an answer at the lowest load.
    requests = sweep.mean(lambda run: run.totals.get("requests", nan) + run.totals.get("failed", 0.0))
    alone = sweep.mean(lambda run: run.ours.get("e2e", {}).get("mean", 0.0))[0]
    due = [n / (n / load + alone) if n > 0 else load for n, load in zip(requests, sweep.loads, strict=True)]
    late = [i for i in range(len(due)) if rates[i] < (1 - SHORTFALL) * due[i]]
    if not all(map(isfinite, rates)):
        return []
    if not late:
        return [f"No knee up to {sweep.loads[-1]:g} requests/s: the engine answered at every rate that was asked for"]
    first, most = late[0], max(rates)
    if first == 0:
        return [
            f"The knee is below {sweep.loads[0]:g} requests/s: even there {rates[0]:.4g} were answered, and "
            f"{most:.4g} at the most"
        ]
    return [
        f"The knee is between {sweep.loads[first - 1]:g} and {sweep.loads[first]:g} requests/s: at the first it kept "
        f"up, at the second {rates[first]:.4g} were answered. The most it answered is {most:.4g} requests/s"
    ]


def _most_power(sweep: Sweep, rates: list[float]) -> list[str]:
    def e2e(run: Result) -> float:
        mean = run.ours.get("e2e", {}).get("mean", nan)
        return mean if isfinite(mean) else run.totals.get("in_flight", nan) / run.totals.get("requests_per_second", nan)

    whole = sweep.mean(e2e)
    if not all(value > 0 for value in whole) or not all(map(isfinite, rates)):
        return []
    power = [rate / seconds for rate, seconds in zip(rates, whole, strict=True)]
    best = power.index(max(power))
    at = f"{sweep.label} {sweep.loads[best]:g}"
    if best == len(power) - 1:
        return [f"No knee up to {at}: throughput still grows as fast as latency"]
    return [
        f"The knee is at {at}, where throughput over latency is largest: {rates[best]:.4g} requests/s at a mean "
        f"E2E of {whole[best]:.4g} s. At {sweep.loads[-1]:g} it is {rates[-1] / rates[best]:.2f} times the "
        f"throughput for {whole[-1] / whole[best]:.2f} times the latency"
    ]


def _collapse(sweep: Sweep, rates: list[float]) -> list[str]:
    tokens = sweep.mean(lambda run: run.totals.get("output_tokens_per_second", nan))
    values, unit = (tokens, "output tokens/s") if all(map(isfinite, tokens)) else (rates, "requests/s")
    if not all(map(isfinite, values)):
        return []
    best = values.index(max(values))
    for i in range(best + 1, len(values)):
        if values[i] < FALLEN * values[best]:
            return [
                f"It collapses at {sweep.label} {sweep.loads[i]:g}: {values[i]:,.4g} {unit}, "
                f"{values[i] / values[best]:.0%} of the {values[best]:,.4g} at {sweep.loads[best]:g}. More load and "
                "less work done: look for preemptions (lab 08), and whether the client could send as much"
            ]
    return []


def _gaps(sweep: Sweep, rates: list[float]) -> list[str]:
    for metric, word in (("itl", "ITL"), ("tpot", "TPOT")):
        gaps = sweep.mean(lambda run: run.ours.get(metric, {}).get("p99", nan))  # noqa: B023 - used within the loop
        if not all(value > 0 for value in gaps):
            continue
        for i, (before, after) in enumerate(pairwise(gaps)):
            if after > BURST_OF_GAPS * before and not rates[i + 1] > STUCK * rates[i]:
                return [
                    f"Gaps collapse at {sweep.label} {sweep.loads[i + 1]:g}: the p99 of {word} is {1000 * after:,.4g} "
                    f"ms where it was {1000 * before:,.4g} ms at {sweep.loads[i]:g}, and throughput did not grow"
                ]
        return []
    return []
