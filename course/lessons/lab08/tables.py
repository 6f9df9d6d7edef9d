"""Tables of lab 08 as a cell shows them: text for everyone, HTML where there is a browser."""

from functools import lru_cache

from course.engine.serving import serve
from course.explore.table import Table, table
from course.lessons.lab08 import kv_pool
from course.steptime import recorded

SLOTS = (24, 48)
H100_RATE = 12.0  # requests/s: twice what the recorded steps answer


@lru_cache(maxsize=8)
def on_recorded_steps(slots: int, rate: float = H100_RATE) -> tuple[float, int]:
    """Tokens/s and preemptions of the same requests and pool, with steps recorded on an H100."""
    load = kv_pool.requests(rate)
    run = serve(load, kv_pool.engine(slots), recorded("h100-llama3-8b"), kv_pool.cache())
    return float(load.output_tokens.sum()) / run.makespan, int(run.preempted.sum())


def two_cards() -> Table:
    """Whether more slots help: on the modelled RTX 4090, and on steps recorded on an H100, with the same pool."""
    rows: list[tuple[str, ...]] = [("", *(f"{slots} slots" for slots in SLOTS))]
    modelled = [kv_pool.under_load(slots=slots) for slots in SLOTS]
    pairs = [(one.tokens_per_second, one.preemptions) for one in modelled]
    for name, found in (
        ("RTX 4090, modelled, 2 requests/s", pairs),
        (f"simulated on recorded H100 steps, {H100_RATE:g} requests/s", [on_recorded_steps(slots) for slots in SLOTS]),
    ):
        rows.append((name, *(f"{speed:,.0f} tokens/s, {lost:,} preemptions" for speed, lost in found)))
    return table(rows, "The same pool of 41,408 tokens, 2,000 requests")
