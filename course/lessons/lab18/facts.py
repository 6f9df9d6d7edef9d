"""The numbers in the texts of lab 18, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from course.lessons.lab18 import decision, design, figures, keeping, own, search, service, sketch, tasks
from course.lessons.lab18.scoring import score
from course.lessons.lab18.search import REFERENCE, RUNS, TUNED
from course.models import engine_defaults
from course.workload import Workload

ASKED: dict[str, float] = {
    "cost_price": 2.5, "cost_tokens": 2_500, "capacity_slots": 64, "capacity_s": 4,
    "window_slo": 100, "window_step": 60, "window_margin": 10, "gain_hit": 0.75,
    "felt_plan": 1, "felt_sent": 6, "felt_answer": 7, "bucket_rate": 300, "bucket_cost": 900,
    "turn_a": 7_000, "turn_b": 5_200, "turn_c": 9_100, "padded_a": 100, "padded_b": 20, "padded_c": 80,
    "sizes_low": 32, "sizes_high": 64, "sizes_now": 33, "launch_step": 6.0, "launch_idle": 1.2,
    "hand_kept": 780, "hand_cards": 2, "hand_price": 2.5, "hand_s": 20,
}  # fmt: skip
"""What questions give."""
CHANCE = 1.15
"""Times the best of RUNS drawn designs: see `make capstone-check`."""
ENOUGH = 0.99
"""The share that a hint advises."""
GIVEN = (
    design.SLOTS, design.BUDGET, REFERENCE.long_prefill_token_threshold, REFERENCE.max_num_seqs,
    REFERENCE.max_num_batched_tokens, keeping.HOUR, keeping.NEED,
)  # fmt: skip


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    default, ticket = search.defaults(), score(TUNED, service.day(figures.TICKET_DAY))
    plain = {"defaults": default, "tuned": TUNED, "reference": REFERENCE}
    found: dict[str, Any] = {}
    for name, one in plain.items():
        other = search.unseen(one)
        found |= {f"{name}_seen": search.tried(one), f"{name}_mean": float(np.mean(other)),
                  f"{name}_held": sum(value > 0 for value in other)}  # fmt: skip
    seen = service.day()
    small = [score(own.SMALL, service.day(service.BEFORE), policy) for policy in (None, own.ordered(keeping.order))]
    return found | _questions() | _tasks() | {
        "vllm": engine_defaults.VERSION, "need": service.NEED, "runs": RUNS, "days": len(service.UNSEEN),
        "requests": len(seen), "seconds": service.SECONDS, "default_cards": default.replicas,
        "other_same": search.tried(TUNED), "other_three": search.tried(TUNED) / service.MORE,
        "pace_ms": 1e3 * tasks.PACE,
        "slots": design.SLOTS, "speed": keeping.SPEED, "four_dollars": decision.FOUR.dollars_an_hour,
        "margin": decision.MARGIN, "cards_most": sketch.CARDS[-1], "enough": ENOUGH,
        "few_days": len(decision.OTHER_DAYS),
        "ticket_late": 1 - ticket.share[service.DOCS], "ticket_more": service.MORE - 1,
        "tuned_chat": score(TUNED, seen).share[service.CHAT], "tuned_docs": score(TUNED, seen).share[service.DOCS],
        "tuned_before": score(TUNED, service.day(service.BEFORE)).share[service.DOCS],
        "reference_chat": score(REFERENCE, seen).share[service.CHAT], "chance": CHANCE,
        "order_before": small[0].share[service.CHAT], "order_after": small[1].share[service.CHAT],
        "order_docs": small[1].share[service.DOCS],
    }  # fmt: skip


def _tasks() -> dict[str, Any]:
    """Those of tasks that ask why, as the tables of the explorers show them."""
    drafts, cap = {**tasks.FLEET, "drafts": 2, "kv": "fp8"}, {"cap": 512, "slots": 64, "routing": "cache_aware"}
    fast = tasks.of_fleet(drafts, tasks.fleet(**drafts))
    uncached = tasks.of_flags({**cap, "cached": False}, tasks.flags(**cap, cached=False))
    return {"fast_tpot": fast["tpot"], "start_tpot": fast["start_tpot"], "fast_ttft": fast["ttft"],
            "start_ttft": fast["start_ttft"], "uncached_ttft": uncached["ttft"],
            "cached_ttft": uncached["cached_ttft"]}  # fmt: skip


def _questions() -> dict[str, Any]:
    """Those of the worked example and of the questions about earlier labs: what is given, and each option."""
    given = ASKED
    tokens, hit, rate = given["cost_tokens"], given["gain_hit"], given["bucket_rate"]
    seconds, step, idle = 1e6 / tokens, given["launch_step"], given["launch_idle"]
    prompts = [int(given[f"padded_{name}"]) for name in "abc"]
    padded = len(prompts) * max(prompts), sum(prompts)
    dollars = given["hand_cards"] * given["hand_price"] * given["hand_s"] / keeping.HOUR
    return given | {
        "cost_seconds": seconds, "cost_right": given["cost_price"] * seconds / keeping.HOUR,
        "cost_hour": given["cost_price"], "cost_minute": given["cost_price"] * seconds / keeping.HOUR / 60,
        "capacity_right": given["capacity_slots"] / given["capacity_s"],
        "capacity_times": given["capacity_slots"] * given["capacity_s"], "capacity_one": 1 / given["capacity_s"],
        "window_right": given["window_slo"] - given["window_step"] - given["window_margin"],
        "window_no_margin": given["window_slo"] - given["window_step"],
        "gain_right": 1 / (1 - hit), "gain_add": 1 + hit, "gain_wrong": hit / (1 - hit), "gain_left": 1 - hit,
        "felt_right": given["felt_answer"] - given["felt_plan"],
        "felt_client": given["felt_answer"] - given["felt_sent"], "felt_held": given["felt_sent"] - given["felt_plan"],
        "bucket_right": given["bucket_cost"] / rate, "bucket_wrong": rate / given["bucket_cost"],
        "padded_all": padded[0], "padded_empty": padded[0] - padded[1], "padded_half": padded[1] / padded[0],
        "padded_right": 1 - padded[1] / padded[0], "launch_left": step - idle, "launch_right": step / (step - idle),
        "launch_share": idle / step, "launch_wrong": step / idle,
        "hand_cents": 100 * dollars, "hand_score": given["hand_kept"] / dollars,
    }  # fmt: skip


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    found = _questions()
    mean, top = float(np.mean(search.unseen(TUNED))), search.tried(TUNED)
    ticket = service.day(figures.TICKET_DAY)
    today, yesterday = (score(TUNED, load) for load in (ticket, service.day()))
    more = replace(TUNED, max_num_seqs=512), replace(TUNED, num_speculative_tokens=5)
    others = [score(other, ticket).passed for other in more]
    held = sum(one > 0 for one in search.unseen(REFERENCE))
    price = found["cost_price"] / found["cost_tokens"] * 1e6
    padded = min(found[f"sizes_{name}"] for name in ("low", "high") if found[f"sizes_{name}"] >= found["sizes_now"])
    counters = [found[f"turn_{name}"] for name in "bca"]
    return {
        "acts": "nothing at all",
        "cost": tuple(abs(found[name] - price / 3_600) < 1e-9 for name in ("cost_hour", "cost_right", "cost_minute")),
        "other": (mean > 0.97 * top, 0.9 * top < mean <= 0.98 * top, mean < 0.34 * top),
        "cause": (
            today.share[service.CHAT] < service.NEED,
            today.share[service.DOCS] < 0.9 < yesterday.share[service.DOCS],
            False,
        ),
        "measure": "in each engine, by class",
        "repair": (held == len(service.UNSEEN), *others),
        "capacity": tuple(
            found[f"capacity_{name}"] * found["capacity_s"] == found["capacity_slots"]
            for name in ("right", "times", "one")
        ),
        "longest": "longest answer of a batch over the mean",
        "window": tuple(
            wait + found["window_step"] + found["window_margin"] <= found["window_slo"]
            for wait in (found["window_slo"], found["window_no_margin"], found["window_right"])
        ),
        "mixed": "a smaller token budget",
        "order": "those that run already",
        "slots": "fewer slots",
        "copy": "if the link is faster",
        "gain": tuple(abs(found[f"gain_{name}"] * found["gain_left"] - 1) < 1e-9 for name in ("add", "right", "wrong")),
        "pool": "what all write between two turns of one",
        "drafts": "tokens of a step grow more than its time",
        "speculation": "fewer or none",
        "felt": tuple(
            found["felt_plan"] + found[f"felt_{name}"] == found["felt_answer"] for name in ("right", "client", "held")
        ),
        "bucket": (False, *(found[f"bucket_{name}"] * found["bucket_rate"] == found["bucket_cost"]
                            for name in ("wrong", "right"))),
        "share": "a limit at the gateway",
        "padded": tuple(abs(one - found["padded_empty"] / found["padded_all"]) < 1e-9
                        for one in (0.0, found["padded_half"], found["padded_right"])),
        "sizes": tuple(found[f"sizes_{name}"] == padded for name in ("high", "now", "low")),
        "launches": tuple(abs(found[f"launch_{name}"] * found["launch_left"] - found["launch_step"]) < 1e-9
                          for name in ("share", "right", "wrong")),
        "waits": "async scheduling",
        "captured": "without a graph",
        "turn": tuple(one == min(counters) for one in counters),
    }  # fmt: skip


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    drawn = dict(sketch.scores())
    seen = score(REFERENCE, service.day())
    loads = [service.day(seed) for seed in (service.SEEN, *service.UNSEEN)]
    rate = [len(load) / service.SECONDS for load in loads]
    without = score(replace(REFERENCE, enable_prefix_caching=False), service.day())
    return {
        "the defaults are vLLM's": engine_defaults.LARGE == (design.SLOTS, design.BUDGET),
        "below some number of cards the score is 0, then it falls": drawn[1] == drawn[2] == 0
        and drawn[3] > drawn[4] > drawn[5] > drawn[6],
        "the tuned design has the highest score of the seen day, of the three": search.tried(TUNED)
        > max(search.tried(REFERENCE), search.tried(search.defaults())),
        "the seen day shows no danger, and the day before does": min(score(TUNED, service.day()).share.values()) > 0.99
        and not score(TUNED, service.day(service.BEFORE)).passed,
        "the other holds on both": min(seen.share.values()) > 0.99
        and score(REFERENCE, service.day(service.BEFORE)).passed,
        "thought beats the defaults by a quarter and more": np.mean(search.unseen(REFERENCE))
        > decision.MARGIN * np.mean(search.unseen(search.defaults())),
        "days differ more than by their mean": max(rate) > 1.1 * min(rate),
        "without the cache two cards do not do": not without.passed,
        "an order nearly doubles who is in time": score(
            own.SMALL, service.day(service.BEFORE), own.ordered(keeping.order)
        ).share[service.CHAT]
        > 1.8 * score(own.SMALL, service.day(service.BEFORE)).share[service.CHAT],
        "requests of a day are many": isinstance(loads[0], Workload) and len(loads[0]) > 500,
    }
