"""Lab 01: every key, and every number in what it asks and says, computed from the scenario."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from course.lessons import load
from course.lessons.lab01 import chat, exercises, further, metrics_page, replicas, tasks
from course.lessons.lab01.metrics_page import GOAL, GOAL_TWIN, TWIN
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, right_words, sentence, with_numbers

LAB = load("01")
CORE, DEEPER = ((SOLUTIONS / f"01_the_first_token{kind}.py").read_text(encoding="utf-8") for kind in ("", "_deeper"))
HOUR = 5 * 3_600  # requests of the first earlier question


def p99(run) -> float:
    return float(np.percentile(run.ttft, 99))


@cache
def facts() -> dict[str, tuple]:
    few = chat.mean_window_wait(0.1, 2)
    service, even = replicas.service(), replicas.service((9.0, 9.0, 9.0))
    full = service.runs[0]
    running = [float(line.mean()) for line in service.running]
    most = 1e3 * chat.chat().engine
    stalled = (198 * 6 + 400) / 199
    ttft, tokens, tpot = exercises.WHOLE_TWIN
    return {
        "window": (100, 2),
        "window b": (100 / 2,),
        "window c": (About(1e3 * few, 0.03),),
        "window why": (1e3 * few, *opened(2, 0.1)),
        "hundred": (99, 0.3, 100),
        "hundred a": (2, 3),
        "hundred b": (1, 100),
        "hundred b answer": (100,),
        "hundred c answer": (2,),
        "hundred why": (100, 100 * 0.99**100, 0.99, 100),
        "whole twin": (ttft, 1e3 * tpot, tokens),
        "queue hint": (len(chat.PARTS),),
        "queue twin": exercises.QUEUE_TWIN,
        "queue 0": (2,),
        "queue 2": (1 / 2,),
        "reader 2": (0,),
        "reader 4": (2,),
        "reader 6": (4,),
        "decision plain": (3,),
        "decision twin": (TWIN["rate"], 1e3 * TWIN["inside"], 1e3 * TWIN["outside"], 1e3 * GOAL_TWIN),
        "decision 2": (1 / 2,),
        "quiz behind-the-p99": (5, 99),
        "quiz behind-the-p99 a": (HOUR / 1_000, 1_000),
        "quiz behind-the-p99 b": (HOUR / 100, 5, 3_600, 100, 99),
        "quiz behind-the-p99 c": (HOUR / 20, 20, 95),
        "quiz cause a": (99, p99(full)),
        "quiz cause b": (About(1 / float((full.ttft > 1).mean()), 0.03), 1),
        "quiz cause c": (3, About(np.mean(running[1:]), 0.05), chat.SLOTS),
        "quiz measure a": (float(full.ttft.mean()),),
        "quiz measure b": (3, 99),
        "quiz measure c": (99, float(np.percentile(service.ttft, 99))),
        "quiz repair a": (About(running[0], 0.07),),
        "quiz repair b": (9, 99, About(1e3 * float(np.percentile(even.ttft, 99)), 0.03)),
        "quiz repair c": (2, replicas.PROMISE),
        "quiz stall": (200, 400, 6),
        "quiz stall b": (6, stalled, 199),
        "quiz stall c": (400,),
        "quiz faster": (1 / 2,),
        "quiz faster b": (1.5,),
        "quiz front": (300, most),
        "quiz front a": (most,),
        "quiz front c": (most,),
        "quiz sample": (99, 100),
        "quiz sample a": (98, 99),
        "quiz sample c": (2,),
    }


def opened(rate: float, window: float) -> tuple[int, int]:
    """(m, n): m of n requests open a window, as small whole numbers."""
    share = 1 / (1 + rate * window)
    return next((m, n) for n in range(2, 20) for m in range(1, n) if m / n == pytest.approx(share))


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_numbers_of_the_ticket_and_the_tasks():
    found = replicas.service()
    agree(LAB.ticket.story, (99, replicas.PROMISE, 0.5, found.dashboard, 3, About(100 * found.late, 0.06), 100))
    agree(LAB.ticket.setting, (replicas.RATES[0], replicas.RATES[1]))
    assert replicas.RATES[1] == replicas.RATES[2] and replicas.SECONDS == 1_800
    text = {task.id: task.text for task in LAB.tasks}
    agree(text["short"], (tasks.FAST,))
    agree(text["tail"], (99, tasks.TIMES, 50))
    assert f"#{tasks.ROW}, in ms" in text["stream"] and f"at which {tasks.LINE} or more requests" in text["line"]


def test_the_keys_of_the_predictions():
    window, hundred = LAB.predictions
    wait = float(chat.chat(rate=2).mean("window"))
    right_option(window, wait < 0.01, abs(wait - 0.05) < 0.01, abs(wait - 0.09) < 0.01)
    share = 1 - 0.99**100
    right_option(hundred, abs(share - 2 / 3) < 0.05, share < 0.02, share > 0.99)
    assert further.share_of_users(100) == pytest.approx(share, abs=0.1)  # drawn: 200 users


def test_the_keys_of_what_is_asked_again():
    behind, first = LAB.earlier
    right_option(behind, *(said == HOUR / 100 for said in (18, 180, 900)))
    right_words(first, "the prefill")


def test_the_keys_of_the_ticket():
    cause, measure, repair = LAB.ticket.questions
    found = replicas.service()
    shares = np.array([len(run) for run in found.runs]) / len(found.ttft)
    assert shares[0] > 0.5  # "most requests"
    full = found.running[0].mean() > 0.85 * chat.SLOTS and p99(found.runs[0]) > 1 > found.dashboard
    right_option(cause, bool(full), False, all(p99(run) > 1 for run in found.runs))
    right_words(measure, "over all requests")
    assert np.median([p99(run) for run in found.runs]) == pytest.approx(p99(found.runs[1]), rel=0.02)
    even = replicas.service((9.0, 9.0, 9.0))
    right_option(repair, False, even.late == 0, False)


def test_the_keys_of_the_quiz():
    stall, faster, front, sample = LAB.quiz
    right_words(stall, "longest ITL")
    one, many = (chat.chat(rate=rate, window_ms=0) for rate in (4, 12))
    assert many.tokens_per_gpu_second > 1.5 * one.tokens_per_gpu_second
    speed = np.nanmedian(one.run.tpot) / np.nanmedian(many.run.tpot)  # of a reader, in the fuller batch
    right_option(faster, speed <= 1, speed > 1.2, False)
    right_words(front, "in front of the engine")
    drawn = np.sort(np.random.default_rng(0).exponential(size=100))
    right_option(sample, False, False, bool(drawn[-2] <= np.percentile(drawn, 99) <= drawn[-1]))


# What the notebooks say, sentence by sentence.


@cache
def sentences() -> dict[str, tuple]:
    found, hand = chat.chat(), chat.by_hand()
    fourth = (hand.ttft[3], hand.e2e[3], hand.tpot[3], hand.queue_wait[3])
    draws = {count: [1e3 * value for value in further.draws(count)] for count in (100, 2_000)}
    means = {part: found.mean(part) for part in chat.PARTS}
    tpot, ttft = float(np.nanmean(found.run.tpot)), float(found.ttft.mean())
    busy = chat.chat(rate=12)
    assert busy.percentile(50) == pytest.approx(found.percentile(50), rel=0.02)  # "the chat's p50 stays"
    before, after = metrics_page.scrapes()
    inside = 1e3 * metrics_page.engine()
    outside, left = chat.OUTSIDE_MS, 1e3 * GOAL - chat.OUTSIDE_MS - inside
    waits = [1e3 * chat.mean_window_wait(us / 1e6, metrics_page.rate()) for us in (20_000, 50_000)]
    return {
        "{} requests arrive each second, with prompts of {} tokens and answers of {} on average": (
            chat.RATE, chat.PROMPT, chat.OUTPUT,
        ),
        "holds requests for up to {} ms": (chat.WINDOW_MS,),
        "for one of {} **slots**, until": (chat.SLOTS,),
        "answers {} people on your machine, in {} slots": (12, tasks.SPOKEN["max_num_seqs"]),
        "*Static* batching starts {} together": (tasks.SPOKEN["max_num_seqs"],),
        "Each move serves {} requests": (chat.REQUESTS,),
        "are means of the {} requests nearest them": (round(2 * chat.AROUND * chat.REQUESTS),),
        "Four requests arrive at 0, 0, 1 and {} s, with answers of {}, {}, {} and {} tokens. There are {} slots": (
            chat.BY_HAND["arrival"][3], *chat.BY_HAND["output"], 2,
        ),
        "Request 4 waits {} s for a slot. Its prefill ends at {} s, its decode at {} s. So its TTFT is {} s": (
            fourth[3], hand.first_computed[3], hand.response[3], fourth[0],
        ),
        "time to its last token, {} s": (fourth[1],),
        "| $N$ | answer | tokens | {} | {} |": (chat.BY_HAND["output"][3], chat.OUTPUT),
        "| TPOT | gap | s | {} | {} |": (fourth[2], tpot),
        "| TTFT | first token | s | {} | {} | {} |": (fourth[0], ttft, sum(means.values())),
        "| E2E | last token | s | {} | {} | {} |": (
            fourth[1], float(found.e2e.mean()), About(ttft + (chat.OUTPUT - 1) * tpot, 3e-3),
        ),
        "| outside | network, text | s | 0 | {} |": (means["outside"],),
        "| window | $D$ = {}, $\\lambda$ = {} | s | 0 | {} | {} |": (
            0.1, chat.RATE, means["window"], chat.mean_window_wait(0.1, chat.RATE),
        ),
        "| queue | for a step | s | {} | {} |": (fourth[3], means["queue"]),
        "| prefill | prompts of a window, together | s | {} | {} |": (fourth[0] - fourth[3], means["prefill"]),
        "TTFTs are {}, {}, {} and {} s, with a mean of {} s": (*hand.ttft, float(hand.ttft.mean())),
        "{} draws of {} requests gave {} to {} ms": (
            further.DRAWS, chat.REQUESTS, min(draws[2_000]), max(draws[2_000]),
        ),
        "With {} requests they gave {} to {} ms": (100, min(draws[100]), max(draws[100])),
        "The GPU's {} tokens/s": (found.tokens_per_gpu_second,),
        "at the median {}.": (found.reader,),
        "tokens at {}, {}, {} and {} s: TTFT is {} - {} = {} s, E2E {} - {} = {} s, TPOT ({} - {}) / {} = {} s, and "
        "the longest ITL {} s": (5.0, 5.5, 6.0, 7.5, 5, 2, 3, 7.5, 2, 5.5, 5.5, 3, 3, 2.5 / 3, 1.5),
        "TTFT is {} s, TPOT {} ms, the answer has {} tokens": (
            exercises.WHOLE[0], 1e3 * exercises.WHOLE[2], exercises.WHOLE[1],
        ),
        "A user's TTFT is {} ms. She opened the window of {} ms; {} ms were outside, {} ms prefill": (
            exercises.QUEUE[0], exercises.QUEUE[2], exercises.QUEUE[1], exercises.QUEUE[3],
        ),
        "vllm:time_to_first_token_seconds_count {} {} ": (before.count, after.count),
        "vllm:time_to_first_token_seconds_sum {} {} ": (before.ttft_sum, after.ttft_sum),
        "vllm:request_queue_time_seconds_sum {} {} ": (before.queue_sum, after.queue_sum),
        "vllm:request_prefill_time_seconds_sum {} {} ": (before.prefill_sum, after.prefill_sum),
        "Users spend {} ms outside; you promise a mean TTFT of {} ms": (outside, 1e3 * GOAL),
        "the largest of {}, {}, {}, {} and {} that keeps": metrics_page.CHOICES_US,
        "{} + {} ms leave {} ms for the window: {} ms with a delay of {} ms, {} ms with one of {} ms.": (
            outside, inside, left, waits[0], 20, waits[1], 50,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(CORE, template, *sentences()[template])


def test_the_sentences_of_the_deeper_notebook():
    sentence(DEEPER, "At {} requests/s, each mark is the p99 of TTFT of one draw of requests, {} draws",
             further.BUSY, further.DRAWS)  # fmt: skip
    slow = [float(chat.chat(rate=further.BUSY).ttft.max()), *further.draws(2_000), *further.draws(100)]
    assert min(slow) > 0.160  # "nobody is below 160 ms": of the marks
    sentence(DEEPER, "A p99 over {} requests rests on {} of them, and these {}", 2_000, 20, 20)


def test_the_worked_lines_have_the_numbers_of_the_questions():
    whole, queue, *_ = (one.worked for one in LAB.exercises)
    agree(whole, (1, exercises.WHOLE[0], exercises.WHOLE[1] - 1, exercises.WHOLE[2]))
    agree(queue, exercises.QUEUE)


def test_the_worked_solution_of_the_decision_is_that_of_the_notebook():
    decision = next(exercise for exercise in LAB.exercises if exercise.id == "decision")
    assert all(line in CORE for line in decision.worked.splitlines()[1:])
