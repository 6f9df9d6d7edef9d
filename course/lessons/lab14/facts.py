"""The numbers in the texts of lab 14, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.lessons.lab14 import cards, decision, facts_deeper, figures, four, halves, sums, tasks
from course.lessons.lab14.decision import GIB, LARGE, memory
from course.lessons.lab14.four import FOUR, PAIRS, REPLICAS
from course.models.gpus import gpu
from course.steptime import recorded_link

SEEDS = range(5)
QUIZ_BATCH, USERS = 1, 64
EXAMPLE: dict[str, Any] = {"t": 8.0, "t0": 1.0, "cards": 2, "layers": 32, "a": 0.01}
"""The worked example: milliseconds."""

LARGE_BILLIONS = 70
GIVEN = (four.SLOTS, four.BUDGET, USERS, tasks.MANY, tasks.SOME, decision.RATE, figures.CARDS[2], figures.CARDS[3],
         cards.CONTEXT, 16, four.ANSWER, cards.NUMBER_BYTES, LARGE_BILLIONS, EXAMPLE["a"])  # fmt: skip


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    core = {**_steps(), **_served(), **_halves(), **_exercises(), **_decision(), **_ticket(), **_quiz()}
    return {**core, **facts_deeper.facts()}


def _steps() -> dict[str, Any]:
    by_cards = {count: cards.spread(count, 1) for count in cards.CARDS}
    two = by_cards[2]
    many = cards.spread(2, USERS)
    slow = cards.spread(2, 1, cards.NCCL)
    return {
        **{f"step_{count}": 1e3 * one.step for count, one in by_cards.items()},
        "step_64": 1e3 * cards.spread(1, USERS).step,
        "gain_2": two.speed_up, "gain_8": by_cards[8].speed_up, "gain_64": many.speed_up,
        "t0_ms": 1e3 * two.stays,
        "sum_us": 1e6 * two.sums / cards.LAYERS / 2, "sum_nccl_us": 1e6 * slow.sums / cards.LAYERS / 2,
        "size_64_kib": many.batch * cards.HIDDEN * 2 / 1_024,
        "layers": cards.LAYERS, "hidden": cards.HIDDEN,
        "layer_one": cards.layer_us(1, 1, "none"), "layer_half": cards.layer_us(2, 1, "none"),
        "layer_sums": cards.layer_us(2, 1, "one_shot"), "layer_nccl": cards.layer_us(2, 1, "nccl"),
        "gain_70b": cards.layer_us(1, 1, "none", name="llama-3-70b")
        / cards.layer_us(2, 1, "one_shot", name="llama-3-70b"),
        "price": cards.PRICE, "cost_1": by_cards[1].cost, "cost_1_64": cards.spread(1, USERS).cost,
        "joule_1": cards.tokens_a_joule(1, 256, "none"), "joule_2": cards.tokens_a_joule(2, 256, "one_shot"),
        "joule_alone": cards.tokens_a_joule(1, 1, "none"),
        "wanted_gain": tasks.GAIN, "summed": tasks.SUMMED,
    }  # fmt: skip


def _served() -> dict[str, Any]:
    some, many = four.four(tasks.SOME, 6.0), four.four(tasks.MANY, tasks.LOOSE_MS)
    return {
        "some_promise_ms": some.tpot_ms, "many_promise_ms": many.tpot_ms,
        **{f"some_{name}": some.share(layout) for name, layout in _names()},
        **{f"many_{name}": many.share(layout) for name, layout in _names()},
        "ttft_s": four.TTFT, "turn_share": tasks.TURN,
        "together_four": many.together(FOUR), "together_replica": many.together(REPLICAS),
    }  # fmt: skip


def _names() -> list[tuple[str, str]]:
    return [("replicas", REPLICAS), ("pairs", PAIRS), ("four", FOUR)]


def _halves() -> dict[str, Any]:
    found = halves.speak()
    return {"small_sums": found.sums, "small_bytes": found.size}


def _exercises() -> dict[str, Any]:
    shared = sums.SHARED
    step = {name: shared[name] for name in ("t", "t0", "cards", "layers", "a")}
    return {
        **{f"shared_{name}": value for name, value in shared.items()},
        "shared_step": sums.step(**step), "shared_cost": sums.cost(**shared),
        "example": sums.step(**EXAMPLE),
        "route_weight": sums.WEIGHT,
    }  # fmt: skip


def _decision() -> dict[str, Any]:
    one, two, all_four = (decision.p95_ms(layout) for _, layout in _names())
    return {
        "kv_gib": memory(1).kv_bytes / GIB, "kv_kib": memory(1).spec.kv_bytes_per_token / 1_024,
        "kv_tokens_k": memory(1).kv_bytes / memory(1).spec.kv_bytes_per_token / 1e3,
        "kv_tokens_layer_m": memory(1).kv_bytes / memory(1).spec.kv_bytes_per_token * cards.LAYERS / 1e6,
        "kv_tokens_k_half": memory(1).kv_bytes / memory(1).spec.kv_bytes_per_token / 2e3,
        "decision_requests": decision.REQUESTS,
        "decision_tp": decision.smallest(), "decision_goal_ms": decision.GOAL_MS, "decision_one_ms": one,
        "decision_two_ms": two, "decision_four_ms": all_four,
        "decision_together": four.four(decision.RATE).together(REPLICAS),
        "decision_twin_rate": decision.RATE_TWIN, "decision_twin_ms": decision.GOAL_TWIN_MS,
        "decision_twin_tp": decision.smallest(decision.RATE_TWIN, decision.GOAL_TWIN_MS),
        "decision_twin_two_ms": decision.p95_ms(PAIRS, decision.RATE_TWIN),
        "decision_twin_four_ms": decision.p95_ms(FOUR, decision.RATE_TWIN),
        "log_concurrency": memory(1).concurrency(decision.LONGEST),
    }  # fmt: skip


def _ticket() -> dict[str, Any]:
    return {
        "ticket_before_ms": decision.tpot_ms(16, False), "ticket_mended_ms": decision.mended_ms(16),
        "ticket_own_ms": decision.mended_ms(16, "one_shot"),
        "ticket_sums_ms": 1e3 * cards.spread(2, 16, cards.NCCL).sums,
    }  # fmt: skip


def _quiz() -> dict[str, Any]:
    two = cards.spread(2, QUIZ_BATCH)
    pair, all_four = memory(2, LARGE), memory(4, LARGE)
    return {
        "quiz_gain": two.speed_up, "quiz_dearer": 2 / two.speed_up,
        "eager_one": cards.layer_us(1, 1, "none", graphs=False),
        "eager_two": cards.layer_us(2, 1, "one_shot", graphs=False),
        "eager_two_nccl": cards.layer_us(2, 1, "nccl", graphs=False),
        "eager_sums": 2e6 * recorded_link("one_shot").of_two(2 * cards.HIDDEN),
        "eager_reads": 1e6 * cards.LAYER_BYTES / 2 / gpu(cards.CARD).read_bandwidth,
        "seventy_card": (gpu(cards.CARD).memory_bytes or 0) / GIB, "seventy_half": pair.weights_bytes / GIB,
        "seventy_ratio": all_four.kv_bytes / pair.kv_bytes,
    }  # fmt: skip


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true, from the runs; words where it is about no number."""
    many = four.four(tasks.MANY, tasks.LOOSE_MS)
    best = many.best()
    gain = cards.spread(2, QUIZ_BATCH).speed_up
    tokens = memory(1).kv_bytes / memory(1).spec.kv_bytes_per_token
    pair, all_four = memory(2, LARGE), memory(4, LARGE)
    ratio = all_four.kv_bytes / pair.kv_bytes
    mended, before = decision.mended_ms(16), decision.tpot_ms(16, False)
    return {
        "reads": "reading the weights",
        "pool": (abs(memory(1).kv_tokens / tokens - 1) < 0.01, False, False),  # type: ignore[operator]
        "layout": (best == FOUR, best == PAIRS, best == REPLICAS),
        "cause": "kernel by kernel",
        "measure": "gaps between kernels",
        "repair": (False, False, mended < before),
        "twice": (abs(2 / gain - 1.5) < 0.05, gain > 1.95, gain < 1.05),
        "rule": "load and promise",
        "eager": "host's launches",
        "seventy": (pair.kv_bytes <= 0, 1 < ratio < 1.9, abs(ratio - 2) < 0.05),
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    some = [four.four(tasks.SOME, 6.0, seed) for seed in SEEDS]
    many = [four.four(tasks.MANY, tasks.LOOSE_MS, seed) for seed in SEEDS]
    slots = [{layout: four.kept(four.served(layout, tasks.MANY, slots=2 * four.SLOTS), tasks.LOOSE_MS / 1e3)
              for layout in four.LAYOUTS}]  # fmt: skip
    slow = [{layout: four.kept(four.served(layout, tasks.MANY, kind=cards.NCCL), tasks.LOOSE_MS / 1e3)
             for layout in four.LAYOUTS}]  # fmt: skip
    eager = {users: decision.tpot_ms(users, True) for users in (8, 16, 32)}
    return {
        "at 40 requests/s and 6 ms one four and pairs serve more than replicas, over five seeds": all(
            one.share(FOUR) > one.share(PAIRS) - 0.005 and one.share(PAIRS) > one.share(REPLICAS) + 0.05 for one in some
        ),
        "at 100 requests/s and 20 ms replicas serve most, then pairs, over five seeds": all(
            one.share(REPLICAS) > one.share(PAIRS) > one.share(FOUR) for one in many
        ),
        "so it is with twice the slots, and with NCCL": all(
            one[REPLICAS] > one[PAIRS] > one[FOUR] for one in slots + slow
        ),
        "and at twice the card's default a longer load does not turn it": decision.p95_ms(REPLICAS, tasks.MANY)
        < decision.p95_ms(PAIRS, tasks.MANY)
        < decision.p95_ms(FOUR, tasks.MANY),
        "the decision holds with other draws": all(
            decision.smallest(seed=seed) == decision.smallest() for seed in range(1, 3)
        ),
        "two cards without graphs are slower than one with, up to 32 users": all(
            eager[users] > decision.tpot_ms(users, False) for users in eager
        ),
        "and than one without graphs, for one user, by any all-reduce": all(
            cards.layer_us(2, 1, kind, graphs=False) > cards.layer_us(1, 1, "none", graphs=False)
            for kind in ("nccl", "nccl_direct", "one_shot")
        ),
        "with 64 users and its own all-reduce two without graphs are faster than one without": cards.layer_us(
            2, 64, "one_shot", graphs=False
        )
        < cards.layer_us(1, 64, "none", graphs=False),
        "their TPOT does not grow with the users": eager[32] < eager[8],
        "the cards then use less power": all(
            decision.card_watts(users, True) < 0.75 * decision.card_watts(users, False) for users in (8, 16, 32)
        ),
        "halves say the same words, and without the sum they do not": all(
            (halves.speak(prompt).whole == halves.speak(prompt).words)
            and halves.speak(prompt, halves.NOTHING).words != halves.speak(prompt).words
            for prompt in halves.PROMPTS
        ),
        "the small model's step has two sums a layer": halves.speak().sums == 2 * 6,
        "a 70B does not fit one H200": memory(1, LARGE).kv_bytes < 0,
        **facts_deeper.claims(),
        "prices are assumed": "assumed" in _price_badge(),
        "a route by load is faster than one after the other": bool(
            np.nanpercentile(four.served(REPLICAS, sums.ROUTE_RATE, route=sums.ByCounts(sums.route)).tpot, 95)
            < np.nanpercentile(four.served(REPLICAS, sums.ROUTE_RATE).tpot, 95)
        ),
    }


def _price_badge() -> str:
    from course.models import prices

    return prices.price(cards.CARD).badge
