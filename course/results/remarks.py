"""Sentences that hold for the runs of any tool: failures, lengths that were asked for, and numbers that cannot be."""

from collections.abc import Mapping
from math import nan

import numpy as np

from course.results.definitions import Definition
from course.results.load import SHORTFALL, SLACK
from course.results.result import Requests

HALF_DIGIT = 0.005  # of a rate with two decimals: for few requests a second it is several percent
LENGTH_SLACK = 0.05  # of the length asked for: a mean that is further off is pointed out


def totals_of(table: Requests) -> dict[str, float]:
    """Counts and rates of the run, from its requests alone.

    duration: first arrival to last answer [s]. offered_rate = (n - 1) / (last arrival - first). in_flight: Little's
    law, the mean number of requests in the system = sum of E2E / duration (Little, Operations Research 9(3), 1961).
    """
    good = ~table.failed
    totals: dict[str, float] = {"requests": int(good.sum()), "failed": int(table.failed.sum())}
    for name in ("prompt_tokens", "output_tokens"):
        values = getattr(table, name)[good]
        if np.isfinite(values).all():
            totals[name] = float(values.sum())
    span = np.ptp(table.arrival) if len(table) and np.isfinite(table.arrival).all() else nan
    if span > 0:
        totals["offered_rate"] = float((len(table) - 1) / span)
    ends = (table.arrival + table.e2e)[good]
    if ends.size and np.isfinite(ends).all():
        totals |= rates(totals, float(ends.max() - np.nanmin(table.arrival)), float(table.e2e[good].sum()))
    return totals


def rates(counts: Mapping[str, float], duration: float, e2e_sum: float) -> dict[str, float]:
    """Rates over `duration` seconds, and the mean number in flight."""
    if not duration > 0:
        return {}
    per_second = {
        "duration": duration,
        "requests_per_second": counts["requests"] / duration,
        "in_flight": e2e_sum / duration,
    }
    if "output_tokens" in counts:
        per_second["output_tokens_per_second"] = counts["output_tokens"] / duration
    return per_second


def on_failures(totals: Mapping[str, float]) -> list[str]:
    """How many requests failed; empty if none did."""
    failed = totals.get("failed", 0)
    if not failed > 0:
        return []
    total = failed + totals.get("requests", 0)
    return [f"{failed:,.0f} of {total:,.0f} requests failed ({failed / total:.1%}); no average counts them"]


def on_lengths(totals: Mapping[str, float]) -> list[str]:
    """Tokens that were asked for against those that were counted; empty if they agree within 5%.

    totals: asked_prompt_tokens and asked_output_tokens are means a request; most_output_tokens is a limit alone.
    """
    sentences = []
    requests = totals.get("requests", nan) or nan
    for side, what in (("prompt", "prompts"), ("output", "answers")):
        mean = totals.get(f"mean_{side}_tokens", totals.get(f"{side}_tokens", nan) / requests)
        plan, most = totals.get(f"asked_{side}_tokens", nan), totals.get(f"most_{side}_tokens", nan)
        if abs(mean - plan) > LENGTH_SLACK * plan:
            sentences.append(
                f"Asked for were {what} of {plan:,.4g} tokens, counted {mean:,.4g} on average, "
                f"{mean / plan:.3g} times as many: this is another load than the planned one, or another tokeniser "
                "counted"
            )
        elif mean > (1 + LENGTH_SLACK) * most:
            sentences.append(
                f"Asked for were {what} of at most {most:,.4g} tokens, counted {mean:,.4g} on average: the limit "
                "did not reach the server, or another tokeniser counted"
            )
    return sentences


def on_totals(totals: Mapping[str, float], stored: Mapping[str, float], own: Mapping[str, float]) -> list[str]:
    """Totals that cannot be. totals: all of them; stored: those of the file; own: those that its requests give."""
    sentences = []
    for name in ("requests", "failed", "prompt_tokens", "output_tokens"):
        if abs(stored.get(name, nan) - own.get(name, nan)) > 0:
            sentences.append(
                f"The file says {stored[name]:,.0f} {name.replace('_', ' ')}, its rows make {own[name]:,.0f}: one of "
                "them is wrong"
            )
    seconds = totals.get("duration", nan)
    tokens = totals.get("prompt_tokens", nan) + totals.get("output_tokens", nan)
    for rate, unit, amount in (
        ("requests_per_second", "requests", totals.get("requests", nan)),
        ("output_tokens_per_second", "output tokens", totals.get("output_tokens", nan)),
        ("prompt_tokens_per_second", "prompt tokens", totals.get("prompt_tokens", nan)),
        ("total_tokens_per_second", "tokens", tokens),
    ):
        value = totals.get(rate, nan)
        digits = HALF_DIGIT * (value == round(value, 2))  # it may have been printed with two
        if seconds > 0 and abs(value * seconds - amount) > max(SLACK * max(amount, 1), digits * seconds):
            sentences.append(
                f"{value:,.4g} {unit} a second cannot be: {amount:,.0f} in {seconds:,.4g} s are {amount / seconds:,.4g}"
            )
    requests = totals.get("requests_per_second", nan)
    for rate, side in (("output_tokens_per_second", "output"), ("prompt_tokens_per_second", "prompt")):
        tokens_each, value = totals.get(f"mean_{side}_tokens", nan), totals.get(rate, nan)
        if abs(value - requests * tokens_each) > SHORTFALL * value:
            sentences.append(
                f"{requests:.4g} requests/s of {tokens_each:,.4g} {side} tokens make {requests * tokens_each:,.0f} "
                f"tokens/s and not {value:,.0f}: one of these rates cannot be"
            )
    return sentences


def on_means(
    reported: Mapping[str, Mapping[str, float]],
    definitions: Mapping[str, Definition],
    own: Mapping[str, Mapping[str, float]],
) -> list[str]:
    """Means of the file against those of its rows, and a TTFT against E2E."""
    sentences = []
    for name, values in reported.items():
        mean, rows = values.get("mean", nan), own.get(name, {}).get("mean", nan)
        if name not in definitions or not abs(mean - rows) > SLACK * max(mean, rows):
            continue
        if definitions[name].same:
            sentences.append(f"The file's mean {name.upper()} is {mean:.6g} s, its rows make {rows:.6g} s")
        else:
            sentences.append(
                f"{name.upper()} is another quantity here: {mean:.6g} s by the tool's definition "
                f"({definitions[name].tool}), {rows:.6g} s by ours"
            )
    for statistic in ("mean", "p50"):
        first, whole = (reported.get(name, {}).get(statistic, nan) for name in ("ttft", "e2e"))
        if first > whole:
            sentences.append(f"A {statistic} TTFT of {first:.4g} s above an E2E of {whole:.4g} s cannot be")
    return sentences
