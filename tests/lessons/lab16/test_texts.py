"""Lab 16: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache
from math import sqrt

import numpy as np
import pytest

from course import policies, serve, steptime
from course.exercises import load
from course.lessons.lab16 import honest, load_test, many_tools, steady_window
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, right_words, sentence, with_numbers

LAB = load("16")
SOURCE = (SOLUTIONS / "16_measuring_honestly.py").read_text(encoding="utf-8")
RATE, LIMIT, DOCUMENT = 12, 16, 65_536  # of the first prediction
SHORT_DOCUMENT, EACH = 16_384, 50  # of the third: one request in so many


def p99(values) -> float:
    return float(np.percentile(values, 99))


@cache
def stalled():
    return load_test.run_test(RATE, LIMIT, DOCUMENT)


@cache
def burst():
    """Mean TPOT and mean ITL [s], requests, and when the last one arrives."""
    found = many_tools.read_by_all(128, 1.0, 1)
    tpot, gaps = found.seen.tpot, found.seen.tokens - 1
    return float(np.nanmean(tpot)), float(np.nansum(gaps * tpot) / gaps.sum()), len(found.run), found.run.arrival[-1]


@cache
def documents():
    """All gaps, and the longest of each request [s], of the third prediction."""
    load_ = load_test.requests(RATE, SHORT_DOCUMENT, documents=load_test.REQUESTS // EACH)
    run = serve(load_, load_test.engine(), load_test.STEP)
    gaps = [np.diff(run.token_times(i)) for i in range(len(run))]
    return np.concatenate(gaps), np.array([gap.max(initial=0) for gap in gaps])


@cache
def felt() -> float:
    """Share of the requests with a gap above 200 ms."""
    return float((documents()[1] > 0.2).mean())


@cache
def facts() -> dict[str, tuple]:
    test, calm = stalled(), load_test.run_test(RATE, LIMIT, 0)
    tpot, itl, requests, last = burst()
    every, _ = documents()
    steps = load_test.chunks(SHORT_DOCUMENT)
    due = RATE * test.stall
    gaps = 300  # of an answer, in the quiz
    return {
        "stall": (len(test.run), RATE, LIMIT, test.stall, 99),
        "stall a": (About(test.stall),),
        "stall b": (1 / 2, 0, test.stall),
        "stall c": (About(1e3 * p99(calm.written), 0.05),),
        "stall why": (
            *(1e3 * p99(test.written), p99(test.free.ttft), due, 100 * due / len(test.run), LIMIT),
            *((test.written > 1).sum(), 1),
        ),
        "weights": (requests, About(last, 0.1), 1e3 * tpot, 1e3 * itl),
        "weights d": (2,),
        "p99itl": (EACH, SHORT_DOCUMENT, len(steps), *steps, 99, 1e3 * p99(every)),
        "p99itl a": (1, 99),
        "p99itl b": (100 / EACH,),
        "p99itl c": (5,),
        "p99itl d": (About(1 / felt(), 0.12),),
        "p99itl why": (100 * felt(), 100, About(len(every), 0.01)),
        "ours 0": (2,),
        "ours 4": (0,),
        "samples hint": (99,),
        "samples 0": (99, 0.99, 100 * 0.99**100),
        "samples 1": (99, 95),
        "samples 2": (95, 99, 0.99),
        "samples 3": (95,),
        "samples 4": (95,),
        "samples 5": (99, 5, 5),
        "files 1": (2,),
        "files 4": (2,),
        "files 7": (1,),
        "files 13": (99,),
        "quiz closed": (64, 2),
        "quiz closed d": (1 / 2, 64, 64),
        "quiz average": (10, 99, 99),
        "quiz average b": (10 * 24 * 60,),
        "quiz stall": (1 / 2,),
        "quiz stall a": (99, 1 / (1 - 0.99), 99),
        "quiz stall b": (1 / 2, gaps, 1e3 * 0.5 / gaps),
        "quiz stall c": (200,),
        "quiz stall d": (99,),
        "quiz short": (300, 65, 1_300),
        "quiz short a": (1_300,),
        "quiz short b": (1_300 / 65 * 300, 1_300, 65, 1_300 / 65, 300),
        "quiz short c": (1_300 * 300, 1_300, 300, 1_300 / 65),
        "quiz burstiness a": (4, 1 / sqrt(4)),
        "quiz burstiness b": (1,),
        "quiz burstiness c": (0.25, 1, 1 / sqrt(0.25)),
        "quiz burstiness d": (0, 0),
    }


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_how_many_requests_the_hints_speak_of():
    needed = honest.fewest_requests(99, 0.95)
    assert 0.99**needed <= 0.05 < 0.99 ** (needed - 1)
    assert burst()[3] <= 2.5  # "within 2.5 seconds"


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_keys_of_the_predictions():
    stall, weights, p99itl = LAB.predictions
    told = p99(stalled().written)
    without = told / p99(load_test.run_test(RATE, LIMIT, 0).written)
    right_option(stall, told > 4, 1.5 < told < 3.5, 0.8 < without < 1.2, False)
    # The same gaps, weighted by requests and by tokens, give both means.
    found = many_tools.read_by_all(128, 1.0, 1)
    by_tokens = np.concatenate(found.seen.gaps).mean()
    tpot, itl, *_ = burst()
    same = abs(by_tokens - itl) < 1e-9 and tpot > 1.2 * itl
    pieces = sum(map(len, found.seen.gaps)) < (found.seen.tokens - 1).sum()
    right_option(weights, same, False, pieces, False)
    share = felt()
    right_option(p99itl, share < 0.01, abs(share - 1 / EACH) < 0.005, 0.04 < share < 0.06, 0.15 < share < 0.25)


def test_the_keys_of_the_quiz():
    closed, average, stall, short, burstiness = LAB.quiz
    load_ = steady_window.closed_loop(64).workload
    fast, slow = (serve(load_, policies.Continuous(256, 2_048), steptime.PowerLaw(t, 0, 1)) for t in (10e-3, 20e-3))
    rates = (len(slow) / slow.makespan) / (len(fast) / fast.makespan)
    right_option(closed, slow.little().L > 65, False, rates > 0.9, 0.49 < rates < 0.51)
    right_words(average, "histograms")
    every, longest = documents()
    freezes = 0.2  # seconds
    right_option(
        stall, p99(every) > freezes, False, (longest > freezes).mean() > 0.1, False
    )  # the mean TPOT moves by 1.7 ms, and TTFT is over when a gap begins
    caps = (1_300, 6_000, 390_000)
    right_option(short, *(cap / (1_300 / 65) == 300 for cap in caps), False)
    spread = [1 / sqrt(shape) for shape in (4, 1, 0.25)]
    right_option(burstiness, *(cv == max(spread) for cv in spread), False)


# What the notebook says, sentence by sentence.


@cache
def off(rate: float) -> float:
    """How far the line that was fitted at 20 requests/s is below the mean E2E at another rate, as a share."""

    def served(step_time, rate, seed=1):
        return serve(load_test.requests(rate, num_requests=500, seed=seed), load_test.engine(), step_time)

    seen = served(load_test.STEP, 20, seed=0)
    first, last = seen.first_computed, seen.response
    overlap = np.clip(np.minimum.outer(last, last) - np.maximum.outer(first, first), 0, None)
    c, t0 = np.polyfit(overlap.sum(axis=1) / (last - first), seen.tpot, 1)
    line = steptime.PowerLaw(t0, c, 1)
    return 1 - served(line, rate).e2e.mean() / served(load_test.STEP, rate).e2e.mean()


@cache
def sentences() -> dict[str, tuple]:
    test, steps = stalled(), load_test.chunks(SHORT_DOCUMENT)
    most = load_test.run_test(40, LIMIT, 0)
    crowd = steady_window.closed_loop(64)
    start = p99(crowd.ttft) / p99(steady_window.window(64, 5, 40).ttft)
    return {
        "{} requests a second, at most {} in flight": (RATE, LIMIT),
        "{} of 100 requests see their first token within {} ms": (99, 1e3 * p99(test.written)),
        "one document of {} tokens. The engine computes it in {} chunks of {} tokens": (
            DOCUMENT, len(load_test.chunks(DOCUMENT)), load_test.BUDGET,
        ),
        "takes on this card), {} seconds in all": (test.stall,),
        "runs a test of {} requests with": (len(test.run),),
        "| $S$ | length of the stall, s | {} s |": (test.stall,),
        "| requests due during the stall | {} |": (RATE * test.stall,),
        "| $C$ | limit in flight | {} |": (LIMIT,),
        "a document of {} tokens; its two steps take {} and {} s.": (SHORT_DOCUMENT, *steps),
        "sends one of them more than its share: {} requests/s and {}.": (15, 4),
        "without the limit it serves {} requests/s, with a p99 of {} ms": (40, 1e3 * p99(most.free.ttft)),
        "At twice the rate it is off by {}%, at three times by {}%": (100 * off(40), 100 * off(60)),
        "is {} times what we see in production": (About(start),),
    }  # fmt: skip


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(SOURCE, template, *sentences()[template])
