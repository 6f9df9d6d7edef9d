"""Lab 14: what its explorers ask of a result."""

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab14 import cards, four
from course.lessons.lab14.cards import BATCHES, FASTEST, Spread
from course.lessons.lab14.four import FOUR, PAIRS, REPLICAS, Four

STEP: dict[str, Any] = {"cards": 2, "batch": 1, "kind": FASTEST}
SUMMED = 32  # sequences whose all-reduce is asked for
GAIN = 1.5  # times as fast


def size_kib(settings: Settings, result: Spread) -> float:
    """KiB that a card adds up in one all-reduce."""
    return result.batch * cards.HIDDEN * cards.NUMBER_BYTES / 1_024


def at_summed(settings: Settings, result: Spread) -> bool:
    """Whether two cards compute SUMMED sequences."""
    return result.cards == 2 and result.batch == SUMMED


def small_share(settings: Settings, result: Spread) -> bool:
    """Whether the all-reduces take less of the step than with one sequence."""
    return result.sums / result.step < cards.spread(result.cards, 1).sums / cards.spread(result.cards, 1).step


def first_gain(settings: Settings, result: Spread) -> bool:
    """Whether this is the smallest batch in which two cards are GAIN times as fast, with the faster sums."""
    here = result.cards == 2 and result.kind == FASTEST
    return here and result.batch == smallest_gain()


def smallest_gain() -> int:
    """That batch."""
    return next(batch for batch in BATCHES if cards.spread(2, batch).speed_up >= GAIN)


def dearer(settings: Settings, result: Spread) -> float:
    """How many times as much a token costs as on one card."""
    return result.cost / cards.spread(1, result.batch).cost


def four_alone(settings: Settings, result: Spread) -> bool:
    """Whether four cards compute one sequence, with the faster sums."""
    return result.cards == 4 and result.batch == 1 and result.kind == FASTEST


def dearest_alone(settings: Settings, result: Spread) -> bool:
    """Whether a larger batch costs less more."""
    many = cards.spread(result.cards, BATCHES[-1])
    return many.cost / cards.spread(1, BATCHES[-1]).cost < dearer(settings, result)


def both_stay(settings: Settings, result: Spread) -> bool:
    """Whether sums and what stays are what is missing to twice the speed."""
    return abs(result.shared + result.stays - (result.alone + result.stays) / 2) < 1e-6


def step(settings: Settings, result: Spread) -> Mapping[str, Any]:
    """What the answers name."""
    first = cards.spread(result.cards, 1)
    return {
        "cards": result.cards,
        "most": BATCHES[-1],
        "batch": result.batch,
        "gain": f"{result.speed_up:.2f}",
        "step": seconds(result.step),
        "alone": seconds(result.alone),
        "sums": seconds(result.sums),
        "stays": seconds(result.stays),
        "dealt": seconds(result.alone - result.stays),
        "size": f"{size_kib(settings, result):,.0f}",
        "share": f"{result.sums / result.step:.0%}",
        "share_alone": f"{first.sums / first.step:.0%}",
        "cost": f"{result.cost:.2f}",
        "cost_alone": f"{cards.spread(1, result.batch).cost:.2f}",
        "dearer": f"{dearer(settings, result):.2f}",
        "dearer_full": f"{cards.spread(result.cards, BATCHES[-1]).cost / cards.spread(1, BATCHES[-1]).cost:.2f}",
    }


# Four cards

SERVED: dict[str, Any] = {"rate": four.RATE, "tpot_ms": four.TPOT_MS}
SOME, MANY = 40, 100  # requests/s
LOOSE_MS = 20  # of TPOT
LEAD, TURN = 1.1, 0.9


def loosest(settings: Settings, result: Four) -> bool:
    """Whether no looser promise lets one four serve a tenth more than replicas, at SOME requests/s."""
    if result.rate != SOME:
        return False
    looser = [promise for promise in four.PROMISES if promise > result.tpot_ms]
    return _ahead(result) and not any(_ahead(Four(result.rate, promise, result.runs)) for promise in looser)


def _ahead(found: Four) -> bool:
    return found.share(FOUR) >= LEAD * found.share(REPLICAS) > 0


def pairs_between(settings: Settings, result: Four) -> bool:
    """Whether pairs are between the two."""
    return result.share(REPLICAS) < result.share(PAIRS) <= result.share(FOUR)


def turned(settings: Settings, result: Four) -> bool:
    """Whether this is the lowest rate at which one four keeps LOOSE_MS for less than nine in ten of its requests."""
    return result.tpot_ms == LOOSE_MS and result.rate == falls_at()


def falls_at() -> int:
    """That rate."""
    return next(rate for rate in range(10, 130, 10) if four.four(rate, LOOSE_MS).share(FOUR) < TURN)


def replicas_keep(settings: Settings, result: Four) -> bool:
    """Whether the replicas keep it there."""
    return result.share(REPLICAS) > 0.95


def slower(settings: Settings, result: Four) -> float:
    """How many times a replica's median TPOT that of one four is."""
    return result.median(FOUR) / result.median(REPLICAS)


def at_many(settings: Settings, result: Four) -> bool:
    """Whether MANY requests/s come."""
    return result.rate == MANY


def faster_before(settings: Settings, result: Four) -> bool:
    """Whether it is the other way round with few requests."""
    few = four.four(four.RATE)
    return few.median(FOUR) < few.median(REPLICAS)


def more_together(settings: Settings, result: Four) -> bool:
    """Whether one four has more than four times a replica's sequences in a step."""
    return result.together(FOUR) > 4 * result.together(REPLICAS)


def served(settings: Settings, result: Four) -> Mapping[str, Any]:
    """What the answers name."""
    few = four.four(four.RATE)
    return {
        "rate": f"{result.rate:g}",
        "promise": f"{result.tpot_ms:g} ms",
        "four": f"{result.share(FOUR):.0%}",
        "pairs": f"{result.share(PAIRS):.0%}",
        "replicas": f"{result.share(REPLICAS):.0%}",
        "tpot_four": seconds(result.median(FOUR)),
        "tpot_replicas": seconds(result.median(REPLICAS)),
        "few_four": seconds(few.median(FOUR)),
        "few_replicas": seconds(few.median(REPLICAS)),
        "slower": f"{slower(settings, result):.1f}",
        "together_four": f"{result.together(FOUR):.0f}",
        "together_replica": f"{result.together(REPLICAS):.0f}",
    }


def show_gain() -> dict[str, Any]:
    """Settings of `first_gain`."""
    return {"batch": smallest_gain()}


def show_turn() -> dict[str, Any]:
    """Settings of `turned`."""
    return {"rate": falls_at(), "tpot_ms": float(LOOSE_MS)}
