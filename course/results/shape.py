"""What the requests of a run show and no average does: an empty first piece, a start-up burst that makes the p99."""

import numpy as np

from course.results.result import Requests

FEW = 20  # requests below which a shape says nothing
EARLY = 3.0  # a first gap so many times the others follows a piece without a token
START = 0.1  # share of the run that counts as its start
FALLS = 0.5  # a p99 that falls below this share of itself without the start was made by it


def on_first_pieces(table: Requests) -> list[str]:
    """Whether the first piece of the answers was probably empty, as the role in a chat stream is."""
    if table.itl is None:
        return []
    gaps = [gap for gap, failed in zip(table.itl, table.failed, strict=True) if not failed and len(gap) >= 3]
    if len(gaps) < FEW:
        return []
    first = float(np.median([gap[0] for gap in gaps]))
    others = float(np.median(np.concatenate([gap[1:] for gap in gaps])))
    if not (others > 0 and first > EARLY * others):
        return []
    return [
        f"The first gap of an answer is {first / others:.3g} times the later ones (medians {1000 * first:.4g} and "
        f"{1000 * others:.4g} ms): its first piece may have been empty, and then TTFT is too short and TPOT too long"
    ]


def on_start(table: Requests) -> list[str]:
    """Whether the requests of the first tenth of the run make the p99 of TTFT."""
    usable = ~table.failed & np.isfinite(table.arrival) & np.isfinite(table.ttft)
    if usable.sum() < FEW:
        return []
    arrival, ttft = table.arrival[usable], table.ttft[usable]
    later = arrival > arrival.min() + START * np.ptp(arrival)
    if later.sum() < FEW:
        return []
    whole, rest = np.percentile(ttft, 99), np.percentile(ttft[later], 99)
    if not rest < FALLS * whole:
        return []
    return [
        f"The start makes the p99 of TTFT: {whole:.4g} s over all, {rest:.4g} s without the {int((~later).sum()):,} "
        f"requests of the first {START:.0%} of the run"
    ]
