"""Modelled against measured: every metric of a run beside that of its replay, and what the two do not share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan

import numpy as np

from course.calibration.engine import Engine
from course.calibration.replay import Replay, replay
from course.calibration.samples import METRICS, STATISTICS, is_streamed, samples
from course.engine.metrics import percentiles
from course.results import Result
from course.steptime import StepTime
from course.workload import Workload


@dataclass(frozen=True)
class Row:
    """One number. metric: ttft, tpot, itl, e2e, or the name of a single number. unit: s, 1/s, share or nothing."""

    metric: str
    statistic: str
    unit: str
    measured: float
    modelled: float

    @property
    def error(self) -> float:
        """The error of the model, modelled / measured - 1; NaN if either is missing."""
        if not (isfinite(self.measured) and isfinite(self.modelled)) or self.measured == 0:
            return nan
        return self.modelled / self.measured - 1


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A measured run beside its replay.

    rows: the numbers. measured: metric -> values of all requests [s], empty if the file has a summary only.
    modelled: metric -> (values [s], how many times each counts). points: metric -> statistic -> seconds, what a file
    without requests says. step_time, engine, tool, name: what ran. notes: what differs, as sentences.
    """

    name: str
    tool: str
    step_time: str
    source: str
    engine: Engine
    rows: tuple[Row, ...]
    measured: Mapping[str, np.ndarray]
    modelled: Mapping[str, tuple[np.ndarray, np.ndarray]]
    points: Mapping[str, Mapping[str, float]]
    replay: Replay
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Comparison({self.name!r}: {len(self.rows)} numbers, {self.worst})"

    def row(self, metric: str, statistic: str = "") -> Row:
        """The row of that name. ValueError if there is none."""
        for row in self.rows:
            if (row.metric, row.statistic) == (metric, statistic):
                return row
        raise ValueError(f"there is no {f'{statistic} of ' if statistic else ''}{metric} to compare")

    @property
    def worst(self) -> str:
        """The latency that is furthest off, in words."""
        rows = [row for row in self.rows if row.metric in METRICS and isfinite(row.error)]
        if not rows:
            return "nothing to compare"
        far = max(rows, key=lambda row: abs(row.error))
        return f"furthest off {far.metric.upper()} {far.statistic}, {far.error:+.1%}"


def compare(result: Result, step_time: StepTime, engine: Engine) -> Comparison:
    """Serve the requests of a measured run again and put both side by side.

    A file that holds a summary and no requests is compared with a drawn load of the same size and mean lengths, and the
    notes say so. ValueError if not even that is known, and as in `replay`.
    """
    notes: list[str] = []
    before, result = len(result.notes), engine.served(result)
    notes += result.notes[before:]
    load = result.workload() if result.requests is not None else stand_in(result, notes)
    run = replay(load, step_time, engine)
    values = samples(result)
    points = {} if result.requests is not None else {m: dict(result.ours.get(m, {})) for m in METRICS}
    if not is_streamed(result):
        points.pop("ttft", None)
        notes.append(
            "nothing was streamed, so the time of the first tokens is not known: TTFT, TPOT and ITL are not compared"
        )
    rows = [*_latencies(values, points, run), *_totals(result, run)]
    notes += _differences(result, values, points)
    modelled = {m: run.itl if m == "itl" else _once_each(getattr(run, m)) for m in METRICS}
    return Comparison(
        name=result.name,
        tool=result.tool,
        step_time=repr(step_time),
        source=str(getattr(step_time, "source", "given")),
        engine=engine,
        rows=tuple(rows),
        measured=values,
        modelled=modelled,
        points={m: p for m, p in points.items() if p},
        replay=run,
        notes=(*load.notes, *engine.notes, *notes),
    )


def stand_in(result: Result, notes: list[str]) -> Workload:
    """Requests that stand for those of a file without any: as many, of the mean lengths, at the rate of the file.

    Poisson arrivals with seed 0 at the rate asked for; all at once for an unlimited rate; a closed loop if the tool
    held a number in flight, with a rate as well a cap in the client. ValueError if the file does not say enough.
    """
    totals, setup = result.totals, result.setup
    n = int(totals.get("requests", 0))
    prompt, output = (
        totals.get(f"mean_{side}", totals.get(side, nan) / n if n else nan)
        for side in ("prompt_tokens", "output_tokens")
    )
    if not (n >= 1 and prompt >= 0.5 and output >= 0.5):
        raise ValueError(
            f"{result.name} has no requests, and its summary does not say how many there were and how long: there is "
            "nothing to serve. Take the file in which the tool keeps one row a request"
        )
    lengths = {"prompt_tokens": round(prompt), "output_tokens": round(output)}
    requested = totals.get("requested_rate", nan)
    rate = totals.get("requested_rate", totals.get("offered_rate", nan))
    most = totals.get("max_concurrency", setup.get("max_concurrency"))
    users = 0
    if isinstance(most, int | float) and not isinstance(most, bool) and 1 <= most < n:
        users = int(most)
    if users and isfinite(requested) and requested > 0:
        load = Workload.poisson(rate=requested, num_requests=n, seed=0, **lengths)
        load = replace(load, max_concurrency=users)
        how = f"Poisson arrivals at {requested:.4g}/s, of which the client has at most {users:,} in flight"
    elif users:
        rounds = max(1, round(n / users))
        load = Workload.closed_loop(users, think_time=0, requests_per_user=rounds, seed=0, **lengths)
        how = f"{users:,} users who send the next request at once, {rounds:,} times each"
    elif isfinite(rate) and rate > 0:
        load = Workload.poisson(rate=rate, num_requests=n, seed=0, **lengths)
        how = f"Poisson arrivals at {rate:.4g}/s"
    else:
        load = Workload(np.zeros(n), np.full(n, lengths["prompt_tokens"]), np.full(n, lengths["output_tokens"]))
        how = "all at once"
    notes.append(
        f"the file has a summary and no requests, so {len(load):,} requests of {lengths['prompt_tokens']:,} prompt and "
        f"{lengths['output_tokens']:,} output tokens, the means, are used instead: {how}. Their lengths do not vary: "
        "compare means, not percentiles"
    )
    return load


def _latencies(
    values: Mapping[str, np.ndarray], points: Mapping[str, Mapping[str, float]], run: Replay
) -> Sequence[Row]:
    rows = []
    for metric in METRICS:
        there = percentiles(values[metric]) if metric in values else points.get(metric, {})
        here = run.statistics(metric)
        rows += [Row(metric, s, "s", there.get(s, nan), here[s]) for s in STATISTICS]
    return rows


def _totals(result: Result, run: Replay) -> Sequence[Row]:
    totals = result.totals
    peak = totals.get("kv_peak", nan)
    return (
        Row("requests_per_second", "", "1/s", totals.get("requests_per_second", nan), len(run) / run.makespan),
        Row(
            "output_tokens_per_second", "", "1/s", totals.get("output_tokens_per_second", nan),
            run.output_tokens / run.makespan,
        ),
        Row("duration", "", "s", totals.get("duration", nan), run.makespan),
        Row("kv_peak", "", "share", peak, run.kv_peak),
        Row("preemptions", "", "", totals.get("preemptions", nan), run.preemptions),
    )  # fmt: skip


def _differences(
    result: Result, values: Mapping[str, np.ndarray], points: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """What the two sides do not share."""
    sentences = []
    missing = [m.upper() for m in METRICS if m not in values and not points.get(m)]
    if missing and is_streamed(result):
        sentences.append(f"{' and '.join(missing)}: not in the file, modelled only")
    failed = int(result.totals.get("failed", 0))
    if failed and result.requests is not None:
        sentences.append(f"the {failed:,} failed requests took engine time that the replay leaves out")
    if result.setup.get("enable_prefix_caching") is True:
        sentences.append("the engine had prefix caching on; the replay computes every prompt in full")
    gpu, version = result.setup.get("gpu"), result.setup.get("vllm_version")
    if gpu or version:
        sentences.append(
            f"measured on {gpu or 'a card that the file does not name'} with vLLM {version or '(no version)'}"
        )
    return sentences


def _once_each(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values = values[np.isfinite(values)]
    return values, np.ones(len(values), dtype=np.int64)
