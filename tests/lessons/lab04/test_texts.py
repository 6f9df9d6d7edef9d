"""Lab 04: every key, and every number in what it asks and says, computed from the scenario."""

import re
from functools import cache

import numpy as np
import pytest

from course import policies, queueing, serve
from course.exercises import load
from course.exercises.spec import LETTERS
from course.lessons.lab04 import exercises, live_words, night, other_loads, refill, side_by_side, three_batchers
from course.lessons.lab04.other_loads import IMAGE, MOST_IMAGES, TRACE
from course.lessons.lab04.three_batchers import BUDGET, BY_HAND, CHAT, FEW, FOLLOWED, SLOTS, STEP
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, numbers, right_option, right_words, sentence

LAB = load("04")
CORE, DEEPER = (
    (SOLUTIONS / f"04_static_dynamic_continuous{kind}.py").read_text(encoding="utf-8") for kind in ("", "_deeper")
)


def gain(slots: int, cv: float = 1.0) -> float:
    return three_batchers.gain(slots, cv).gain


def texts() -> dict[str, str]:
    """Every text of the lab by a name: predictions, exercises and their twins, earlier questions, ticket and quiz."""
    found = {}
    for prediction in LAB.predictions:
        found |= {prediction.id: prediction.question, f"{prediction.id} why": prediction.why}
        for letter, option, answer in zip(LETTERS, prediction.options, prediction.answers, strict=False):
            found[f"{prediction.id} {letter}"] = f"{option} | {answer}"
    for exercise in LAB.exercises:
        for name, one in ((exercise.id, exercise), (f"{exercise.id} twin", exercise.twin)):
            found |= {f"{name} hint": one.hint, f"{name} plain": one.plain, f"{name} asks": one.question}
            found |= {f"{name} {i}": mistake.hint for i, mistake in enumerate(one.mistakes)}
    found |= {"ticket": LAB.ticket.story, "ticket setting": LAB.ticket.setting}
    for question in LAB.questions:
        found[f"quiz {question.id}"] = question.question
        for letter, option, why in zip(LETTERS, question.options, question.explanations, strict=False):
            found[f"quiz {question.id} {letter}"] = f"{option} | {why}"
    found |= {f"task {task.id}": task.text for task in LAB.tasks}
    return found


def with_numbers() -> dict[str, str]:
    return {name: text for name, text in texts().items() if numbers(text)}


@cache
def facts() -> dict[str, tuple]:
    found, slow = night.night(), slice(5, 8)
    fill = (SLOTS - 1) / min(night.RATES)
    longest = queueing.lognormal_gain(batch=SLOTS, output_cv=1).gain
    wasted = exercises.WASTE
    return {
        "gain": (SLOTS,),
        "gain a": (SLOTS, SLOTS),
        "gain b": (About(gain(SLOTS)),),
        "gain c": (20, 30),
        "gain why": (SLOTS, About(longest)),
        "bigger": (SLOTS, 8),
        "bigger c": (SLOTS, 8),
        "bigger why": (gain(8), 8, gain(SLOTS), SLOTS),
        "waste hint": (len(wasted),),
        "waste 0": (2,),
        "waste twin asks": (len(exercises.WASTE_TWIN), *exercises.WASTE_TWIN, 4),
        "ratio twin asks": (*exercises.RATIO_TWIN, len(exercises.RATIO_TWIN)),
        "decision 0": (SLOTS, 100),  # "less than a hundred": test_the_decision
        "decision twin 0": (SLOTS, 100),
        "decision plain": (1,),
        "decision twin plain": (1,),
        "decision twin asks": (exercises.ARRIVE_TWIN,),
        "ticket": (found.median[0], 1, 4, found.median[slow].mean()),
        "ticket setting": (SLOTS,),
        "quiz cause a": (100 * found.busy[slow].mean(),),
        "quiz cause b": (min(night.RATES), fill, SLOTS - 1),
        "quiz measure a": (About(10 * (found.median_wait / found.median)[slow].mean(), 0.05), 1 / 10),
        "quiz repair a": (2,),
        "quiz repair b": (2, 1 / 2),
        "quiz repair c": (night.night(continuous=True).median[slow].max(),),
        "quiz size a": (2,),
        "quiz floor": (16, 2),
        "quiz floor a": (2 / 16,),
        "quiz floor b": (1e3 * 16 / 2_000, 16, 2_000),
        "quiz floor c": (1e3 * 16 / 2_000,),
        "quiz below": (3,),
        "quiz below c": (About(gain(SLOTS)),),
        "task late": (FOLLOWED,),
        "task busy": (FOLLOWED,),
        "task claim": (20, 30),
        "task closer": (3,),
    }


@pytest.mark.parametrize("name", with_numbers())
def test_the_numbers(name):
    text = with_numbers()[name]
    if name == "quiz measure a":  # "nine tenths" is one number in two words
        assert "nine tenths" in text and facts()[name][0].value == pytest.approx(9, rel=0.06)
        return
    agree(text, facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers())


def test_the_keys_of_the_predictions():
    gained, bigger = LAB.predictions
    times = gain(SLOTS)
    right_option(gained, times > 0.8 * SLOTS, 3.6 < times < 4.4, 1.2 <= times <= 1.3, times < 1.1)
    few, many = gain(8), gain(SLOTS)
    right_option(bigger, many > 1.1 * few, many < few / 1.1, abs(many / few - 1) <= 0.1)


def test_what_answers_the_options():
    static, continuous = ([getattr(three_batchers.gain(n, 1.0), name) for n in (8, SLOTS)]
                          for name in ("static", "continuous"))  # fmt: skip
    assert static[1] > static[0] and continuous[1] > continuous[0]  # "More slots make both faster"
    assert 1.2 <= gain(SLOTS, 0.1) <= 1.3  # "measured where answers were alike"
    run = serve(side_by_side.at_once(CHAT), policies.Static(SLOTS), STEP)
    assert run.steps.wasted.sum() > run.steps.useful.sum()  # "most slot-steps ... are padding"


def test_the_keys_of_the_ticket():
    """The wait is the cause, the lengths and the steps are not, and the repair repairs."""
    cause, measure, repair = LAB.ticket.questions
    assert "fifteen times the traffic" in LAB.ticket.story and max(night.RATES) / min(night.RATES) == pytest.approx(15)
    found, repaired = night.night(), night.night(continuous=True)
    slow = slice(5, 8)
    right_option(cause, found.busy[slow].min() > 0.5, bool((found.median_wait > 0.8 * found.median)[slow].all()), False)
    right_words(measure, "before the first step")
    right_words(repair, "continuous batching")
    more = serve(night.load(), policies.Static(2 * SLOTS), STEP)
    quiet = (more.arrival >= 5 * night.HOUR) & (more.arrival < 8 * night.HOUR)
    assert np.median(more.e2e[quiet]) > 1.5 * found.median[slow].max()  # "wait for even more requests"
    dynamic = serve(night.load(), policies.Dynamic(SLOTS, 0.1), STEP)
    by_night = (dynamic.arrival >= 5 * night.HOUR) & (dynamic.arrival < 8 * night.HOUR)
    assert np.median(dynamic.e2e[by_night]) < 0.1 * found.median[slow].min()  # "would help by night"
    assert side_by_side.slot_utilisation(dynamic) < 0.7  # "not by day"
    assert repaired.median.max() < 2 and night.EVENING + 5 == 24 + 1  # the quiet hours begin at 1 o'clock


def test_the_keys_of_the_quiz():
    why, size, equal, below = LAB.quiz
    full = serve(side_by_side.at_once(CHAT), policies.Static(SLOTS), STEP)
    idle = 1 - full.steps.seconds.sum() / full.makespan
    refilled = serve(side_by_side.at_once(CHAT), policies.Continuous(SLOTS, BUDGET), STEP)
    right_option(why, idle > 0.01, refilled.steps.wasted.sum() == 0, refilled.steps.running.max() > SLOTS)
    right_words(size, "each step decides anew")
    light = serve(CHAT.scaled(0.2), policies.Static(SLOTS), STEP)
    assert np.median(light.e2e) > 60  # "for a minute and more"
    right_option(equal, abs(gain(SLOTS, 0.0) - 1) < 0.05, False, gain(SLOTS, 0.0) > 1.1)
    rates = [
        CHAT.output_tokens.sum() / run.makespan
        for run in side_by_side.serve_each(CHAT.scaled(3), side_by_side.three_policies(SLOTS), STEP).values()
    ]
    more = rates[-1] / rates[0]
    right_option(below, more < 0.95, 0.95 <= more <= 1.05, more > 1.05)  # but for the drain after the last arrival


def test_the_key_of_what_is_asked_again():
    (floor,) = LAB.earlier
    milliseconds = 1e3 * 16e9 / 2e12
    right_option(floor, milliseconds == 0.125, milliseconds == 8, False)


def test_the_decision():
    needed = exercises.ARRIVE * CHAT.output_tokens.mean()
    delivered = {slots: three_batchers.gain(slots, 1.0).continuous for slots in (16, 32, 64, 128)}
    enough = [slots for slots, rate in delivered.items() if rate >= needed]
    decision = next(exercise for exercise in LAB.exercises if exercise.id == "decision")
    assert decision.solution == {"--max-num-seqs": min(enough)}
    twice = [slots for slots, rate in delivered.items() if rate >= exercises.ARRIVE_TWIN * 256]
    assert decision.twin.solution["--max-num-seqs"] == min(twice)
    # The log: what such a server delivers, how far its queue has grown, and what it keeps in memory.
    parts = ("prompt throughput: ", "generation throughput: ", "Waiting: ", "usage: ")
    log = re.search(".*?".join(rf"{part}([\d.]+)" for part in parts), CORE, re.DOTALL)
    prompt, generated, waiting, usage = map(float, log.groups())
    assert generated == pytest.approx(delivered[32], rel=0.005) and prompt == pytest.approx(2 * generated, rel=0.005)
    assert needed > delivered[32] and waiting > 100
    resident = SLOTS * (512 + 256) * 131_072 / 1e9  # GB: half of a length-biased answer is 256 tokens at a CV of 1
    assert usage / 100 == pytest.approx(resident / (0.9 * 80 - 16), rel=0.1)  # 90% of the card less the weights
    run = serve(side_by_side.at_once(CHAT), policies.Continuous(SLOTS, BUDGET), STEP)
    a_step = (CHAT.output_tokens.sum() + CHAT.prompt_tokens.sum()) / len(run.steps)
    assert a_step < 100  # "less than a hundred"


# What the notebooks say, sentence by sentence.


@cache
def sentences() -> dict[str, tuple]:
    need = queueing.demand(prompt_tokens=512, output_tokens=256, output_cv=1.0)
    longest = queueing.lognormal_gain(batch=SLOTS, output_cv=1.0)
    static = queueing.static_capacity(need, longest, STEP, max_num_seqs=SLOTS)
    continuous = queueing.continuous_capacity(need, STEP, max_num_seqs=SLOTS, max_num_batched_tokens=BUDGET)
    six = serve(CHAT.scaled(6), policies.Static(SLOTS), STEP)
    few = three_batchers.one_trace(1.0, 0.1)["static"].workload
    hand = {name: run for name, run in three_batchers.by_hand().items()}
    steps = [len(run.steps) for run in hand.values()]
    padding = int(hand["static"].steps.wasted.sum())
    return {
        "Prompts have {} tokens; answers have {} on average": (512, 256),
        "The server runs {} requests as one batch": (SLOTS,),
        "then sends all {}.": (SLOTS,),
        "At {} requests per second people grumbled. Now {} arrive": (4, 6),
        "Above, {} of four are **padding**": (About(4 * (1 - side_by_side.slot_utilisation(six)), 0.03),),
        "The same {} requests get {} slots": (FEW["num_requests"], FEW["slots"]),
        "Request {}, outlined, has an answer of {} tokens": (FOLLOWED, few.output_tokens[FOLLOWED - 1]),
        "Now all {} requests are there": (len(CHAT),),
        "a small language model answers {} questions": (len(live_words.ASKED),),
        "wait for {} slots. Their answers have {}, {}, {} and {} tokens.": (2, *BY_HAND),
        "Static batching needs {} + {} = {} steps, or {} slot-steps, for {} tokens: {} slot-steps are padding": (
            6, 3, steps[0], 2 * steps[0], sum(BY_HAND), padding,
        ),
        "needs {} steps. The gain is {} / {} = {}": (steps[1], *steps, steps[0] / steps[1]),
        "longest answer of a batch, mean | tokens | {} | {} |": (np.mean([6, 3]), 256 * longest.gain),
        "answer, mean | tokens | {} | {} |": (np.mean(BY_HAND), 256),
        "| gain | | | {} | {} |": (steps[0] / steps[1], longest.gain),
        "The simulated chat gained {}. In its draw, the longest answers were {} times the mean": (
            gain(SLOTS), three_batchers.gain(SLOTS, 1.0).drawn_bound,
        ),
        "Static batching serves {} requests/s, continuous batching {} **on": (
            static.requests_per_s, continuous.requests_per_s,
        ),
        "Two slots hold answers of {} and {} tokens. You pay for {} x {} = {} slot-steps and want {} + {} = {}, so "
        "{} - {} = {} are padding.": (6, 1, 2, 6, 12, 6, 1, 7, 12, 7, exercises.padding((6, 1))),
        "How many are padding with {} slots and answers of {}, {} and {} tokens": (3, *exercises.WASTE),
        "over static batches of {}, {}, {} and {} tokens in {} slots": (*exercises.RATIO, len(exercises.RATIO)),
        "about {} in this chat": (About(gain(SLOTS)),),
        "Now {} requests arrive per second": (exercises.ARRIVE,),
        "with `--max-num-seqs {}`. Now": (SLOTS,),
        "Which is the smallest of {}, {}, {}, {} and {} that keeps up": (16, 32, 64, 128, 256),
        "{} x {} = {} tokens/s are needed": (exercises.ARRIVE, 256, exercises.ARRIVE * 256),
    }  # fmt: skip


@cache
def deeper_sentences() -> dict[str, tuple]:
    most_images = MOST_IMAGES / (IMAGE.t0 + MOST_IMAGES * IMAGE.prefill)
    batches = len(CHAT) // SLOTS
    return {
        "in time, here within {} s.": (other_loads.E2E_SLO,),
        "People arrive one by one, {} of them": (len(CHAT),),
        "{} requests are only {} batches of {}, or {} of {}": (len(CHAT), batches, SLOTS, len(CHAT) // 128, 128),
        "of which the {} simulated batches are a small sample": (batches,),
        "prompts of {} tokens on average, answers of {}, and": (
            TRACE.prompt_tokens.mean(), TRACE.output_tokens.mean(),
        ),
        "from {} to {} tokens, and a static batch pads": (TRACE.prompt_tokens.min(), TRACE.prompt_tokens.max()),
        "a benchmark sends {} equal requests": (100,),
        "Here a step takes {} ms and {} ms for each image (made-up numbers), at most {} images": (
            1e3 * IMAGE.t0, 1e3 * IMAGE.prefill, MOST_IMAGES,
        ),
        "could still serve {} times as many": (most_images / 1_000,),
    }  # fmt: skip


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(CORE, template, *sentences()[template])


@pytest.mark.parametrize("template", deeper_sentences())
def test_the_sentences_of_the_deeper_notebook(template):
    sentence(DEEPER, template, *deeper_sentences()[template])


def test_the_example_of_the_refill():
    plain = " ".join(CORE.replace("\n# ", " ").split())
    assert "With {1: 1, 3: 1} running, {5: 40, 6: 512, 7: 8} waiting and 4 slots, return" in plain
    assert "return {1: 1, 3: 1, 5: 40, 6: 512}." in plain
    assert refill.refill({1: 1, 3: 1}, {5: 40, 6: 512, 7: 8}, 4) == {1: 1, 3: 1, 5: 40, 6: 512}
    assert refill.PROBES[0] == ({1: 1, 3: 1}, {5: 40, 6: 512, 7: 8}, 4)


def test_why_the_chat_gained_less_than_the_formula_says():
    found = three_batchers.gain(SLOTS, 1.0)
    alone = side_by_side.saturated_gain(STEP, max_num_seqs=SLOTS, output_cv=1.0, prompt_tokens=1)
    assert found.gain < found.drawn_bound < found.bound and found.gain < alone.gain  # prompts make it smaller
    assert len(CHAT) // SLOTS == 62


def test_what_the_sentences_are_about():
    late, later = (other_loads.image_run(2_400, delay) for delay in (0.020, 0.050))
    # "nothing changes, since batches are full before the delay is over"
    assert late.e2e.mean() == pytest.approx(later.e2e.mean(), rel=0.05)
    short, long = (other_loads.image_run(1_000, delay) for delay in (0.001, 0.020))
    assert long.e2e.mean() > short.e2e.mean() and long.steps.seconds.sum() < short.steps.seconds.sum()
