"""The numbers in the texts of lab 15, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from course import policies
from course.lessons.lab15 import by_hand, decision, deeper, live_words, mixed, orders, promises, tasks
from course.lessons.lab15.promises import (
    BOTH,
    BUDGET,
    CHAT,
    CHAT_PROMPT,
    DEFAULTS,
    DOCUMENT,
    EARLIEST,
    FLAG,
    HOPELESS,
    LONG_PROMPT,
    ON,
    PACE,
    PERIOD,
    RATE,
    SLOTS,
    SMALL,
    STEADY,
    STEP,
    TARGET,
    TPOT,
    TTFT,
    Outcome,
    served,
)  # fmt: skip
from course.models import engine_defaults
from course.models.gpus import gpu
from course.policies import slo_driven
from course.policies.load_dependent import LEVELS
from course.policies.step_target import GRAIN

LARGER = 2 * BUDGET  # tokens of a step: more for a higher load
SEEDS = range(5)

KNEE = {32: 6, 128: 8, 256: 16, 512: 32}
"""A curve of the quiz: sequences, and milliseconds of a step."""

GIVEN = (CHAT_PROMPT, LONG_PROMPT, SLOTS, BUDGET, *KNEE, live_words.FEW, live_words.MANY)


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return _story() | _explain() | _exercises() | _ticket() | _quiz() | _earlier() | _deeper()


@lru_cache(maxsize=1)
def larger() -> Outcome:
    """The storm with a larger budget."""
    return promises.tuned(budget=LARGER)


@lru_cache(maxsize=4)
def note(name: str) -> Outcome:
    """The storm under a policy of the notes."""
    if name == "load":
        return promises.outcome(promises.requests(), policies.LoadDependent(SLOTS))
    return promises.outcome(promises.requests(), policies.SLODriven(144, BUDGET, interactive=CHAT))


def _story() -> dict[str, Any]:
    """Those of the question, of the predictions and of the tasks."""
    found = {name: served(policy=name) for name in promises.POLICIES}
    return {
        "vllm": engine_defaults.VERSION, "rate": RATE,
        "burst_s": ON, "every_s": PERIOD, "chat_s": TTFT[CHAT], "document_s": TTFT[DOCUMENT],
        "promised_ms": 1e3 * TPOT, "default_share": found[DEFAULTS].share, "earliest_share": found[EARLIEST].share,
        "larger_tokens": LARGER, "larger_share": larger().share, "flag_share": found[FLAG].share,
        "target_share": found[TARGET].share, "order_share": found[HOPELESS].share, "both_share": found[BOTH].share,
        "half_share": 0.5, "enough": tasks.ENOUGH, "most_of_them": tasks.MOST_OF_THEM,
        "flag_rate": tasks.highest(FLAG),
    }  # fmt: skip


def _explain() -> dict[str, Any]:
    """Those of the case by hand, and of the notes."""
    before, order, flag = served(), served(policy=HOPELESS), served(policy=FLAG)
    shares = [served(policy=BOTH, seed=seed).share for seed in SEEDS]
    return {
        "hand_due": by_hand.DUE[1], "hand_steps": by_hand.STEPS[1], "hand_start": by_hand.DUE[1] - by_hand.STEPS[1],
        "hand_now": by_hand.STEPS[0], "pace": PACE,
        "chat_start_s": TTFT[CHAT] - CHAT_PROMPT / PACE,
        "before_in_time": before.in_time.mean(), "order_in_time": order.in_time.mean(),
        "order_tpot_ms": 1e3 * order.tpot,
        "flag_tpot_ms": 1e3 * flag.tpot, "flag_in_time": flag.in_time.mean(),
        "by_load_share": note("load").share, "reference_share": note("reference").share,
        "few_slots": slo_driven.BATCHES[slo_driven.INTERACTIVE][1], "hand_pace": by_hand.PACE,
        "least_share": min(shares), "most_share": max(shares),
    }  # fmt: skip


def _exercises() -> dict[str, Any]:
    """Those of the exercises and of the decision: solutions, and wrong answers."""
    one, twin = orders.ASKED, orders.TWIN
    best, today, small = decision.served(SMALL), decision.served(), decision.served(256)
    return {
        **{f"window_{name}": value for name, value in one._asdict().items()},
        "window": orders.window(one), "window_no_margin": one.slo - orders.step(one),
        "window_added": one.slo - orders.step(one) + one.margin, "window_no_batch": one.slo - one.t0 - one.margin,
        "twin_slo": twin.slo, "window_twin": orders.window(twin),
        "window_twin_free": twin.slo - orders.step(twin) - twin.margin, "window_least": orders.LEAST,
        "window_longest": orders.LONGEST, "worked_slo": 52, "worked_step": 40,
        "worked_margin": 10, "worked_left": 52 - 40 - 10,
        "decide_slots": decision.SLOTS,
        "decide_rate": decision.RATE, "decide_ms": 1e3 * decision.TPOT, "decide_documents": decision.DOCUMENTS,
        "decide_twin_ms": 1e3 * decision.TPOT_TWIN, "today_tpot_ms": 1e3 * today.tpot,
        "best_tpot_ms": 1e3 * best.tpot, "best_ttft_s": best.ttft, "today_ttft_s": today.ttft,
        "small_documents": small.in_time[~small.chat].mean(),
    }  # fmt: skip


def _ticket() -> dict[str, Any]:
    now, before, repaired, slots = (
        mixed.ttft(run)
        for run in (mixed.served(), mixed.served(0), mixed.served(cap=mixed.CAP), mixed.served(slots=2 * SLOTS))
    )
    return {
        "now_s": now, "yesterday_s": before, "repaired_s": repaired, "more_slots_s": slots, "cap": mixed.CAP,
        "documents_now_s": mixed.documents_ttft(mixed.served()),
        "documents_capped_s": mixed.documents_ttft(mixed.served(cap=mixed.CAP)),
        "window_ms": 2, "document_tokens": mixed.LONG, "ticket_running": mixed.served().steps.running.max(),
    }  # fmt: skip


def _quiz() -> dict[str, Any]:
    e2e, tokens, first, accept = 1.0, 20, 0.43, 0.5
    return {
        **{f"knee_{batch}": ms for batch, ms in KNEE.items()},
        "accepted": accept, "accepted_twice": accept**2, "drafted": 2, "drafted_tokens": 1 + accept + accept**2,
        "drafted_all": 3, "drafted_mean": 1 + 2 * accept,
        "tool_ms": 1e3 * e2e / tokens, "tool_tokens": tokens, "tool_ttft_s": first, "tool_gaps": tokens - 1,
        "tool_tpot_ms": 1e3 * (e2e - first) / (tokens - 1), "tool_slip_ms": 1e3 * (e2e - first) / tokens,
    }  # fmt: skip


def _earlier() -> dict[str, Any]:
    block, shared, prompt, budget, decodes = 16, 40, 2_040, 1_024, 24
    return {
        "found_block": block, "found_shared": shared, "found": shared // block * block,
        "found_more": -(-shared // block) * block, "chunk_prompt": prompt, "chunk_budget": budget,
        "chunk_decodes": decodes, "chunk_steps": -(-prompt // (budget - decodes)), "chunk_alone": -(-prompt // budget),
        "chunk_more": 4, "chunk_left": budget - decodes,
    }  # fmt: skip


def _deeper() -> dict[str, Any]:
    """Those of the notebook that goes deeper."""
    (low, _), (high, middle), (_, most) = LEVELS
    over = {name: [deeper.served(name, seed=seed) for seed in SEEDS] for name in deeper.ORDERS}
    urgent, target = ([one.share for one in over[name]] for name in (deeper.URGENT, TARGET))
    last, rejecting = deeper.served(deeper.LAST_FLAG).run, deeper.served(deeper.REJECTING).run
    few, many = (deeper.served(DEFAULTS, slots) for slots in (deeper.FEW[1], SLOTS))
    saved = rejecting.summary()["computed_tokens"] / last.summary()["computed_tokens"]
    return {
        "deep_grain": GRAIN, "deep_low": low, "deep_high": high, "deep_middle": middle, "deep_most": most,
        "deep_running": int(deeper.served(deeper.BY_LOAD).run.steps.running.max()),
        "deep_few_share": deeper.served(deeper.BY_LOAD, deeper.FEW[1]).share,
        "deep_urgent_least": min(urgent), "deep_urgent_most": max(urgent),
        "deep_target_least": min(target), "deep_target_most": max(target),
        "deep_last_longest": max(one.longest for one in over[BOTH]),
        "deep_urgent_longest": max(one.longest for one in over[deeper.URGENT]),
        "deep_rejected": int((rejecting.outcome == "rejected").sum()), "deep_all": len(rejecting),
        "deep_saved": 1 - saved, "deep_few_tpot_ms": 1e3 * few.tpot, "deep_many_tpot_ms": 1e3 * many.tpot,
    }  # fmt: skip


def _opened(rate: float) -> float:
    """Mean wait [s] in a window that catches one more at this rate, for whoever opens it and whoever comes."""
    window = 1 / rate
    return window * (1 + rate * window / 2) / (1 + rate * window)


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    found = {name: served(policy=name).share for name in promises.POLICIES}
    best, both = max(found[EARLIEST], larger().share, found[FLAG]), found[BOTH]
    now, repaired, slots = (
        mixed.ttft(run) for run in (mixed.served(), mixed.served(cap=mixed.CAP), mixed.served(slots=2 * SLOTS))
    )
    quiz, early = _quiz(), _earlier()
    ratio = [KNEE[b] / KNEE[a] for a, b in ((32, 128), (128, 256), (256, 512))]
    return {
        "found": tuple(early["found"] == value for value in (40, 32, 48)),
        "steps": tuple(early["chunk_steps"] == value for value in (2, 3, 4)),
        "first": tuple(share == best for share in (found[EARLIEST], larger().share, found[FLAG])),
        "both": (abs(both - found[TARGET]) < 0.05, both > 0.75, 0.4 < both < 0.6),
        "cause": (False, False, now > 10 * mixed.ttft(mixed.served(0))),
        "measure": "by class",
        "repair": (False, repaired < TTFT[CHAT], slots < TTFT[CHAT]),
        "knee": (ratio[0] > 1.5, ratio[0] < 1.5 < ratio[1], ratio[1] < 1.5),
        "window": tuple(
            (1 / 200 == 0.5 / 100) == window and (_opened(200) == 0.5 * _opened(100)) == wait
            for window, wait in ((True, True), (True, False), (False, False))
        ),
        "drafts": tuple(quiz["drafted_tokens"] == value for value in (1.75, 2, 3)),
        "tools": tuple(abs(quiz["tool_tpot_ms"] - value) < 0.1 for value in (50, 28.5, 30)),
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    found = {name: [served(policy=name, seed=seed) for seed in SEEDS] for name in promises.POLICIES}
    shares = {name: np.array([one.share for one in each]) for name, each in found.items()}
    load_flag = promises.outcome(promises.requests(), policies.LoadDependent(SLOTS)).run
    worse = promises.tuned(budget=2_048)
    return {
        "vLLM takes 8,192 tokens and 1,024 slots": engine_defaults.batch(gpu("H200")) == (SLOTS, BUDGET),
        "over five seeds an order alone changes a point or two": np.abs(shares[HOPELESS] - shares[DEFAULTS]).max()
        < 0.025
        > np.abs(shares[EARLIEST] - shares[DEFAULTS]).max(),
        "a small budget or a step target alone leaves most promises broken": max(
            shares[FLAG].max(), shares[TARGET].max()
        )
        < 0.6,
        "together they keep four of five": shares[BOTH].min() > 0.8,
        "the order brings first tokens in time and not streams": all(
            one.in_time.mean() > 0.9 and one.tpot > 2.5 * TPOT for one in found[HOPELESS]
        ),
        "the flag keeps streams and not first tokens": all(
            one.tpot < TPOT and one.in_time.mean() < 0.6 for one in found[FLAG]
        ),
        "steadily the defaults keep nearly all": served(arrivals=STEADY).share > 0.85,
        "the note's policy by load is a budget of 512 here": np.array_equal(load_flag.e2e, served(policy=FLAG).run.e2e),
        "the note's reference keeps less than the defaults": note("reference").share < served().share,
        "a budget of 2,048 keeps no more than the defaults": worse.share < served().share + 0.02,
        "today's flags break the promise of the decision": decision.words(decision.holds(decision.served()))
        == "documents hold, streams do not",
        "by hand the hopeless one is late in both orders, last alone, and else with two others": by_hand.late(
            by_hand.ORDERS[1]
        )
        == 1
        == by_hand.late(by_hand.ORDERS[0]) - 2
        and by_hand.served(by_hand.ORDERS[1]).e2e[1] > by_hand.DUE[1],
        "in every draw hopeless last keeps more than the earliest deadline first, and that more than in order": all(
            deeper.served(last, seed=seed).share > deeper.served(urgent, seed=seed).share + 0.04
            and deeper.served(urgent, seed=seed).share > deeper.served(alone, seed=seed).share + 0.2
            for alone, urgent, last in (deeper.ORDERS[:3], deeper.ORDERS[3:])
            for seed in SEEDS
        ),
        "with 1,024 slots the policy by load is a budget of 512, and with 256 it is no better than the defaults": (
            np.array_equal(deeper.served(deeper.BY_LOAD).run.e2e, load_flag.e2e)
            and deeper.load(deeper.served(deeper.BY_LOAD)) < LEVELS[0][0]
            and deeper.load(deeper.served(deeper.BY_LOAD, 256)) == 1
            and abs(deeper.served(deeper.BY_LOAD, 256).share - deeper.served(DEFAULTS, 256).share) < 0.05
        ),
        "rejecting keeps as many": abs(deeper.served(deeper.REJECTING).share - deeper.served(deeper.LAST_FLAG).share)
        < 0.02,
        "with a quarter of the slots an order alone keeps hardly more, and short steps change nothing": (
            deeper.served(HOPELESS, 256).share < deeper.served(DEFAULTS, 256).share + 0.05
            and all(
                np.array_equal(deeper.served(name, 256).run.e2e, deeper.served(name).run.e2e) for name in (TARGET, BOTH)
            )
        ),
        "recorded": STEP.simulated.startswith("simulated on recorded steps"),
    }
