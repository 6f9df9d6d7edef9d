"""Every exercise of every lab: what is right is right in any form, and hundreds of wrong answers are not."""

from __future__ import annotations

import functools
import random
from collections import OrderedDict
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, islice, pairwise
from types import MappingProxyType

import numpy as np
import pytest

from course.engine.step import Step
from course.exercises.compare import as_number, near
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.exercises.spec import Exercise
from course.exercises.time_limit import OutOfTime, TimeLimit
from course.lessons import available, load
from course.lessons.lab18.design import Design
from tests.helpers.inputs import DRAWS
from tests.helpers.sizes import size
from tests.helpers.wrong_answers import different, mutants

ALL = {
    f"{number}-{exercise.id}{'-twin' * (one is exercise.twin)}": one
    for number in available()
    for exercise in load(number).exercises
    for one in (exercise, exercise.twin)
    if one is not None
}
FUNCTIONS = {name: one for name, one in ALL.items() if one.probes is not None}
VALUES = {name: one for name, one in ALL.items() if as_number(one.solution) is not None}
CHOICES = {name: one for name, one in ALL.items() if isinstance(one.solution, Mapping)}
DESIGNS = {name: one for name, one in ALL.items() if isinstance(one.solution, Design)}
"""Answers that are objects of a lesson, which has the tests of their forms."""
INPUTS = size(60, 200)
EACH = size(3, 1)
"""Of the changes to a solution, one in so many is tried."""


def of(exercises: dict[str, Exercise]) -> list:
    return [pytest.param(one, id=name) for name, one in exercises.items()]


def test_every_exercise_is_of_a_kind_that_is_tried():
    assert set(ALL) == {*FUNCTIONS, *VALUES, *CHOICES, *DESIGNS}
    assert {tuple(name.split("-")[:2]) for name in FUNCTIONS} == set(DRAWS)


# Right in any form


class Called:
    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments):
        return self.function(*arguments)

    def method(self, *arguments):
        return self.function(*arguments)


def results(change):
    """The solution, with what it returns in another form."""
    return lambda right: lambda *arguments: change(right(*arguments))


def through_numpy(result):
    if isinstance(result, dict):
        return {key: np.int64(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return np.array(result)
    return np.float64(result)


def as_floats(result):
    if isinstance(result, dict):
        return {key: float(value) for key, value in result.items()}
    return [float(part) for part in result] if isinstance(result, list | tuple) else float(result)


def in_another_container(result):
    if isinstance(result, dict):
        return MappingProxyType(OrderedDict(reversed(result.items())))
    return (
        tuple(result) if isinstance(result, list) else list(result) if isinstance(result, tuple) else np.array(result)
    )


def as_read_once(result):
    return (part for part in result) if isinstance(result, list | tuple) else result


def printing(right):
    def function(*arguments):
        print("here", arguments)
        return right(*arguments)

    return function


FORMS = {
    "a lambda": lambda right: lambda *given: right(*given),
    "other names": lambda right: lambda a, b, *c: right(a, b, *c),
    "a partial": functools.partial,
    "a callable object": Called,
    "a bound method": lambda right: Called(right).method,
    "wrapped": lambda right: functools.wraps(right)(lambda *given: right(*given)),
    "a default too many": lambda right: lambda a, b, *c, verbose=False: right(a, b, *c),
    "numbers of NumPy": results(through_numpy),
    "floats": results(as_floats),
    "another container": results(in_another_container),
    "read once": results(as_read_once),
    "a function that prints": printing,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("exercise", of(FUNCTIONS))
def test_a_right_function_is_right_in_any_form(exercise, form):
    verdict = judge(exercise, FORMS[form](exercise.solution))
    assert verdict.status == RIGHT, verdict.hint


def reader_by_numpy(sent, tokens):
    moments = np.asarray(tokens)
    gaps = np.diff(moments)
    return moments[0] - sent, gaps.mean(), moments[-1] - sent, gaps.max()


def reader_by_hand(sent, tokens):
    longest, before = 0, tokens[0]
    for moment in tokens[1:]:
        if moment - before > longest:
            longest = moment - before
        before = moment
    return [tokens[0] - sent, (before - tokens[0]) / (len(tokens) - 1), before - sent, longest]


def floor_by_cases(batch, context):
    weights, products = 15.0e9 / 3.02e12, batch * 15.0e9 / 778e12
    if products > weights:
        return products + batch * context * 131_072 / 3.02e12
    return weights + batch * context * 131_072 / 3.02e12


def capacity_by_the_time_of_a_request(step_time, prompt, output, context, slots):
    seconds = step_time(Step(slots - 1, (slots - 1) * context, ((prompt, 0),)))
    seconds += (output - slots) / slots * step_time(Step(slots, slots * context, ()))
    return seconds**-1


def refill_by_recursion(running, waiting, slots):
    if len(running) >= slots or not waiting:
        return running
    first, *rest = waiting.items()
    return refill_by_recursion(running | dict([first]), dict(rest), slots)


def refill_by_islice(running, waiting, slots):
    return {**running, **dict(islice(waiting.items(), slots - len(running)))}


def share_by_recursion(decoding, prompts, budget, cap):
    if decoding:
        return {decoding[0]: 1} | share_by_recursion(decoding[1:], prompts, budget - 1, cap)
    if not prompts or budget <= 0:
        return {}
    (request, left), *rest = prompts.items()
    chunk = min(left, cap, budget)
    return {request: chunk} | share_by_recursion([], dict(rest), budget - chunk, cap)


def share_with_a_counter(decoding, prompts, budget, cap):
    tokens = {}
    for request in decoding:
        tokens[request] = 1
        budget -= 1
    for request in prompts:
        if budget == 0:
            break
        tokens[request] = chunk = sorted((prompts[request], cap, budget))[0]
        budget -= chunk
    return tokens


def slots_downwards(num_blocks, block_size, tokens):
    blocks = [-(-length // block_size) for length in tokens]
    mean = sum(blocks) / len(blocks)
    deviation = (sum((block - mean) ** 2 for block in blocks) / len(blocks)) ** 0.5
    n = int(num_blocks / mean)
    while n > 1 and n * mean + 2 * n**0.5 * deviation > num_blocks:
        n -= 1
    return n


def felt_by_accumulate(planned, seconds):
    ends = accumulate(zip(planned, seconds, strict=True), lambda free, one: max(free, one[0]) + one[1], initial=0.0)
    return [end - plan for end, plan in zip(islice(ends, 1, None), planned, strict=True)]


def felt_by_recursion(planned, seconds, free=0.0):
    if not planned:
        return []
    end = max(free, planned[0]) + seconds[0]
    return [end - planned[0], *felt_by_recursion(planned[1:], seconds[1:], end)]


OTHER_WAYS = [
    ("01-reader", reader_by_numpy),
    ("01-reader", reader_by_hand),
    ("01-reader", lambda s, t: (t[0] - s, (t[-1] - t[0]) / len(t[1:]), t[-1] - s, max(b - a for a, b in pairwise(t)))),
    ("02-floor", floor_by_cases),
    ("03-capacity", capacity_by_the_time_of_a_request),
    ("04-refill", refill_by_recursion),
    ("04-refill", refill_by_islice),
    ("07-share", share_by_recursion),
    ("07-share", share_with_a_counter),
    ("08-slots", slots_downwards),
    ("16-felt", felt_by_accumulate),
    ("16-felt", felt_by_recursion),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function"), OTHER_WAYS, ids=lambda part: getattr(part, "__name__", part))
def test_a_right_function_is_right_however_it_is_written(name, function):
    verdict = judge(ALL[name], function)
    assert verdict.status == RIGHT, verdict.hint


NUMBERS = [
    float, np.float64, np.float32, np.array, Fraction, lambda value: Decimal(str(value)),
    lambda value: value * (1 + 1e-9), lambda value: np.array(value).reshape(()),
    lambda value: int(value) if value == int(value) else value,
    lambda value: np.int64(value) if value == int(value) else value,
    lambda value: type("Own", (float,), {})(value),
]  # fmt: skip


@pytest.mark.parametrize("exercise", of(VALUES))
def test_a_right_number_is_right_in_any_form(exercise):
    for form in NUMBERS:
        answer = form(exercise.solution)
        assert judge(exercise, answer).status == RIGHT, repr(answer)


FLAGS = [
    str, str.upper, lambda flag: flag.lstrip("-"), lambda flag: flag.lstrip("-").replace("-", "_"),
    lambda flag: f" {flag} ", lambda flag: f"-{flag.lstrip('-')}",
]  # fmt: skip
CHOSEN = [int, float, np.int64, str, "{:,}".format, "{:_}".format]


@pytest.mark.parametrize("exercise", of(CHOICES))
def test_a_right_choice_is_right_however_it_is_typed(exercise):
    right = exercise.solution
    forms = [{flag(name): value for name, value in right.items()} for flag in FLAGS]
    listed = any(isinstance(value, str) for value in right.values())  # a list of sizes as it is typed, no number
    forms += [{name: typed(value) for name, value in right.items()} for typed in ([str] if listed else CHOSEN)]
    forms += [MappingProxyType(dict(right)), OrderedDict(right), {**right, "--another-flag": None}]
    for answer in forms:
        verdict = judge(exercise, answer)
        assert verdict.status == RIGHT, (answer, verdict.hint)


# Wrong, whatever its form


def wrong_functions(name: str) -> list:
    """The changes to a solution that inputs of their own tell from it."""
    exercise = FUNCTIONS[name]
    draw = random.Random(name)
    assert tuple(name.split("-")[:2]) in DRAWS, f"{name}: add random inputs to DRAWS in tests/helpers/inputs.py"
    inputs = [DRAWS[tuple(name.split("-")[:2])](draw) for _ in range(INPUTS)]
    found = []
    for change, function in list(mutants(exercise.solution))[::EACH]:
        try:
            told = TimeLimit(1.0).run(different, function, exercise.solution, inputs, exercise.rtol, exercise.shown)
        except OutOfTime:
            told = True
        if told:
            found.append((change, function))
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_with_one_change_is_not_right(name, monkeypatch):
    """The probes find what two hundred random inputs find."""
    monkeypatch.setattr("course.exercises.time_limit.SECONDS", 1.0)
    tried = wrong_functions(name)
    assert len(tried) >= size(5, 15)
    taken = [change for change, function in tried if judge(FUNCTIONS[name], function).status == RIGHT]
    assert not taken, f"{name}: judged right with a change; `probes` need inputs that tell it"


@pytest.mark.parametrize("exercise", of(VALUES))
def test_a_number_beyond_the_tolerance_is_not_right(exercise):
    right = as_number(exercise.solution)
    wide = 1 + 3 * max(exercise.rtol, 1e-4)
    values = [right * wide, right / wide, right + 1, right - 1, -right, 0, 1 / right, right**2, 2 * right, right / 2]
    values += [right * factor for factor in (1e3, 1e-3, 100, 0.01, 60, 3600, 1.024)]
    wrong = [value for value in values if not near(value, right, exercise.rtol, exercise.shown)]
    assert len(wrong) >= 12
    for value in wrong:
        assert judge(exercise, value).status == WRONG, value
    for answer in (str(right), [right], {"answer": right}, {right}, complex(right), True, lambda: right, "about half"):
        assert judge(exercise, answer).status == WRONG, repr(answer)


@pytest.mark.parametrize("exercise", of(CHOICES))
def test_another_flag_or_another_value_is_not_right(exercise):
    right = exercise.solution
    (flag, value), *_ = right.items()
    others = [{"--max-tokens": value}, {flag + "s": value}, {flag: 3 if value == 1 else 1}, {flag: 0}]
    if not isinstance(value, str):  # a list of sizes as it is typed
        others += [{flag: value * 4_096}, {flag: -value}]
    others += [{flag: "many"}, {flag: [value]}, {flag: value != 1}, {flag: float("nan")}, flag, value, [flag, value]]
    for answer in others:
        verdict = judge(exercise, answer)
        assert verdict.status in (WRONG, NOT_ATTEMPTED) and verdict.status != RIGHT, answer
        assert verdict.hint, answer
