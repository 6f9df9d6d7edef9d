"""The numbers in the texts of lab 01, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from course.calibration import vllm_pages
from course.lessons.lab01 import chat, further, replicas, result_file, sketch, tasks
from course.lessons.lab01.replicas import PROMISE
from course.lessons.lab01.result_file import CHOICES_US, GOAL, GOAL_TWIN, TWIN
from course.models import engine_defaults
from course.models.gpus import gpu

WHOLE, WHOLE_TWIN = (0.2, 101, 0.010), (0.5, 41, 0.020)
WHOLE_NAMES = ("ttft", "tokens", "tpot_s")  # seconds, tokens, seconds
QUEUE, QUEUE_TWIN = (420.0, 60.0, 100.0, 16.0), (900.0, 70.0, 50.0, 30.0)  # ms, of the parts in the next line
QUEUE_PARTS = ("ttft", "outside", "window", "prefill")
STALL = (200, 400, 6)  # tokens; one gap and the others [ms]
FEW_RATE, HOUR_RATE = 2, 5  # requests/s of a prediction and of an earlier question
MORE_SLOTS = 64
EVEN = 9.0  # requests/s that each replica could get
IN_TIME = 0.99
QUESTIONS = 100  # of each user in a month
REPORTED_MS = 300
HALF_MORE = 1.5
TEST = 100  # requests of a short test
HOST_MS = 1.1  # measured beside an 8B on an H200: docs/benchmarks.md, "A live run"
PEOPLE = 12  # whom the language model answers

GIVEN = (chat.RATE, chat.PROMPT, chat.OUTPUT, chat.WINDOW_MS, chat.SLOTS, chat.REQUESTS)


def whole(ttft: float, tokens: int, tpot: float) -> float:
    """E2E [s]."""
    return ttft + (tokens - 1) * tpot


def queue(ttft: float, outside: float, window: float, prefill: float) -> float:
    """The wait for the engine [ms] of somebody who opened the window."""
    return ttft - outside - window - prefill


def stalled(tokens: int, longest: float, others: float) -> float:
    """TPOT of an answer with one long gap [ms]."""
    return (longest + (tokens - 2) * others) / (tokens - 1)


def listed(values: Any) -> str:
    """Numbers as in a sentence: "1, 1, 2 and 3.5"."""
    *first, last = (f"{value:,g}" if value < 1_000 else f"{value:,.0f}" for value in values)
    return f"{', '.join(first)} and {last}"


@cache
def _replicas() -> tuple[replicas.Service, replicas.Service]:
    """As they were, and with the same rate for each."""
    return replicas.service(), replicas.service((EVEN,) * 3)


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return {**_chat(), **_by_hand(), **_asked(), **_decision(), **_service()}


def _chat() -> dict[str, Any]:
    found = chat.chat()
    draws = {count: [1e3 * value for value in further.draws(count)] for count in (TEST, chat.REQUESTS)}
    parts = {f"{part}_s": found.mean(part) for part in chat.PARTS}
    tpot, ttft = float(np.nanmean(found.run.tpot)), float(found.ttft.mean())
    return {
        "engine": engine_defaults.VERSION,
        "default_slots": engine_defaults.batch(gpu("H100"))[0],
        "host_ms": HOST_MS,
        "people": PEOPLE,
        "row": tasks.ROW,
        "line": tasks.LINE,
        "fast_s": tasks.FAST,
        "around": round(2 * chat.AROUND * chat.REQUESTS),
        "tpot_s": tpot,
        "ttft_s": ttft,
        "ttft_sum_s": sum(parts.values()),
        "e2e_s": float(found.e2e.mean()),
        "e2e_formula_s": ttft + (chat.OUTPUT - 1) * tpot,
        **parts,
        "window_given_s": chat.WINDOW_MS / 1e3,
        "window_formula_s": chat.mean_window_wait(chat.WINDOW_MS / 1e3, chat.RATE),
        "window_us": 1_000 * chat.WINDOW_MS,
        "busy": further.BUSY,
        "draws": further.DRAWS,
        "draws_low": min(draws[chat.REQUESTS]),
        "draws_high": max(draws[chat.REQUESTS]),
        "few_last_s": TEST / further.BUSY,
        "late_requests": (1 - IN_TIME) * chat.REQUESTS,
        "gpu_tokens": found.tokens_per_gpu_second,
        "reader_tokens": found.reader,
        "engine_ms": 1e3 * found.engine,
    }


def _by_hand() -> dict[str, Any]:
    hand, fourth = chat.by_hand(), 3
    return {
        "hand_arrivals": listed(chat.BY_HAND["arrival"]),
        "hand_answers": listed(chat.BY_HAND["output"]),
        "hand_ttfts": listed(hand.ttft),
        "hand_mean": float(hand.ttft.mean()),
        "fourth": fourth + 1,
        "fourth_answer": chat.BY_HAND["output"][fourth],
        "fourth_wait": hand.queue_wait[fourth],
        "fourth_first": hand.first_computed[fourth],
        "fourth_last": hand.response[fourth],
        "fourth_ttft": hand.ttft[fourth],
        "fourth_e2e": hand.e2e[fourth],
        "fourth_tpot": hand.tpot[fourth],
        "fourth_prefill": hand.ttft[fourth] - hand.queue_wait[fourth],
    }


def _asked() -> dict[str, Any]:
    spared, tokens, longest, others = IN_TIME**QUESTIONS, *STALL
    hour = 3_600 * HOUR_RATE
    seen = Fraction(1 - spared).limit_denominator(3)
    return {
        "hour_rate": HOUR_RATE,
        "hour_s": 3_600,
        "hour_thousandth": hour / 1_000,
        "hour_hundredth": hour / 100,
        "hour_twentieth": hour / 20,
        "few_rate": FEW_RATE,
        "few_wait_ms": 1e3 * chat.mean_window_wait(chat.WINDOW_MS / 1e3, FEW_RATE),
        "crowd_rate": sketch.CROWD,
        "crowd_wait_ms": sketch.CROWDED,
        "p99_s": 0.3,
        "questions": QUESTIONS,
        "seen": f"{seen.numerator} in {seen.denominator}",
        "spared": spared,
        "in_time": IN_TIME,
        "whole": whole(*WHOLE),
        "whole_twin": whole(*WHOLE_TWIN),
        **{f"whole_{name}": value for name, value in zip(WHOLE_NAMES, WHOLE, strict=True)},
        **{f"whole_twin_{name}": value for name, value in zip(WHOLE_NAMES[:2], WHOLE_TWIN[:2], strict=True)},
        "whole_gaps": WHOLE[1] - 1,
        "whole_tpot": 1e3 * WHOLE[2],
        "whole_twin_tpot": 1e3 * WHOLE_TWIN[2],
        **{f"queue_{part}": value for part, value in zip(QUEUE_PARTS, QUEUE, strict=True)},
        **{f"queue_twin_{part}": value for part, value in zip(QUEUE_PARTS, QUEUE_TWIN, strict=True)},
        "queue": queue(*QUEUE),
        "queue_twin": queue(*QUEUE_TWIN),
        "stall_tokens": tokens,
        "stall_ms": longest,
        "stall_gap_ms": others,
        "stall_tpot_ms": stalled(*STALL),
        "stall_gaps": tokens - 1,
        "half_more": HALF_MORE,
        "reported_ms": REPORTED_MS,
        "shortest": TEST - 2,
    }


def _decision() -> dict[str, Any]:
    inside, rate = result_file.engine(), result_file.rate()
    right = result_file.largest(GOAL, rate=rate, inside=inside)
    above = CHOICES_US[CHOICES_US.index(right) + 1]
    waits = [1e3 * chat.mean_window_wait(us / 1e6, rate) for us in (right, above)]
    return {
        "outside_ms": chat.OUTSIDE_MS,
        "vllm": vllm_pages.label(),
        "vllm_slots": result_file.SLOTS,
        "bench_ms": 1e3 * inside,
        "bench_requests": vllm_pages.bench()["completed"],
        "goal_ms": 1e3 * GOAL,
        "left_ms": 1e3 * (GOAL - inside) - chat.OUTSIDE_MS,
        "kept_ms": waits[0],
        "replayed_ms": 1e3 * result_file.replayed(right),
        "kept_delay": right // 1_000,
        "broken_ms": waits[1],
        "broken_delay": above // 1_000,
        "choices_us": listed(CHOICES_US),
        "decision_us": right,
        "decision_twin_us": result_file.largest(GOAL_TWIN, **TWIN),
        "twin_rate": TWIN["rate"],
        "twin_inside": 1e3 * TWIN["inside"],
        "twin_outside": 1e3 * TWIN["outside"],
        "twin_goal": 1e3 * GOAL_TWIN,
    }


def _service() -> dict[str, Any]:
    found, even = _replicas()
    running = [float(line.mean()) for line in found.running]
    return {
        "dashboard_s": found.dashboard,
        "late_of_100": 100 * found.late,
        "full_p99_s": _p99(found.runs[0].ttft),
        "full_mean_s": float(found.runs[0].ttft.mean()),
        "full_running": 10 * round(running[0] / 10),
        "others_running": float(np.mean(running[1:])),
        "all_p99_s": _p99(found.ttft),
        "even_rate": EVEN,
        "even_p99_ms": 5 * round(200 * _p99(even.ttft)),
        "twice_promise": 2 * PROMISE,
        "more_slots": MORE_SLOTS,
        "more_slots_p99_ms": 1e3 * _p99(replicas.service(slots=MORE_SLOTS).runs[0].ttft),
        "a_rate": replicas.RATES[0],
        "b_rate": replicas.RATES[1],
    }


def _p99(values: np.ndarray) -> float:
    return float(np.percentile(values, 99))


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    share = 1 - IN_TIME**QUESTIONS
    hour = 3_600 * HOUR_RATE
    found, even = _replicas()
    tails = [_p99(run.ttft) for run in found.runs]
    one, many = (chat.chat(rate=rate, window_ms=0) for rate in (4, 12))
    speed = np.nanmedian(one.run.tpot) / np.nanmedian(many.run.tpot)  # of a reader, in the fuller batch
    drawn = np.sort(np.random.default_rng(0).exponential(size=TEST))
    return {
        "hundred": (abs(share - 2 / 3) < 0.05, share < 0.02, share > 0.99),
        "behind-the-p99": tuple(bool(np.isclose(hour / part, hour * (1 - IN_TIME))) for part in (1_000, 100, 20)),
        "first-step": "the prefill",
        "cause": (
            bool(found.running[0].mean() > 0.85 * chat.SLOTS and tails[0] > PROMISE > found.dashboard),
            False,
            all(tail > PROMISE for tail in tails),
        ),
        "measure": "over all requests",
        "repair": (False, even.late == 0, False),
        "stall": "longest ITL",
        "faster": (bool(speed <= 1), bool(speed > 1.2), False),
        "front": "in front of the engine",
        "sample": (False, False, bool(drawn[-2] <= np.percentile(drawn, 99) <= drawn[-1])),
    }  # fmt: skip


def claims() -> dict[str, bool]:
    """What the texts say without a number."""
    found, busy = chat.chat(), chat.chat(rate=further.BUSY)
    service, even = _replicas()
    shares = np.array([len(run) for run in service.runs]) / len(service.ttft)
    tails = [_p99(run.ttft) for run in service.runs]
    one, many = (chat.chat(rate=rate, window_ms=0) for rate in (4, 12))
    opens = 1 / (1 + FEW_RATE * chat.WINDOW_MS / 1e3)
    return {
        "five in six open a window": abs(opens - 5 / 6) < 1e-9,
        "most requests go to A": bool(shares[0] > 0.5),
        "one in nine of A's waits longer than the promise": abs(
            1 / float((service.runs[0].ttft > PROMISE).mean()) - 9
        ) < 0.5,
        "the median of the p99s is that of a replica with few requests": bool(
            abs(np.median(tails) / tails[1] - 1) < 0.02
        ),
        "B and C get the same rate for half an hour": replicas.RATES[1] == replicas.RATES[2]
        and replicas.SECONDS == 1_800,
        "with the same rate nobody is late": even.late == 0,
        "a larger batch raises tokens/s by half": many.tokens_per_gpu_second > HALF_MORE * one.tokens_per_gpu_second,
        "at a higher rate the p50 stays": abs(busy.percentile(50) / found.percentile(50) - 1) < 0.02,
        "a p99 is twice the p50 in the task": tasks.TIMES == 2.0,
        "the engine had a slot for everybody": vllm_pages.bench()["max_concurrent_requests"] < result_file.SLOTS,
        "half of the window is the wrong delay": max(
            us for us in CHOICES_US if chat.OUTSIDE_MS / 1e3 + us / 2e6 + result_file.engine() <= GOAL
        ) == 50_000,
    }  # fmt: skip
