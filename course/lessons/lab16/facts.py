"""The numbers in the texts of lab 16, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from math import ceil, log2
from typing import Any

import numpy as np

from course import policies, serve, steptime
from course.lessons.lab16 import (
    honest,
    launched,
    load_test,
    many_tools,
    over_http,
    pictures,
    sketch,
    steady_window,
    tasks,
)
from course.lessons.lab16.load_test import DOCUMENT, REQUESTS, STEP, LoadTest
from course.lessons.lab16.tasks import p99
from course.models import engine_defaults
from course.models.gpus import gpu
from course.workload import Workload, lengths

RATE, LIMIT = tasks.START["rate"], tasks.START["max_concurrency"]
ASKED, ASKED_LESS, PROMISE_MS = 40, 20, 30  # requests/s of the ticket, and what it would like to promise
PLAN = (0, 1, 2, 3)  # s, of the first exercise and its twin
TOOK, TOOK_TWIN = (0.5, 3.25, 0.5, 0.25), (0.25, 2.5, 0.75, 0.5)  # s
TOLD, TOLD_TWIN, TOKENS = 50, 38, 20  # ms a token, and tokens, of the second exercise and its twin
TTFT, TTFT_TWIN = 525, 100  # ms
FEW, MORE = (2, 40), (8, 15)  # gaps of two answers, and their length [ms]
RATE_TWIN, E2E_TWIN = 20, 2.5  # of the decision's twin: requests/s, s
STOP, EVERY, SEEN_GAP = 0.4, 20, 0.1  # s, of an earlier question
STAYS = 0.8  # s, of another
USERS, STEADY = 64, 5  # of the closed loop; seconds until it is steady
GAP_RATE, GAP_GOT = 200, 183.5  # requests/s, as reported
PIECE = 4  # tokens
FEW_ASKED = 100  # requests of a test that is short
QUEUE, QUEUE_SLOTS = (14, 100, 1_000), 32  # requests/s, tests, requests of a test, as in lab 03
PUBLISHED: dict[str, Any] = {
    "guidellm": "guidellm 0.3", "inference_perf": "inference-perf 0.6", "aiperf": "aiperf 0.13", "quantile": 0.99,
    "waits_since": "0.30", "warms_since": "0.11.1", "renamed_since": "0.4", "host": "127.0.0.1",
    "order_statistics": "3rd edition, 2003, section 7.1", "tail_at_scale": "56(2)",
}  # fmt: skip
"""What the optional notebook says of tools and books."""
PEAK = json.loads(many_tools.PEAK.read_text(encoding="utf-8"))

GIVEN = (RATE, LIMIT, REQUESTS, DOCUMENT, many_tools.REQUESTS, launched.REQUESTS, launched.RATE,
         pictures.TOOK[0], pictures.TOOK[1], load_test.SLOTS)  # fmt: skip


def fourth(took: Sequence[float]) -> float:
    """From plan to first token of the fourth request [s]."""
    return honest.felt_ttft(PLAN, took)[3]


def enough(rate: float, e2e: float) -> int:
    """The smallest power of two that is at least rate x E2E, the mean number in flight by Little's law."""
    return 2 ** ceil(log2(rate * e2e))


def listed(values: Sequence[float]) -> str:
    """Numbers as in a sentence: "6, 1, 2 and 3"."""
    *first, last = (f"{value:g}" for value in values)
    return f"{', '.join(first)} and {last}"


@cache
def stalled() -> LoadTest:
    """The test of the question."""
    return load_test.run_test(RATE, LIMIT, DOCUMENT)


@cache
def nightly(rate: float) -> LoadTest:
    """A test of the ticket."""
    return load_test.run_test(rate, LIMIT, 0)


def answered(rate: float) -> float:
    """Requests/s of such a test."""
    return len(nightly(rate).run) / nightly(rate).run.makespan


def seen_of(requests: int) -> int:
    """How many waits of more than a second a test of so many requests writes down."""
    return int((sketch.tested(requests).written > tasks.LONG).sum())


def _e2e(test: LoadTest) -> float:
    return float((test.run.response - test.sent).mean())


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    test, busy = stalled(), nightly(ASKED)
    felt = honest.felt_ttft(pictures.PLANNED, pictures.TOOK)
    burst = many_tools.read_by_all(128, 1.0, 1)
    tpot, itl = tasks.ours(burst)
    level = many_tools.read_by_all(**tasks.LEVEL)
    third, file = 2, many_tools.from_vllms_file()
    return {
        "engine": engine_defaults.VERSION, "file_answers": len(file.tokens),
        "file_pieces": sum(len(gaps) + 1 < n for gaps, n in zip(file.gaps, file.tokens.tolist(), strict=True)),
        "percent": 99, "hundred": 100, "near": tasks.NEAR, "stall_s": test.stall, "due": RATE * test.stall,
        "few_asked": FEW_ASKED,
        "few_seen": seen_of(FEW_ASKED), "slowest": REQUESTS / 100,
        "written_ms": 1e3 * p99(test.written), "users_s": p99(test.free.ttft),
        "burst_s": ceil(2 * burst.run.arrival[-1]) / 2, "burst_tpot_ms": 1e3 * tpot, "burst_itl_ms": 1e3 * itl,
        # By hand
        "third": third + 1, "fourth": third + 2, "third_wait_s": felt[third] - pictures.TOOK[third],
        "third_took_s": pictures.TOOK[third], "third_felt_s": felt[third], "few_gaps": FEW[0], "few_ms": FEW[1],
        "more_gaps": MORE[0], "more_ms": MORE[1], "all_gaps": FEW[0] + MORE[0], "two": len((FEW, MORE)),
        "by_answers_ms": np.mean([FEW[1], MORE[1]]),
        "by_gaps_ms": (FEW[0] * FEW[1] + MORE[0] * MORE[1]) / (FEW[0] + MORE[0]),
        # The closed loop and the ticket
        "asked": ASKED, "asked_less": ASKED_LESS, "promise_ms": PROMISE_MS, "in_flight": busy.in_flight,
        "e2e_s": _e2e(busy), "formula_rate": LIMIT / _e2e(busy), "sent_rate": (len(busy.run) - 1) / np.ptp(busy.sent),
        "calm_ms": 1e3 * p99(nightly(RATE).written), "held_ms": 1e3 * p99(busy.written), "answered": answered(ASKED),
        "last_s": busy.sent[-1] - busy.run.arrival[-1], "free_ms": 1e3 * p99(busy.free.ttft),
        # Exercises and the decision
        "took": listed(TOOK), "took_twin": listed(TOOK_TWIN), "late_s": fourth(TOOK),
        "late_twin_s": fourth(TOOK_TWIN), "told_ms": TOLD, "told_tokens": TOKENS, "told_ttft_ms": TTFT,
        "told_twin_ms": TOLD_TWIN, "ttft_twin_ms": TTFT_TWIN, "ours_ms": honest.tpot_of(TOLD, TOKENS, TTFT),
        "ours_twin_ms": TOLD_TWIN * TOKENS / (TOKENS - 1), "no_ttft_ms": TOLD * TOKENS / (TOKENS - 1),
        "all_tokens_ms": (TOLD * TOKENS - TTFT) / TOKENS, "all_gaps_ms": TOLD * TOKENS - TTFT,
        "with_ttft_ms": honest.tpot_of(TOLD_TWIN, TOKENS, TTFT_TWIN), "peak_rate": PEAK["request_rate"],
        "peak_p99_ms": PEAK["p99_ttft_ms"], "enough": enough(PEAK["request_rate"], PEAK["mean_e2el_ms"] / 1e3),
        "enough_twin": enough(RATE_TWIN, E2E_TWIN), "rate_twin": RATE_TWIN, "e2e_twin_s": E2E_TWIN,
        # Questions
        "stop_s": STOP, "every_s": EVERY, "seen_gap_s": SEEN_GAP, "stays_s": STAYS, "little_rate": LIMIT / STAYS,
        "little_times": LIMIT * STAYS, "little_inverse": STAYS / LIMIT, "users": USERS,
        "level_tpot_ms": 1e3 * tasks.ours(level)[0],
        "level_llmperf_ms": 1e3 * tasks.mean(level, "llmperf", "inter token latency"), **_deeper(),
    }  # fmt: skip


def _deeper() -> dict[str, Any]:
    """Those of the optional notebook."""
    crowd, live = len(steady_window.closed_loop(USERS)), many_tools.LIVE
    return {
        **PUBLISHED, "small_tokens": engine_defaults.SMALL[1], "default_slots": engine_defaults.batch(gpu("H100"))[0],
        "gap_rate": GAP_RATE, "gap_got": GAP_GOT, "gap_work_ms": 1e3 * (1 / GAP_GOT - 1 / GAP_RATE),
        "http_requests": over_http.REQUESTS, "http_rate": over_http.RATE, "http_slots": over_http.SLOTS,
        "piece": PIECE, "held_queue": _held(_queue()),
        "held_shuffled": _held(np.random.default_rng(0).permutation(_queue())),
        "way_ms": 1e3 * float((live.client_first - live.sent).mean() - many_tools.vllms_page().summary["ttft"]["mean"]),
        "queue_rate": QUEUE[0], "queue_tests": QUEUE[1], "queue_requests": QUEUE[2],
        "queue_slots": QUEUE_SLOTS, "bounded": bounded(), "crowd": crowd,
        "crowd_share": USERS / crowd, "peak_due_s": PEAK["num_prompts"] / PEAK["request_rate"],
        "peak_sent_s": PEAK["duration"] - PEAK["mean_e2el_ms"] / 1e3,
    }  # fmt: skip


@cache
def _queue() -> np.ndarray:
    """TTFT of so many tests in a row, of one queue: lab 03's engine, whose Poisson arrivals are Gamma gaps of CV 1."""
    rate, tests, requests = QUEUE
    load = Workload.gamma(rate, 1.0, tests * requests, 512, lengths.lognormal(256, 1.0), seed=0)
    return serve(load, policies.Continuous(QUEUE_SLOTS, 2_048), STEP).ttft


def _held(values: np.ndarray) -> int:
    """In how many of the tests the band of the p99 holds the p99 of all."""
    bands = [steady_window.percentile_interval(part, 99) for part in values.reshape(QUEUE[1:])]
    return sum(band.low <= p99(values) <= band.high for band in bands)


def bounded() -> int:
    """The fewest requests with which the band of a p99 has an upper end."""
    return next(n for n in range(300, 400) if np.isfinite(steady_window.percentile_interval(np.arange(n), 99).high))


def pieces_of(tokens: int) -> tuple[float, float]:
    """How many times as large vLLM's mean ITL and our TPOT get when so many tokens come in a piece."""
    one, several = (many_tools.read_by_all(**tasks.LEVEL | {"tokens_per_piece": size}) for size in (1, tokens))
    itl, before = (tasks.mean(run, "vLLM bench serve", "ITL") for run in (several, one))
    return itl / before, tasks.ours(several)[0] / tasks.ours(one)[0]


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    busy, half = nightly(ASKED), load_test.run_test(ASKED, LIMIT // 2, 0)
    burst = many_tools.read_by_all(128, 1.0, 1)
    tpot, itl = tasks.ours(burst)
    by_gaps = float(np.concatenate(burst.seen.gaps).mean())  # the same gaps, each counted once
    pieces = sum(map(len, burst.seen.gaps)) < (burst.seen.tokens - 1).sum()
    load = steady_window.closed_loop(USERS).workload
    fast, slow = (serve(load, policies.Continuous(256, 2_048), steptime.PowerLaw(t, 0, 1)) for t in (10e-3, 20e-3))
    rates = (len(slow) / slow.makespan) / (len(fast) / fast.makespan)
    itl_grows, tpot_grows = pieces_of(PIECE)
    sent = (len(busy.run) - 1) / np.ptp(busy.sent)
    return {
        "gaps": "share of chats",
        "little": tuple(bool(np.isclose(r * STAYS, LIMIT)) for r in (LIMIT * STAYS, LIMIT / STAYS, STAYS / LIMIT)),
        "weights": (abs(by_gaps - itl) < 1e-9 and tpot > 1.2 * itl, False, bool(pieces), False),
        "cause": (
            answered(ASKED) > 1.1 * answered(ASKED_LESS),
            bool(busy.in_flight > 0.95 * LIMIT and sent < 0.5 * ASKED),
            not np.isfinite(busy.run.response).all(),
        ),
        "measure": "planned and sent",
        "repair": (p99(busy.free.ttft) < 0.1, p99(half.run.ttft) < p99(busy.run.ttft), False),
        "closed": (bool(slow.little().L > USERS + 1), bool(rates > 0.9), bool(0.49 < rates < 0.51)),
        "sign": "lower rate than asked for",
        "four": (itl_grows > 3.5, tpot_grows > 1.1, abs(itl_grows - 1) < 0.1),
        "tools": "what each divides",
    }  # fmt: skip


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    test, busy, twenty = stalled(), nightly(ASKED), nightly(ASKED_LESS)
    document = test.run.workload.prompt_tokens.argmax()
    begin = test.free.admitted[document]
    due = int(((test.run.arrival > begin) & (test.run.arrival <= begin + test.stall)).sum())
    crowd = steady_window.closed_loop(USERS)
    steady, _ = steady_window.between(crowd, STEADY, STEADY + 40)
    file = many_tools.from_vllms_file()
    return {
        "with or without the document the report says the same": bool(
            abs(p99(nightly(RATE).written) / p99(test.written) - 1) < 0.05
        ),
        "as many were due in the stall as the rate says": abs(due - RATE * test.stall) < 3 * (RATE * test.stall) ** 0.5,
        "the budget is the engine's default on this card": engine_defaults.batch(gpu("H100"))[1] == load_test.BUDGET,
        "the burst is over in less than half a minute": many_tools.read_by_all(**tasks.LEVEL).run.arrival[-1] < 5,
        "asked for more, the same client answers as many": abs(answered(ASKED) - answered(ASKED_LESS)) < 0.5,
        "the load of the question never takes all slots": int(test.free.steps.running.max()) < load_test.SLOTS,
        "seven rates": len(pictures.RATES) == 7 and {RATE, ASKED_LESS, ASKED} <= set(pictures.RATES),
        "the wish lies between both reports": p99(busy.written) < PROMISE_MS / 1e3 < p99(nightly(RATE).written),
        "a report gets better as more is asked for": p99(nightly(RATE).written) > p99(twenty.written),
        "more requests are sent later still": busy.sent[-1] - busy.run.arrival[-1]
        > busy.sent[REQUESTS // 2] - busy.run.arrival[REQUESTS // 2],
        "nine times what is seen in production": abs(p99(crowd.ttft) / p99(steady) - 9) < 0.5,
        "of independent values the band holds 95 of 100, of a queue's own far fewer": (
            _held(np.random.default_rng(0).permutation(_queue())) >= 88 and _held(_queue()) < 40
        ),
        "what vLLM wrote is what its definitions give": bool(
            np.isclose(1e3 * float(np.nanmean(file.tpot)), many_tools.vllms_file()["mean_tpot_ms"])
            and np.isclose(1e3 * float(np.concatenate(file.gaps).mean()), many_tools.vllms_file()["mean_itl_ms"])
        ),
        "the answers in peak were held back by its limit": abs(
            PEAK["request_throughput"] * PEAK["mean_e2el_ms"] / 1e3 / PEAK["max_concurrency"] - 1) < 0.02,
    }  # fmt: skip
