"""The numbers in the texts of lab 05, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from course.gpu.bench import Settings
from course.lessons.lab05 import adaptive, figures, knobs, machine, night, on_a_card, rule, sketch, tasks, toy, vision
from course.lessons.lab05.night import QUIET
from course.models import engine_defaults
from course.models.gpus import gpu

SEEDS = range(5)
DEFAULT = Settings()
E2E = (0.2, 101, 0.010)  # of the earlier question: seconds, tokens, seconds
LITTLE = (5, 4)  # requests/s and seconds of the other
ONE_RATE, ONE_MS = 96, 50.0
LIGHT = 1  # requests/s of the chat that finds the card idle

GIVEN = (toy.RATE, toy.TOKENS, toy.SLOTS, toy.WINDOW_MS, machine.SHORT_MS, sketch.RATE, 1e3 * toy.POINTS[0][1],
         toy.POINTS[0][0], 1e3 * toy.POINTS[1][1], adaptive.MOST_MS, adaptive.WEIGHT, vision.RATE)  # fmt: skip


def listed(values: Any) -> str:
    """Numbers as in a sentence: "1, 1, 2 and 3.5"."""
    *first, last = (f"{value:,g}" for value in values)
    return f"{', '.join(first)} and {last}"


@cache
def bulk() -> toy.Served:
    """The example that is often given for throughput."""
    return toy.served("note", toy.BULK["window_ms"], toy.BULK["rate"], int(toy.BULK["slots"]), 0, 500,
                      int(toy.BULK["tokens"]))  # fmt: skip


def full_step(batch: float) -> float:
    """Seconds of a step of the toy."""
    return toy.T0 + toy.C * batch


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return {**_toy(), **_card(), **_knobs(), **_asked(), **_decision(), **_ticket()}


def _toy() -> dict[str, Any]:
    waits, never = toy.served(), toy.served("window", 0.0)
    wanted = toy.RATE * toy.TOKENS
    hand, at_once = toy.by_hand(), toy.by_hand(0.0)
    return {
        "stretch_ms": 1e3 * figures.STRETCH,
        "lanes": figures.LANES,
        "toy_requests": toy.REQUESTS,
        "wanted": wanted,
        "promise_ms": 1e3 * tasks.PROMISE,
        "cheap": tasks.CHEAP,
        "spared_points": 100 * tasks.SPARED,
        "bulk_step_ms": 1e3 * full_step(toy.BULK["slots"]),
        "e2e_waits_ms": 1e3 * waits.e2e,
        "e2e_never_ms": 1e3 * never.e2e,
        "tpot_waits_ms": 1e3 * waits.tpot,
        "tpot_never_ms": 1e3 * never.tpot,
        "batch_waits": waits.batch,
        "batch_never": never.batch,
        "little_waits": wanted * waits.tpot,
        "little_never": wanted * never.tpot,
        "quarter_ms": toy.WINDOW_MS / 4,
        "step_seven_ms": 1e3 * full_step(7),
        "step_two_ms": 1e3 * full_step(2),
        "hand_arrivals": listed(toy.BY_HAND["arrival"]),
        "hand_ttfts": listed(hand.ttft),
        "hand_at_once": listed(at_once.ttft),
        "hand_steps": len(hand.steps),
        "hand_steps_at_once": len(at_once.steps),
        "company": toy.RATE * toy.WINDOW_MS / 1e3,
        "bulk_rate": toy.BULK["rate"],
        "bulk_tokens": toy.BULK["tokens"],
        "bulk_slots": toy.BULK["slots"],
        "bulk_ms": toy.BULK["window_ms"],
        "bulk_wanted": toy.BULK["rate"] * toy.BULK["tokens"],
        "bulk_full": toy.BULK["slots"] / full_step(int(toy.BULK["slots"])),
        "sweep_thirty_two_ms": 1e3 * toy.served(bmax=32).p95,
    }


def _card() -> dict[str, Any]:
    chat = on_a_card.both(rate=sketch.RATE)
    one = on_a_card.both(on_a_card.ONE, ONE_RATE, ONE_MS)
    return {
        "engine": engine_defaults.VERSION,
        "default_slots": engine_defaults.batch(gpu("H100"))[0],
        "slots": on_a_card.SLOTS,
        "chat_prompt": on_a_card.PROMPT,
        "chat_answer": on_a_card.ANSWER,
        "short_prompt": on_a_card.SHORT,
        "chat_ms": 1e3 * chat.never.p95,
        "longest_window": f"{max(sketch.WINDOWS):g}",
        "one_rate": ONE_RATE,
        "one_busy": one.waits.busy,
        "one_before": one.never.busy,
        "one_p95_ms": 1e3 * one.waits.p95,
        "one_never_ms": 1e3 * one.never.p95,
    }


def _knobs() -> dict[str, Any]:
    window = knobs.on_the_card(Settings(loop="window"))
    note = knobs.on_the_card(Settings(loop="note"))
    return {
        "h200_step_us": 1e6 * note.steps[1],
        "h200_fall": window.fall,
    }


def _asked() -> dict[str, Any]:
    ttft, tokens, tpot = E2E
    rate, stay = LITTLE
    return {
        "earlier_ttft": ttft,
        "earlier_tokens": tokens,
        "earlier_tpot_ms": 1e3 * tpot,
        "earlier_e2e": ttft + (tokens - 1) * tpot,
        "earlier_gaps": (tokens - 1) * tpot,
        "earlier_off": ttft + tokens * tpot,
        "little_rate": rate,
        "little_stay": stay,
        "little": rate * stay,
        "little_ratio": rate / stay,
        "wait_ms": rule.WAIT[0],
        "wait_rate": rule.WAIT[1],
        "wait": rule.mean_wait(*rule.WAIT),
        "wait_more": rule.WAIT[0] * rule.WAIT[1] / 1e3,
        "wait_twin_ms": rule.WAIT_TWIN[0],
        "wait_twin_rate": rule.WAIT_TWIN[1],
        "wait_twin": rule.mean_wait(*rule.WAIT_TWIN),
        "worked_more": rule.WORKED[0] * rule.WORKED[1] / 1e3,
        "worked_wait": rule.mean_wait(*rule.WORKED),
        **{f"rule_{name}": value for name, value in zip(rule.NAMES, rule.PROMISE, strict=True)},
        "rule": rule.longest_window(*rule.PROMISE),
        **{f"gate_{name}": value for name, value in zip(rule.NAMES, rule.GATE, strict=True)},
        "gate_ms": rule.GATE_MS,
        "rule_twin": rule.longest_window(*rule.GATE) - rule.GATE_MS,
        "company_wanted": adaptive.COMPANY,
        "ema_gaps": listed(adaptive.PROBES[0][0]),
        "ema_worked": adaptive.ema(adaptive.PROBES[0][0]),
        "ema_window": adaptive.window(*adaptive.PROBES[0]),
    }


def _decision() -> dict[str, Any]:
    right = vision.largest()
    above = vision.CHOICES_US[vision.CHOICES_US.index(right) + 1]
    twin_right = vision.largest(**vision.TWIN)
    return {
        "vision_goal_ms": 1e3 * vision.GOAL,
        "vision_one_ms": vision.T0_MS + vision.EACH_MS,
        "vision_batch": vision.BATCH,
        "vision_batch_ms": vision.T0_MS + vision.EACH_MS * vision.BATCH,
        "vision_choices": listed(vision.CHOICES_US),
        "decision_us": right,
        "decision_ms": right / 1e3,
        "decision_company": 1 + vision.RATE * right / 1e6,
        "decision_p95_ms": 1e3 * vision.served(right).p95,
        "decision_by_hand_ms": 1e3 * vision.expected(right),
        "above_ms": above / 1e3,
        "above_p95_ms": 1e3 * vision.served(above).p95,
        "above_step_ms": 1e3 * (vision.expected(above) - above / 1e6),
        "decision_busy": vision.served(right).computing / vision.MINUTE,  # of the minute that the text speaks of
        "decision_busy_now": vision.served(0).computing / vision.MINUTE,
        "decision_twin_us": twin_right,
        "twin_rate": vision.TWIN["rate"],
        "twin_goal_ms": 1e3 * vision.TWIN["goal"],
    }


def _ticket() -> dict[str, Any]:
    found, mended = night.night(), night.night(0.0)
    return {
        "day_ms": 1e3 * found.p95[0],
        "night_ms": 1e3 * found.p95[QUIET].mean(),
        "night_wait_ms": 1e3 * found.wait[QUIET].mean(),
        "mended_ms": 1e3 * mended.p95[QUIET].max(),
        "gateway_ms": 1e3 * night.WINDOW,
        "quiet_from": (night.EVENING + QUIET.start) % 24,
        "quiet_to": (night.EVENING + QUIET.stop) % 24,
        "times_traffic": max(night.RATES) / min(night.RATES),
    }


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true, from the runs; words where it is about no number."""
    waits, never = toy.served(), toy.served("window", 0.0)
    gain = waits.tokens_per_second / never.tokens_per_second
    ttft, tokens, tpot = E2E
    bulk_ratio = toy.BULK["rate"] * toy.BULK["tokens"] * full_step(64) / 64
    sweep = [toy.served(bmax=bmax).p95 for bmax in (1, 2, 4, 8, 16, 32)]
    falls = all(low <= high * 1.02 for low, high in zip(sweep[1:], sweep[:-1], strict=True))
    one = on_a_card.both(on_a_card.ONE, ONE_RATE, ONE_MS)
    return {
        "last-token": (abs(ttft + (tokens - 1) * tpot - 1.2) < 1e-9, False, False),
        "in-system": (False, LITTLE[0] * LITTLE[1] == 20, False),
        "delivered": (gain > 1.9, abs(gain - 1) < 0.02, 1.02 < gain < 1.9),
        "cause": "waits for company",
        "measure": "before the first step",
        "repair": (False, False, bool(night.night(0.0).p95[QUIET].max() < 1.2 * night.night(0.0).p95[0])),
        "merit": "from arrival",
        "bulk": (False, False, bulk_ratio > 5),
        "sweep": (not falls and sweep[-1] > sweep[0], falls and sweep[0] > 100 * sweep[-1], False),
        "buys": (one.spared > 0.2 and one.waits.p95 > 2 * one.never.p95, False, one.waits.p95 < one.never.p95),
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    over_seeds = [
        [toy.served(*loop, seed=seed) for seed in SEEDS]
        for loop in (("note", 6.0), ("note", 2.0), ("window", 6.0), ("window", 0.0))
    ]
    waits, two, idle, never = over_seeds
    few = toy.served(bmax=4).run.ttft
    slots = [toy.served(bmax=many) for many in (256, 1_024)]
    chats = [
        on_a_card.served(on_a_card.CHAT, sketch.RATE, window, card, seed=seed, slots=many).p95
        for card in on_a_card.CARDS
        for seed in SEEDS
        for many in (on_a_card.SLOTS, 1_024)
        for window in (0.0, 50.0)
    ]
    found = night.night()
    note_falls = [knobs.on_the_card(Settings(loop="note", seed=seed)).fall for seed in SEEDS]
    return {
        "over five seeds the loop that waits has nearly twice the tokens/s of GPU time": all(
            1.9 < a.gpu_tokens / b.gpu_tokens < 2.1 for a, b in zip(waits, never, strict=True)
        ),
        "and its answers take three times as long": all(
            3 < a.e2e / b.e2e < 3.6 for a, b in zip(waits, never, strict=True)
        ),
        "a step of the one holds seven, of the other two": all(
            round(a.batch) == 7 and round(b.batch) == 2 for a, b in zip(waits, never, strict=True)
        ),
        "with four in a step the queue grows": bool(few[-50:].mean() > 1.5 * few[950:1_000].mean()),
        "both deliver what arrives": all(
            abs(a.tokens_per_second / b.tokens_per_second - 1) < 0.01 for a, b in zip(waits, never, strict=True)
        ),
        "a shorter wait before each step is a smaller batch": all(
            a.gpu_tokens > b.gpu_tokens > c.gpu_tokens for a, b, c in zip(waits, two, idle, strict=True)
        ),
        "so it is with the slots that engines have by default": all(
            abs(run.gpu_tokens / waits[0].gpu_tokens - 1) < 0.01 for run in slots
        ),
        "little's law gives the batch within 8%: steps of another length weigh alike in its mean": all(
            abs(toy.RATE * toy.TOKENS * run.tpot / np.average(run.run.steps.running) - 1) < 0.08
            for run in (waits[0], never[0])
        ),
        "the window that opens when idle costs the p95 itself and a step": all(
            abs(run.p95 - 6e-3 - full_step(1)) < 0.3e-3 for run in idle
        ),
        "a busy chat's p95 hardly moves, on both cards, five seeds, few slots or many": all(
            b - a < 0.1 * 50e-3 for a, b in zip(chats[::2], chats[1::2], strict=True)
        ),
        "the ticket's p95 is highest when the card is idle": bool(
            found.p95[QUIET].min() > 2 * found.p95[0] and found.busy[QUIET].max() < 0.5
        ),
        "the queue of the bulk example grows to the end": bool(
            bulk().run.ttft[-50:].mean() > 3 * bulk().run.ttft[100:150].mean()
        ),
        "on the recorded card the third criterion is about the loop: the note's misses it with some seeds": min(
            note_falls
        )
        < 0
        < machine.DOWN
        < max(note_falls),
        "behind the window the recorded card passes all four": all(
            holds for holds, _ in knobs.on_the_card(Settings(loop="window")).passed().values()
        ),
        "a window that shrinks is as fast as none by night, and spares the card by day": bool(
            abs(adaptive.with_function(adaptive.window, adaptive.NIGHT).p95 / adaptive.at(adaptive.NIGHT, 0.0).p95 - 1)
            < 0.1
            and adaptive.with_function(adaptive.window, adaptive.DAY).busy < adaptive.at(adaptive.DAY, 0.0).busy - 0.1
        ),
    }
