"""Lab 00: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache

import pytest

from course.exercises import minutes
from course.lessons import load
from course.lessons.lab00 import answer, exercises, machines, tasks, together, traffic
from course.notebooks import glossary
from course.notebooks.build import known_terms
from course.notebooks.template import PART_MINUTES, PARTS
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, numbers, right_option, right_words, sentence, with_numbers

LAB = load("00")
SOURCE = (SOLUTIONS / "00_how_a_model_answers.py").read_text(encoding="utf-8")
RATE, CV = 10.0, 3.0  # of the second prediction


@cache
def draws() -> tuple[float, ...]:
    """The share above the mean in 20 other draws, in per cent, sorted."""
    found = (traffic.Traffic(RATE, traffic.run(RATE, CV, seed), False) for seed in range(1, 21))
    return tuple(sorted(100 * one.above_mean for one in found))


@cache
def facts() -> dict[str, tuple]:
    one, sixteen = together.on_h100(1), together.on_h100(16)
    bursts = traffic.traffic(RATE, CV)
    here = 1e3 * machines.h100().computing
    hour = 36_000
    return {
        "sixteen": (About(1e3 * one, 0.02), 16),
        "sixteen a": (About(1e3 * sixteen, 0.08),),
        "sixteen b": (4 * 5,),
        "sixteen c": (16 * 5,),
        "sixteen c answer": (16,),
        "sixteen why": (
            *(1e3 * sixteen, 1e3 * one, sixteen / one),
            *(About(1e3 * machines.h100().reading, 0.02), here),
        ),
        "mean": (RATE, CV, 1e3 * bursts.mean),
        "mean a": (0.5,),
        "mean a answer": (1e3 * bursts.percentile(50),),
        "mean b": (About(5, 0.01),),
        "mean c": (100,),
        "mean c answer": (99, bursts.percentile(99), About(bursts.percentile(99) / bursts.mean, 0.1)),
        "mean why": (100 * bursts.above_mean, draws()[0], draws()[-1], 20),
        "answer plain": (1_000,),
        "answer twin": (
            *(exercises.TWIN_PROMPT, 1e3 * together.prefill_on_h100(exercises.TWIN_PROMPT)),
            *(exercises.TWIN_TOKENS, 1e3 * one),
        ),
        "people hint": (100, 99),
        "people plain": (100,),
        "people twin": (exercises.TWIN_RATE, 95),
        "people 0": (99,),
        "people 1": (99,),
        "people 3": (20, 95, 99),
        "people 4": (0.5, 50),
        "quiz steps": (500, 100),
        "quiz steps a": (500 + 100,),
        "quiz steps b": (100 + 1,),
        "quiz steps c": (100, 100 - 1),
        "quiz steps d": (500 / 100,),
        "quiz weights": (16,),
        "quiz weights b": (16,),
        "quiz weights c": (16,),
        "quiz tail": (hour, 99, 2, 2),
        "quiz tail a": (hour / 1_000, 1_000, 99),
        "quiz tail b": (hour * 0.01, 100, 99),
        "quiz tail c": (hour * 0.05, 20, 95),
        "quiz log": (10, 100, 1, 200, 2),
        "quiz log a": (220,),
        "quiz log b": (200 * 2, 2, 10, 2),
        "quiz log c": (1.1, 100, 1, 900),
        "quiz log d": (0.2 * 10, 10),
        "quiz bursts": (10, 1, 3),
        "quiz bursts a": (10 * 3_600,),
    }


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_keys_of_the_predictions():
    sixteen, mean = LAB.predictions
    milliseconds = 1e3 * together.on_h100(16)
    right_option(sixteen, *(abs(milliseconds - said) < 0.1 * said for said in (5, 20, 80)))
    for share in (100 * traffic.traffic(RATE, CV).above_mean, *draws()):
        # Of 20 draws the least is 15 and the most 24%: "about one in five" and none of the others.
        right_option(mean, *(abs(share - said) <= 6 for said in (50, 20, 1)))


def test_what_fifteen_more_sequences_add_is_mostly_their_kv_cache():
    """Of what a step for sixteen takes more than one for one, that which grows with the tokens behind them."""
    base, slope = zip(*(together.STEP.decode_line(count) for count in (1, 16)), strict=True)
    caches = together.CONTEXT * (16 * slope[1] - slope[0])
    assert caches > 0.7 * (together.on_h100(16) - together.on_h100(1)) > 0.7 * (base[1] - base[0])


def test_the_keys_of_the_test():
    steps, cache, weights, tail, log, bursts = LAB.quiz
    prompt, said = (len(part) for part in answer.tokens(answer.QUESTIONS[0]))
    last = answer.upto(answer.QUESTIONS[0], said)
    assert len(last.said) == said != prompt + said, "as many steps as the answer has tokens"
    right_option(steps, *(int(option) == 100 for option in steps.options))
    right_words(cache, "keys and values of one token")
    right_words(weights, "reads the weights once")
    right_words(tail, "360")
    right_words(log, "2 s")
    calm, wild = (traffic.traffic(RATE, cv) for cv in (1.0, 3.0))
    assert wild.arrivals.max() > 1.5 * calm.arrivals.max()
    assert wild.run.arrival[-1] == pytest.approx(calm.run.arrival[-1], rel=0.05)
    right_words(bursts, "in some seconds")


def test_the_numbers_of_part_1():
    weights = sum(matrix.size for matrix in _matrices())
    sentence(SOURCE, "a model of {} million weights", weights / 1e6)
    sentence(SOURCE, "It grows by {} bytes a token here, and by {} with Llama-3.1-8B", answer.kv_bytes(),
             machines.H100.model.kv_bytes_per_token)  # fmt: skip
    prefill, decode = (1e3 * seconds for seconds in (together.prefill_on_h100(exercises.PROMPT), together.on_h100(1)))
    sentence(SOURCE, "the prefill of {} tokens takes {} ms and a decode {} ms", exercises.PROMPT, prefill, decode)
    card = machines.h100()
    sentence(SOURCE, "reading takes {} ms, and multiplying {} ms for each sequence", 1e3 * card.reading,
             1e3 * card.computing)  # fmt: skip
    sentence(SOURCE, "A prompt has {} tokens and its answer {}.", exercises.PROMPT, exercises.TOKENS)


def _matrices():
    model = answer.model()
    yield from (model.embedding, model.norm)
    for layer in model.layers:
        yield from vars(layer).values()


def test_a_step_for_sixteen_here_costs_less_than_sixteen_steps():
    """About four times on a quiet machine; a busy one may say two or seven, but no wall clock says sixteen."""
    taken = together.here()
    assert taken[16] < 16 * taken[1]


def test_the_numbers_of_part_2():
    p99 = traffic.traffic(exercises.RATE, 1.0).percentile(99)
    template = "At {} requests a second and a CV of {} the p99 of TTFT is {} ms"
    sentence(SOURCE, template, exercises.RATE, 1, 1e3 * p99)
    sentence(SOURCE, "two parts of {} minutes", PART_MINUTES)
    stored = minutes.read("00")["core"]["sections"]
    parts = [value for name, value in stored.items() if name.startswith(PARTS)]
    assert len(parts) == 2 and all(PART_MINUTES - 2 <= value <= PART_MINUTES for value in parts)


def test_the_numbers_that_tasks_name():
    (gain,), (far,) = tasks.TOGETHER, tasks.TRAFFIC
    assert [shown.value for shown in numbers(gain.text)] == [tasks.GAIN]
    assert [shown.value for shown in numbers(far.text)] == [99, tasks.FAR, 50]
    assert gain.settings["sequences"] <= together.MOST


def test_its_terms_are_in_the_glossary_and_linked():
    """Terms of the first glossary table, under the anchors of the page."""
    terms = known_terms(SOLUTIONS.parent)
    assert set(LAB.terms) <= set(terms)
    lab = (SOLUTIONS.parent / "labs" / "00_how_a_model_answers.ipynb").read_text(encoding="utf-8")
    for term in LAB.terms:
        assert f"{glossary.PAGE}#{terms[term]}" in lab, term
