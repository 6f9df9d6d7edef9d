"""The numbers in the texts of lab 02, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from course.lessons.lab02 import by_hand, engine_log, floor, further, one_curve, one_step, tasks, two_cards
from course.lessons.lab02.one_curve import CONTEXT, LARGEST, PRICE, dollars
from course.lessons.lab02.one_step import CARD, FLOPS_TOKEN, KV_TOKEN, WEIGHTS
from course.models import engine_defaults
from course.models.gpus import gpu
from course.steptime import Step

COST, COST_TWIN = (128, 12.1e-3, 3.0), (48, 8.27e-3, 2.0)  # sequences, seconds of a step, dollars an hour
KNEE, KNEE_TWIN = (6.0, 0.2, 0.9), (4.0, 0.1, 0.8)  # t0 [ms], c [ms], alpha
LAST = (0.4, 5, 101)  # TTFT [s], TPOT [ms], and the token of an earlier question
EIGHT, ABOVE, LONGER, SHORT = 8, 96, 4_096, 32  # sequences; tokens; the largest batch of a few points
FLAT, BEYOND = 16, 24  # decodes up to which a step is at its floor, and from which it is not
FEW = 16  # slots that the decision's twin offers
UTILISATION, HOUR = 100, 3_600  # percent, seconds
NARROW, WIDE, BYTES = 8, 16, 2  # bits of a weight, and bytes

GIVEN = (CONTEXT, LARGEST, by_hand.READ, by_hand.COMPUTE, by_hand.WEIGHTS, BYTES, NARROW, WIDE, *engine_log.RUNNING,
         by_hand.step_of(1).step, by_hand.step_of(2).step)  # fmt: skip


def knee(t0: float, c: float, alpha: float) -> float:
    """The batch at which a step takes twice t0."""
    return (t0 / c) ** (1 / alpha)


def ms(batch: int) -> float:
    """A recorded step of so many decodes at 1,024 tokens each [ms]."""
    return 1e3 * one_step.one_step(batch).recorded


@cache
def _knee_of(context: int) -> float:
    return one_curve.one_curve(context).curve.knee


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return {**_steps(), **_asked(), **_decision(), **_ticket(), **_deeper()}


def _steps() -> dict[str, Any]:
    one, short = one_step.one_step(), one_curve.one_curve(most=SHORT)
    ridge = CARD.matrix_flops / CARD.read_bandwidth
    return {
        "price": PRICE,
        "busy": UTILISATION,
        "alone_cost": dollars(1, ms(1) / 1e3, PRICE),
        "cheap": tasks.CHEAP,
        "step_1_ms": ms(1),
        "step_64_ms": ms(64),
        "above": ABOVE,
        "step_above_ms": ms(ABOVE),
        "alone_speed": 1e3 / ms(1),
        "half_step_ms": ms(1) / 2,
        "three_quarters_ms": 0.75 * ms(1),
        "multiplying_ms": 1e3 * one.computing,
        "reading_ms": 1e3 * one.reading,
        "eight": EIGHT,
        "eight_longer": ms(EIGHT) / ms(1) - 1,
        "ridge": ridge,
        "weights_gb": WEIGHTS / 1e9,
        "read_tb": CARD.read_bandwidth / 1e12,
        "work_gflop": FLOPS_TOKEN / 1e9,
        "multiply_tflops": CARD.matrix_flops / 1e12,
        "kv_gb": CONTEXT * KV_TOKEN / 1e9,
        "kv_even": further.even(),
        "knee_1k": _knee_of(CONTEXT),
        "knee_4k": _knee_of(LONGER),
        "longer": LONGER,
        "short_ms": 1e3 * short.largest,
        "largest_ms": 1e3 * short.recorded_largest,
        "share": one.share,
        "second": ms(2) / ms(1) - 1,
        "own_operations": 2 * by_hand.WEIGHTS,
        "own_multiplying_s": by_hand.step_of(1).computing,
    }


def _asked() -> dict[str, Any]:
    ttft, tpot, token = LAST
    return {
        "last_ttft_s": ttft,
        "last_tpot_ms": tpot,
        "last_token": token,
        "last_gaps": token - 1,
        "last_s": ttft + (token - 1) * tpot / 1e3,
        "last_no_ttft_s": token * tpot / 1e3,
        "last_gap_more_s": ttft + token * tpot / 1e3,
        "cost": dollars(*COST),
        "cost_step_ms": 1e3 * COST[1],
        "cost_price": COST[2],
        "cost_twin": dollars(*COST_TWIN),
        "twin_batch": COST_TWIN[0],
        "twin_step_ms": 1e3 * COST_TWIN[1],
        "twin_price": COST_TWIN[2],
        "hour_s": HOUR,
        "knee": knee(*KNEE),
        "knee_t0": KNEE[0],
        "knee_c": KNEE[1],
        "knee_twin": knee(*KNEE_TWIN),
        "twin_t0": KNEE_TWIN[0],
        "twin_c": KNEE_TWIN[1],
        "twin_alpha": KNEE_TWIN[2],
    }


def _decision() -> dict[str, Any]:
    right = engine_log.largest(engine_log.PROMISE)
    *first, last = (f"{1e3 * engine_log.step(running):.1f}" for running in engine_log.RUNNING)
    return {
        "decision": right,
        "decision_twin": engine_log.largest(engine_log.PROMISE_TWIN),
        "promise_ms": 1e3 * engine_log.PROMISE,
        "twin_promise_ms": 1e3 * engine_log.PROMISE_TWIN,
        "tpots": f"{', '.join(first)} and {last}",
        "kept_cost": dollars(right, engine_log.step(right), PRICE),
        "few": FEW,
        "alone_128_ms": ms(128),
        "service_prompt": engine_log.PROMPT,
        "service_answer": engine_log.ANSWER,
        "service_rate": engine_log.RATE,
        "engine": engine_defaults.VERSION,
        "default_slots": engine_defaults.batch(gpu("H100"))[0],
        "host_ms": one_step.HOST_MS,
        "one_by_one_ms": ONE_BY_ONE_MS,
    }


def _ticket() -> dict[str, Any]:
    (old_read, old_flops), (new_read, new_flops) = map(two_cards.rates, (two_cards.OLD, two_cards.NEW))
    return {
        "old_tb": old_read / 1e12,
        "old_tflops": old_flops / 1e12,
        "new_tb": new_read / 1e12,
        "new_tflops": new_flops / 1e12,
        "probe_share": new_read / old_read,
        "narrow_ms": 1e3 * two_cards.eight_bits(two_cards.NEW),
        "wide_ms": 1e3 * two_cards.decode(two_cards.NEW),
        "service_batch": two_cards.BATCH,
    }


def _deeper() -> dict[str, Any]:
    ridges = [further.ridge(card) for card in further.CARDS]
    together = float(one_step.MODEL.weights_bytes or 0) + KV_TOKEN * CONTEXT * further.even()
    return {
        "together_gb": together / 1e9,
        "ridge_low": min(ridges),
        "ridge_high": max(ridges),
        "beyond": BEYOND,
        "probe_tb": further.PROBE / 1e12,
        "probe_more": further.PROBE / CARD.read_bandwidth - 1,
        "prompt_over_floor": min(further.over_floor(prompt) for prompt in further.PROMPTS if prompt >= LARGEST),
        "moe_one": further.EXPERTS.touched(1),
        "moe_experts": further.EXPERTS.experts,
        "moe_tokens": MANY,
        "moe_many": further.EXPERTS.touched(MANY),
        "moe_cost": further.cost(further.EXPERTS, MANY),
        "dense_cost": further.cost(further.DENSE, MANY),
    }


MANY = 16  # sequences of the question about experts
ONE_BY_ONE_MS = 5.15  # the recorded step of one decode, launched without a graph: docs/benchmarks.md, "A whole step"


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    new = one_step.floor_of(replace(gpu("H100"), matrix_flops=2 * CARD.matrix_flops))
    took = ms(1) * new(Step(1, CONTEXT, ())) / one_step.FLOOR(Step(1, CONTEXT, ()))
    now = two_cards.decode(two_cards.NEW)
    share, more = one_step.one_step().share, ms(2) / ms(1)
    gain = [floor.floor(*each) / floor.eight_bits(*each) for each in ((2_048, 0), (1, CONTEXT))]  # a prompt, a decode
    knees = _knee_of(LONGER) / _knee_of(CONTEXT)
    ttft, tpot, token = LAST
    last = ttft + (token - 1) * tpot / 1e3
    return {
        "shared-weights": "share a read of weights",
        "last_token": (last == token * tpot / 1e3, True, last == ttft + token * tpot / 1e3),
        "faster": (took < 3, 3 < took < 4.5, abs(took - 5) < 0.2),
        "cause": (
            two_cards.prefill(two_cards.NEW) > two_cards.prefill(two_cards.OLD),
            two_cards.rates(two_cards.NEW)[0] < two_cards.rates(two_cards.OLD)[0],
            two_cards.decode(two_cards.NEW, 1) <= two_cards.decode(two_cards.OLD, 1),
        ),
        "measure": "a read probe",
        "repair": (
            two_cards.decode(two_cards.NEW, 2 * two_cards.BATCH) < now,
            two_cards.decode(two_cards.NEW, two_cards.BATCH // 2) < 0.9 * now,  # half the context is half the K and V
            two_cards.eight_bits(two_cards.NEW) < 0.6 * now,
        ),
        "busy": (share < 0.01 and more < 1.05, share > 0.5, more > 1.5),
        "eight_bits": (gain[0] > 1.2, gain[1] > 1.5, False),
        "longer": (abs(knees - 1) < 0.2, knees > 1.2, knees < 0.8),
        "points": tuple(_misses(measured) < 0.08 for measured in MEASURED),
    }  # fmt: skip


MEASURED = ((1, 4, 16, 64, 128, 256), (1, 2, 4, 8, 16, 32), (48, 64, 96, 128))
"""The batches of the quiz's options."""


def _misses(measured: tuple[int, ...]) -> float:
    """How far a curve through these batches is from the recording, at most."""
    batches, steps = one_step.points(CONTEXT)
    here = np.isin(batches, measured)
    return float(np.abs(one_curve.fit(batches[here], steps[here]).seconds(batches) / steps - 1).max())


def claims() -> dict[str, bool]:
    """What the texts say without a number."""
    sixteen, most = one_step.one_step(16), one_step.one_step(LARGEST)
    cards = [two_cards.decode(card) for card in (two_cards.OLD, two_cards.NEW)]
    sooner = 1 - two_cards.prefill(two_cards.NEW) / two_cards.prefill(two_cards.OLD)
    ratio = {
        batch: one_step.one_step(batch).recorded / one_step.one_step(batch).floor for batch in (1, 8, FLAT, BEYOND)
    }
    exact = (WEIGHTS, CARD.read_bandwidth, FLOPS_TOKEN, CARD.matrix_flops, KV_TOKEN)
    recorded = {batch: steps for batch, steps in zip(*one_step.points(CONTEXT), strict=True)}
    return {
        "a step of 64 takes less than twice as long as of one, and of 96 more": ms(64) < 2 * ms(1) < ms(ABOVE),
        "sixteen take hardly longer than one": ms(16) < 1.2 * ms(1),
        "and read weights most of the time": sixteen.reading_weights > 0.75 * sixteen.recorded,
        "the new cards decode at less than half the speed": cards[1] > 2 * cards[0],
        "long prompts come a little sooner": 0.05 < sooner < 0.2,
        "at 256 multiplying still takes less than reading": most.computing < most.reading,
        "four times the task's batch and context": (LARGEST, LONGER) == (4 * 64, 4 * CONTEXT),
        "the constants of the exercise are those of the card": all(
            abs(said / true - 1) < 2e-3
            for said, true in zip((floor.W, floor.B, floor.F, floor.R, floor.K), exact, strict=True)
        ),
        "32 sequences share a step of 6.92 ms": abs(1e3 * recorded[32] - 6.92) < 0.005,
        "half the bits halve the bytes": 2 * NARROW == WIDE == 8 * BYTES,
        "a weight and a token make two FLOP": FLOPS_TOKEN == WEIGHTS / BYTES * 2,
        "every card could multiply for more than the K and V allow": all(
            further.ridge(card) > further.even() for card in further.CARDS
        ),
        "up to 16 decodes the step is at the floor, from 24 on it is not": max(
            ratio[batch] for batch in (1, 8, FLAT)
        ) < 1.02 < ratio[BEYOND],
        "narrow weights help few decodes, and no prompt of 512": floor.floor(512, 0) == floor.eight_bits(512, 0)
        and floor.floor(1, CONTEXT) > 1.9 * floor.eight_bits(1, CONTEXT),
    }  # fmt: skip
