"""Lab 15: what its two explorers ask of a result. The settings shown leave room for other step times."""

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab15 import promises
from course.lessons.lab15.promises import (
    BOTH,
    BUDGET,
    BURSTS,
    DEFAULTS,
    FLAG,
    HOPELESS,
    IN_ORDER,
    MOST,
    NONE,
    SMALL,
    TPOT,
    Outcome,
)  # fmt: skip
from course.sweep import OneProcess, sweep

ENOUGH = 0.95  # of all requests
MOST_OF_THEM = 0.75  # the same, of what flags and an order shall reach in a storm
LEAST = 4  # requests/s, of the slider

# Which policy?


def kept(*, seed: int, rate: int, policy: str) -> dict[str, float]:
    """A design for a sweep: the share of all requests that got what was promised."""
    return {"share": promises.served(rate, policy, seed=seed).share}


def highest(policy: str) -> int:
    """The highest rate up to which ENOUGH get what was promised, whole requests/s. For facts: a slider would wait."""
    rates = range(LEAST, MOST + 1)
    table = sweep(kept, {"policy": [policy], "rate": rates}, executor=OneProcess())
    broken = (rate for rate, one in zip(rates, table.designs, strict=True) if one["share"] < ENOUGH)
    return next(broken, MOST + 1) - 1


def _is_highest(settings: Settings, result: Outcome, policy: str) -> bool:
    if settings["policy"] != policy or settings["arrivals"] != BURSTS or result.share < ENOUGH:
        return False
    return settings["rate"] >= MOST or promises.served(settings["rate"] + 1, policy).share < ENOUGH


def highest_by_default(settings: Settings, result: Outcome) -> bool:
    """Whether this is the highest rate that the defaults carry."""
    return _is_highest(settings, result, DEFAULTS)


def highest_with_both(settings: Settings, result: Outcome) -> bool:
    """The same of the step target and the order together."""
    return _is_highest(settings, result, BOTH)


def a_flag_carries_less(settings: Settings, result: Outcome) -> bool:
    """Whether a smaller budget alone carries no more, and bursts are the reason."""
    steady = promises.served(2 * settings["rate"], DEFAULTS, promises.STEADY)
    return highest(FLAG) <= settings["rate"] and steady.share >= ENOUGH


def slow_steps(settings: Settings, result: Outcome) -> bool:
    """Whether the order brings first tokens in time, and streams are slow all the same."""
    before = promises.served()
    return result.in_time.mean() > 0.9 > before.in_time.mean() and result.tpot > 3 * TPOT < before.tpot


def which(settings: Settings, result: Outcome) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "rate": f"{settings['rate']:g}",
        "share": f"{result.share:.0%}",
        "in_time": f"{result.in_time.mean():.0%}",
        "tpot": seconds(result.tpot),
        "late_documents": f"{result.documents_late}",
        "documents": f"{(~result.chat).sum()}",
        "steady": f"{2 * settings['rate']:g}",
    }


# The step


def longest_target(settings: Settings, result: Outcome) -> bool:
    """Whether the step target alone keeps the TPOT, and a millisecond more would not."""
    alone = settings["budget"] == BUDGET and settings["order"] == IN_ORDER
    if not alone or settings["target"] >= NONE or result.tpot > TPOT:
        return False
    return promises.tuned(settings["target"] + 1).tpot > TPOT


def moves_the_queue(settings: Settings, result: Outcome) -> bool:
    """Whether requests that nobody let wait before now wait longer for their first token."""
    return result.ttft > 2 * promises.tuned().ttft


def flag_and_order(settings: Settings, result: Outcome) -> bool:
    """Whether a budget and an order, without a step target, keep most promises."""
    return settings["target"] >= NONE and result.share >= MOST_OF_THEM


def neither_alone(settings: Settings, result: Outcome) -> bool:
    """Whether neither of the two does so alone."""
    alone = promises.tuned(budget=settings["budget"]), promises.tuned(order=HOPELESS)
    return max(one.share for one in alone) < MOST_OF_THEM / 2


def all_are_served(settings: Settings, result: Outcome) -> bool:
    """Whether everybody is answered in both orders, in about the same time, and some wait much longer."""
    before = promises.tuned(budget=SMALL)
    runs = [one.run for one in (result, before)]
    done = all((run.response > run.arrival).all() for run in runs)
    rejected = promises.rejecting()
    done = done and abs(rejected.share - result.share) < 0.02 and bool((rejected.run.outcome == "rejected").any())
    return done and abs(runs[0].makespan / runs[1].makespan - 1) < 0.02 and result.longest > 2 * before.longest


def step(settings: Settings, result: Outcome) -> Mapping[str, Any]:
    """What the answers name."""
    before, order, flag = promises.tuned(), promises.tuned(order=HOPELESS), promises.tuned(budget=SMALL)
    return {
        "target": f"{settings['target']:g} ms",
        "tpot": seconds(result.tpot),
        "ttft": seconds(result.ttft),
        "ttft_before": seconds(before.ttft),
        "share": f"{result.share:.0%}",
        "order_share": f"{order.share:.0%}",
        "flag_share": f"{flag.share:.0%}",
        "longest": seconds(result.longest),
        "flag_longest": seconds(flag.longest),
        "rejected": f"{promises.rejecting().share:.0%}",
    }
