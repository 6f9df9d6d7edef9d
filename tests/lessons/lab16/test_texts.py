"""Lab 16: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache

import numpy as np
import pytest

from course import policies, serve, steptime
from course.lessons import load
from course.lessons.lab16 import (
    exercises,
    flaws,
    honest,
    launched,
    load_test,
    many_tools,
    over_http,
    pictures,
    steady_window,
    tasks,
    three_files,
)
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, right_words, sentence, with_numbers

LAB = load("16")
SOURCE = (SOLUTIONS / "16_measuring_honestly.py").read_text(encoding="utf-8")
DEEPER = (SOLUTIONS / "16_measuring_honestly_deeper.py").read_text(encoding="utf-8")
RATE, LIMIT, DOCUMENT = 12, 16, 65_536  # of the first prediction
SHORT_DOCUMENT, EACH = 16_384, 50  # of the deeper notebook: one request in so many


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
    """All gaps, and the longest of each request [s], of the short documents in the deeper notebook."""
    load_ = load_test.requests(RATE, SHORT_DOCUMENT, documents=load_test.REQUESTS // EACH)
    run = serve(load_, load_test.engine(), load_test.STEP)
    gaps = [np.diff(run.token_times(i)) for i in range(len(run))]
    return np.concatenate(gaps), np.array([gap.max(initial=0) for gap in gaps])


@cache
def limited(rate: float):
    """A test of the ticket."""
    return load_test.run_test(rate, LIMIT, 0)


def answered(rate: float) -> float:
    return len(limited(rate).run) / limited(rate).run.makespan


def level():
    """The run of the second explorer at its start."""
    return many_tools.read_by_all(**tasks.LEVEL)


def told(tool: str, metric: str) -> float:
    """Milliseconds that a tool says of that run."""
    return 1e3 * next(r.mean for r in level().readings if (r.tool, r.metric) == (tool, metric))


@cache
def facts() -> dict[str, tuple]:
    test, calm = stalled(), load_test.run_test(RATE, LIMIT, 0)
    tpot, itl, requests, last = burst()
    due = RATE * test.stall
    late_twin = (*exercises.TOOK_TWIN,)
    return {
        "stall": (len(test.run), RATE, LIMIT, test.stall, 99),
        "stall a": (About(test.stall),),
        "stall b": (1 / 2,),
        "stall c": (About(1e3 * p99(calm.written), 0.05),),
        "stall why": (p99(test.free.ttft), due),
        "weights": (requests, About(last, 0.1), 1e3 * tpot, 1e3 * itl),
        "late hint": (1 / 3,),  # the third request
        "late twin": late_twin,
        "ours twin": (0.3, 38, 20, 100),
        "decision plain": (2,),
        "decision 5": (2,),
        "decision twin": (flaws.RATE_TWIN, flaws.E2E_TWIN),
        "quiz gaps": (0.4, 20),
        "quiz gaps a": (99,),
        "quiz gaps b": (0.4,),
        "quiz gaps c": (0.1,),
        "quiz little": (16, 0.8),
        "quiz little a": (16 * 0.8, 16, 0.8),
        "quiz little b": (16 / 0.8, 16, 0.8),
        "quiz little c": (0.8 / 16, 0.8, 16),
        "quiz cause a": (answered(20), 20, 40),
        "quiz cause b": (LIMIT,),
        "quiz cause c": (len(limited(40).run),),
        "quiz measure a": (99,),
        "quiz measure c": (40, limited(40).sent[-1] - limited(40).run.arrival[-1]),
        "quiz repair a": (40, 99, 1e3 * p99(limited(40).free.ttft)),
        "quiz closed": (64, 2),
        "quiz closed b": (64,),
        "quiz closed c": (1 / 2, 64),
        "quiz sign a": (99,),
        "quiz four": (4,),
        "quiz four a": (About(pieces_of(4), 0.02),),
        "quiz four b": (4,),
        "quiz tools a": (2,),
        "quiz tools": (2, told("this course", "TPOT"), told("llmperf", "inter token latency")),
    }


def pieces_of(tokens: int) -> float:
    """How many times as large vLLM's mean ITL gets when so many tokens come in a piece."""
    by_pieces = many_tools.read_by_all(**(tasks.LEVEL | {"tokens_per_piece": tokens}))
    found = {(r.tool, r.metric): r.mean for r in by_pieces.readings}
    return 1e3 * found["vLLM bench serve", "ITL"] / told("vLLM bench serve", "ITL")


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_the_burst_of_the_second_prediction():
    assert burst()[3] <= 2.5  # "within 2.5 s"


def test_the_numbers_of_the_ticket():
    """Its story and its setting are no question, so `parts` does not have them."""
    before, after = (1e3 * p99(limited(rate).written) for rate in (12, 40))
    wished = About(before, 0.2)
    agree(LAB.ticket.story, (LIMIT, len(pictures.RATES), 99, before, 12, after, 40, wished, 40))
    agree(LAB.ticket.setting, (LIMIT, 0))
    assert {12, 20, 40} <= set(pictures.RATES) and pictures.LIMIT == LIMIT
    assert answered(20) == pytest.approx(answered(40), abs=0.5)  # "asked for 20 or for 40"
    found = pictures.nightly()
    assert list(found.answered) == [answered(rate) for rate in pictures.RATES]
    assert list(found.p99) == [1e3 * p99(limited(rate).written) for rate in pictures.RATES]


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_keys_of_the_predictions():
    stall, weights = LAB.predictions
    report = p99(stalled().written)
    without = report / p99(load_test.run_test(RATE, LIMIT, 0).written)
    # Other seeds leave out the same people: the report stays within the same few milliseconds.
    right_option(stall, report > 4, 1.5 < report < 3.5, 0.8 < without < 1.2, False)
    # The same gaps, weighted by requests and by tokens, give both means.
    found = many_tools.read_by_all(128, 1.0, 1)
    by_tokens = np.concatenate(found.seen.gaps).mean()
    tpot, itl, *_ = burst()
    same = abs(by_tokens - itl) < 1e-9 and tpot > 1.2 * itl
    pieces = sum(map(len, found.seen.gaps)) < (found.seen.tokens - 1).sum()
    right_option(weights, same, False, pieces, False)


def test_the_keys_of_the_earlier_questions():
    gaps, little = LAB.earlier
    right_words(gaps, "share of chats")
    right_option(little, *(abs(float(option) - 16 / 0.8) < 1e-9 for option in little.options))


def test_the_keys_of_the_ticket():
    cause, measure, repair = LAB.ticket.questions
    test, slow = limited(40), limited(20)
    more = answered(40) > 1.1 * answered(20)
    held = test.in_flight > 0.95 * LIMIT and (len(test.run) - 1) / np.ptp(test.sent) < 0.5 * 40
    dropped = not np.isfinite(test.run.response).all()
    right_option(cause, more, held, dropped)
    right_words(measure, "planned and sent")
    smaller, longer = load_test.run_test(40, 8, 0), test.sent[-1] - test.run.arrival[-1]
    kept = p99(test.free.ttft) < 0.1
    right_option(
        repair, kept, p99(smaller.run.ttft) < p99(test.run.ttft), longer < slow.sent[-1] - slow.run.arrival[-1]
    )


def test_the_keys_of_the_quiz():
    closed, sign, four, tools = LAB.quiz
    load_ = steady_window.closed_loop(64).workload
    fast, slow = (serve(load_, policies.Continuous(256, 2_048), steptime.PowerLaw(t, 0, 1)) for t in (10e-3, 20e-3))
    rates = (len(slow) / slow.makespan) / (len(fast) / fast.makespan)
    right_option(closed, slow.little().L > 65, rates > 0.9, 0.49 < rates < 0.51)
    right_words(sign, "lower rate than asked for")
    by_four = many_tools.read_by_all(**(tasks.LEVEL | {"tokens_per_piece": 4}))
    changed = abs(by_four.readings[0].mean / level().readings[0].mean - 1) > 0.01
    right_option(four, pieces_of(4) > 3.5, changed, pieces_of(4) < 1.1)
    right_words(tools, "what each divides")


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
    test, busy = stalled(), limited(40)
    due = RATE * test.stall
    planned, took = pictures.PLANNED, pictures.TOOK
    felt = honest.felt_ttft(planned, took)
    e2e = float((busy.run.response - busy.sent).mean())
    return {
        "{} requests a second, at most {} in flight. {} of {} requests got": (RATE, LIMIT, 99, 100),
        "their first token within {} ms": (1e3 * p99(test.written),),
        "one document of {} tokens stalls the engine for {} seconds": (DOCUMENT, test.stall),
        "`--max-concurrency {}` allows at most {}.": (LIMIT, LIMIT),
        "A test of {} requests, with the document": (len(test.run),),
        "The token times of {} requests": (many_tools.REQUESTS,),
        "answers {} questions on your CPU, {} a second": (launched.REQUESTS, launched.RATE),
        "Each answer is one token and takes {} s; the second meets a stall and takes {} s.": (took[0], took[1]),
        "It writes down {}, {}, {} and {} s.": took,
        "wait in the client | s | {}, request 3 | |": (felt[2] - took[2],),
        "| from sending | s | {}, request 3 | |": (took[2],),
        "| what a user feels | s | {}, request 3 | |": (felt[2],),
        "In the question, {} requests were due during the stall, and at most {} can": (due, LIMIT),
        "The p99 of {} leaves out the slowest {},": (len(test.run), len(test.run) / 100),
        "| C | limit in flight | requests | {} | {} |": (LIMIT, busy.in_flight),
        "| E2E | mean, from sending | s | {} | {} |": (e2e, e2e),
        "| rate | sent, of {} asked for | requests/s | {} | {} |": (
            40, LIMIT / e2e, (len(busy.run) - 1) / np.ptp(busy.sent),
        ),
        "({} + {}) / {} = {} ms. The mean ITL counts gaps: ({} x {} + {} x {}) / {} = {} ms.": (
            40, 15, 2, (40 + 15) / 2, 2, 40, 8, 15, 2 + 8, (2 * 40 + 8 * 15) / (2 + 8),
        ),
        "answered at {} + {} = {} s. The third is sent then and answered at {} s, {} s after": (
            planned[1], took[1], planned[1] + took[1], planned[2] + felt[2], felt[2],
        ),
        "divides the {} ms from first to last token by {} tokens says {} ms; with {} gaps TPOT is {} ms": (
            270, 10, 270 / 10, 10 - 1, 270 / 9,
        ),
        "the client writes down {}, {}, {} and {} s. How many": exercises.TOOK,
        "says {} ms for {} tokens with a TTFT of {} ms": (exercises.TOLD, exercises.TOKENS, exercises.TTFT),
        '"At {} requests/s the p99 of TTFT is {} ms"': (flaws.RATE, three_files.contents("peak")["p99_ttft_ms"]),
        "{} x {} = {} would be in flight": (flaws.RATE, flaws.E2E, flaws.RATE * flaws.E2E),
    }  # fmt: skip


@cache
def deeper() -> dict[str, tuple]:
    steps, busy = load_test.chunks(SHORT_DOCUMENT), limited(40)
    crowd = steady_window.closed_loop(64)
    start = p99(crowd.ttft) / p99(steady_window.window(64, 5, 40).ttft)
    beyond = load_test.run_test(RATE, 32, DOCUMENT).written > 1
    return {
        "shows the stall once more than {}% of the requests": (1,),
        "With a limit of {} those were {} of {};": (32, beyond.sum(), len(beyond)),
        "sends it {} requests by the clock, {} a second: once with {} request in flight, once with at most {}.": (
            over_http.REQUESTS, over_http.RATE, 1, over_http.SLOTS,
        ),
        "has {} slots, the largest batch that was recorded. The tests with a limit run with {} tokens a step": (
            load_test.SLOTS, load_test.BUDGET,
        ),
        "with a limit of {} a queue grows in the client, which users would not form, at {} requests/s": (8, RATE),
        "At {} requests/s the last one leaves {} s after its plan": (40, busy.sent[-1] - busy.run.arrival[-1]),
        "got {}. That is {}/{} - {}/{} s, or {} ms of work": (183.5, 1, 183.5, 1, 200, 1e3 * (1 / 183.5 - 1 / 200)),
        "a document of {} tokens; its two steps take {} and {} s.": (SHORT_DOCUMENT, *steps),
        "sends one of them more than its share: {} requests/s and {}.": (15, 4),
        "then there are fewer than {} requests": (bounded(),),
        "is {} times what we see in production": (About(start),),
        "{} users who all begin at once make one burst, and in a test of {} requests those {} are {}%": (
            64, len(crowd), 64, 100 * 64 / len(crowd),
        ),
        "In nightly {} requests were answered in {} s: {} a second": (912, 80, 912 / 80),
        "due at {} s and, judged by the mean E2E, sent at {} s": (2_000 / flaws.RATE, 125 - flaws.E2E),
        "At twice the rate it is off by {}%, at three times by {}%": (100 * off(40), 100 * off(60)),
    }  # fmt: skip


def bounded() -> int:
    """The fewest requests with which the band of a p99 has an upper end."""
    return next(n for n in range(300, 400) if np.isfinite(steady_window.percentile_interval(np.arange(n), 99).high))


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(SOURCE, template, *sentences()[template])


@pytest.mark.parametrize("template", deeper())
def test_the_sentences_of_the_deeper_notebook(template):
    sentence(DEEPER, template, *deeper()[template])


def test_what_the_deeper_notebook_says_of_people_and_gaps():
    every, longest = documents()
    assert len(every) == pytest.approx(250_000, rel=0.01) and p99(every) < 0.02 < 0.15 < (longest > 0.2).mean()
