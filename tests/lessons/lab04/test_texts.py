"""Lab 04: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache

import numpy as np
import pytest

from course import Workload, policies, queueing, serve
from course.exercises import load
from course.lessons.lab04 import refill, side_by_side, three_batchers
from course.lessons.lab04.three_batchers import CHAT, H100, IMAGE, MOST_IMAGES, SLOTS, TRACE
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, right_words, sentence, with_numbers

LAB = load("04")
SOURCE = (SOLUTIONS / "04_static_dynamic_continuous.py").read_text(encoding="utf-8")


def gain(slots: int, cv: float = 1.0) -> float:
    return three_batchers.gain(slots, cv).gain


@cache
def facts() -> dict[str, tuple]:
    four = gain(SLOTS)
    return {
        "gain": (1, SLOTS),
        "gain a": (SLOTS,),
        "gain b": (About(four),),
        "gain c": (20, 30),
        "gain why": (SLOTS, int(queueing.lognormal_gain(batch=SLOTS, output_cv=1).gain), 20, 30),
        "bigger": (8, SLOTS),
        "bigger why": (SLOTS, 8, gain(8), 8, four, SLOTS),
        "below": (3, len(side_by_side.NAMES)),
        "below b": (len(side_by_side.NAMES),),
        "waste hint": (3,),
        "waste 0": (2,),
        "bound hint": (2, 3, 4),
        "bound 0": (1,),
        "bound 1": (SLOTS,),
        "refill hint": (4, 1, 0.2),
        "trace hint": (SLOTS, SLOTS),
        "quiz why a": (About(four), 1, SLOTS),
        "quiz size a": (2,),
        "quiz paged a": (2,),
        "quiz paged b": (2022,),
        "quiz triton": (1_000, 0, 10_000),
        "quiz triton a": (1_000,),
    }


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_refill_is_tried_as_its_hint_says():
    run = {}

    def spy(state):
        run["slots"] = state.max_num_seqs
        return refill.refill(state)

    # The first four answers: prompts of 5 tokens in a step of 1 s, and 0.2 s for each prompt token.
    answered = refill.refill_result(spy)["answered at [s]"]
    assert run["slots"] == 4 and min(answered) == pytest.approx((1 + 4 * 5 * 0.2) + 1)


def test_the_keys_of_the_predictions():
    gained, bigger, below = LAB.predictions
    times = gain(SLOTS)
    right_option(gained, times > 0.8 * SLOTS, 3.6 < times < 4.4, 1.2 <= times <= 1.3, times < 1.1)
    right_option(bigger, gain(32) > gain(8), gain(32) < gain(8), gain(32) == gain(8))
    rates = [
        CHAT.output_tokens.sum() / run.makespan
        for run in side_by_side.serve_each(CHAT.scaled(3), side_by_side.three_policies(SLOTS), H100).values()
    ]
    most = rates[-1] / max(rates[:2])
    same = 0.95 <= most <= 1.05  # but for the drain after the last arrival
    right_option(below, most < 0.95, same, 1.05 < most <= 1.5, most > 1.5)
    # "20 to 30% belongs to answers of nearly equal length".
    assert 1.2 <= gain(SLOTS, 0.1) <= 1.3 and gain(SLOTS, 0.0) < 1.05


def test_the_keys_of_the_quiz():
    why, size, static, paged, triton = LAB.quiz
    full = serve(side_by_side.at_once(CHAT), policies.Static(SLOTS), H100)
    idle = 1 - full.steps.seconds.sum() / full.makespan
    refilled = serve(side_by_side.at_once(CHAT), policies.Continuous(SLOTS, 8_192), H100)
    padding = refilled.steps.wasted.sum() == 0 and full.steps.wasted.sum() > full.steps.useful.sum()
    right_option(why, padding, idle > 0.01, refilled.steps.running.max() > SLOTS)
    right_words(size, "There is none")
    light = serve(CHAT.scaled(0.2), policies.Static(SLOTS), H100)
    assert np.median(light.e2e) > 60  # "for a minute and more"
    right_words(static, "nearly equal length")
    right_words(paged, "paging lets more requests fit")
    short, long = (three_batchers.image_run(1_000, delay) for delay in (0.0, 0.010))
    rates, latencies = ([f(run) for run in (short, long)] for f in (_rate, _latency))
    batches = [len(run) / len(run.steps) for run in (short, long)]
    busy = [run.steps.seconds.sum() / run.makespan for run in (short, long)]
    right_option(
        triton,
        rates[1] > 1.02 * rates[0],
        batches[1] > batches[0] and latencies[1] > latencies[0] and busy[1] < busy[0],
        latencies[1] < latencies[0],
    )


def _rate(run) -> float:
    return len(run) / run.makespan


def _latency(run) -> float:
    return float(run.e2e.mean())


# What the notebook says, sentence by sentence.


@cache
def sentences() -> dict[str, tuple]:
    need = queueing.demand(prompt_tokens=512, output_tokens=256, output_cv=1.0)
    longest = queueing.lognormal_gain(batch=SLOTS, output_cv=1.0)
    static = queueing.static_capacity(need, longest, H100, max_num_seqs=SLOTS)
    continuous = queueing.continuous_capacity(need, H100, max_num_seqs=SLOTS, max_num_batched_tokens=8_192)
    six = serve(CHAT.scaled(6), policies.Static(SLOTS), H100)
    per_image = IMAGE.prefill * 1e3
    most_images = MOST_IMAGES / (IMAGE.t0 + MOST_IMAGES * IMAGE.prefill)
    batches = len(CHAT) // SLOTS
    return {
        "Prompts have {} tokens. Answers have {} tokens on average": (512, 256),
        "The server collects {} requests, runs them": (SLOTS,),
        "sends all {} answers, and takes the next {}.": (SLOTS, SLOTS),
        "At {} requests a second people grumbled. This week there are {}": (4, 6),
        "{} of four slot-steps are **padding**": (About(4 * (1 - side_by_side.slot_utilisation(six)), 0.03),),
        "The same {} requests meet {} slots": (16, 4),
        "Request 5 is picked out: its answer has {} tokens": (
            three_batchers.timelines("drawn", 4, 1.0, 10, 0.1, 5)[0]["static"].workload.output_tokens[5 - 1],
        ),
        "here within {} s. The Azure-style trace has prompts of {} tokens on average, answers of {}, and": (
            three_batchers.E2E_SLO, TRACE.prompt_tokens.mean(), TRACE.output_tokens.mean(),
        ),
        "a matrix of {} MB by one row": (3_072**2 * 4 / 1e6,),
        "one reading of the {} MB": (3_072**2 * 4 / 1e6,),
        "is right for {} slots at a CV of {}. Chat": (SLOTS, 0.1),
        "{} requests are {} batches of {}, and {} of {}": (len(CHAT), batches, SLOTS, len(CHAT) // 128, 128),
        "would stand {} requests/s: {} times this rush, and over {} times what static": (
            continuous.requests_per_s, About(continuous.requests_per_s / 6, 0.05),
            int(continuous.requests_per_s / static.requests_per_s),
        ),
        "The static numbers are {}% apart, since the longest answers of {} batches": (
            100 * (1 - static.output_tokens_per_s / three_batchers.gain(SLOTS, 1.0).static), batches,
        ),
        "At 4 requests/s static is at {}% of its capacity": (100 * 4 / static.requests_per_s,),
        "waits out its 100 ms for {} requests that": (256 - 100,),
        "a benchmark sends {} equal requests": (100,),
        "a step takes {} ms and {} ms for each image (made-up numbers), at most {} images": (
            1e3 * IMAGE.t0, per_image, MOST_IMAGES,
        ),
        "it could serve {} times as many": (most_images / 1_000,),
        "Three requests of {}, {} and {} tokens share a static batch of {} slots": (100, 20, 80, 3),
        "from {} to {} tokens, and a static batch pads": (TRACE.prompt_tokens.min(), TRACE.prompt_tokens.max()),
        "{} requests/s is above what static can do and less than {} of what continuous": (8, 1 / 2),
        "about {} times for chat with {} slots": (About(gain(SLOTS)), SLOTS),
        "nothing for equal lengths, about {} times": (About(gain(SLOTS)),),
    }  # fmt: skip


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(SOURCE, template, *sentences()[template])


def test_what_the_sentences_are_about():
    images = Workload.poisson(rate=1_000, num_requests=2_000, prompt_tokens=1, output_tokens=1)
    late = serve(images.scaled(2_400), policies.Dynamic(MOST_IMAGES, 0.020), IMAGE)
    later = serve(images.scaled(2_400), policies.Dynamic(MOST_IMAGES, 0.050), IMAGE)
    # "Why does nothing happen any more?": batches are full before the delay is over.
    assert late.e2e.mean() == pytest.approx(later.e2e.mean(), rel=0.05)
    static, continuous = (
        side_by_side.saturated_tokens_per_second(serve(side_by_side.at_once(CHAT), policy, H100)) / 256
        for policy in (policies.Static(SLOTS), policies.Continuous(SLOTS, 8_192))
    )
    assert static < 8 < continuous / 2
