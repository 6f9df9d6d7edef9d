"""What a result file says: one table of requests if it has them, one summary, and what to know before using it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course.base.settings import MAX_TOKENS
from course.engine.metrics import percentiles
from course.results.definitions import Definition
from course.workload import Workload

METRICS = ("ttft", "tpot", "itl", "e2e", "queue_wait", "client_wait", "ttft_from_plan", "e2e_from_plan")


@dataclass(frozen=True, eq=False, repr=False)
class Requests:
    """One entry a request, in the order of the file. Float64 arrays of shape (n,), read-only, NaN if missing.

    - arrival [s]: from the first request's. prompt_tokens, output_tokens: counts.
    - ttft, tpot, e2e, queue_wait [s]: under the definitions of `course.results.definitions`, whatever the tool means by
      the words. A request that failed has none of them.
    - failed: bool.
    - itl: for each request its gaps between tokens [s], or None if the file has none.
    - client_wait [s]: how long the client held the request back after its planned moment; None if the file does not
    say.
    """

    arrival: np.ndarray
    prompt_tokens: np.ndarray
    output_tokens: np.ndarray
    ttft: np.ndarray
    tpot: np.ndarray
    e2e: np.ndarray
    queue_wait: np.ndarray
    failed: np.ndarray
    itl: list[np.ndarray] | None = None
    client_wait: np.ndarray | None = None

    def __post_init__(self) -> None:
        for values in vars(self).values():
            if isinstance(values, np.ndarray):
                values.setflags(write=False)

    @property
    def ttft_from_plan(self) -> np.ndarray | None:
        """TTFT and the wait in the client before it [s]."""
        return None if self.client_wait is None else self.ttft + self.client_wait

    @property
    def e2e_from_plan(self) -> np.ndarray | None:
        """E2E and the wait in the client before it [s]."""
        return None if self.client_wait is None else self.e2e + self.client_wait

    def __len__(self) -> int:
        return len(self.failed)

    def __repr__(self) -> str:
        return f"Requests({len(self):,}, {int(self.failed.sum()):,} failed)"

    def summary(self) -> dict[str, dict[str, float]]:
        """Metric -> statistic -> seconds, over the requests that did not fail; only metrics that the table has."""
        metrics = {}
        for name in METRICS:
            values = np.concatenate([*(self.itl or ()), np.empty(0)]) if name == "itl" else getattr(self, name)
            if values is not None and np.isfinite(values).any():
                metrics[name] = percentiles(values)
        return metrics


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """One run of one benchmark tool.

    - tool: its name. name: the file's. setup: what the file says of model, engine and load, in vLLM's names.
    - requests: the table, or None if the file has only a summary.
    - summary: metric -> statistic -> seconds, as the tool reports it, or from the table if it reports nothing.
      Statistics are mean, p50, p90, p95, p99, max and the like; what the file lacks is not there.
    - definitions: metric -> what the tool means by it, what is meant here, and the values under that.
    - totals: counts, seconds and rates of the run: requests, failed, duration, prompt_tokens, output_tokens,
      requested_rate (the setting), offered_rate (really sent), requests_per_second (answered),
      output_tokens_per_second, in_flight, ...; what the file lacks is not there.
    - loop: how the load was made: "open" (each at its planned moment), "closed" (a number in flight, and the next when
      one is answered), "burst" (all at once), or "" if the file does not say.
    - series: the engine's own record over time, if the file comes with one: name -> array; else empty.
    - notes: sentences that a reader of the numbers must know.
    """

    tool: str
    name: str
    requests: Requests | None
    summary: Mapping[str, Mapping[str, float]]
    definitions: Mapping[str, Definition]
    totals: Mapping[str, float] = field(default_factory=dict)
    setup: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    loop: str = ""

    def __repr__(self) -> str:
        count = self.totals.get("requests")
        return f"Result({self.tool}: {self.name}{'' if count is None else f', {count:,.0f} requests'})"

    @property
    def ours(self) -> dict[str, dict[str, float]]:
        """Metric -> statistic -> seconds under the definitions used here; only what the file can say."""
        return {name: dict(d.value) for name, d in self.definitions.items() if d.value}

    def workload(self) -> Workload:
        """The requests that were answered, to be served again: same arrivals, same lengths.

        ValueError if the file has no requests, no arrival times, or no token counts.
        """
        if self.requests is None:
            raise ValueError(f"{self.name} has a summary and no requests: there is nothing to replay. {self._advice()}")
        table, rows = self.requests, np.flatnonzero(~self.requests.failed)
        if not len(rows):
            raise ValueError(f"{self.name}: all {len(table):,} requests failed, so there is nothing to replay")
        for name in ("arrival", "prompt_tokens", "output_tokens"):
            values = getattr(table, name)[rows]
            lowest = 0 if name == "arrival" else 1
            bad = ~(values >= lowest) | (values > (1e10 if name == "arrival" else MAX_TOKENS))
            if bad.any():
                i = int(np.argmax(bad))
                what = "no" if np.isnan(values[i]) else f"{values[i]:g} as"
                raise ValueError(
                    f"{self.name}: request {rows[i]} has {what} {name.replace('_', ' ')}, so the run cannot be "
                    f"replayed. {self._advice()}"
                )
        rows = rows[np.argsort(table.arrival[rows], kind="stable")]
        left_out = len(table) - len(rows)
        note = f"{self.name}: {left_out:,} of {len(table):,} requests failed and are not replayed"
        return Workload(
            arrival=table.arrival[rows] - table.arrival[rows[0]],
            prompt_tokens=table.prompt_tokens[rows],
            output_tokens=table.output_tokens[rows],
            name=self.name,
            notes=(note,) if left_out else (),
        )

    def _advice(self) -> str:
        return {
            "vLLM bench serve": "Measure with --save-result --save-detailed",
            "SGLang bench_serving": "Measure with --output-details",
        }.get(self.tool, "Use the file in which the tool keeps one row per request")
