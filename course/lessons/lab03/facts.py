"""The numbers in the texts of lab 03, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from course import queueing
from course.calibration import vllm_live, vllm_pages
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab03 import evening, lab, live_words, metrics_page, one_engine, tasks
from course.lessons.lab03.one_engine import CONTEXT, OUTPUT, OUTPUT_CV, PROMPT, SLOTS, STEP
from course.models import engine_defaults
from course.models.gpus import gpu
from course.steptime import Step

SOON, FULL, COUNT = 14, 17, 2_000  # requests/s: soon, and of exercise 1; requests of a run
WAITING, FINISHED = 8, 16  # requests on average, and requests/s: exercise 2
TWIN_RUNNING, TWIN_WAITING, TWIN_FINISHED = 60, 30, 12.0
TWIN_IN_SYSTEM, TWIN_COUNT, TWIN_SUM, TWIN_SECONDS = 100, 3_000, 4_800, 300
WHOLE = (0.5, 20, 51)  # TTFT [s], TPOT [ms], and a token
PADDED = (10, 4)  # tokens of a static batch
NEAR_FULL, HUNDRED, DRAWS = 0.9, 100, 20
MANY = 128  # slots of the ticket's repair
HOST_MS = 1.1  # measured beside an 8B on an H200: docs/benchmarks.md, "A live run"
CLIENTS, RUNS_HERE, WAITS_HERE = 2.5, 30, 2  # seconds, requests
IN_FLIGHT, FAST = 64, 32
QUIZ_CAPACITY, QUIZ_RATE, HOUR = 18, 20, 3_600
CAMPAIGN, MINUTE_TEST, QUARTER = 20, 1_000, 16_000  # requests/s; requests of a minute, and of a quarter of an hour
PROMISE_MS = 200

GIVEN = (DRAWS, SLOTS, PROMPT, OUTPUT, lab.RATE, SOON, FULL, COUNT, CONTEXT, live_words.REQUESTS, CAMPAIGN, FINISHED,
         lab.WINDOW[0], len(lab.FOUR))  # fmt: skip


@cache
def served(rate: float, cv: float = 1.0, count: int = COUNT, slots: int = SLOTS) -> Run:
    """The scenario's engine under that load."""
    return serve(one_engine.requests(rate, cv, count), one_engine.engine(slots), STEP)


def _p99(run: Run) -> float:
    return float(np.percentile(run.ttft, 99))


@cache
def _draws() -> tuple[float, ...]:
    """The p99 of TTFT at the rate to come [s], of other draws of the same load."""
    draws = (one_engine.requests(SOON, seed=seed) for seed in range(1, DRAWS + 1))
    return tuple(_p99(serve(load, one_engine.engine(), STEP)) for load in draws)


def _tpot_ms(run: Run) -> float:
    return 1e3 * float(np.nanmean(run.tpot))


def clock(minute: float) -> str:
    """The time of day so many minutes after 18:00."""
    return f"18:{minute:02.0f}"


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return {**_load(), **_law(), **_asked(), **_decision(), **_evening(), **_deeper()}


def _load() -> dict[str, Any]:
    now, most = served(lab.RATE), one_engine.capacity()
    full, many, fast = served(1e6, count=20_000), tasks.PRICE["max_num_seqs"], tasks.PRICE["rate"]
    decode, mixed = STEP(Step(SLOTS, SLOTS * CONTEXT, ())), STEP(Step(SLOTS - 1, (SLOTS - 1) * CONTEXT, ((PROMPT, 0),)))
    return {
        "load_now": lab.RATE / most,
        "p99_now_ms": 1e3 * _p99(served(lab.RATE)),
        "p99_soon_ms": 1e3 * _p99(served(SOON)),
        "e2e_now_s": float(now.e2e.mean()),
        "least_s": min(_draws()),
        "most_s": max(_draws()),
        "near_full": NEAR_FULL,
        "hundred": HUNDRED,
        "capacity": most,
        "capacity_simulated": len(full) / full.makespan,
        "in_system_now": now.little().L,
        "rate_now": now.little().arrival_rate,
        "decode_ms": 1e3 * decode,
        "mixed_ms": 1e3 * mixed,
        "engine": engine_defaults.VERSION,
        "default_slots": engine_defaults.batch(gpu("H100"))[0],
        "host_ms": HOST_MS,
        "soon": SOON,
        "floor_s": tasks.FLOOR,
        "price_slots": many,
        "price_rate": fast,
        "most": max(one_engine.capacity(slots) for slots in one_engine.CHOICES),
        "room_requests": 10 * (one_engine.room() // CONTEXT // 10),
        "soon_running": int(served(SOON, slots=many).steps.running.max()),
    }


def _law() -> dict[str, Any]:
    start, length = tasks.WINDOW["start"], tasks.WINDOW["length"]
    stays, end = [b - a for a, b in lab.FOUR], max(b for _, b in lab.FOUR) + 1
    begin, stop = lab.WINDOW
    inside = [(a, b) for a, b in lab.FOUR if begin <= a < stop]
    rate, mean = len(inside) / (stop - begin), float(np.mean([b - a for a, b in inside]))
    seen = sum(min(b, stop) - max(a, begin) for a, b in lab.FOUR) / (stop - begin)
    return {
        "off": abs(tasks.off(tasks.window())),
        "window_start": start,
        "window_end": start + length,
        "short_s": tasks.SHORT,
        "rises": tasks.RISES,
        "arrive_inside": SOON * length,
        "stays": f"{', '.join(f'{stay}' for stay in stays[:-1])} and {stays[-1]}",
        "stayed": sum(stays),
        "over_s": end,
        "mean_stay": float(np.mean(stays)),
        "hand_rate": len(stays) / end,
        "hand_in_system": sum(stays) / end,
        "shaded_rate": rate,
        "shaded_stay": mean,
        "shaded_product": rate * mean,
        "shaded_in_system": seen,
        "brought": sum(min(b, stop) - begin for a, b in lab.FOUR if a < begin < b),
        "taken": sum(max(0, b - stop) for _, b in inside),
    }


def _asked() -> dict[str, Any]:
    ttft_s, tpot, token = WHOLE
    run = served(FULL)
    longest, shortest = PADDED
    ahead = (QUIZ_RATE - QUIZ_CAPACITY) * HOUR
    return {
        "whole_ttft_s": ttft_s,
        "whole_tpot_ms": tpot,
        "whole_tpot_s": tpot / 1e3,
        "whole_token": token,
        "whole_gaps": token - 1,
        "whole_s": ttft_s + (token - 1) * tpot / 1e3,
        "whole_gap_more_s": ttft_s + token * tpot / 1e3,
        "whole_no_ttft_s": token * tpot / 1e3,
        "pad_long": longest,
        "pad_short": shortest,
        "pad": 2 * longest - sum(PADDED),
        "pad_wanted": sum(PADDED),
        "pad_paid": 2 * longest,
        "in_system": len(run) / run.makespan * float(run.e2e.mean()),
        "twin_in_system": TWIN_IN_SYSTEM,
        "stay_s": TWIN_IN_SYSTEM / (len(run) / run.makespan),
        "waiting_s": WAITING / FINISHED,
        "waiting_twin_s": TWIN_WAITING / TWIN_FINISHED,
        "twin_running": TWIN_RUNNING,
        "twin_waiting": TWIN_WAITING,
        "twin_finished": TWIN_FINISHED,
        "waits": WAITING,
        "finishes": FINISHED,
        "clients_s": CLIENTS,
        "runs_here": RUNS_HERE,
        "waits_here": WAITS_HERE,
        "everywhere": FINISHED * CLIENTS,
        "outside": FINISHED * CLIENTS - RUNS_HERE - WAITS_HERE,
        "in_flight": IN_FLIGHT,
        "fast": FAST,
        "slow_stay_s": IN_FLIGHT / FINISHED,
        "fast_stay_s": IN_FLIGHT / FAST,
        "quiz_capacity": QUIZ_CAPACITY,
        "quiz_rate": QUIZ_RATE,
        "quiz_grows": QUIZ_RATE - QUIZ_CAPACITY,
        "quiz_over": QUIZ_RATE / QUIZ_CAPACITY - 1,
        "quiz_excess": QUIZ_RATE / QUIZ_CAPACITY - 1,
        "quiz_ahead": ahead,
        "quiz_wait_s": ahead / QUIZ_CAPACITY,
    }


def _decision() -> dict[str, Any]:
    slots = {number: vllm_live.read(f"questions_{number}") for number in (4, 8)}
    few, many = (float((run.client_first - run.sent).mean()) for run in slots.values())
    load = metrics_page.load()
    return {
        "vllm": vllm_pages.label(),
        "few_vllm": slots[4].policy.max_num_seqs,
        "many_vllm": slots[8].policy.max_num_seqs,
        "few_vllm_ms": 10 * round(100 * few),
        "many_vllm_ms": 10 * round(100 * many),
        "vllm_slots": load.policy.max_num_seqs,
        "page_count": round(metrics_page.growth(metrics_page.COUNT)),
        "page_sum_s": metrics_page.growth(metrics_page.E2E),
        "page_s": metrics_page.seconds(),
        "page_in_flight": metrics_page.from_page(),
        "page_waiting": metrics_page.growth(metrics_page.QUEUE) / metrics_page.seconds(),
        "page_most": int((load.running + load.waiting).max()),
        "decision": round(metrics_page.from_page()),
        "decision_twin": round(TWIN_SUM / TWIN_SECONDS),
        "twin_count": TWIN_COUNT,
        "twin_sum": TWIN_SUM,
    }


@cache
def _drained() -> float:
    """Minutes after 18:00 at which nobody waits any more after the campaign."""
    run = evening.evening().run
    late = run.queue_wait > 1.0
    return float((run.arrival + run.queue_wait)[late].max()) / evening.MINUTE


def _evening() -> dict[str, Any]:
    night, most = evening.evening(), one_engine.capacity()
    return {
        "clock": clock(evening.SHOWN[1]),
        "usual": evening.USUAL,
        "usual_ttft_ms": 10 * round(100 * float(np.median(night.ttft[: evening.BEGIN]))),
        "queue_peak": int(night.waiting.max()),
        "begins": clock(evening.BEGIN),
        "over": clock(evening.END),
        "campaign": evening.CAMPAIGN,
        "grows": evening.CAMPAIGN - most,
        "drains": most - evening.USUAL,
        "drained": clock(round(_drained())),
        "many_slots": MANY,
        "many_p99_ms": 1e3 * _p99(evening.served(MANY)),
        "many_tpot_ms": _tpot_ms(evening.served(MANY)),
        "few_p99_s": _p99(evening.served()),
        "few_tpot_ms": _tpot_ms(evening.served()),
        "refused": 100 * round((evening.CAMPAIGN - most) * (evening.END - evening.BEGIN) * evening.MINUTE / 100),
    }


def _deeper() -> dict[str, Any]:
    short, long = served(CAMPAIGN, count=MINUTE_TEST), served(CAMPAIGN, count=QUARTER)
    return {
        "one_slot": 1 / float(served(1e-4, slots=1).e2e.mean()),
        "tail_over_mean": float(np.log(HUNDRED)),
        "other_slots": SLOTS - 1,
        "promise_ms": PROMISE_MS,
        "keeps": _keeps(SLOTS),
        "keeps_many": _keeps(tasks.PRICE["max_num_seqs"]),
        "most_of_many": one_engine.capacity(tasks.PRICE["max_num_seqs"]),
        "tpot_full_ms": 1e3 * float(np.nanmean(long.tpot)),
        "minute_ttft_s": float(short.ttft.mean()),
        "quarter_ttft_s": float(long.ttft.mean()),
        "anniversary": 50,
        "in_time": HUNDRED - 1,
    }


@cache
def _keeps(slots: int) -> float:
    """The largest rate, in tenths, at which theory says that the promise is kept."""
    rates = (tenths / 10 for tenths in range(10, int(10 * one_engine.capacity(slots))))
    return max(r for r in rates if one_engine.forecast(r, slots).ttft_percentile_s(0.99) <= PROMISE_MS / 1e3)


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    off = abs(tasks.off(tasks.window()))
    night = evening.evening()
    minutes = slice(*evening.SHOWN)
    finished, arrived = night.finished[minutes], night.arrived[minutes]
    answers, early = night.run.workload.output_tokens, night.run.arrival < evening.BEGIN * evening.MINUTE
    ttft_s, tpot, token = WHOLE
    at = ttft_s + (token - 1) * tpot / 1e3
    wait = (QUIZ_RATE - QUIZ_CAPACITY) * HOUR / QUIZ_CAPACITY
    return {
        "whole": tuple(abs(said - at) < 1e-9 for said in (at, ttft_s + token * tpot / 1e3, token * tpot / 1e3)),
        "padding": tuple(said == 2 * max(PADDED) - sum(PADDED) for said in (sum(PADDED), 6, 2 * max(PADDED))),
        "window": (off < 1e-9, 0 < off < 0.01, abs(off - 0.25) < 0.03, off > 0.9),
        "cause": (
            finished.mean() < 0.95 * one_engine.capacity(),
            answers[~early].mean() > 1.1 * answers[early].mean(),
            bool((finished > arrived).all()),
        ),
        "measure": (night.waiting[evening.END] > 4_000 > 100 > night.waiting[evening.BEGIN - 1], False, False),
        "repair": (False, _p99(evening.served(MANY)) < 1, False),
        "dashboard": (False, FINISHED * CLIENTS - RUNS_HERE - WAITS_HERE == 8, False),
        "closed": tuple(factor * IN_FLIGHT / FINISHED == IN_FLIGHT / FAST for factor in (0.5, 1, 2)),
        "more_slots": tuple(_more_slots() == times for times in (4, 0.5, 1)),
        "grow": (abs(wait - 0.1) < 0.1, wait == HOUR, abs(wait - 400) < 1),
    }


def _more_slots() -> float:
    """TPOT with the default's slots over TPOT with 256, at the rate to come."""
    slots = tasks.PRICE["max_num_seqs"], engine_defaults.batch(gpu("H100"))[0]
    few, many = (_tpot_ms(served(SOON, slots=each)) for each in slots)
    return many / few


def claims() -> dict[str, bool]:
    """What the texts say without a number."""
    night, soon, now = evening.evening(), served(SOON), served(lab.RATE)
    many = served(SOON, slots=tasks.PRICE["max_num_seqs"])
    load, lasted = metrics_page.load(), metrics_page.seconds()
    counted = float((load.looks[1:] - load.looks[:-1]) @ (load.running + load.waiting)[:-1]) / lasted
    mm1, md1 = (kind(arrival_rate=10, service_s=0.05).mean_wait_s for kind in (queueing.mm1, queueing.md1))
    said = _load()
    formula = 1e3 / ((OUTPUT / SLOTS - 1) * said["decode_ms"] + said["mixed_ms"])
    minute = evening.SHOWN[1] - 1
    answers = queueing.demand(prompt_tokens=PROMPT, output_tokens=OUTPUT, output_cv=OUTPUT_CV)
    return {
        "the p99 grows more than tenfold": _p99(soon) > 10 * _p99(now),
        "soon one request in four waits": abs(1 / one_engine.slots_taken(soon) - 4) < 0.35,
        "today nobody waits": one_engine.slots_taken(now) == 0,
        "the first token takes more than a minute": night.ttft[minute - 1] > night.ttft[minute] > 60,
        "the queue is longest at the campaign's end": int(night.waiting.argmax()) == evening.END,
        "finished are as many as ever": abs(one_engine.capacity() - FINISHED) < 0.5,
        # The recorder counted in each step; the page also has what the API server adds.
        "the page's L is what a recorder in the scheduler counted": abs(metrics_page.from_page() / counted - 1) < 0.02,
        "before and after the load the engine is empty": not any(
            metrics_page.on_page(name, when) for name in metrics_page.GAUGES for when in ("before", "after")
        ),
        "four arrivals in the shaded part bring three seconds and take one": (
            _law()["brought"], _law()["taken"], lab.WINDOW[1] - lab.WINDOW[0],
        ) == (3, 1, 4),
        "capacity by hand is that of the simulation": abs(formula / said["capacity_simulated"] - 1) < 0.01,
        "a decode attends to 768 tokens": abs(answers.context_tokens / CONTEXT - 1) < 2e-3,
        "a window four times as close": tasks.longer() == {"length": 40},
        "with 256 slots TPOT is as before": abs(_tpot_ms(many) / _tpot_ms(soon) - 1) < 0.02,
        "with more slots than questions at a time nobody waits for one in vLLM": not vllm_live.read(
            "questions_8").waiting.any(),
        "a KV cache has no room for the default's slots": one_engine.room() < CONTEXT * engine_defaults.batch(
            gpu("H100"))[0],
        "M/M/1 waits twice as long as M/D/1": abs(mm1 / md1 - 2) < 1e-9,
        "bursts are missed by a factor of a hundred": 80 < _p99(served(10, 4.0)) / _p99(served(10)) < 120,
        "a campaign's test shows how long it lasted": abs(served(CAMPAIGN, count=MINUTE_TEST).makespan - 60) < 10
        and abs(served(CAMPAIGN, count=QUARTER).makespan - 900) < 100,
    }  # fmt: skip
