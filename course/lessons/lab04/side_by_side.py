"""One workload through static, dynamic and continuous batching, and what the difference comes to.

The three policies get the same slots and the same step times; all that differs is when a request may join or leave.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from course import policies, queueing
from course.engine.run import Run
from course.engine.serving import serve
from course.steptime import StepTime
from course.workload import Workload, lengths

NAMES = ("static", "dynamic", "continuous")


def three_policies(
    max_num_seqs: int, max_queue_delay: float = 0.1, max_num_batched_tokens: int = 8192
) -> dict[str, policies.Policy]:
    """The three policies by name, with the same slots; the delay [s] is dynamic's, the tokens a step continuous's."""
    return {
        "static": policies.Static(max_num_seqs),
        "dynamic": policies.Dynamic(max_num_seqs, max_queue_delay),
        "continuous": policies.Continuous(max_num_seqs, max_num_batched_tokens),
    }


def serve_each(load: Workload, by_name: Mapping[str, policies.Policy], step_time: StepTime) -> dict[str, Run]:
    """One run a policy, on the same workload and step time."""
    return {name: serve(load, policy, step_time) for name, policy in by_name.items()}


def at_once(load: Workload) -> Workload:
    """The same requests, all there at time 0: the queue is never empty, and throughput is what the policy can do."""
    return replace(load, arrival=np.zeros(len(load)), after=None, think_time=None, name=f"{load.name}, all at once")


def saturated_tokens_per_second(run: Run) -> float:
    """Output tokens a second, counted for as long as anybody waited for a slot.

    The drain after that, when slots empty one by one and nobody is left to refill them, says nothing about capacity.
    Only steps that had ended when the last request was admitted count. Raises ValueError if nobody ever waited.
    """
    end = float(run.admitted.max())
    if not end > 0:
        raise ValueError("nobody waited for a slot: give more requests than slots, all at once or faster than served")
    return float(run.steps.useful[run.steps.end <= end].sum()) / end


def slot_utilisation(run: Run) -> float:
    """Share of the slot-steps that were paid for whose token somebody wanted: 1 - wasted / all."""
    useful = int(run.steps.useful.sum())
    return useful / (useful + int(run.steps.wasted.sum()))


@dataclass(frozen=True)
class Gain:
    """Continuous over static batching at saturation. Rates in output tokens/s.

    `bound` is E[max of a batch] / mean of the distribution, `drawn_bound` that of the answers drawn, batch by batch.
    """

    max_num_seqs: int
    output_cv: float
    static: float
    continuous: float
    bound: float
    drawn_bound: float

    @property
    def gain(self) -> float:
        """Tokens a second of continuous batching over those of static."""
        return self.continuous / self.static


def saturated_gain(
    step_time: StepTime,
    *,
    max_num_seqs: int,
    output_cv: float,
    num_requests: int = 2_000,
    prompt_tokens: int = 512,
    mean_output: int = 256,
    max_num_batched_tokens: int = 8192,
    seed: int = 0,
) -> Gain:
    """Simulate both on lognormal answers that are all there at time 0; at least one batch of them."""
    load = at_once(
        Workload.fixed(
            rate=1, num_requests=num_requests, prompt_tokens=prompt_tokens,
            output_tokens=lengths.lognormal(mean_output, output_cv), seed=seed,
        )
    )  # fmt: skip
    policy = three_policies(max_num_seqs, max_num_batched_tokens=max_num_batched_tokens)
    static, continuous = (
        saturated_tokens_per_second(serve(load, policy[name], step_time)) for name in ("static", "continuous")
    )
    bound = queueing.lognormal_gain(batch=max_num_seqs, output_cv=output_cv).gain
    full = num_requests // max_num_seqs * max_num_seqs
    batches = load.output_tokens[:full].reshape(-1, max_num_seqs)
    drawn_bound = float(batches.max(axis=1).mean() / batches.mean())
    return Gain(max_num_seqs, output_cv, static, continuous, bound, drawn_bound)


@dataclass(frozen=True)
class LoadPoint:
    """What one policy did at one rate. Times in seconds, rates per second; `goodput` counts answers within the SLO."""

    policy: str
    rate: float
    e2e: Mapping[int, float]
    ttft: Mapping[int, float]
    tokens_per_second: float
    goodput: float
    padding: float


PERCENTILES = (50, 95, 99)


def load_point(name: str, rate: float, run: Run, e2e_slo: float) -> LoadPoint:
    """Percentiles, tokens/s over the whole run, and requests/s answered within `e2e_slo` seconds."""
    e2e, ttft = (
        dict(zip(PERCENTILES, np.percentile(v, PERCENTILES).tolist(), strict=True)) for v in (run.e2e, run.ttft)
    )
    return LoadPoint(
        policy=name,
        rate=rate,
        e2e=e2e,
        ttft=ttft,
        tokens_per_second=float(run.workload.output_tokens.sum()) / run.makespan,
        goodput=float((run.e2e <= e2e_slo).sum()) / run.makespan,
        padding=1 - slot_utilisation(run),
    )
