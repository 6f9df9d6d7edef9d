"""Whether the client held a run back: by a cap on requests in flight, or by sending all of them at once."""

from collections.abc import Iterator, Sequence
from math import nan

from course.results.load import BURST, LIMIT_SHARE, OPEN, SHORTFALL
from course.results.result import Result

QUEUE = 0.25  # of the run: the mean TTFT of a queue, which is half of it where all were sent at once
GAIN = 1.25  # times as many answers a second: with fewer, twice as many in flight did not help
SENT = 0.1  # of the run, in which all requests were sent: the rest is what a queue of all would show
HALF = 0.45  # of all requests in flight on average: of those sent at once and served in order it is half


def limits(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """client_cap or burst for each run that shows one, with its numbers; none if a sweep shows a full server."""
    names = "in_flight max_concurrency requests peak_in_flight requests_per_second requested_rate duration"
    for run in results if not _saturated(results) else ():
        flying, most, total, peak, done, asked, seconds = (run.totals.get(name, nan) for name in names.split())
        first = run.ours.get("ttft", {})
        queued = first.get("mean", first.get("p50", nan)) >= QUEUE * seconds
        at_once = run.loop in (BURST, "") or (most >= total and (run.loop != OPEN or queued))
        at_once |= total / asked <= SENT * seconds  # a rate, by which all were sent early on
        half = HALF * total <= flying <= total
        short = run.loop != OPEN or done < (1 - SHORTFALL) * asked
        if flying >= LIMIT_SHARE * most and not most >= total and short:
            yield "client_cap", f"{_amount(flying)} in flight on average of {most:,.0f} allowed"
        elif at_once and total > 1 and (half or peak >= total or run.loop == BURST) and not most < total:
            how = f"{_amount(flying)} of {total:,.0f} requests in flight on average"
            yield "burst", how if half else f"all {total:,.0f} at once"


def _saturated(results: Sequence[Result]) -> bool:
    """Whether a sweep shows that more in flight bring hardly more answers: the server is full, not the client."""
    caps = [(run.totals.get("max_concurrency", nan), run.totals.get("requests_per_second", nan)) for run in results]
    if not all(cap > 0 and done > 0 for cap, done in caps) or len({cap for cap, _ in caps}) < 2:
        return False
    few, many = min(caps)[0], max(caps)[0]
    best = {end: max(done for cap, done in caps if cap == end) for end in (few, many)}
    return many >= 2 * few and best[many] < GAIN * best[few]


def _amount(value: float) -> str:
    """Four digits, and never as a power of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
