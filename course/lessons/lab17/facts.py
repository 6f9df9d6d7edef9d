"""The numbers in the texts of lab 17, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from course import policies
from course.engine.serving import serve
from course.lessons.lab17 import by_hand, decision, deeper, silence, tasks, tenants, throttled, turns
from course.lessons.lab17.tenants import (
    ANSWER,
    BUDGET,
    BURST,
    CALM,
    FAIR,
    IN_ORDER,
    NOISY_PROMPT,
    ORDERS,
    POOL,
    PRIORITY,
    QUIET_PROMPT,
    SLOTS,
    STEP,
    STORM,
    Outcome,
    served,
)
from course.models import engine_defaults
from course.models.gpus import gpu
from course.workload import Workload

AGEING, LONGER = 5, 20  # seconds of waiting for one level: of the prediction, and of the quiz
FEW = 128  # slots of the quiz and of the decision
MINUTE = 60  # seconds
SHORT, LONG, EACH = (100, 60), (1_000, 600), (40, 4)  # prompt and answer; requests of each of the quiz at once

GIVEN = (QUIET_PROMPT, NOISY_PROMPT, ANSWER, SLOTS, BURST, FEW, throttled.NOW * 1_000, turns.OUTPUT_WEIGHT)


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return _story() | _explain() | _exercises() | _ticket_and_quiz() | _tasks()


def _tasks() -> dict[str, Any]:
    """Those of tasks that ask why, as the tables of the explorers show them."""
    who, limits = (
        tasks.who({"noisy": STORM, "order": FAIR, "ageing": 0, "slots": SLOTS}, served(STORM, FAIR)),
        tasks.limits({"slots": FEW, "gateway": tasks.NONE}, served(slots=FEW)),
    )
    return {"storm_tpot": who["tpot"], "calm_tpot": who["calm_tpot"]} | {
        name: limits[name] for name in ("few_ttft", "many_ttft")
    }


def storm(order: str, **settings: float) -> Outcome:
    """The storm under an order."""
    return served(STORM, order, **settings)


def _story() -> dict[str, Any]:
    """Those of the question and of the predictions."""
    calm, now = served(CALM), served()
    return {
        "vllm": engine_defaults.VERSION, "calm_rate": CALM, "storm_rate": STORM,
        "calm_ms": 1e3 * calm.ttft, "storm_s": now.ttft, "storm_noisy_s": now.noisy_ttft,
        "calm_half_ms": 1e3 * calm.ttft / 2,
        "calm_few_ms": 5,
        "priority_s": storm(PRIORITY).ttft, "aged_s": storm(PRIORITY, ageing=AGEING).ttft, "ageing_s": AGEING,
        "late_s": 5, "soon_s": 1, "stream_ms": 35, "first_s": 0.5, "nearly": 0.9,
    }  # fmt: skip


def _explain() -> dict[str, Any]:
    """Those of the case by hand, of what an order costs, and of the tenant that comes back."""
    (order, fair), wide = (by_hand.served(name, 1) for name in by_hand.ORDERS), by_hand.served("fair", 5)
    return {
        "hand_order_s": order.ttft[4], "hand_fair_s": fair.ttft[4], "hand_wide_s": wide.ttft[4],
        "hand_tpot_s": fair.tpot[4], "hand_wide_tpot_s": wide.tpot[4], "hand_wide_slots": 5,
        "hand_answer": by_hand.ANSWER,
        "hand_counter": by_hand.PROMPT + turns.OUTPUT_WEIGHT * by_hand.ANSWER,
        "mean_counter": NOISY_PROMPT + turns.OUTPUT_WEIGHT * ANSWER,
        "silent_s": silence.SILENT, "stall_s": silence.stall(silence.served(False)),
    }  # fmt: skip


def _exercises() -> dict[str, Any]:
    """Those of the exercises and of the decision: solutions, and wrong answers."""
    counters = {name: turns.counter(one) for name, one in turns.SERVED.items()}
    twins = {name: turns.counter(one) for name, one in turns.TWIN.items()}
    plain = {name: turns.counter(one, 1) for name, one in turns.SERVED.items()}
    least, fewest = min(counters.values()), min(turns.SERVED, key=lambda name: turns.SERVED[name][0])
    return {
        "next": least, "next_requests": counters[fewest], "next_plain": min(plain.values()),
        "next_most": max(counters.values()),
        "next_one": min(one[1] + turns.OUTPUT_WEIGHT * one[2] for one in turns.SERVED.values()),
        **{f"asked_{name.lower()}": "{} x ({} + {})".format(*one) for name, one in turns.SERVED.items()},
        **{f"twin_{name.lower()}": "{} x ({} + {})".format(*one) for name, one in turns.TWIN.items()},
        "next_twin": min(twins.values()),
        "next_twin_plain": min(turns.counter(one, 1) for one in turns.TWIN.values()),
        "next_twin_most": max(twins.values()),
        **_deeper(),
        "promised_ttft_s": decision.TTFT, "promised_tpot_ms": 1e3 * decision.TPOT,
        "tpot_twin_ms": 1e3 * decision.TPOT_TWIN,
        "promised_loss": decision.LOSS,
        "gate_tpot_ms": 1e3 * served(gateway=throttled.REPAIR).tpot,
        "gate_others_s": served(gateway=throttled.REPAIR).noisy_ttft, "gate_tokens": 1_000 * throttled.REPAIR,
        "kept_others_s": storm(PRIORITY, slots=FEW).noisy_ttft, "kept_tpot_ms": 1e3 * storm(PRIORITY, slots=FEW).tpot,
    }  # fmt: skip


def _deeper() -> dict[str, Any]:
    """Those of the notebook that goes deeper."""
    runs = {name: deeper.one_tenant(name) for name in deeper.NAMES}
    waits = {name: deeper.waits(run) for name, run in runs.items()}
    cut = runs[deeper.CAPPED].workload.output_tokens >= deeper.CAP
    told, sent = deeper.gated(True), deeper.with_prediction(deeper.predicted)
    return {
        "deep_rate": deeper.RATE, "deep_slots": deeper.FEW, "deep_answer": deeper.ANSWER, "deep_spread": deeper.SPREAD,
        "deep_median_before": waits[deeper.IN_ORDER][0], "deep_median": waits[deeper.EXACT][0],
        "deep_longest_before": waits[deeper.IN_ORDER][2], "deep_longest": waits[deeper.EXACT][2],
        "deep_noisy_longest": waits[deeper.NOISY][2],
        "deep_noisy_tokens": int(runs[deeper.NOISY].workload.output_tokens[runs[deeper.NOISY].ttft.argmax()]),
        "deep_cap": deeper.CAP, "deep_cut": float(cut.mean()), "deep_capped": waits[deeper.CAPPED][1],
        "deep_read": deeper.READ_PER_SECOND, "deep_sent": float(1 - sent.run.answered.mean()),
        "deep_sent_quiet": float(1 - sent.run.answered[sent.quiet].mean()),
        "deep_sent_p95": float(np.nanpercentile(sent.run.ttft, 95)),
        "deep_sent_tpot_ms": 1e3 * float(np.nanpercentile(sent.run.tpot, 95)),
        "deep_told": int(told.retries.sum()), "deep_most_told": int(told.retries.max()),
    }  # fmt: skip


@lru_cache(maxsize=1)
def unequal() -> dict[str, tuple[int, int]]:
    """Two tenants of whom one asks short and the other long: of each, requests and tokens served by half time."""
    times = 30
    rows = [("S", *SHORT)] * (EACH[0] * times) + [("L", *LONG)] * (EACH[1] * times)
    names, prompts, answers = map(np.array, zip(*rows, strict=True))
    load = Workload(np.zeros(len(rows)), prompts, answers, tenant=names)
    run = serve(load, policies.Fair(16, BUDGET), STEP, POOL)
    early = run.response <= run.makespan / 2
    found = {}
    for name in "SL":
        chosen = early & (load.tenant == name)
        weights = load.prompt_tokens + turns.OUTPUT_WEIGHT * load.output_tokens
        found[name] = int(chosen.sum()), int(weights[chosen].sum())
    return found


@lru_cache(maxsize=1)
def two_minutes() -> Outcome:
    """The storm for twice as long, with priority and the ageing of the quiz."""
    load = tenants.requests(duration=2 * tenants.SECONDS)
    return tenants.outcome(load, tenants.engine(PRIORITY, ageing=LONGER))


def _ticket_and_quiz() -> dict[str, Any]:
    now, before, repaired = (
        throttled.graphs(gateway).found for gateway in (throttled.NOW, tenants.NONE, throttled.REPAIR)
    )
    return {
        "cut_busy": now.busy,
        "cut_running": now.run.steps.running.mean(), "cut_held": throttled.held(now, MINUTE),
        "repaired_share": repaired.tokens_per_second / before.tokens_per_second,
        "repair_tokens": 1_000 * throttled.REPAIR,
        "longer_s": LONGER, "longer_before_s": storm(PRIORITY, ageing=LONGER).ttft,
        "longer_after_s": two_minutes().ttft,
        "most_tokens": BURST + throttled.NOW * 1_000 * MINUTE, "most_rate": throttled.NOW * 1_000 * MINUTE,
        "most_burst": BURST,
        "slots_few_ttft_s": served(slots=FEW).ttft, "slots_few_tpot_ms": 1e3 * served(slots=FEW).tpot,
        "held_plan_s": 1, "held_sent_s": 6, "held_in_flight": 16,
        "cap_budget": 2_048, "cap_tokens": 512,
    }  # fmt: skip


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    calm, calm_first = served(CALM).ttft, served(CALM, PRIORITY).ttft
    aged, few, many = storm(PRIORITY, ageing=AGEING).ttft, served(slots=FEW), served()
    now, before = throttled.graphs(throttled.NOW), throttled.graphs(tenants.NONE)
    repairs = (served(slots=2 * SLOTS, gateway=throttled.NOW), served(gateway=throttled.REPAIR))
    share = [each.tokens_per_second / before.found.tokens_per_second for each in repairs]
    asked, given = unequal(), {name: one[1] for name, one in unequal().items()}
    most = BURST + 1_000 * throttled.NOW * MINUTE
    return {
        "held": "since the plan",
        "limit": "cap",
        "calm": (calm_first < 0.1 * calm, calm_first < 0.7 * calm, abs(calm_first / calm - 1) < 0.02),
        "aged": (aged > 0.7 * many.ttft, 4 < aged < 6, aged < 1),
        "cause": (False, throttled.held(now.found, MINUTE) > 100 and now.waiting.max() < 20, now.running.max() > FEW),
        "measure": (throttled.held(now.found, MINUTE) > 100, now.found.busy < 0.9, now.running.max() > FEW),
        "repair": (share[0] > 0.9, share[1] > 0.9, False),
        "slots": (few.ttft < many.ttft, few.ttft > many.ttft and few.tpot < many.tpot, few.ttft < 1),
        "longer": (two_minutes().ttft < 1, 15 < two_minutes().ttft < 25, two_minutes().ttft > 30),
        "unequal": (
            asked["S"][0] > 4 * asked["L"][0] and 0.8 < given["S"] / given["L"] < 1.25,
            0.8 < asked["S"][0] / asked["L"][0] < 1.25,
            asked["L"][0] == 0,
        ),
        "most": tuple(most == tokens for tokens in (1_000 * throttled.NOW * MINUTE, BURST, most)),
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    waits = {name: deeper.waits(deeper.one_tenant(name)) for name in deeper.NAMES}
    calm = [served(CALM, order) for order in ORDERS]
    wild = [served(STORM, order) for order in ORDERS]
    fewer = served(slots=FEW)
    hand = {(name, slots): by_hand.served(name, slots) for name in by_hand.ORDERS for slots in (1, 5)}
    rates = [served(slots=slots).tokens_per_second for slots in (FEW, 256, SLOTS)]
    return {
        "shortest first: the median falls to a tenth, the longest wait grows fourfold, and guesses change little": (
            10 * waits[deeper.EXACT][0] < waits[deeper.IN_ORDER][0]
            and waits[deeper.EXACT][2] > 4 * waits[deeper.IN_ORDER][2]
            and waits[deeper.NOISY][0] < 2 * waits[deeper.EXACT][0]
        ),
        "who comes again waits longer, and passes as many tokens": (
            deeper.gated(True).ttft.max() > 1.3 * deeper.gated(False).ttft.max()
            and abs(deeper.gated(True).makespan / deeper.gated(False).makespan - 1) < 0.5
        ),
        "vLLM takes 8,192 tokens and 1,024 slots": engine_defaults.batch(gpu("H200")) == (SLOTS, BUDGET),
        "on a calm day nobody waits for a slot, and every order is the same": all(
            np.array_equal(each.run.ttft, calm[0].run.ttft) for each in calm[1:]
        )
        and calm[0].run.steps.running.max() < SLOTS,
        "in the storm blocks are short before slots are": wild[0].run.steps.running.max() < SLOTS
        and wild[0].run.steps.blocks.max() > 0.98 * POOL.num_blocks,
        "an order protects the first token and not the stream": max(each.ttft for each in wild[1:]) < 0.5
        and min(each.tpot for each in wild[1:]) > 10 * calm[0].tpot,
        "tokens/s are those of the order of arrival": all(
            abs(each.tokens_per_second / wild[0].tokens_per_second - 1) < 0.05 for each in wild[1:]
        ),
        "N waits about as long in every order": max(each.noisy_ttft for each in wild) < 1.05 * wild[0].noisy_ttft,
        "by hand: with a slot for each the order decides nothing": np.array_equal(
            hand["fair", 5].ttft, hand[IN_ORDER, 5].ttft
        ),
        "and all are done at the same time": len({float(run.makespan) for run in hand.values()}) == 1,
        "fewer slots give more tokens/s here": rates[0] > rates[2] < rates[1],
        "first come, first served with fewer slots, quiet tenants wait longer": fewer.ttft > served().ttft,
        "without lift none of N gets a slot until A has caught up": silence.share(silence.served(False)) > 0.98
        and silence.stall(silence.served(False)) > 10 * silence.stall(silence.served(True)),
        "with lift they share": 0.4 < silence.share(silence.served(True)) < 0.6,
        "the promises are broken today": decision.words(decision.holds(decision.now(), decision.now()))
        == "neither promise holds",
        "the gateway charges N for what it asks": served(gateway=throttled.REPAIR).noisy_ttft > served().noisy_ttft,
        "the small card of the ticket is busy": throttled.graphs(throttled.NOW).found.busy > 0.95,
    }
