"""Lab 08: the exercises and reports with their mistakes, and the names in the source."""

from math import ceil

import numpy as np
import pytest

from course import serve
from course.exercises import load
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge, overlaps
from course.lessons.lab08 import decision, kv_pool, reports
from course.workload import Workload
from tests.helpers.places import SOLUTIONS

LAB = load("08")


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


def test_the_answers_by_hand():
    assert exercise("token").solution == 2 * 28 * 4 * 128 * 2 == 57_344
    assert exercise("token").twin.solution == 2 * 64 * 8 * 128 * 2
    decide = exercise("decide").solution
    assert decide == {"flag": "--max-num-seqs", "value": 41_408 // 2_800, "unless": "b"} and decide["value"] == 14
    # Nobody is ever preempted: each holds whole blocks at its end, and one more would not fit.
    each = ceil(2_800 / 16)
    assert 14 * each <= kv_pool.BLOCKS < 15 * each


def test_the_wrong_answers_that_notes_and_trackers_give():
    hints = {mistake.answer: mistake.hint for mistake in exercise("token").mistakes}
    assert "query head" in hints[2 * 28 * 3_584 * 2]  # the width of the model
    assert "factor of two" in hints[28 * 4 * 128 * 2]
    values = {(m.answer["flag"], m.answer["value"]): m.hint for m in exercise("decide").mistakes}
    assert "average" in values["--max-num-seqs", round(41_408 / 2_400)]
    assert "prompts alone" in values["--max-num-seqs", 41_408 // 2_000]
    assert "limits nobody" in values["--max-model-len", 2_800]


@pytest.mark.parametrize("flag", ["--max-num-seqs", "max_num_seqs", "--max_num_seqs", " max-num-seqs "])
@pytest.mark.parametrize("unless", ["b", "B", "b)", "longer answers", "b) longer answers", "Longer answers."])
def test_the_decision_may_be_written_in_other_ways(flag, unless):
    decide = exercise("decide")
    assert judge(decide, {"flag": flag, "value": 14, "unless": unless}).status == RIGHT
    assert judge(decide, {"flag": flag, "value": 15, "unless": unless}).status == WRONG


def test_a_wrong_decision_gets_its_hint():
    decide, right = exercise("decide"), decision.RIGHT
    assert judge(decide, dict.fromkeys(right)).status == NOT_ATTEMPTED
    assert "pool still holds no more" in judge(decide, right | {"unless": "a longer queue"}).hint
    assert "limits nobody" in judge(decide, right | {"flag": "max_model_len", "value": 4_096}).hint
    assert judge(decide, right | {"unless": "answers"}).status == WRONG
    assert judge(decide, "--max-num-seqs").status == judge(decide, {"flag": "--max-num-seqs"}).status == WRONG


def test_the_options_of_the_decision_are_those_of_the_text():
    source = " ".join((SOLUTIONS / "08_kv_budgeting.py").read_text(encoding="utf-8").replace("# ", "").split())
    assert all(f"{letter}) {words}" in source for letter, words in decision.OPTIONS.items())


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
