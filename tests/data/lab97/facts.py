"""The numbers in the toy's texts."""

from typing import Any

from tests.data.lab97 import one_engine
from tests.data.lab97.one_engine import ANSWER, EACH_MS, FIXED_MS, RATE, SLOTS, full
from tests.data.lab97.tasks import FAST

GIVEN = (FIXED_MS, ANSWER, RATE, SLOTS)


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    here, twice = full(SLOTS), full(2 * SLOTS)
    return {
        "each_ms": EACH_MS,
        "tokens": here.tokens_per_s,
        "tokens_twin": twice.tokens_per_s,
        "fast": FAST,
        "twice": 2 * SLOTS,
        "more": twice.tokens_per_s / here.tokens_per_s - 1,
        "step": here.step_ms,
        "capacity": here.tokens_per_s / ANSWER,
        "slots": one_engine.slots_for(RATE),
        "double": 2 * RATE,
        "slots_twin": one_engine.slots_for(2 * RATE),
        "answer_s": here.answer_s,
        "twice_answer_s": twice.answer_s,
    }


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true."""
    more = full(2 * SLOTS).tokens_per_s / full(SLOTS).tokens_per_s
    slower = full(2 * SLOTS).answer_s / full(SLOTS).answer_s
    return {
        "doubling": (abs(more - 2) < 0.1, 1.1 < more < 1.9, more < 1.1),
        "each": (slower < 0.95, 0.95 <= slower <= 1.05, slower > 1.05),
        "step": (False, full(1).step_ms == FIXED_MS + EACH_MS),
        "cause": "than it delivers",
        "next": "how many run",
        "repair": (full(2 * SLOTS).tokens_per_s > 1.4 * RATE * ANSWER, False),
        "law": "fixed part",
        "limit": (False, full(10**9).tokens_per_s < 1e3 / EACH_MS),
        "idle": (False, True),
        "unit": "per second",
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    run = one_engine.busy(RATE, SLOTS)
    return {"at the start the engine keeps up": run.makespan < 1.1 * run.arrival[-1]}
