"""Lab 13: what its explorers ask of a result."""

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab13 import pays
from course.lessons.lab13.pays import BATCHES, HEAD, MODEL, SUFFIX, Pays, Served

# Steps

STEP: dict[str, Any] = {"drafter": HEAD, "k": 4, "accept": 0.7, "batch": 1}
LIKELY, UNLIKELY = 0.8, 0.6
SHARED, HALF = 128, 64


def fastest(settings: Settings, result: Pays) -> bool:
    """Whether so many drafts are the fastest for the head, alone, at LIKELY."""
    here = result.drafter == HEAD and result.batch == 1 and result.accept == LIKELY
    return here and result.k == pays.best_k(HEAD, LIKELY, 1)


def twice_and_no_more(settings: Settings, result: Pays) -> bool:
    """Whether they gain more than a factor of two, and the most drafts that there are, one more, gain no more."""
    more = pays.pays(result.drafter, result.k + 1, result.accept, result.batch)
    return result.speed_up > 2 and more.k == pays.MOST and more.speed_up <= result.speed_up


def last_that_pays(settings: Settings, result: Pays) -> bool:
    """Whether the 1B model pays in this batch, at UNLIKELY, and in none that is larger."""
    here = result.drafter == MODEL and result.k == STEP["k"] and result.accept == UNLIKELY
    return here and result.batch == pays.pays_up_to(MODEL, STEP["k"], UNLIKELY)


def cheaper_pays_longer(settings: Settings, result: Pays) -> bool:
    """Whether the head pays in larger batches, and a draft that costs nothing in still larger ones, if not in all."""
    head, free = (pays.pays_up_to(drafter, STEP["k"], UNLIKELY) for drafter in (HEAD, SUFFIX))
    return result.batch < head < free < BATCHES[-1]


def ties(settings: Settings, result: Pays) -> bool:
    """Whether two drafts of the 1B model pay in a batch of HALF, and with less acceptance would not."""
    here = result.drafter == MODEL and result.k == 2 and result.batch == HALF
    return here and least_that_pays(settings, result)


def least_that_pays(settings: Settings, result: Pays) -> bool:
    """Whether the drafts gain here, and with less acceptance would lose."""
    return result.speed_up >= 1 > _less(result).speed_up


def loses_for_free(settings: Settings, result: Pays) -> bool:
    """Whether a draft that costs nothing loses here too."""
    return _free(result).speed_up < 1


def _free(result: Pays) -> Pays:
    return pays.pays(SUFFIX, result.k, result.accept, result.batch)


def _less(result: Pays) -> Pays:
    return pays.pays(result.drafter, result.k, round(result.accept - 0.1, 1), result.batch)


def step(settings: Settings, result: Pays) -> Mapping[str, Any]:
    """What the answers name."""
    k, accept, batch = result.k, result.accept, result.batch
    later = next((other for other in BATCHES if other > batch), batch)
    return {
        "k": k,
        "batch": batch,
        "accept": f"{accept:.1f}",
        "accept_less": f"{_less(result).accept:.1f}",
        "gain_less": f"{_less(result).speed_up:.2f}",
        "gain": f"{result.speed_up:.2f}",
        "seventh": f"{accept**pays.MOST:.0%}",
        "tokens": f"{result.tokens:.2f}",
        "later": later,
        "gain_later": f"{pays.pays(result.drafter, k, accept, later).speed_up:.2f}",
        "head_up_to": pays.pays_up_to(HEAD, k, accept),
        "free_up_to": pays.pays_up_to(SUFFIX, k, accept),
        "plain": seconds(result.plain),
        "verification": seconds(result.verification),
        "free": f"{_free(result).speed_up:.2f}",
        "free_tie": f"{pays.tie(SUFFIX, batch, k):.2f}",
        "rows": f"{batch * (k + 1):,}",
    }


# Requests that share steps

SERVED: dict[str, Any] = {"requests": 16, "k": 4, "mix": "all alike"}
MIXED = "half and half"


def tokens_a_step(settings: Settings, result: Served) -> float:
    """Tokens that a step gave a sequence: its own, and the accepted ones of k drafts."""
    return 1 + result.k * result.accepted / result.drafted if result.drafted else 1.0


def most_tokens(settings: Settings, result: Served) -> bool:
    """Whether no other number of drafts gives more tokens/s with SHARED requests that are alike."""
    here = result.requests == SHARED and result.mix == SERVED["mix"]
    return here and result.k == max(range(pays.MOST + 1), key=lambda k: pays.served(SHARED, k).speed)


def four_lose(settings: Settings, result: Served) -> bool:
    """Whether the drafts of the start lose here."""
    found = pays.served(result.requests, SERVED["k"], result.mix)
    return found.speed < found.plain_speed


def nobody_slower(settings: Settings, result: Served) -> bool:
    """Whether both halves are as fast as without drafts, and with a draft more they would not be."""
    here = result.mix == MIXED and result.requests == SHARED and 0 < result.k < pays.MOST
    return here and _fair(result) and not _fair(pays.served(result.requests, result.k + 1, result.mix))


def _fair(found: Served) -> bool:
    return found.tpot(1) <= found.plain_tpot


def some_pay(settings: Settings, result: Served) -> bool:
    """Whether one half is faster and the other slower than without drafts."""
    return result.tpot(0) < result.plain_tpot < result.tpot(1)


def near_the_formula(settings: Settings, result: Served) -> bool:
    """Whether the tokens a step are a little below those of the formula: the last drafts reach beyond the answers."""
    formula = pays.expected(pays.MIXES[result.mix][0], result.k)
    return 0.9 * formula < tokens_a_step(settings, result) < formula


def shared(settings: Settings, result: Served) -> Mapping[str, Any]:
    """What the answers name."""
    more = pays.served(result.requests, min(result.k + 1, pays.MOST), result.mix)
    four = pays.served(result.requests, SERVED["k"], result.mix)
    return {
        "k": result.k,
        "more": more.k,
        "tokens": f"{tokens_a_step(settings, result):.2f}",
        "formula": f"{pays.expected(pays.MIXES[result.mix][0], result.k):.2f}",
        "speed": f"{result.speed:,.0f}",
        "plain_speed": f"{result.plain_speed:,.0f}",
        "speed_four": f"{four.speed:,.0f}",
        "fast": seconds(result.tpot(0)),
        "slow": seconds(result.tpot(1)) if result.requests > 1 else "-",
        "slow_more": seconds(more.tpot(1)) if result.requests > 1 else "-",
        "plain": seconds(result.plain_tpot),
    }
