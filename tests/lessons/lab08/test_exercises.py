"""Lab 08: the exercises and reports with their mistakes, and the names in the source."""

from math import ceil
from statistics import mean, stdev

import numpy as np
import pytest

from course import serve
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge, overlaps
from course.lessons import load
from course.lessons.lab08 import kv_pool, reports
from course.workload import Workload

LAB = load("08")


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


def test_the_answers_by_hand():
    assert exercise("token").solution == 2 * 28 * 4 * 128 * 2 == 57_344
    assert exercise("token").twin.solution == 2 * 64 * 8 * 128 * 2
    decide = exercise("decide").solution
    assert decide == {"--max-num-seqs": 41_408 // 2_800} == {"--max-num-seqs": 14}
    fp8 = 2 * 41_408
    assert exercise("residents").solution == pytest.approx(fp8 / (3_000 + 800 * (1 + 1**2) / 2))
    assert exercise("residents").twin.solution == pytest.approx(fp8 / (6_000 + 3_000 * (1 + 0**2) / 2))
    # Nobody is ever preempted: each holds whole blocks at its end, and one more would not fit.
    each = ceil(2_800 / 16)
    assert 14 * each <= kv_pool.BLOCKS < 15 * each


def test_the_wrong_answers_that_notes_and_trackers_give():
    hints = {mistake.answer: mistake.hint for mistake in exercise("token").mistakes}
    assert "query head" in hints[2 * 28 * 3_584 * 2]  # the width of the model
    assert "factor of two" in hints[28 * 4 * 128 * 2]
    values = {pair: m.hint for m in exercise("decide").mistakes for pair in m.answer.items()}
    assert "average" in values["--max-num-seqs", round(41_408 / 2_400)]
    assert "prompts alone" in values["--max-num-seqs", 41_408 // 2_000]
    assert "limits nobody" in values["--max-model-len", 2_800]


@pytest.mark.parametrize("flag", ["--max-num-seqs", "max_num_seqs", "--max_num_seqs", " max-num-seqs "])
def test_the_decision_may_be_written_in_other_ways(flag):
    decide = exercise("decide")
    assert judge(decide, {flag: 14}).status == judge(decide, {flag: "14"}).status == RIGHT
    assert judge(decide, {flag: 15}).status == judge(decide, {flag: None, "other": 14}).status == WRONG


def test_a_wrong_decision_gets_its_hint():
    decide = exercise("decide")
    assert judge(decide, {"--flag": None}).status == NOT_ATTEMPTED
    assert "limits nobody" in judge(decide, {"max_model_len": 4_096}).hint
    assert judge(decide, "--max-num-seqs").status == WRONG


@pytest.mark.parametrize(
    ("given", "status"), [(22, RIGHT), (21.79, RIGHT), (21.8, RIGHT), (21, RIGHT), (10.9, WRONG), (24.4, WRONG)]
)
def test_the_residents_may_be_rounded_to_a_whole_request_up_or_down(given, status):
    assert judge(exercise("residents"), given).status == status


def test_with_that_many_slots_nobody_is_preempted():
    load = Workload.poisson(3.0, 300, 2_000, 800, 0)
    step, cache = kv_pool.step_time(), kv_pool.cache()
    lost = [int(serve(load, kv_pool.engine(slots), step, cache).preempted.sum()) for slots in (14, 24)]
    assert lost[0] == 0 < lost[1]


@pytest.mark.parametrize(("num_blocks", "block_size"), [(2_588, 16), (700, 64), (10, 16)])
def test_the_slots_are_the_largest_number_that_fits(num_blocks, block_size):
    tokens = kv_pool.tokens_held()
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


def test_the_deviation_of_a_sample_is_told_from_that_of_the_lengths():
    def with_statistics(num_blocks, block_size, tokens):
        blocks = [-(-t // block_size) for t in tokens]
        n = 1
        while (n + 1) * mean(blocks) + 2 * (n + 1) ** 0.5 * stdev(blocks) <= num_blocks:
            n += 1
        return n

    verdict = judge(exercise("slots"), with_statistics)
    assert verdict.status == WRONG and "n - 1" in verdict.hint


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
