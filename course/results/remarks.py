"""Sentences that hold for the runs of any tool: what was offered and answered, who was in flight, what cannot be."""

from math import isfinite

import numpy as np

from course.results.result import Requests

SHORTFALL = 0.05  # a rate that is further off than this is pointed out


def totals_of(table: Requests) -> dict[str, float]:
    """Counts and rates of the run, from its requests alone.

    duration: first arrival to last answer [s]. offered_rate = (n - 1) / (last arrival - first). in_flight: Little's
    law, the mean number of requests in the system = sum of E2E / duration (Little, Operations Research 9(3), 1961).
    """
    good = ~table.failed
    found: dict[str, float] = {
        "requests": int(good.sum()),
        "failed": int(table.failed.sum()),
        "prompt_tokens": float(np.nansum(table.prompt_tokens[good])),
        "output_tokens": float(np.nansum(table.output_tokens[good])),
    }
    span = np.ptp(table.arrival) if np.isfinite(table.arrival).all() else float("nan")
    if span > 0:
        found["offered_rate"] = float((len(table) - 1) / span)
    answered = table.arrival + table.e2e
    if np.isfinite(answered[good]).any():
        found |= rates(found, float(np.nanmax(answered[good]) - np.nanmin(table.arrival)), float(np.nansum(table.e2e)))
    return found


def rates(counts: dict[str, float], duration: float, e2e_sum: float) -> dict[str, float]:
    """Rates over `duration` seconds, and the mean number in flight."""
    if not duration > 0:
        return {}
    return {
        "duration": duration,
        "requests_per_second": counts["requests"] / duration,
        "output_tokens_per_second": counts["output_tokens"] / duration,
        "in_flight": e2e_sum / duration,
    }


def on_load(totals: dict[str, float]) -> list[str]:
    """Offered against requested, answered against offered, in flight by Little's law; empty where all is well."""
    found = []
    requested, offered = totals.get("requested_rate", float("nan")), totals.get("offered_rate", float("nan"))
    answered = totals.get("requests_per_second", float("nan"))
    if isfinite(requested) and offered < (1 - SHORTFALL) * requested:
        found.append(
            f"The client sent {offered:.4g} requests/s where {requested:.4g} were asked for: it could not keep up, so "
            "the latencies are those of a lower load"
        )
    if answered < (1 - SHORTFALL) * offered:
        found.append(
            f"{offered:.4g} requests/s were offered and {answered:.4g} answered, over the whole run: a queue built up, "
            "and with a longer run at this rate everyone would wait longer"
        )
    if isfinite(totals.get("in_flight", float("nan"))):
        found.append(f"{totals['in_flight']:.4g} requests were in flight on average (Little's law)")
    return found


def on_failures(totals: dict[str, float]) -> list[str]:
    """How many requests failed; empty where none did."""
    failed = totals.get("failed", 0)
    if not failed > 0:
        return []
    total = failed + totals.get("requests", 0)
    return [f"{failed:,.0f} of {total:,.0f} requests failed ({failed / total:.1%}); no average counts them"]
