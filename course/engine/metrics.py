"""What users felt and what the engine did, as numbers. Percentiles interpolate linearly between order statistics."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from course.base import settings
from course.engine.log import GAVE_UP, REJECTED
from course.engine.promises import goodput, grouped, meets_slos, share_within_slo, slos_of
from course.engine.step import LONGEST

Run = Any  # course.engine.run.Run, which stands above

PERCENTILES = (50, 90, 95, 99)
__all__ = [
    "PERCENTILES", "LittlesLaw", "goodput", "littles_law", "meets_slos", "number_in_system", "percentiles",
    "share_within_slo", "summary", "warnings",
]  # fmt: skip


def percentiles(values: np.ndarray, weights: np.ndarray | None = None) -> dict[str, float]:
    """mean, p50, p90, p95, p99 and max of the values that are not NaN; all NaN if there are none.

    weights: how many times each value counts (whole numbers); the result is that of the values repeated so often.
    Raises ValueError for anything but one list of numbers, and for weights that do not fit it.
    """
    values = _numbers("values", values)
    known = ~np.isnan(values)
    if weights is not None:
        weights = _numbers("weights", weights)
        if len(weights) != len(values):
            raise ValueError(f"there are {len(values):,} values and {len(weights):,} weights: give one for each")
        wrong = ~((weights >= 0) & (weights <= 1e12) & (weights == np.floor(weights)))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"weight {row} must be a whole number from 0 to 1e12, not {weights[row].item()!r}")
        weights = weights.astype(np.int64)
        known &= weights > 0
    values = values[known]
    names = ("mean", *(f"p{q}" for q in PERCENTILES), "max")
    if not len(values):
        return dict.fromkeys(names, float("nan"))
    if weights is None:
        numbers = (values.mean(), *np.percentile(values, PERCENTILES), values.max())
        return dict(zip(names, map(float, numbers), strict=True))
    order = np.argsort(values)
    values, upto = values[order], np.cumsum(weights[known][order])
    place = np.array(PERCENTILES) / 100 * (upto[-1] - 1)
    below = np.floor(place).astype(np.int64)
    low = values[np.searchsorted(upto, below, side="right")]
    high = values[np.searchsorted(upto, np.minimum(below + 1, upto[-1] - 1), side="right")]
    part, gap = place - below, high - low
    between = np.where(part < 0.5, low + gap * part, high - gap * (1 - part))  # from the nearer end, as NumPy does
    numbers = (np.average(values, weights=weights[known][order]), *between, values[-1])
    return dict(zip(names, map(float, numbers), strict=True))


def _numbers(name: str, values: object) -> np.ndarray:
    """`values` as one float64 array; ValueError for anything else."""
    try:
        array = np.asarray(values)
    except Exception:  # rows of unequal length, or a stranger's __array__
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
        raise ValueError(f"{name} must be one list of numbers, not {settings.quote(values)}")
    array = array.astype(np.float64, copy=False)
    wrong = np.abs(array) > LONGEST  # NaN is not
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name}[{row}] must be a number within {LONGEST:g} of 0, not {array[row].item()!r}")
    return array


def _stays(arrival: object, response: object) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays of seconds; ValueError unless every request was answered, and not before it arrived."""
    arrival, response = _numbers("arrival", arrival), _numbers("response", response)
    if len(arrival) != len(response):
        raise ValueError(f"there are {len(arrival):,} arrivals and {len(response):,} responses: give one of each")
    wrong = ~(response >= arrival)  # NaN is not
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"request {row} arrives at {arrival[row]:g} s and is answered at {response[row]:g} s: the answer must "
            "not come before the request"
        )
    return arrival, response


def number_in_system(arrival: np.ndarray, response: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(times [s], counts): from times[i] on, counts[i] requests have arrived and are not answered yet.

    Raises ValueError unless each request has a finite arrival and a response not before it.
    """
    arrival, response = _stays(arrival, response)
    times, change = np.concatenate([arrival, response]), np.repeat((1, -1), len(arrival))
    order = np.argsort(times, kind="stable")
    times, counts = times[order], np.cumsum(change[order])
    last = np.append(times[1:] != times[:-1], True)[: len(times)]  # of events at one time, the state after all of them
    return times[last], counts[last]


@dataclass(frozen=True)
class LittlesLaw:
    """L = arrival_rate x W + carried_in - carried_out, over a window of `seconds`.

    L: mean number in the system. arrival_rate: requests/s that arrived in the window. W: mean seconds in the system of
    those, however long after the window they stay. carried_in: what requests from before the window add to L.
    carried_out: what those that arrived in it still owe after its end. residual: L minus the right-hand side.
    Over a run that starts and ends empty both carried terms are zero. Little, Operations Research 9(3), 1961.
    """

    seconds: float
    L: float
    arrival_rate: float
    W: float
    carried_in: float
    carried_out: float
    residual: float


def littles_law(arrival: np.ndarray, response: np.ndarray, start: float, end: float) -> LittlesLaw:
    """Little's law over [start, end) in seconds, L from the integral of the number in the system.

    Raises ValueError unless start < end, both finite and within 1e200 s of 0; and as `number_in_system`.
    """
    arrival, response = _stays(arrival, response)
    start, end = (
        settings.real(name, value, low=-LONGEST, high=LONGEST) for name, value in (("start", start), ("end", end))
    )
    if not end - start > 1e-15:  # shorter than any step, and 1 / seconds might be infinite
        raise ValueError(f"the window must end after it starts, not run from {start:g} s to {end:g} s")
    seconds = end - start
    times, counts = number_in_system(arrival, response)
    # The integral of a step function: each count holds until the next event.
    edges = np.clip(np.append(times, np.inf), start, end)
    mean_number = float(np.dot(counts, np.diff(edges)) / seconds)

    inside = (arrival >= start) & (arrival < end)
    stay = (response - arrival)[inside]
    rate = float(inside.sum() / seconds)
    mean_stay = float(stay.mean()) if len(stay) else 0.0
    carried_in = float(np.clip(np.minimum(response, end) - start, 0, None)[arrival < start].sum() / seconds)
    carried_out = float(np.clip(response - end, 0, None)[inside].sum() / seconds)
    residual = mean_number - (rate * mean_stay + carried_in - carried_out)
    return LittlesLaw(seconds, mean_number, rate, mean_stay, carried_in, carried_out, residual)


def summary(
    run: Run,
    *,
    ttft_slo: float | None = None,
    tpot_slo: float | None = None,
    e2e_slo: float | None = None,
    slo: Any = None,
    warmup: float = 0.0,
) -> dict[str, float]:
    """The run as a flat dict; seconds, tokens and requests.

    `<metric>_<statistic>` for ttft, tpot, itl, e2e and queue_wait, over the requests that arrived after `warmup`
    seconds (ITL over all tokens of the run). Rates are over the makespan; `steady_output_tokens_per_second` counts the
    tokens computed between the end of the warm-up and the last arrival, NaN if that window is empty. goodput:
    requests a second that met their SLO, as in `meets_slos`. slot_utilisation: share of slots x makespan that held work
    for an answer not yet complete. token_utilisation: tokens computed over the budgets of all steps, NaN without a
    budget. kv_peak, kv_mean: share of the blocks, NaN without a cache.

    With an SLO also share_within_slo of all requests, and where they have a class or a tenant, the same and goodput of
    each: goodput_class_<label>, share_within_slo_tenant_<label> and so on.

    elsewhere_tokens: K and V of so many came from elsewhere (`Request.computed`) and were not computed.

    rejected, gave_up: requests that left without an answer (`Run.outcome`); they count in no rate, and as missed in
    goodput. abandoned_tokens: computed for them.

    With a cap in the client also client_wait_<statistic>, which no other time includes.

    With a prefix cache also prefix_cache_hits: of the prefix_cache_queries tokens known of requests that got a slot,
    those found in the cache. Their share is prefix_hit_rate; prefix_hit_rate_first counts each request's first slot
    only. prefix_evicted_blocks: blocks that others could have found, and which were taken for something else. Tokens
    computed are those needed + recomputed_tokens - prefix_cache_hits - elsewhere_tokens + padding_tokens +
    rejected drafts, which are drafted_tokens - accepted_tokens, + abandoned_tokens. (An accepted draft beyond the end
    of an answer is rejected here.)

    Raises ValueError for an SLO that is not positive and a warm-up after which no request arrives.
    """
    load, steps = run.workload, run.steps
    first, last = float(run.arrival.min()), float(run.arrival.max())
    begin = first + settings.real("warmup", warmup, low=0)
    counted = run.arrival >= begin
    if not counted.any():
        raise ValueError(
            f"no request arrives after a warm-up of {warmup:g} s: the last arrival is at {last - first:g} s"
        )

    makespan, outputs = run.makespan, int(load.output_tokens[run.answered].sum())
    window = (steps.end > begin) & (steps.end <= last)
    computed = int(steps.decodes.sum() + steps.prefill_tokens.sum() + steps.drafted.sum())
    slos = slos_of(run, slo, ttft=ttft_slo, tpot=tpot_slo, e2e=e2e_slo)
    met = meets_slos(run, slo=slos)
    useful = (steps.running - steps.wasted) * steps.seconds
    budget = float(steps.budget.sum())
    blocks = run.cache.num_blocks if run.cache else float("nan")
    little = run.little()
    numbers = {
        "requests": len(run),
        "makespan": makespan,
        "offered_rate": (len(run) - 1) / (last - first) if last > first else float("nan"),
        "requests_per_second": int(run.answered.sum()) / makespan,
        "output_tokens_per_second": outputs / makespan,
        "total_tokens_per_second": (outputs + int(load.prompt_tokens[run.answered].sum())) / makespan,
        "steady_output_tokens_per_second": float(steps.useful[window].sum()) / (last - begin)
        if last > begin
        else float("nan"),
        "goodput": float(met.sum()) / makespan,
    }
    if slos:
        numbers["share_within_slo"] = float(met.mean())
        for by in ("class", "tenant"):
            labels = load.class_ if by == "class" else load.tenant
            for label, of_label in grouped(run, by, None, met).items() if labels is not None else ():
                numbers[f"goodput_{by}_{label}"] = float(of_label.sum()) / makespan
                numbers[f"share_within_slo_{by}_{label}"] = float(of_label.mean())
    capped = () if load.max_concurrency is None else ("client_wait",)
    for name in ("ttft", "tpot", "e2e", "queue_wait", *capped):
        numbers |= {f"{name}_{key}": value for key, value in percentiles(getattr(run, name)[counted]).items()}
    numbers |= {f"itl_{key}": value for key, value in percentiles(*run.itl_weighted).items()}
    numbers |= {
        "steps": len(steps),
        "slot_utilisation": float(useful.sum()) / (run.limits.max_num_seqs * makespan),
        "token_utilisation": computed / budget if budget < float("inf") else float("nan"),
        "useful_slot_steps": int((steps.running - steps.wasted).sum()),
        "wasted_slot_steps": int(steps.wasted.sum()),
        "computed_tokens": computed,
        "padding_tokens": computed - _needed(run) if run.batch_answers else 0,
        "recomputed_tokens": int(steps.dropped.sum()),
        "elsewhere_tokens": int(run.log.brought[:, 2].sum()),
        "preemptions": int(run.preempted.sum()),
        "drafted_tokens": int(steps.drafted.sum()),
        "accepted_tokens": int(steps.accepted.sum()),
        "rejected": int((run.outcome == REJECTED).sum()),
        "gave_up": int((run.outcome == GAVE_UP).sum()),
        "abandoned_tokens": run.abandoned_tokens,
        **_hits(run),
        "kv_peak": float(steps.blocks.max()) / blocks,
        "kv_mean": float(np.dot(steps.blocks, steps.seconds)) / (blocks * makespan),
        "mean_in_system": little.L,
        "little_residual": little.residual,
    }
    return numbers


def _hits(run: Run) -> dict[str, float]:
    """What the prefix cache had: see `summary`."""
    if run.log.lookups is None:
        return {}
    request, known, found = run.log.lookups.T
    _, first = np.unique(request, return_index=True)  # rows are in order of admission
    return {
        "prefix_cache_queries": int(known.sum()),
        "prefix_cache_hits": int(found.sum()),
        "prefix_evicted_blocks": run.log.evicted or 0,
        "prefix_hit_rate": float(found.sum() / known.sum()) if len(known) else float("nan"),
        "prefix_hit_rate_first": float(found[first].sum() / known[first].sum()) if len(known) else float("nan"),
    }


def _needed(run: Run) -> int:
    """Tokens that must be computed once for answers: their prompts, and all output tokens but each last one."""
    load, whole = run.workload, run.answered
    return int((load.prompt_tokens[whole] + load.output_tokens[whole] - 1).sum())


def warnings(run: Run) -> tuple[str, ...]:
    """Sentences for a reader of the numbers: a queue that grew to the end, waits in the client, work thrown away."""
    sentences = []
    last, first = run.arrival.max(), run.arrival.min()
    open_loop = run.workload.after is None
    waiting = int(((run.admitted > last) & (run.arrival <= last)).sum())
    if open_loop and last > first and waiting > max(2 * run.limits.max_num_seqs, len(run) // 10):
        offered = (len(run) - 1) / (last - first)
        sentences.append(
            f"The queue grew to the end: when the last request arrived, {waiting} of {len(run)} were still waiting for "
            f"a slot. {offered:.3g} requests/s were offered and {len(run) / run.makespan:.3g} served; a longer run "
            "would wait longer. Lower the rate or raise capacity."
        )
    held = run.client_wait[run.client_wait > 0]
    if len(held):
        sentences.append(
            f"{len(held):,} of {len(run):,} requests waited in the client, {held.mean():.3g} s on average, because "
            f"{run.workload.max_concurrency:,} were sent and not answered. TTFT, E2E and goodput count from sending "
            "and leave that wait out: whoever asked felt both."
        )
    preemptions = int(run.preempted.sum())
    if preemptions > len(run) // 10:
        sentences.append(
            f"{preemptions} preemptions threw away {int(run.steps.dropped.sum())} computed tokens: KV blocks are "
            "short. Lower max_num_seqs or give the cache more blocks."
        )
    return tuple(sentences)
