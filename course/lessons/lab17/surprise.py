"""The table of lab 17 over five seeds: who waits under which order, and what a bucket costs.

python -m course.lessons.lab17.surprise
"""

from collections.abc import Iterator
from typing import Any

from course.lessons.lab17 import tenants
from course.lessons.lab17.tenants import CALM, FAIR, IN_ORDER, PRIORITY, SLOTS, STORM, Outcome

SEEDS = range(5)
FEW = 256  # slots
ENGINES: dict[str, dict[str, Any]] = {
    IN_ORDER: {},
    PRIORITY: {"order": PRIORITY},
    f"{PRIORITY}, 5 s of ageing": {"order": PRIORITY, "ageing": 5},
    FAIR: {"order": FAIR},
    "4,000 tokens/s a tenant": {"gateway": 4},
    "15,000 tokens/s a tenant": {"gateway": 15},
    "28,000 tokens/s a tenant": {"gateway": 28},
}


def found(name: str, noisy: float, slots: int) -> list[Outcome]:
    """The minute of each seed with this engine, the noisy tenant's rate and so many slots."""
    return [tenants.served(noisy, slots=slots, seed=seed, **ENGINES[name]) for seed in SEEDS]


def lines() -> Iterator[str]:
    """Lines of the table: seconds, milliseconds and tokens/s, a value for each seed."""
    for slots in (FEW, SLOTS):
        for noisy in (CALM, STORM):
            for name in ENGINES:
                each = found(name, noisy, slots)
                ttft = "/".join(f"{one.ttft:.2f}" for one in each)
                tpot = "/".join(f"{1e3 * one.tpot:.0f}" for one in each)
                rate = "/".join(f"{one.tokens_per_second:,.0f}" for one in each)
                yield f"{slots:>5,} slots, N {noisy}/s  {name:<26} TTFT {ttft} s, TPOT {tpot} ms, {rate} tokens/s"


if __name__ == "__main__":
    for one in lines():
        print(one, flush=True)
