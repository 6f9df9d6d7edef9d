"""Lab 02: every key, and every number in what it asks and says, computed from the scenario."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from course.lessons import load
from course.lessons.lab00 import together
from course.lessons.lab02 import by_hand, engine_log, exercises, floor, further, one_curve, one_step, tasks, two_cards
from course.lessons.lab02.one_step import CARD, FLOPS_TOKEN, KV_TOKEN, WEIGHTS
from course.models.gpus import gpu
from course.steptime import Step
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, right_words, sentence, with_numbers

LAB = load("02")
CORE, DEEPER = ((SOLUTIONS / f"02_the_memory_wall{kind}.py").read_text(encoding="utf-8") for kind in ("", "_deeper"))
RIDGE = CARD.matrix_flops / CARD.read_bandwidth
"""FLOP for each byte, and with weights of 2 bytes sequences."""


def step(batch: int) -> float:
    """Recorded, in ms, at 1,024 tokens."""
    return 1e3 * one_step.one_step(batch).recorded


@cache
def facts() -> dict[str, tuple]:
    one = one_step.one_step()
    multiplying = 1e3 * one.computing
    short = one_curve.one_curve(most=32)
    slow, eight = (1e3 * each(two_cards.NEW) for each in (two_cards.decode, two_cards.eight_bits))
    probe = two_cards.rates(two_cards.NEW)[0] / two_cards.rates(two_cards.OLD)[0]
    cost, knee = exercises.COST_TWIN, exercises.KNEE_TWIN
    return {
        "faster": (2, About(step(1), 0.03)),
        "faster a": (step(1) / 2,),
        "faster b": (0.75 * step(1),),
        "faster c": (About(step(1), 0.03),),
        "faster a answer": (multiplying,),
        "faster b answer": (1 / 2, multiplying),
        "faster why": (1e3 * one.reading,),
        "twice": (one_curve.CONTEXT, 2),
        "twice a": (8,),
        "twice b": (About(doubled(), 0.1),),
        "twice c": (About(RIDGE, 0.02),),
        "twice a answer": (8, 100 * (step(8) / step(1) - 1)),
        "twice c answer": (RIDGE,),
        "twice why": (2 * step(1), 64, step(64), 96, step(96)),
        "cost plain": (3_600,),
        "cost twin": (cost[0], 1e3 * cost[1], cost[2]),
        "knee plain": (1,),
        "knee twin": knee,
        "knee 0": (1, 2),
        "knee 2": (2, 3),
        "floor hint": (2,),
        "floor twin": (8, 16, floor.eight_bits(1, 0) / floor.floor(1, 0)),
        "floor 0": (2,),
        "decision twin": (1e3 * engine_log.PROMISE_TWIN, 16, 32, 64, 128),
        "quiz shared-weights": (16,),
        "quiz shared-weights b": (16, 16),
        "quiz shared-weights c": (16,),
        "quiz last_token": (0.4, 5, 101),
        "quiz last_token a": (101 * 0.005, 101),
        "quiz last_token b": (0.4 + 100 * 0.005, 0.4, 100, 5),
        "quiz last_token c": (0.4 + 101 * 0.005,),
        "quiz measure a": (probe,),
        "quiz repair c": (two_cards.BATCH, 1 / 2, eight, slow, two_cards.BATCH),
        "quiz busy": (100,),
        "quiz busy a": (100 * one.share,),
        "quiz busy c": (100 * (step(2) / step(1) - 1),),
        "quiz eight_bits": (8, 16),
        "quiz eight_bits b": (8 / 16,),
        "quiz longer": (1_024, 4_096),
        "quiz longer a": (4_096 / 1_024,),
        "quiz longer c": (one_curve.one_curve(1_024).curve.knee, one_curve.one_curve(4_096).curve.knee),
        "quiz points": (6, one_curve.LARGEST),
        "quiz points a": (1, one_curve.LARGEST),
        "quiz points b": (1, short.most, 1e3 * short.largest, one_curve.LARGEST, 1e3 * short.recorded_largest),
        "quiz points c": (6,),
    }


def doubled() -> float:
    """The batch at which the recording, on straight lines between its points, takes twice as long as for one."""
    batches, steps = one_step.points(one_curve.CONTEXT)
    return float(np.interp(2 * steps[0], steps, batches))


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_numbers_of_the_ticket_and_the_tasks():
    old, new = (1e3 * two_cards.decode(card) for card in (two_cards.OLD, two_cards.NEW))
    agree(LAB.ticket.story, (About(old / new, 0.17), 100))
    (b_old, f_old), (b_new, f_new) = map(two_cards.rates, (two_cards.OLD, two_cards.NEW))
    agree(LAB.ticket.setting, (b_old / 1e12, f_old / 1e12, b_new / 1e12, f_new / 1e12))
    assert two_cards.OLD in LAB.ticket.setting and two_cards.NEW in LAB.ticket.setting
    sooner = 1 - two_cards.prefill(two_cards.NEW) / two_cards.prefill(two_cards.OLD)
    assert 0.05 < sooner < 0.2  # "a little sooner"
    text = {task.id: task.text for task in LAB.tasks}
    agree(text["short"], (2, one_curve.LARGEST))
    agree(text["cheap"], (tasks.CHEAP,))
    agree(text["cheap_prompt"], (About(step(1), 0.03),))
    batch = next(task for task in LAB.tasks if task.id == "cheap").settings["batch"]
    agree(text["not_a_quarter"], (4, one_curve.LARGEST, 1 / 4))
    assert 4 * batch == one_curve.LARGEST
    cheaper = next(task for task in LAB.tasks if task.id == "not_a_quarter")
    agree(cheaper.options[2][1], (one_curve.LARGEST,))
    most = one_step.one_step(one_curve.LARGEST)
    assert most.computing < most.reading


def test_the_keys_of_the_predictions():
    faster, twice = LAB.predictions
    new = one_step.floor_of(replace(gpu("H100"), matrix_flops=2 * CARD.matrix_flops))
    took = step(1) * new(Step(1, 1_024, ())) / one_step.FLOOR(Step(1, 1_024, ()))
    right_option(faster, took < 3, 3 < took < 4.5, abs(took - 5) < 0.2)
    batch = doubled()
    right_option(twice, batch < 12, 70 < batch < 95, batch > 200)


def test_the_keys_of_what_is_asked_again():
    shared, last = LAB.earlier
    right_words(shared, "share a read of weights")
    assert together.on_h100(16) < 1.1 * together.on_h100(1)  # "hardly longer"
    assert one_step.one_step(16).reading_weights > 0.75 * one_step.one_step(16).recorded  # "most of a step"
    right_option(last, *(abs(said - (0.4 + 100 * 0.005)) < 1e-9 for said in (0.505, 0.9, 0.905)))


def test_the_keys_of_the_ticket():
    cause, measure, repair = LAB.ticket.questions
    slower_prompts = two_cards.prefill(two_cards.NEW) > two_cards.prefill(two_cards.OLD)
    reads = two_cards.rates(two_cards.NEW)[0] < two_cards.rates(two_cards.OLD)[0]
    more_only = two_cards.decode(two_cards.NEW, 1) <= two_cards.decode(two_cards.OLD, 1)
    right_option(cause, slower_prompts, reads, more_only)
    right_words(measure, "a read probe")
    now = two_cards.decode(two_cards.NEW)
    larger = two_cards.decode(two_cards.NEW, 2 * two_cards.BATCH)
    shorter = two_cards.decode(two_cards.NEW, two_cards.BATCH // 2)  # half the context is half the K and V
    right_option(repair, larger < now, shorter < 0.9 * now, two_cards.eight_bits(two_cards.NEW) < 0.6 * now)


def test_the_keys_of_the_quiz():
    busy, eight, longer, points = LAB.quiz
    share, more = one_step.one_step().share, step(2) / step(1)
    right_option(busy, share < 0.01 and more < 1.05, share > 0.5, more > 1.5)
    rows = {row[0]: float(row[-1]) for row in further.narrow_weights().rows if row[0]}
    gain = {"decodes": rows["1 decode"], "prompt": rows["a prompt of 2,048"]}
    right_option(eight, gain["prompt"] > 1.2, gain["decodes"] > 1.5, False)
    knees = [one_curve.one_curve(context).curve.knee for context in (1_024, 4_096)]
    right_option(longer, abs(knees[1] / knees[0] - 1) < 0.2, knees[1] > 1.2 * knees[0], knees[1] < 0.8 * knees[0])
    misses = []
    for measured in ((1, 4, 16, 64, 128, 256), (1, 2, 4, 8, 16, 32), (48, 64, 96, 128)):
        batches, steps = one_step.points(1_024)
        here = np.isin(batches, measured)
        curve = one_curve.fit(batches[here], steps[here])
        misses.append(float(np.abs(curve.seconds(batches) / steps - 1).max()))
    right_option(points, misses[0] < 0.08, misses[1] < 0.08, misses[2] < 0.08)


# What the notebooks say, sentence by sentence.


@cache
def sentences() -> dict[str, tuple]:
    hand = [by_hand.step_of(batch) for batch in by_hand.BATCHES]
    floors = {batch: 1e3 * one_step.one_step(batch).floor for batch in (1, 64)}
    knees = {context: one_curve.one_curve(context).curve.knee for context in one_curve.CONTEXTS}
    short = one_curve.one_curve(most=32)
    rate = 32 / 0.00692
    cost, knee = exercises.COST, exercises.KNEE
    lines = {running: running / engine_log.step(running) for running in engine_log.RUNNING}
    usage = {running: 100 * running * 1_024 / engine_log.POOL for running in engine_log.RUNNING}
    logged = {
        f"throughput: {{}} tokens/s, Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: {{}}%": (
            lines[running], usage[running],
        )
        for running in engine_log.RUNNING
    }  # fmt: skip
    return logged | {
        "You rent an H100 for {} dollars an hour": (one_curve.PRICE,),
        "the GPU is {}% busy": (100,),
        "A million tokens cost {} dollars, and others sell them for {}": (
            one_curve.dollars(1, step(1) / 1e3, one_curve.PRICE), tasks.CHEAP,
        ),
        "**multiplies**: {} FLOP for each weight": (FLOPS_TOKEN / (WEIGHTS / 2),),
        "The band has {}% confidence": (100 * one_curve.one_curve().curve.confidence,),
        "A small machine reads {} numbers a second and does {} operations. Its model has {} weights, K and V of a "
        "sequence are {} numbers": (by_hand.READ, by_hand.COMPUTE, by_hand.WEIGHTS, by_hand.OWN),
        "Reading the weights takes {} s. Each sequence adds {} s for its K and V, and {} s of multiplying": (
            hand[0].weights, hand[0].kv, hand[0].computing,
        ),
        "So steps of one, {} and {} take {}, {} and {} s.": (2, 4, *(each.step for each in hand)),
        "The knee is at {}, where K and V take as long as the weights.": (by_hand.knee(),),
        "| $W$ | weights | {} numbers | {} GB |": (by_hand.WEIGHTS, WEIGHTS / 1e9),
        "| $B$ | read in a second | {} numbers | {} TB |": (by_hand.READ, CARD.read_bandwidth / 1e12),
        "| $F$ | work of a sequence | {} operations | {} GFLOP |": (2 * by_hand.WEIGHTS, FLOPS_TOKEN / 1e9),
        "| $R$ | multiplied in a second | {} operations | {} TFLOP |": (by_hand.COMPUTE, CARD.matrix_flops / 1e12),
        "| $K$ | K and V of a sequence | {} numbers | {} GB |": (by_hand.OWN, 1_024 * KV_TOKEN / 1e9),
        "| $t(1)$ | floor, recorded | {} s | {} ms, {} ms |": (hand[0].step, floors[1], step(1)),
        "| $t(64)$ | floor, recorded | | {} ms, {} ms |": (floors[64], step(64)),
        "With {} bytes and {} FLOP for each weight, $b$ sequences make $b$ FLOP for each byte. The H100 needs {}": (
            2, 2, RIDGE,
        ),
        "At {} tokens these take as long as the weights at {}.": (1_024, WEIGHTS / (1_024 * KV_TOKEN)),
        "so the recorded knee is at {}, and at {} tokens at {}": (knees[1_024], 4_096, knees[4_096]),
        "the product leaves the line of reading beyond {}": (64,),
        "Points up to {} gave {} ms at {}, not {}: they": (
            short.most, 1e3 * short.largest, one_curve.LARGEST, 1e3 * short.recorded_largest,
        ),
        "{} sequences share a step of {} ms: 32 / 0.00692 = {} tokens/s, or {} million an hour": (
            32, step(32), About(rate, 1e-3), About(rate * 3_600 / 1e6, 5e-3),
        ),
        "At {} dollars an hour a million cost {} / {} = {} dollars": (
            2.5, 2.5, About(rate * 3_600 / 1e6, 5e-3), 2.5 / (rate * 3_600 / 1e6),
        ),
        "{} sequences share a step of {} ms, and the card costs {} dollars an hour": (cost[0], 1e3 * cost[1], cost[2]),
        "A step takes {} ms + {} ms x $b^{{}}$": knee,
        "Promised is a TPOT of {} ms": (1e3 * engine_log.PROMISE,),
        "give the cheapest of {}, {}, {} and {} that keeps": engine_log.RUNNING,
        "TPOT = running / (tokens/s): {}, {}, {} and {} ms. At {} a million tokens cost {} dollars": (
            *(1e3 * engine_log.step(running) for running in engine_log.RUNNING), 128,
            one_curve.dollars(128, engine_log.step(128), one_curve.PRICE),
        ),
    }  # fmt: skip


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(CORE, template, *sentences()[template])


def test_the_constants_of_the_third_exercise_are_those_of_the_card():
    line = next(line for line in CORE.splitlines() if line.startswith("W, B, F, R, K ="))
    shown = eval(line.partition("=")[2])  # a line of the course's own source
    assert shown == (floor.W, floor.B, floor.F, floor.R, floor.K)
    exact = (WEIGHTS, CARD.read_bandwidth, FLOPS_TOKEN, CARD.matrix_flops, KV_TOKEN)
    assert shown == pytest.approx(exact, rel=2e-3)  # W and F to three digits


def test_the_answers_of_the_notebook_are_those_of_the_exercises():
    answers = re.findall(r"^answer = (.*\(.*)$", CORE, re.MULTILINE)
    solutions = {exercise.id: exercise.solution for exercise in LAB.exercises}
    for answer, name in zip(answers, ("cost", "knee"), strict=True):
        assert eval(answer) == pytest.approx(solutions[name])  # a line of the course's own source


def test_the_lines_of_the_log_are_those_of_the_recording():
    assert [engine_log.line(running) in CORE for running in engine_log.RUNNING] == [True] * 4


def test_the_worked_solution_of_the_decision_is_that_of_the_notebook():
    decision = next(exercise for exercise in LAB.exercises if exercise.id == "decision")
    assert all(line in CORE for line in decision.worked.splitlines()[1:])


@cache
def deeper() -> dict[str, tuple]:
    ridges = [further.ridge(card) for card in further.CARDS]
    curve = one_curve.one_curve().curve
    return {
        "At {} sequences a step takes twice as long": (further.even(),),
        "All of these cards could multiply for more: for {} sequences, or for {}": (min(ridges), max(ridges)),
        "Up to {} decodes the recorded step is at the floor.": (16,),
        "From {} decodes on the products read more slowly": (24,),
        "it takes the {} TB/s of a simple read kernel": (CARD.read_bandwidth / 1e12,),
        "reached {} on that card, {}% more": (further.PROBE / 1e12, 100 * (further.PROBE / CARD.read_bandwidth - 1)),
        "together they need {} GB": ((one_step.MODEL.weights_bytes + KV_TOKEN * 1_024 * further.even()) / 1e9,),
        "on an H100 it is {} there": (CARD.matrix_flops / CARD.read_bandwidth,),
        "and above {} other kernels": (32,),
        "Prompts of {} tokens and more take {} times the floor": (
            256,
            min(further._prompt(p) for p in further.PROMPTS if p > 64),
        ),
        "from points up to {} missed the step of {}": (32, one_curve.LARGEST),
        "The points miss the curve by {}%": (100 * curve.error,),
        "a step of {} and a prompt of {} gain nothing": (256, 512),
        "The weights are a {}, and": (further.small_weights() / WEIGHTS,),
        "K and V shrink to a {} only, {} bytes a token": (further.SMALL_KV / KV_TOKEN, further.SMALL_KV),
    }


@pytest.mark.parametrize("template", deeper())
def test_the_sentences_of_the_deeper_notebook(template):
    found = deeper()[template]
    if template.startswith("The weights are a"):
        found = (About(*found, 0.05),)
    sentence(DEEPER, template, *found)


def test_what_the_deeper_notebook_says():
    ratio = {batch: one_step.one_step(batch).recorded / one_step.one_step(batch).floor for batch in (1, 8, 16, 24, 64)}
    assert max(ratio[batch] for batch in (1, 8, 16)) < 1.02 < ratio[24]
    for context in one_curve.CONTEXTS:  # "comes before W / K", and far from it with short contexts
        knee, limit = one_curve.one_curve(context).curve.knee, further.even() * 1_024 / context
        assert knee < limit
    assert one_curve.one_curve(256).curve.knee < 0.5 * further.even() * 4
    rows = {row[0]: float(row[-1]) for row in further.narrow_weights().rows if row[0]}
    assert rows["a prompt of 512"] == 1
    assert rows["256 decodes"] == pytest.approx(1, abs=0.01)  # multiplying takes as long as reading 16 bits does
    assert rows["1 decode"] > rows["64 decodes"] > rows["256 decodes"]
    # The misses have a pattern: all of the small batches on one side, so neighbours agree more often than by chance.
    found = one_curve.one_curve()
    signs = np.sign(found.curve.seconds(found.batches) / found.steps - 1)
    assert (signs[1:] == signs[:-1]).sum() >= 8
    small = {row[0]: row[1:] for row in further.small_model().rows}
    assert float(small["knee"][1]) < float(small["knee"][0])
