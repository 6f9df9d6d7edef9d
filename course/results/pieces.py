"""Tokens or pieces of a stream: what a mean TPOT, a mean ITL, E2E and the number of tokens say about each other.

A piece may hold several tokens: a server that sends so, or drafted tokens that were accepted together. Then ITL is a
time per piece. Means of TPOT and ITL also differ if every piece is a token, since TPOT counts each request once and
ITL each gap. E2E - TTFT tells which: it is the gaps of an answer times the time of a token.
"""

from collections.abc import Mapping
from math import isfinite, nan

import numpy as np

from course.results.result import Requests

UNLIKE = 0.05  # of the mean TPOT: a mean ITL that is further off is explained
SAME = 0.05  # within which ITL x gaps is E2E - TTFT: the mean of products of unequal answers is off by a little
FAR = 1.25  # a mean TPOT that is further off than this from its E2E, TTFT and tokens is explained

Statistics = Mapping[str, Mapping[str, float]]


def gaps_each(totals: Mapping[str, float]) -> float:
    """Gaps between the tokens of a mean answer; NaN if the file does not say how many tokens there were."""
    requests = totals.get("requests", nan) or nan
    return totals.get("mean_output_tokens", totals.get("output_tokens", nan) / requests) - 1


def e2e_of(
    reported: Statistics, totals: Mapping[str, float], drafted: float, lacks: str
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The mean E2E of a summary that lacks it, and the sentence about it; empty if it is there or cannot be had.

    TTFT + ITL x gaps, if every piece was one token; TTFT + TPOT x gaps, if pieces held several, or all answers are
    equally long. If the two differ, drafted tokens or the limit in flight tell: no more can be in flight than was
    allowed. drafted: mean tokens a step, NaN without speculation. lacks: how E2E gets into the file, in words.
    """
    first, itl, tpot = (reported.get(name, {}).get("mean", nan) for name in ("ttft", "itl", "tpot"))
    gaps = gaps_each(totals)
    by_itl, by_tpot = first + itl * gaps, first + tpot * gaps
    if "e2e" in reported or not (by_itl > 0 or by_tpot > 0):
        return {}, []
    start = f"E2E is not in the file ({lacks}): "
    by_token = f"TTFT + TPOT x (tokens - 1) of the means make {by_tpot:.4g} s"
    by_gap = f"TTFT + ITL x (tokens - 1) of the means make {by_itl:.4g} s"
    if not isfinite(by_itl):
        return {"e2e": {"mean": by_tpot}}, [start + by_token]
    if drafted > 1 and tpot > 0:
        return {"e2e": {"mean": by_tpot}}, [f"{start}{by_token}. With drafted tokens ITL is a step of several tokens"]
    if not abs(itl - tpot) > UNLIKE * tpot:
        return {"e2e": {"mean": by_itl}}, [f"{start}{by_gap}, if every piece of the stream was one token"]
    rate, most = totals.get("requests_per_second", nan), _most(totals)
    if rate * by_itl > (1 + SAME) * most and rate * by_tpot <= (1 + SAME) * most:
        return {"e2e": {"mean": by_tpot}}, [
            f"{start}{by_token}. With ITL it would be {by_itl:.4g} s and {rate * by_itl:.4g} in flight of "
            f"{most:,.0f} allowed, so a piece of the stream held several tokens"
        ]
    also = f"; {by_tpot:.4g} s with TPOT, if pieces held several" if itl > tpot else ""
    return {"e2e": {"mean": by_itl}}, [f"{start}{by_gap}, if every piece of the stream was one token{also}"]


def _most(totals: Mapping[str, float]) -> float:
    """The most that can have been in flight on average: the limit, or the peak that was seen."""
    limits = [totals[key] for key in ("max_concurrency", "peak_in_flight") if key in totals]
    return min(limits, default=nan)


def on_tokens(
    reported: Statistics, totals: Mapping[str, float], drafted: float, table: Requests | None
) -> tuple[str, ...]:
    """One sentence if the means of TPOT, ITL and E2E - TTFT differ, with the reason that the numbers give."""
    first, itl, tpot, whole = (reported.get(name, {}).get("mean", nan) for name in ("ttft", "itl", "tpot", "e2e"))
    gaps = gaps_each(totals)
    decode, ms = whole - first, 1_000
    if abs(itl - tpot) > UNLIKE * tpot:
        if min(itl, tpot) <= 0:
            name, other = ("ITL", "TPOT") if itl <= 0 else ("TPOT", "ITL")
            longer = f"{ms * max(itl, tpot):.4g} ms"
            return (f"The mean {name} is 0 and the mean {other} {longer}: they cannot both be of this run",)
        if drafted > 1 and itl > tpot:
            return (
                f"ITL is between steps that bring {itl / tpot:.3g} tokens on average (drafted tokens: the file says "
                f"{drafted:.3g} a step). The time of a token is TPOT, {ms * tpot:.4g} ms",
            )
        claim = (
            f"The mean TPOT of {ms * tpot:.4g} ms counts every request alike, the mean ITL of {ms * itl:.4g} ms every "
            "gap"
        )
        return _why(claim, itl, tpot, itl * gaps / decode if decode > 0 and gaps > 0 else nan, totals, first, table)
    gap = decode / gaps if gaps > 0 else nan
    if gap > 0 and isfinite(tpot) and not 1 / FAR <= tpot / gap <= FAR:
        return (_far(reported, tpot, gap, f"({whole:.4g} - {first:.4g}) s over {gaps:.4g} gaps"),)
    return ()


def _why(
    claim: str,
    itl: float,
    tpot: float,
    share: float,
    totals: Mapping[str, float],
    first: float,
    table: Requests | None,
) -> tuple[str, ...]:
    """Why a mean TPOT and a mean ITL differ. share: ITL x gaps over E2E - TTFT, NaN if there is no E2E."""
    few = "slower" if itl < tpot else "faster"
    unequal = f"requests with few tokens were {few} than those with many"
    if table is not None and table.itl is not None:
        rows = [i for i in np.flatnonzero(~table.failed) if len(table.itl[i])]
        pieces, tokens = (
            sum(len(table.itl[i]) for i in rows),
            sum(table.output_tokens[i] - 1 for i in rows),
        )
        return (f"{claim}: {unequal}",) if abs(pieces - tokens) <= SAME * tokens else ()  # `lists` says the other
    if isfinite(share):
        if abs(share - 1) <= SAME:
            off = f"{abs(share - 1):.1%}"
            return (f"{claim}: {unequal}. ITL x gaps is E2E - TTFT within {off}, so every piece was a token",)
        if share > 1:
            return (
                f"{claim} between pieces, which held {share:.3g} tokens each: ITL x gaps is as many times E2E - TTFT",
            )
        return (f"{claim} between pieces, of which there were {1 / share:.3g} for every token that was counted",)
    if itl < tpot:
        return (f"{claim}: {unequal}",)
    rate, most = totals.get("requests_per_second", nan), _most(totals)
    if rate * (first + itl * gaps_each(totals)) > (1 + SAME) * most:
        return (f"{claim} between pieces, which held several tokens each: as gaps of single tokens they would make "
                f"more requests in flight than the {most:,.0f} that there can have been",)  # fmt: skip
    return (f"{claim}: either {unequal}, or pieces held several tokens. E2E would tell, and is not in the file",)


def _far(reported: Statistics, tpot: float, gap_mean: float, how: str) -> str:
    """A sentence about a mean TPOT that contradicts the means of E2E, TTFT and tokens, with what explains it."""
    claim = f"A mean TPOT of {1000 * tpot:.4g} ms does not go with its E2E and TTFT: {how} are {1000 * gap_mean:.4g} ms"
    middle = reported.get("tpot", {}).get("p50", nan)
    if 1 / FAR <= middle / gap_mean <= FAR:
        return f"{claim}. Its median is {1000 * middle:.4g} ms, so a few requests with few tokens make that mean"
    if isfinite(reported.get("itl", {}).get("mean", nan)):  # and it agrees with TPOT, or we were not here
        return f"{claim}. ITL agrees with TPOT, so what was counted as tokens and the pieces of the stream differ"
    return f"{claim}. Whether pieces were counted for tokens, or answers with few tokens were slow, ITL would tell"
