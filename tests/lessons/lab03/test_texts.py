"""Lab 03: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache
from math import sqrt

import numpy as np
import pytest

from course import queueing
from course.engine.serving import serve
from course.exercises import load
from course.lessons.lab03 import one_engine
from course.steptime import Step
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, sentence, with_numbers

LAB = load("03")
SOURCE = (SOLUTIONS / "03_littles_law.py").read_text(encoding="utf-8")
COUNT, PERCENT_AFTER = 2_000, 0.4  # requests of a run; the growth that the first prediction asks about


@cache
def run(rate: float, cv: float = 1.0, count: int = COUNT, seed: int = 0):
    return serve(one_engine.requests(rate, cv, count, seed), one_engine.engine(), one_engine.STEP)


def ttft(rate: float, percent: float, cv: float = 1.0, count: int = COUNT, seed: int = 0) -> float:
    return float(np.percentile(run(rate, cv, count, seed).ttft, percent))


@cache
def draws(rate: float, percent: float, cv: float) -> tuple[float, float, float]:
    """Least and most of 20 other draws, and that of 100,000 requests [s]."""
    found = [ttft(rate, percent, cv, seed=seed) for seed in range(1, 21)]
    return min(found), max(found), ttft(rate, percent, cv, 100_000)


@cache
def off() -> float:
    """How far λ W is from L in the window of the question, as a share of L."""
    law = one_engine.window(14.0, 1.0, 70, 10).little
    return abs(law.arrival_rate * law.W / law.L - 1)


@cache
def off_elsewhere() -> tuple[float, float]:
    """The same in many windows of a long run: the median and the 90th percentile."""
    long, found = run(14, count=60_000), []
    for start in range(20, int(long.arrival[-1]) - 10, 10):
        inside = (long.arrival >= start) & (long.arrival < start + 10)
        present = np.minimum(long.response, start + 10) - np.maximum(long.arrival, start)  # seconds in the window
        found.append(abs(long.e2e[inside].sum() / present[present > 0].sum() - 1))
    return tuple(np.percentile(found, (50, 90)))


@cache
def facts() -> dict[str, tuple]:
    most = one_engine.capacity()
    running, waiting, rate = 34, 6, 16  # the quiz: a dashboard
    return {
        "p99": (10, 1_000 / most, 99, 1e3 * ttft(10, 99), 100 * PERCENT_AFTER, 10 * (1 + PERCENT_AFTER), 99),
        "p99 a": (10,),
        "p99 b": (2, 3),
        "p99 c": (100 * PERCENT_AFTER,),
        "p99 d": (90,),
        "p99 why": _p99_why,
        "bursts": (10, 4, 1, 95, 1e3 * ttft(10, 95)),
        "bursts b": (2,),
        "bursts c": (4,),
        "bursts d": (About(ttft(10, 95, 4.0) / ttft(10, 95), 0.2),),
        "bursts why": _bursts_why,
        "window": (10, 14, 2),
        "window b": (1, 10 * 14),
        "window c": (About(off()),),
        "window why": _window_why,
        "md1 0": (1,),
        "md1 1": (1,),
        "capacity 4": (2,),
        "slo hint": (0.99, 99),
        "slo 0": (0.1, 99),
        "slo 1": (99,),
        "slo 2": (95,),
        "slo 4": (99,),
        "quiz dashboard": (running, waiting, rate),
        "quiz dashboard a": (running / rate, running, rate),
        "quiz dashboard b": ((running + waiting) / rate, running + waiting, rate),
        "quiz dashboard c": (waiting / rate, waiting, rate),
        "quiz closed": (64, 16, 2, 16 * 2),
        "quiz closed a": (1 / 2, 64 / 16, 64 / 32, 64, 64),
        "quiz closed b": (2,),
        "quiz closed d": (2,),
        "quiz early": (99,),
        "quiz early a": (1 / (1 - 0.99),),
        "quiz early b": (30, 95),
        "quiz early d": (100 * (1 - 0.99), 99, *_floor_ends()),
        "quiz grow": (18, 20),
        "quiz grow a": (0.1, 100 * (20 / 18 - 1), 20 - 18),
        "quiz grow c": ((20 - 18) * 3_600 / 18, 20 - 18, 3_600, (20 - 18) * 3_600, 18),
        "quiz burstiness": (4, 1),
        "quiz burstiness a": (4, 4, 1 / sqrt(4)),
        "quiz burstiness b": (0.25, 1 / sqrt(0.25)),
        "quiz burstiness c": (1 / 4**2, 1, 4, 2, 1),
        "quiz burstiness d": (16, 1 / sqrt(16)),
    }


def _p99_why() -> tuple:
    today, later = run(10), run(14)
    least, most, long = draws(14, 99, 1.0)
    full = 1 / one_engine.slots_taken(later)  # one request in so many finds all slots taken
    return (
        *(1e3 * ttft(10, 99), 1e3 * ttft(14, 99), 1e3 * today.ttft.mean(), 1e3 * later.ttft.mean()),
        *(today.e2e.mean(), later.e2e.mean(), 10, 14, About(full, 0.08), 1 / (1 - 0.99), 99, 99),
        *(1e3 * ttft(14, 99), COUNT, 20, 1e3 * least, 1e3 * most, 100_000, 1e3 * long),
    )


def _bursts_why() -> tuple:
    least, most, long = draws(10, 95, 4.0)
    return 1e3 * ttft(10, 95), ttft(10, 95, 4.0), 20, least, most, 100_000, long


def _window_why() -> tuple:
    middle, tenth = off_elsewhere()
    # "half of all are off by more than 5%, one in ten by more than 12%": rounded down.
    return 70, 70 + 10, 100 * off(), 0.5, About(100 * middle, 0.2), 10, About(100 * tenth), 2


def _floor_ends() -> tuple[int, int]:
    """The last whole rate at which fewer than 1% find all slots taken, and the next."""
    rate = 1
    while one_engine.forecast(rate + 1).sharing.p_wait < 0.01:
        rate += 1
    return rate, rate + 1


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_keys_of_the_predictions():
    p99, bursts, window = LAB.predictions
    grows = ttft(14, 99) / ttft(10, 99)
    right_option(p99, grows > 10, 2 <= grows <= 3, abs(grows - 1 - PERCENT_AFTER) < 0.1, grows < 1.1)
    times = ttft(10, 95, 4.0) / ttft(10, 95)
    right_option(bursts, times < 1.1, 1.5 < times < 2.5, 3 < times < 5, 100 < times < 150)
    right_option(window, off() < 1e-9, 0 < off() < 0.01, abs(off() - 0.25) < 0.03, off() > 0.9)


def test_the_keys_of_the_quiz():
    dashboard, closed, early, grow, burstiness = LAB.quiz
    waits = [34 / 16, 40 / 16, 6 / 16]
    right_option(dashboard, *(wait == (34 + 6) / 16 for wait in waits), False)
    right_option(closed, 64 / 32 == 64 / 16 / 2, False, False, False)
    # The share moves first: at 12 requests/s the p99 has left its floor, and the two means have hardly moved.
    calm, busy = one_engine.forecast(10), one_engine.forecast(12)
    assert busy.mean_ttft_s < 1.5 * calm.mean_ttft_s and busy.mean_e2e_s < 1.1 * calm.mean_e2e_s
    assert busy.sharing.p_wait > 10 * calm.sharing.p_wait
    right_option(early, False, False, False, True)
    wait = (20 - 18) * 3_600 / 18
    right_option(grow, abs(wait - 0.1) < 0.1, wait < 1, abs(wait - 400) < 1, wait == 3_600)
    right_option(burstiness, *(1 / sqrt(shape) == 4 for shape in (4, 0.25, 0.0625, 16)))


# What the notebook says, sentence by sentence.


@cache
def sentences() -> dict[str, tuple]:
    today, most = run(10), one_engine.capacity()
    short, long = run(20, count=1_000), run(20, count=16_000)
    alone = 1 / serve(one_engine.requests(1e-4), one_engine.engine(1), one_engine.STEP).e2e.mean()
    trace = one_engine.trace()
    gaps = np.diff(trace.arrival)
    erlang = queueing.mmc(arrival_rate=0.5 * 8 / 0.04, service_s=0.04, servers=8)
    slo = LAB.exercises[3].solution
    t0, c = 0.567, 0.0833  # ms, of the rules that do not survive
    return {
        "Prompts have {} tokens; answers have {} on average": (one_engine.PROMPT, one_engine.OUTPUT),
        "first token after {} ms on average, {} ms at the 99th percentile, and the GPU runs at {}% of what": (
            1e3 * today.ttft.mean(), 1e3 * ttft(10, 99), 1_000 / most,
        ),
        "there are {} (`max_num_seqs`)": (one_engine.SLOTS,),
        "Each move serves {} requests": (COUNT,),
        "Go from {} to {} requests/s": (10, 14),
        "gaps nearly Poisson: a CV of {} (the": (gaps.std() / gaps.mean(),),
        "four weight matrices of {} MiB": (2_048 * 2_048 * 4 / 2**20,),
        "an engine with {} slots on those steps, at about {} of what it can do: {} requests of {} prompt tokens and {}"
        " output": (16, 0.5, 80, 4, 16),
        "One slot sustains {} requests/s, and {} slots sustain {}: that": (alone, one_engine.SLOTS, most),
        "min(n, {}) are in the batch": (one_engine.SLOTS,),
        "of {} tokens on average the first two hold, and Erlang says that {}% of the requests wait": (
            4, 100 * erlang.p_wait,
        ),
        "its p99 is ln 100 = {} times its mean": (np.log(100),),
        "While fewer than 1 in {} do, the p99": (1 / (1 - 0.99),),
        "Each line is one draw of {} requests": (COUNT,),
        "| $N$ | mean answer, tokens | {} |": (one_engine.OUTPUT,),
        "| $B$ | slots | {} |": (one_engine.SLOTS,),
        "a CV of 1 a whole mean answer, {} + {} = {} tokens": (512, 256, 512 + 256),
        "(synthetic, {} requests): prompts of {} tokens on average, answers of {}, gaps with a CV of {}. Theory": (
            len(trace), trace.prompt_tokens.mean(), trace.output_tokens.mean(), gaps.std() / gaps.mean(),
        ),
        "a step of {} + {} b ms, Little's law gives": (t0, c),
        "one request at a time, {} ms each. {} requests arrive per second (Poisson)": (50, 16),
        "{} of {} requests see their first token within {} ms": (99, 100, 200),
        "Capacity is {} requests/s. A campaign brings {}. Every": (most, 20),
        "the queue grows by {} requests each second": (20 - most,),
        "the number running stands at {} and": (one_engine.SLOTS,),
        "TPOT levels off at {} ms": (1e3 * np.nanmean(long.tpot),),
        "a mean TTFT of {} s, one of a quarter of an hour shows {} s": (short.ttft.mean(), long.ttft.mean()),
        "here {} of {} requests/s": (slo, most),
        "leaves the floor when {}% of the arrivals": (1,),
        "gaps of CV 4 from about {} requests/s on, a {} of capacity": (3, About(3 / most, 0.1)),
        "--request-rate 10 --burstiness {}` (CV {})": (1 / 4**2, 4),
        "--max-concurrency {}`": (64,),
    }  # fmt: skip


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(SOURCE, template, *sentences()[template])


def test_what_is_asked_is_what_is_solved():
    assert "run = serve(one_engine.requests(rate=17)" in SOURCE
    assert LAB.exercises[1].solution == pytest.approx(queueing.md1(arrival_rate=16, service_s=0.05).mean_wait_s)
    # Between 1 and 2 bursts begin to fill the slots: one arrival in a hundred at about 3 requests/s.
    assert one_engine.slots_taken(run(1, 4.0, 20_000)) < 0.005 < 0.015 < one_engine.slots_taken(run(3, 4.0, 20_000))
    # "M/D/1 and M/M/1: twice the wait".
    mm1, md1 = (kind(arrival_rate=10, service_s=0.05).mean_wait_s for kind in (queueing.mm1, queueing.md1))
    sentence(SOURCE, "exponential ones (CV 1) M/M/1: {} the wait", mm1 / md1)
    assert one_engine.STEP(Step(1, 768, ())) < one_engine.STEP(Step(32, 32 * 768, ()))
