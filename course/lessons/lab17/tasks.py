"""Lab 17: what its two explorers ask of a result. The settings shown leave room for other step times."""

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab17 import tenants
from course.lessons.lab17.tenants import FAIR, IN_ORDER, NONE, ORDERS, PRIORITY, SLOTS, STORM, Outcome

SOON = 1.0  # seconds: the quiet tenants' p95 that an ageing must keep
LATE = 5.0  # seconds: nobody calls that soon
STREAM = 0.035  # seconds: their TPOT, p95, that slots must keep
FIRST = 0.5  # seconds: their TTFT, p95, that a gateway must keep
NEARLY = 0.9  # of the tokens/s without a limit

# Who waits?


def waits(settings: Settings, result: Outcome) -> bool:
    """Whether the noisy tenant's rate alone lets the quiet ones wait."""
    plain = settings["order"] == IN_ORDER and settings["slots"] == SLOTS
    return plain and result.ttft >= LATE


def order_matters(settings: Settings, result: Outcome) -> bool:
    """Whether another order helps there, and did not help on a calm day."""
    calm = [tenants.served(tenants.CALM, order).ttft for order in ORDERS]
    storm = [tenants.served(settings["noisy"], order).ttft for order in (PRIORITY, FAIR)]
    return max(calm) <= 1.02 * min(calm) and max(storm) < FIRST < LATE < result.ttft


def least_ageing(settings: Settings, result: Outcome) -> bool:
    """Whether the ageing is the least, to the second, that keeps the quiet tenants' p95 within SOON in a storm."""
    ageing, storm = settings["ageing"], settings["noisy"] == STORM and settings["slots"] == SLOTS
    if not (storm and settings["order"] == PRIORITY and 0 < ageing < NONE and result.ttft <= SOON):
        return False
    return tenants.served(STORM, PRIORITY, ageing=ageing - 1).ttft > SOON


def _more_than_needed(settings: Settings, result: Outcome) -> bool:
    """Whether a second of ageing less keeps the quiet tenants' p95 within SOON in the storm as well."""
    storm = settings["noisy"] == STORM and settings["slots"] == SLOTS
    if not (storm and settings["order"] == PRIORITY and settings["ageing"] > 0 and result.ttft <= SOON):
        return False
    return tenants.served(STORM, PRIORITY, ageing=settings["ageing"] - 1).ttft <= SOON


def no_ageing_for_longer(settings: Settings, result: Outcome) -> bool:
    """Whether the same ageing fails when the storm lasts twice as long."""
    longer = tenants.outcome(tenants.requests(duration=2 * tenants.SECONDS), result.run.policy)
    return longer.ttft > 10 * result.ttft


def same_pace(settings: Settings, result: Outcome) -> bool:
    """Whether the TPOT is about the same in every order of the storm, and far above that of a calm day."""
    paces = [tenants.served(STORM, order).tpot for order in ORDERS]
    return max(paces) < 1.1 * min(paces) and min(paces) > 5 * tenants.served(tenants.CALM).tpot


def who(settings: Settings, result: Outcome) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "noisy": f"{settings['noisy']:g}",
        "quiet": seconds(result.ttft),
        "fair": seconds(tenants.served(settings["noisy"], FAIR).ttft),
        "ageing": f"{settings['ageing']:g} s",
        "less": "; a second less keeps it, too" if _more_than_needed(settings, result) else "",
        "tpot": seconds(result.tpot),
        "others": seconds(result.noisy_ttft),
        "calm_tpot": seconds(tenants.served(tenants.CALM).tpot),
    }


# Slots, and a gateway


def slots_for_streams(settings: Settings, result: Outcome) -> bool:
    """Whether slots alone bring the quiet tenants' TPOT down under an order that protects, and tokens/s stay."""
    alone = settings["gateway"] == NONE and settings["order"] == FAIR
    return alone and result.tpot <= STREAM and result.ttft <= FIRST and _rate(result) >= NEARLY


def a_gateway_that_protects(settings: Settings, result: Outcome) -> bool:
    """Whether the gateway alone protects, and tokens/s stay."""
    alone = settings["gateway"] < NONE and settings["slots"] == SLOTS
    return alone and result.ttft <= FIRST and _rate(result) >= NEARLY


def protects_streams_too(settings: Settings, result: Outcome) -> bool:
    """Whether tokens come sooner than under the order alone, and the noisy tenant waits longer."""
    before = at_the_start()
    return result.tpot < 0.7 * before.tpot and result.noisy_ttft > before.noisy_ttft


def moved_the_queue(settings: Settings, result: Outcome) -> bool:
    """Whether fewer slots lengthen the wait and shorten the TPOT, first come, first served."""
    few, all_of_them = tenants.served(slots=128), tenants.served()
    return few.ttft > 1.3 * all_of_them.ttft and few.tpot < all_of_them.tpot / 3


def at_the_start() -> Outcome:
    """The storm under fair, with the engine's own slots and no gateway."""
    return tenants.served(STORM, FAIR)


def _rate(result: Outcome) -> float:
    return result.tokens_per_second / at_the_start().tokens_per_second


def limits(settings: Settings, result: Outcome) -> Mapping[str, Any]:
    """What the answers name."""
    few, many = tenants.served(slots=128), tenants.served()
    return {
        "slots": f"{settings['slots']:,}",
        "gateway": f"{1_000 * settings['gateway']:,.0f}",
        "quiet": seconds(result.ttft),
        "tpot": seconds(result.tpot),
        "tpot_before": seconds(at_the_start().tpot),
        "others": seconds(result.noisy_ttft),
        "others_before": seconds(at_the_start().noisy_ttft),
        "rate": f"{_rate(result):.0%}",
        "few_ttft": seconds(few.ttft),
        "many_ttft": seconds(many.ttft),
        "few_tpot": seconds(few.tpot),
        "many_tpot": seconds(many.tpot),
    }
