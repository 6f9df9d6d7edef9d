"""Lab 03: every key, and every number in what it asks and says, computed from the scenario."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from course import queueing
from course.engine.serving import serve
from course.lessons import load
from course.lessons.lab03 import evening, exercises, live_words, metrics_page, one_engine, shown, tasks
from course.steptime import Step
from course.workload import Workload, lengths
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, numbers, right_option, sentence, with_numbers

LAB = load("03")
SOURCE = (SOLUTIONS / "03_littles_law.py").read_text(encoding="utf-8")
DEEPER = (SOLUTIONS / "03_littles_law_deeper.py").read_text(encoding="utf-8")
COUNT = 2_000  # requests of a run
RUNNING, WAITING, FINISHED = exercises.RUNNING, exercises.WAITING, exercises.FINISHED


@cache
def run(rate: float, cv: float = 1.0, count: int = COUNT, seed: int = 0):
    return serve(one_engine.requests(rate, cv, count, seed), one_engine.engine(), one_engine.STEP)


def ttft(rate: float, percent: float, cv: float = 1.0) -> float:
    return float(np.percentile(run(rate, cv).ttft, percent))


@cache
def off() -> float:
    """How far λ W is from L in the window of the question, as a share of L."""
    law = one_engine.window(14.0, 1.0, 70, 10).little
    return abs(law.arrival_rate * law.W / law.L - 1)


def drains() -> float:
    """Minutes after 18:00 at which nobody waits any more after the campaign."""
    found = evening.evening().run
    late = found.queue_wait > 1.0
    return float((found.arrival + found.queue_wait)[late].max()) / evening.MINUTE


@cache
def facts() -> dict[str, tuple]:
    most = one_engine.capacity()
    night = evening.evening()
    minute = evening.SHOWN[1] - 1
    assert night.ttft[minute - 1] > night.ttft[minute] > 60  # "more than a minute"
    peak = int(night.waiting.max())
    assert int(night.waiting.argmax()) == evening.END  # "until 18:30"
    flow = exercises.TWIN_WAITING / exercises.TWIN_FINISHED
    assert flow == 2.5
    return {
        "p99": (10, 1_000 / most, 99, 1e3 * ttft(10, 99), 14),
        "p99 a": (10,),
        "p99 b": (2, 3),
        "p99 c": (40,),
        "p99 d": (90,),
        "p99 why": (
            *(1e3 * ttft(10, 99), 1e3 * ttft(14, 99), run(10).e2e.mean(), run(14).e2e.mean()),
            About(1 / one_engine.slots_taken(run(14)), 0.08),
        ),
        "window": (10,),
        "window b": (1, About(len(inside()), 0.1)),  # a Poisson count of 140 spreads by 12
        "window c": (About(off()),),
        "window why": (100 * off(), 70, 80, 2),
        "little twin": (100,),
        "waiting twin": (exercises.TWIN_RUNNING, exercises.TWIN_WAITING, exercises.TWIN_FINISHED),
        "decision twin": (exercises.TWIN_COUNT, 5, exercises.TWIN_SUM),
        "decision 3": (2, 5),
        "capacity 4": (2,),
        "window d answer": (2,),
        "quiz whole": (0.5, 20, 51),
        "quiz whole a": (0.5 + 50 * 0.02, 0.5, 50, 0.02),
        "quiz whole b": (0.5 + 51 * 0.02, 51, 50),
        "quiz whole c": (51 * 0.02,),
        "quiz padding": (10, 4),
        "quiz padding a": (14, 10, 4),
        "quiz padding b": (2 * 10 - 14, 2, 10),
        "quiz padding c": (20, 2, 10),
        "quiz cause a": (FINISHED,),
        "quiz cause b": (FINISHED,),
        "quiz measure a": (peak, 18, 30),
        "quiz repair a": (FINISHED,),
        "quiz repair b": (160, 160 / FINISHED),
        "quiz dashboard": (2.5, 16, 30, 2),
        "quiz dashboard b": (16 * 2.5 - 32, 16, 2.5, 16 * 2.5),
        "quiz dashboard c": (8,),
        "quiz closed": (64, 32, 16),
        "quiz closed a": (1 / 2, 64 / 16, 64 / 32),
        "quiz closed b": (2,),
        "quiz closed c": (2,),
        "quiz early": (99,),
        "quiz early a": (1, 100, About(_ttft_grows(_leaves()), 0.1), 10),
        "quiz early d": (1, 99),
        "quiz grow": (18, 20),
        "quiz grow a": (0.1, 100 * (20 / 18 - 1), 20 - 18),
        "quiz grow c": ((20 - 18) * 3_600 / 18, (20 - 18) * 3_600, 18),
    }


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_numbers_of_the_ticket():
    story, night = LAB.ticket.story, evening.evening()
    usual = 1e3 * float(np.median(night.ttft[: evening.BEGIN]))
    agree(story, (18, evening.SHOWN[1], evening.USUAL, About(usual, 0.1)))
    most = one_engine.capacity()
    grows, falls = evening.CAMPAIGN - most, most - evening.USUAL
    agree(
        LAB.ticket.setting,
        (18, evening.BEGIN, 18, evening.END, evening.CAMPAIGN, most, grows, falls, 18, About(drains(), 0.02)),
    )


def test_the_keys_of_the_predictions():
    p99, window = LAB.predictions
    grows = ttft(14, 99) / ttft(10, 99)
    right_option(p99, grows > 10, 2 <= grows <= 3, abs(grows - 1.4) < 0.1, grows < 1.1)
    right_option(window, off() < 1e-9, 0 < off() < 0.01, abs(off() - 0.25) < 0.03, off() > 0.9)


def test_the_keys_of_the_quiz():
    dashboard, closed, early, grow = LAB.quiz
    right_option(dashboard, False, 16 * 2.5 - 32 == 8, False)
    right_option(closed, *(factor * 64 / 16 == 64 / 32 for factor in (1 / 2, 1, 2)))
    # The share moves first: at 12 requests/s the p99 has left its floor, and the two means have hardly moved.
    calm, busy = one_engine.forecast(10), one_engine.forecast(12)
    assert busy.mean_ttft_s < 1.5 * calm.mean_ttft_s and busy.mean_e2e_s < 1.1 * calm.mean_e2e_s
    assert busy.sharing.p_wait > 10 * calm.sharing.p_wait
    right_option(early, False, False, False, True)
    wait = (20 - 18) * 3_600 / 18
    right_option(grow, abs(wait - 0.1) < 0.1, wait == 3_600, abs(wait - 400) < 1)


def test_the_keys_of_the_ticket_and_of_the_question_from_lab_04():
    night, (cause, measure, repair) = evening.evening(), LAB.ticket.questions
    shown_minutes = slice(*evening.SHOWN)
    finished, arrived = night.finished[shown_minutes], night.arrived[shown_minutes]
    slower = finished.mean() < 0.95 * one_engine.capacity()
    usual = night.run.workload.output_tokens
    early = night.run.arrival < evening.BEGIN * evening.MINUTE
    longer = usual[~early].mean() > 1.1 * usual[early].mean()
    right_option(cause, slower, longer, bool((finished > arrived).all()))
    waiting = night.waiting
    right_option(measure, waiting[evening.END] > 4_000 > 100 > waiting[evening.BEGIN - 1], False, False)
    right_option(repair, False, True, False)
    whole, padding = LAB.earlier
    right_option(whole, *(said == pytest.approx(0.5 + 50 * 0.02) for said in (1.5, 1.52, 1.02)))
    right_option(padding, *(said == 2 * 10 - 14 for said in (14, 6, 20)))


# What the notebooks say, sentence by sentence.


@cache
def sentences() -> dict[str, tuple]:
    today = run(10)
    law = today.little()
    stays = [end - begin for begin, end in shown.FOUR]
    length = max(end for _, end in shown.FOUR) + 1
    start, stop = shown.WINDOW
    inside = [(b, e) for b, e in shown.FOUR if start <= b < stop]
    before = [(b, e) for b, e in shown.FOUR if b < start]
    brought = sum(min(e, stop) - start for _, e in before if e > start)
    taken = sum(max(0, e - stop) for _, e in inside)
    assert (brought, taken, stop - start) == (3, 1, 4)  # "3/4 - 1/4"
    cut = sum(min(e, stop) - max(b, start) for b, e in shown.FOUR) / (stop - start)
    rate, mean = len(inside) / (stop - start), sum(e - b for b, e in inside) / len(inside)
    full = serve(one_engine.requests(1e6, num_requests=20_000), one_engine.engine(), one_engine.STEP)
    decode = one_engine.STEP(Step(32, 32 * 768, ()))
    mixed = one_engine.STEP(Step(31, 31 * 768, ((512, 0),)))
    before_page, after_page = metrics_page.PAGE
    for found, page in zip(metrics_page.scrapes(), metrics_page.PAGE, strict=True):
        # A sum of thousands of floats, in whatever order NumPy adds on this machine.
        assert found == replace(page, e2e_sum=pytest.approx(page.e2e_sum, rel=1e-12))
    return {
        "batching and {} slots. Prompts have {} tokens, answers {} on average.": (
            one_engine.SLOTS, one_engine.PROMPT, one_engine.OUTPUT,
        ),
        "Today {} requests arrive per second, soon {} will": (shown.RATE, 14),
        "Each move serves {} requests": (COUNT,),
        "answers {} questions on your machine": (live_words.REQUESTS,),
        "They stay {}, {}, {} and {} seconds, {} in all": (*stays, sum(stays)),
        "{} arrivals in {} s, each staying {} s on average, give λ W = {} x {} = {}. Count": (
            len(stays), length, np.mean(stays), len(stays) / length, np.mean(stays), sum(stays) / length,
        ),
        "the clock: {} request-seconds in {} s are a mean of {} in the system. Both": (
            sum(stays), length, sum(stays) / length,
        ),
        "Both add up the same {} seconds": (sum(stays),),
        "In the shaded {} s λ W is {} x {} = {}, but L is {}: requests 1 and": (
            stop - start, rate, mean, rate * mean, cut,
        ),
        "bring {} seconds in, request {} takes 1 out": (brought, 4),
        "| $L$ | in the system, mean | requests | {} |": (law.L,),
        "| $\\lambda$ | arrival rate, whole run | requests/s | {} |": (law.arrival_rate,),
        "| $W$ | E2E, mean | s | {} |": (law.W,),
        "| $N$, $B$ | mean answer; slots | tokens; | {}; {} |": (one_engine.OUTPUT, one_engine.SLOTS),
        "| $t_d$ | step of $B$ decodes | ms | {} |": (1e3 * decode,),
        "| $t_p$ | step of $B - 1$ decodes and a prompt | ms | {} |": (1e3 * mixed,),
        "| capacity | formula; simulated | requests/s | {}; {} |": (
            1 / ((256 / 32 - 1) * decode + mixed), len(full) / full.makespan,
        ),
        "While fewer than 1 in {} requests find all slots taken, the p99": (1 / (1 - 0.99),),
        "by theory from {} requests/s on": (_leaves(),),
        "On average {} requests run and {} wait; {} finish each second. L is {} + {} = {}, and each": (
            30, 10, 16, 30, 10, 30 + 10,
        ),
        "W = L / λ = {} / {} = {} s": (40, 16, 40 / 16),
        "In `run`, {} requests/s arrive": (exercises.FULL,),
        "On average {} requests run and {} wait; {} finish each second. How": (RUNNING, WAITING, FINISHED),
        "a prompt: {} decodes, which attend to {} tokens each on average, and a whole prompt of {} tokens": (
            one_engine.SLOTS - 1, About(one_engine.need().context_tokens, 2e-3), one_engine.PROMPT,
        ),
        "vllm:num_requests_running {} {} ": (before_page.running, after_page.running),
        "vllm:num_requests_waiting {} {} ": (before_page.waiting, after_page.waiting),
        "vllm:e2e_request_latency_seconds_count {} {} ": (before_page.count, after_page.count),
        "vllm:e2e_request_latency_seconds_sum {} {} ": (before_page.e2e_sum, after_page.e2e_sum),
        "λ = {} / {} s, W = {} s / {}.": (
            after_page.count - before_page.count, 300, after_page.e2e_sum - before_page.e2e_sum,
            after_page.count - before_page.count,
        ),
        "{} in flight never wait for one of {} slots, so this test shows no tail: its p99 of TTFT is {} ms, and here "
        "it was {} s.": (exercises.DECISION.solution["--max-concurrency"], one_engine.SLOTS, *tails()),
        "floor when 1 in {} arrivals finds no slot": (1 / (1 - 0.99),),
    }  # fmt: skip


@cache
def _leaves() -> float:
    """The first rate, in tenths, at which 1% or more find all slots taken, by theory."""
    return next(ten / 10 for ten in range(100, 160) if one_engine.forecast(ten / 10).sharing.p_wait >= 0.01)


def _ttft_grows(rate: float) -> float:
    """By which share the mean TTFT at `rate` is above that at 10 requests/s, by theory."""
    return one_engine.forecast(rate).mean_ttft_s / one_engine.forecast(10).mean_ttft_s - 1


def inside() -> np.ndarray:
    """Arrivals in the window of the prediction."""
    arrival = one_engine.window(14.0, 1.0, 70, 10).run.arrival
    return arrival[(arrival >= 70) & (arrival < 80)]


@cache
def tails() -> tuple[float, float]:
    """The p99 of TTFT with the decision's number in flight [ms], and between the scrapes of the page [s]."""
    users = exercises.DECISION.solution["--max-concurrency"]
    answers = lengths.lognormal(one_engine.OUTPUT, one_engine.OUTPUT_CV)
    load = Workload.closed_loop(users, 0, metrics_page.REQUESTS // users, one_engine.PROMPT, answers, seed=0)
    fixed = serve(load, one_engine.engine(), one_engine.STEP)
    assert not fixed.queue_wait[fixed.arrival > 0].any()  # "never wait": all but the prompts that come at once
    page = run(metrics_page.RATE, count=metrics_page.REQUESTS)
    between = (page.response > metrics_page.SCRAPES[0]) & (page.response <= metrics_page.SCRAPES[1])
    return 1e3 * float(np.percentile(fixed.ttft, 99)), float(np.percentile(page.ttft[between], 99))


def test_the_solution_of_the_decision_says_what_its_test_does_not_show():
    users = exercises.DECISION.solution["--max-concurrency"]
    agree(exercises.DECISION.worked, (users, users, one_engine.SLOTS, 99, *tails(), 16))


def test_the_numbers_of_the_tasks():
    knee, _, gaps, tail = tasks.LOAD
    longer, rises, *_ = tasks.LAW
    agree(knee.text, (99, tasks.TIMES))
    agree(gaps.text, (95, tasks.TIMES))
    agree(tail.text, (99,))
    agree(tail.options[tail.position][0], (1, 1 / (1 - 0.99)))
    agree(rises.text, (tasks.SHORT, 20))
    near, now = (abs(tasks._off(tasks._window(**moved))) for moved in (longer.settings, {}))
    (times,) = numbers(longer.text)
    assert now / near >= times.value == 4
    assert not tasks._closer(tasks.WINDOW, tasks._window(length=longer.settings["length"] - 10))


def test_tasks_show_the_first_setting_that_reaches_the_goal():
    gaps, longer, before = tasks.LOAD[2], tasks.LAW[0], tasks.LAW[3]
    shown_cv = gaps.settings["arrival_cv"]
    for cv in np.arange(tasks.START["arrival_cv"] + 0.5, shown_cv + 0.1, 0.5).tolist():
        moved = tasks.START | {"arrival_cv": cv}
        assert gaps.reached(moved, one_engine.under_load(**moved)) == (cv == shown_cv)
    assert longer.settings == {"length": 40}
    moved = tasks.WINDOW | before.settings
    agree(before.said(moved, one_engine.window(**moved)), (35, 50, 81.8, 81.8, 5, 16.36))
    stays, after = tasks.stay_on(one_engine.window(**moved))
    found = run(14)
    late = (found.arrival >= 45) & (found.arrival < 50) & (found.response > 50)
    assert stays == late.sum() and after == pytest.approx((found.response[late] - 50).sum())


@cache
def deeper() -> dict[str, tuple]:
    most = one_engine.capacity()
    short, long = run(20, count=1_000), run(20, count=16_000)
    alone = 1 / serve(one_engine.requests(1e-4), one_engine.engine(1), one_engine.STEP).e2e.mean()
    trace = one_engine.trace()
    gaps = np.diff(trace.arrival)
    erlang = queueing.mmc(arrival_rate=0.5 * 8 / 0.04, service_s=0.04, servers=8)
    t0, c = 0.567, 0.0833  # ms, of the rules that do not survive
    return {
        "miss bursts by a factor of a {}": (About(ttft(10, 95, 4.0) / ttft(10, 95), 0.2),),
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
        "a CV of 1 that is a whole mean answer, so {} + {} = {} tokens": (512, 256, 512 + 256),
        "That is {} of {} requests/s, if": (_keeps(200), most),
        "(synthetic, {} requests): prompts of {} tokens on average, answers of {}, gaps with a CV of {}. Theory": (
            len(trace), trace.prompt_tokens.mean(), trace.output_tokens.mean(), gaps.std() / gaps.mean(),
        ),
        "a step of {} + {} b ms, Little's law gives": (t0, c),
        "Capacity is {} requests/s. A campaign brings {}. Every": (most, 20),
        "the queue grows by {} requests each second": (20 - most,),
        "the number running stays at {}.": (one_engine.SLOTS,),
        "TPOT levels off at {} ms": (1e3 * np.nanmean(long.tpot),),
        "a mean TTFT of {} s, one of a quarter of an hour shows {} s": (short.ttft.mean(), long.ttft.mean()),
        "--request-rate 10 --burstiness {}` (CV {})": (1 / 4**2, 4),
        "--max-concurrency {}`": (64,),
    }  # fmt: skip


def _keeps(ms: float) -> float:
    """The largest rate in tenths whose p99 of TTFT is forecast to be within so many milliseconds."""
    rates = (tenths / 10 for tenths in range(10, int(10 * one_engine.capacity())))
    return max(rate for rate in rates if one_engine.forecast(rate).ttft_percentile_s(0.99) <= ms / 1e3)


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(SOURCE, template, *sentences()[template])


@pytest.mark.parametrize("template", deeper())
def test_the_sentences_of_the_deeper_notebook(template):
    sentence(DEEPER, template, *deeper()[template])


def test_what_is_asked_is_what_is_solved():
    assert "run = serve(one_engine.requests(rate=17)" in SOURCE
    assert LAB.exercises[1].solution == WAITING / FINISHED
    # Bursts take all slots at a far lower load: at 3 requests/s, where Poisson arrivals never do.
    assert one_engine.slots_taken(run(3, 4.0, 20_000)) > 0.01 > 1e-9 > one_engine.forecast(3).sharing.p_wait
    # "M/D/1 and M/M/1: twice the wait".
    mm1, md1 = (kind(arrival_rate=10, service_s=0.05).mean_wait_s for kind in (queueing.mm1, queueing.md1))
    sentence(DEEPER, "exponential ones (CV 1) M/M/1: {} the wait", mm1 / md1)
    assert one_engine.STEP(Step(1, 768, ())) < one_engine.STEP(Step(32, 32 * 768, ()))
