"""Lab 07's decision: one flag of an engine and its value, from a page of metrics that the simulated engine writes."""

import numpy as np

from course.lessons.lab07 import long_prompt
from course.lessons.lab07.long_prompt import DEFAULT, Outcome

VERSION = "0.19"  # of vLLM: names and edges of the buckets
GAP, FIRST = 0.1, 0.12  # seconds that are promised: of every gap, and of the p99 of a chat's TTFT
SOONER = 0.06  # the twin's promise for the TTFT
CAPS = (1_024, 512, 256)
ITL_EDGES = (0.1, 0.5)  # some of the engine's, in seconds
TTFT_EDGES = (0.1, 1.0)


SINCE = 1.0  # seconds from the arrival of the last contract to the moment of the page


def now() -> Outcome:
    """The service with the engine's default budget."""
    return capped(0)


def capped(cap: int) -> Outcome:
    """The same with a cap for one prompt."""
    return long_prompt.hidden(DEFAULT, cap, long_prompt.EVERY, 1e3 * GAP).outcome


def metrics_page() -> str:
    """Some lines of the engine's metrics at `moment()`, without labels but `le`: gauges then, counts until then."""
    run, at = now().run, moment()
    ends, decodes = run.steps.end, run.steps.decodes[1:]  # whoever decodes had a token in the step before
    steps, first = ends[1:] <= at, run.ttft[run.arrival + run.ttft <= at]
    lines = [
        f"vllm:num_requests_running {((run.admitted <= at) & (run.response > at)).sum()}",
        f"vllm:num_requests_waiting {((run.arrival <= at) & (run.admitted > at)).sum()}",
        *_histogram("vllm:inter_token_latency_seconds", ITL_EDGES, np.diff(ends)[steps], decodes[steps]),
        *_histogram("vllm:time_to_first_token_seconds", TTFT_EDGES, first, np.ones(len(first), dtype=int)),
    ]
    return "\n".join(lines)


def moment() -> float:
    """When the page is asked for [s]: just after the last contract has come."""
    found = now()
    return float(found.run.arrival[~found.chats].max()) + SINCE


def _histogram(name: str, edges: tuple[float, ...], values: np.ndarray, weights: np.ndarray) -> list[str]:
    """The cumulative buckets as Prometheus writes them."""
    upto = [f'{name}_bucket{{le="{edge}"}} {int(weights[values <= edge].sum())}' for edge in edges]
    return [*upto, f'{name}_bucket{{le="+Inf"}} {int(weights.sum())}']
