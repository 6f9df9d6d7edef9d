"""The requests of a measured run, served again in the simulator, on one engine or on several replicas."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from course.calibration.engine import Engine
from course.engine.metrics import percentiles
from course.engine.run import Run
from course.engine.serving import serve
from course.steptime import StepTime
from course.workload import Workload

METRICS = ("ttft", "tpot", "itl", "e2e")


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """What a replay gave; seconds. Arrays have one entry a request, replica after replica.

    ttft, tpot, e2e, queue_wait: as in Run. makespan: first arrival to last
    answer. preemptions: of all replicas. kv_peak: share of a pool, of the fullest replica; NaN without pools.
    """

    runs: tuple[Run, ...]
    ttft: np.ndarray
    tpot: np.ndarray
    e2e: np.ndarray
    queue_wait: np.ndarray
    makespan: float
    output_tokens: int
    preemptions: int

    def __len__(self) -> int:
        return len(self.e2e)

    def __repr__(self) -> str:
        where = f", {len(self.runs)} replicas" if len(self.runs) > 1 else ""
        return f"Replay({len(self):,} requests{where}, makespan {self.makespan:.6g} s)"

    @cached_property
    def itl(self) -> tuple[np.ndarray, np.ndarray]:
        """Gaps between tokens [s], and how many tokens saw each."""
        gaps, weights = zip(*(run.itl_weighted for run in self.runs), strict=True)
        return np.concatenate(gaps), np.concatenate(weights)

    @property
    def kv_peak(self) -> float:
        """The largest share of the KV pool that was in use in any run; NaN without a pool."""
        peaks = [run.steps.blocks.max() / run.cache.num_blocks for run in self.runs if run.cache is not None]
        return float(max(peaks, default=np.nan))

    def statistics(self, metric: str) -> dict[str, float]:
        """mean, p50, p90, p99, ... of a metric [s]; all NaN if there is none."""
        return percentiles(*self.itl) if metric == "itl" else percentiles(getattr(self, metric))


def replay(load: Workload, step_time: StepTime, engine: Engine) -> Replay:
    """Serve `load` on the engine. ValueError as in `serve`, and for replicas if arrivals follow answers."""
    runs = tuple(serve(part, engine.policy, step_time, engine.cache) for part in _dealt(load, engine.replicas))
    joined = {
        name: np.concatenate([getattr(run, name) for run in runs]) for name in ("ttft", "tpot", "e2e", "queue_wait")
    }
    first = min(float(run.arrival.min()) for run in runs)
    return Replay(
        runs=runs,
        **joined,
        makespan=max(float(run.response.max()) for run in runs) - first,
        output_tokens=int(load.output_tokens.sum()),
        preemptions=sum(int(run.preempted.sum()) for run in runs),
    )


def _dealt(load: Workload, replicas: int) -> list[Workload]:
    """The requests of each replica: every replicas-th one, in order of arrival."""
    if replicas == 1:
        return [load]
    if load.after is not None or load.max_concurrency is not None:
        raise ValueError("requests whose arrivals follow answers cannot be dealt out to replicas: serve one replica")
    columns = ("arrival", "prompt_tokens", "output_tokens")
    parts = [{name: getattr(load, name)[first::replicas] for name in columns} for first in range(replicas)]
    return [
        replace(load, **part, class_=None, tenant=None, prefix=None, prefix_block_size=None, prefix_answers=False)
        for part in parts
        if len(part["arrival"])
    ]
