"""How the load of a run was made, and what its rates then say: an open loop, a closed one, or everything at once.

If two causes fit a rate, a third number of the file decides between them, or the sentence says that none does.
"""

from collections.abc import Mapping
from math import isfinite, nan

import numpy as np

from course.results.result import Requests

OPEN, CLOSED, BURST = "open", "closed", "burst"
SHORTFALL = 0.05  # a rate that is further off than this is pointed out
SLACK = 0.01  # of totals that are one another's quotient
IDLE = 3.0  # times the longest answer: a tail beyond it is no answer's
LIMIT_SHARE = 0.9  # of a limit in flight: from here on it holds requests back
FEW = 20  # requests below which their number in the system says nothing
GROWTH = 1.5  # times as many at the end of the sending as halfway
STEADY = 10.0  # mean answers: a run that sent for less has not settled
QUEUE = 0.25  # of the tail: a queue that grows evenly makes a mean wait of half the last; decoding takes the rest

Statistics = Mapping[str, Mapping[str, float]]


def loop_of(totals: Mapping[str, float], unlimited: bool, prompts: float = nan) -> str:
    """The loop of a load. unlimited: the file says that no rate was asked for, and does not just leave it out.

    prompts: how many the tool sends in all, if it stops at a number: a limit in flight that they do not exceed is none.
    A rate and a limit in flight together are an open loop until the limit is reached; `on_load` says when it was.
    """
    if isfinite(totals.get("requested_rate", nan)):
        return OPEN
    if isfinite(totals.get("max_concurrency", nan)) and not prompts <= totals["max_concurrency"]:
        return CLOSED
    return BURST if unlimited else ""


def on_load(
    totals: Mapping[str, float], times: Statistics, loop: str, estimated: bool, table: Requests | None = None
) -> list[str]:
    """Offered against requested, answered against offered, in flight by Little's law; empty if all is well.

    times: metric -> statistic -> seconds. estimated: E2E is an estimate of ours, which convicts no other number.
    """
    sentences = [] if loop in (CLOSED, BURST) else [*_on_sending(totals), *_on_answers(totals, times, table)]
    flying, most = totals.get("in_flight", nan), totals.get("max_concurrency", nan)
    if isfinite(flying):
        sentence = f"Requests in flight on average (Little's law): {'about ' if estimated else ''}{flying:.4g}"
        if flying > (1 + SLACK) * most and not estimated:
            sentence += f", more than the {most:,.0f} that were allowed at once: one of these numbers cannot be"
        elif isfinite(most):
            sentence += f" of the {most:,.0f} allowed"
        sentences.append(sentence)
    if loop == CLOSED:
        sentences.append(
            f"A closed loop: the next request is sent when one is answered, so its rate is what the engine can do with "
            f"{most:,.0f} in flight, and no load that users offered"
        )
    if loop == BURST:
        sentences.append(
            "All requests were sent at once: the rate is what the engine can do, and TTFT is mostly the wait behind "
            "those that came first in the queue"
        )
    return sentences


def _on_limit(totals: Mapping[str, float]) -> str:
    """The half sentence about a limit that was reached, or nothing."""
    flying, most = totals.get("in_flight", nan), totals.get("max_concurrency", nan)
    if not LIMIT_SHARE * most <= flying <= (1 + SLACK) * most:
        return ""
    return (
        f"the client's limit of {most:,.0f} in flight was reached ({flying:.4g} on average) and held requests back, "
        "as a closed loop does"
    )


def _on_sending(totals: Mapping[str, float]) -> list[str]:
    requested, offered = totals.get("requested_rate", nan), totals.get("offered_rate", nan)
    if not offered < (1 - SHORTFALL) * requested:
        return []
    return [
        f"The client sent {offered:.4g} requests/s where {requested:.4g} were asked for: "
        f"{_on_limit(totals) or 'it could not keep up'}, so the latencies are those of a lower load, and leave out how "
        "long requests waited to be sent"
    ]


def _in_system(table: Requests | None) -> tuple[int, int] | None:
    """How many were in the system halfway through the sending, and when the last was sent; None without such times."""
    if table is None:
        return None
    good = ~table.failed & np.isfinite(table.arrival) & np.isfinite(table.e2e)
    if good.sum() < FEW:
        return None
    start, end = table.arrival[good], (table.arrival + table.e2e)[good]
    half, last = (start.min() + share * np.ptp(start) for share in (0.5, 1.0))
    at_half, at_last = (int(((start <= moment) & (end > moment)).sum()) for moment in (half, last))
    return at_half, at_last


def _on_answers(totals: Mapping[str, float], times: Statistics, table: Requests | None) -> list[str]:
    requested, offered, answered = (
        totals.get(key, nan) for key in ("requested_rate", "offered_rate", "requests_per_second")
    )
    load = offered if isfinite(offered) else requested
    if not answered < (1 - SHORTFALL) * load:
        return []
    rates = f"{load:.4g} requests/s were {'offered' if isfinite(offered) else 'asked for'} and {answered:.4g} answered"
    good, failed = totals.get("requests", nan), totals.get("failed", 0.0)
    if failed > 0 and good > 0 and answered * (good + failed) / good >= (1 - SHORTFALL) * load:
        return [f"{rates}: the rest are the {failed:,.0f} that failed"]
    if not isfinite(offered) and _on_limit(totals):
        where_it_shows = "only what counts from the plan has" if "client_wait" in times else "no latency counts"
        return [f"{rates}: {_on_limit(totals)}, and {where_it_shows} that wait"]
    # From the last request to the last answer: a queue shows in TTFT, or in the number in the system, which grows; a
    # short run has a tail of one answer; what is longer than both is time in which the tool counted and no request was
    # served.
    duration = totals.get("duration", good / answered if answered > 0 else nan)
    sending = (good + failed - 1) / load
    tail = duration - sending
    first, whole = times.get("ttft", {}), times.get("e2e", {})
    wait = first.get("mean", first.get("p50", nan))
    longest = max((whole[key] for key in ("mean", "p99", "max") if key in whole), default=nan)
    inside = _in_system(table)
    if wait >= QUEUE * tail:
        why = (
            f"a queue built up, for a TTFT of {wait:.4g} s in the middle is much of the {tail:.4g} s in which the last "
            "ones were answered. A longer run at this rate waits longer"
        )
    elif inside is not None and inside[1] > GROWTH * max(inside[0], 1):
        why = (
            f"more and more were in the system, {inside[0]:,} halfway through the sending and {inside[1]:,} at its "
            "end. A longer run at this rate waits longer"
        )
    elif tail > IDLE * longest:
        why = (
            f"the duration of {duration:.4g} s is {tail:.4g} s longer than sending takes, and an answer takes "
            f"{longest:.4g} s: the tool counted time in which nothing was in flight"
        )
    elif inside is not None or (wait < QUEUE / 2 * tail and sending > STEADY * whole.get("mean", nan)):
        shows = f"a TTFT of {wait:.4g} s in the middle shows no queue"
        if inside is not None:
            shows = f"{inside[0]:,} were in the system halfway through the sending, {inside[1]:,} at its end"
        why = f"the run is short, for its last answers took {tail:.4g} s of its {duration:.4g} s, and {shows}"
    else:
        why = (
            f"sending took {sending:.4g} s and the last answers {tail:.4g} s, and whether the engine would keep up "
            "over a longer run the file does not say"
        )
    return [f"{rates}, over the whole run: {why}"]
