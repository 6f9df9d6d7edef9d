"""Lab 08: the exercises and reports with their mistakes, and the names in the source."""

from math import ceil

import numpy as np
import pytest

from course.exercises import load
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge, overlaps
from course.lessons.lab08 import kv_pool, reports
from course.models import ModelSpec
from tests.helpers.places import SOLUTIONS

LAB = load("08")
GIB = 2**30
SOURCE = SOLUTIONS / "08_kv_budgeting.py"
LLAMA_TOKEN = 2 * 32 * 8 * 128 * 2


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


def test_the_answers_by_hand():
    llama = exercise("token").probes[0][0]
    assert exercise("token").solution(llama, 2) == LLAMA_TOKEN == 131_072
    usable = 0.9 * 85_018_542_080
    left = usable - 16_059_990_016 - 5_124_915_200 - 139_586_437
    assert exercise("fits").solution == int(left / (8192 * LLAMA_TOKEN)) == 51
    assert exercise("residents").solution == round(41_408 / (1_024 + 512 * (1 + 1) / 2)) == 27


def test_the_wrong_answers_that_notes_and_trackers_give():
    hints = {m.answer: m.hint for name in ("fits", "residents") for m in exercise(name).mistakes}
    usable, weights, each = 0.9 * 85_018_542_080, 16_059_990_016, 8192 * LLAMA_TOKEN
    assert int(usable / (weights + each)) == 4 and "once a sequence" in hints[4]  # weights for every sequence
    assert int(usable / each) == 71 and "weights" in hints[71]
    assert 41_408 // 8_192 == 5 and "printed" in hints[5]
    assert 41_408 // 1_024 == 40 and "Answers" in hints[40]
    config = exercise("token").probes[0][0]
    wrong = [mistake.answer(config, 2) for mistake in exercise("token").mistakes]
    assert wrong[:2] == [524_288, 65_536]


def test_bytes_a_token_are_those_of_the_package():
    for config, size in exercise("token").probes:
        spec = ModelSpec.from_config({"model_type": "llama", "vocab_size": 32_000, "intermediate_size": 1, **config})
        dtype = {1: "fp8", 2: None}[size]
        assert exercise("token").solution(config, size) == spec.with_kv_dtype(dtype).kv_bytes_per_token


@pytest.mark.parametrize(("num_blocks", "block_size"), [(2_588, 16), (700, 64), (10, 16)])
def test_the_slots_are_the_largest_number_that_fits(num_blocks, block_size):
    tokens = kv_pool.residents()
    blocks = np.array([ceil(one / block_size) for one in tokens])
    n = exercise("slots").solution(num_blocks, block_size, tokens)

    def need(count):
        return count * blocks.mean() + 2 * count**0.5 * blocks.std()

    assert need(n + 1) > num_blocks and (n == 1 or need(n) <= num_blocks)


def test_the_slots_exercise_takes_other_ways_of_writing_it():
    def by_the_quadratic_formula(num_blocks, block_size, tokens):
        blocks = [-(-t // block_size) for t in tokens]
        mean = sum(blocks) / len(blocks)
        spread = (sum((b - mean) ** 2 for b in blocks) / len(blocks)) ** 0.5
        root = (-2 * spread + (4 * spread**2 + 4 * mean * num_blocks) ** 0.5) / (2 * mean)
        return max(1, int(root**2))

    assert judge(exercise("slots"), by_the_quadratic_formula).status == RIGHT
    assert judge(exercise("slots"), lambda *_: 27).status == WRONG


@pytest.mark.parametrize("item", reports.REPORTS, ids=lambda e: e.id)
def test_a_report_in_three_parts(item):
    assert judge(item, None).status == NOT_ATTEMPTED
    assert judge(item, item.solution).status == RIGHT
    assert len(item.mistakes) >= 2 and overlaps(item) is None
    for position, mistake in enumerate(item.mistakes):
        assert judge(item, mistake.answer).mistake == position
        assert f"{item.solution:,}" not in mistake.hint


def test_the_reports_by_hand():
    by_hand = {
        "concurrency": 37_765 // 800, "qwen": 57_344, "tensorrt": 69.5, "a10": 65.2, "llama.cpp": 2_048, "never": 6_250,
    }  # fmt: skip
    assert by_hand["never"] > 5_000 and by_hand["a10"] > 24  # neither can be
    assert reports.check(by_hand).status == RIGHT
    assert reports.check({}).status == reports.check(None).status == NOT_ATTEMPTED
    card = reports.check(by_hand | {"qwen": 401_408, "a10": "many"})
    assert card.status == WRONG and card.heading.startswith("4 of 6")
    assert "KV heads" in card.text() and "right" in card.text()


# The source
