"""Lab 07's decision: two limits of an engine, tried in the simulator, and the page of metrics that it starts from."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from course.exercises.decision import flag_typed, value_typed
from course.lessons.lab07 import long_prompt
from course.lessons.lab07.long_prompt import Outcome

BUDGET, CAP = "--max-num-batched-tokens", "--long-prefill-token-threshold"
GAP, GAP_TWIN = 0.1, 0.06  # seconds that are promised of every gap, and in the twin
FIRST = 0.25  # of the p99 of a chat's TTFT
START = 4_096  # the budget of the service, without a cap
LEAST_CAP = 16  # tokens: fewer take the simulator too long
ITL_EDGES, TTFT_EDGES = (0.1,), (0.25,)  # some of the engine's, in seconds
SINCE = 1.0  # seconds from the arrival of the last contract to the moment of the page


def now() -> Outcome:
    """The service as it is."""
    return long_prompt.served(START)


def kept(answer: Any) -> str:
    """Which promises hold with the flags of an answer, in words; a limit that is left out stays as it is.

    Raises ValueError: no flags, a flag that the question does not offer, or a value that no engine takes.
    """
    return _kept(answer, GAP)


def kept_twin(answer: Any) -> str:
    """The same with shorter gaps promised."""
    return _kept(answer, GAP_TWIN)


def _kept(answer: Any, gap: float) -> str:
    if not isinstance(answer, Mapping):
        raise ValueError(f"give a dictionary of flags, such as {{{BUDGET!r}: 512}}")
    flags = {flag_typed(flag): value_typed(value) for flag, value in answer.items() if value is not None}
    if not flags:
        raise NotImplementedError("no flag is chosen yet")
    other = [flag for flag in flags if flag not in (BUDGET, CAP)]
    if "--max-num-seqs" in other:
        return "slots are no limit here"
    if other:
        raise ValueError(f"{other[0]} is none of the two flags: choose {BUDGET} and {CAP}")
    budget, cap = flags.get(BUDGET, START), flags.get(CAP, 0)
    for flag, value, least in ((BUDGET, budget, long_prompt.SLOTS), (CAP, cap, LEAST_CAP)):
        if isinstance(value, bool) or not isinstance(value, int) or (value < least and flags.get(flag, 0) != 0):
            raise ValueError(f"{flag} is {value!r}: give a whole number of tokens, {least} or more")
    found = long_prompt.served(min(budget, long_prompt.WHOLE), cap)
    gaps, first = found.itl["max"] <= gap, found.chat_ttft["p99"] <= FIRST
    if gaps and first:
        return "both promises hold"
    if gaps:
        return "gaps hold, first tokens do not" + (", with a cap" if cap else "")
    return "first tokens hold, gaps do not" if first else "neither holds"


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
