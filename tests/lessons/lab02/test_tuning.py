"""Lab 02's decision: what is accepted holds its promise when it is served at other rates and from another seed."""

from __future__ import annotations

import itertools

import pytest

from course.exercises.judge import RIGHT, WRONG, judge
from course.lessons import load
from course.lessons.lab02 import engine_log
from course.lessons.lab02.one_curve import PRICE, dollars

DECISION = load("02").exercises[-1]
OTHERS = list(itertools.product((0.9, 1.0, 1.1), (0, 1)))
"""Of the rate, and seeds."""


@pytest.mark.parametrize(
    ("exercise", "promise", "right", "offered"),
    [
        (DECISION, engine_log.PROMISE, 64, (32, 64, 128, 256)),
        (DECISION.twin, engine_log.PROMISE_TWIN, 32, (16, 32, 64, 128)),
    ],
)
@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_the_accepted_slots_keep_the_promise_and_the_others_break_it_or_cost_more(
    exercise, promise, right, offered, times, seed
) -> None:
    tpot = {slots: engine_log.mean_tpot(slots, times, seed) for slots in offered}
    cost = {slots: dollars(slots, each, PRICE) for slots, each in tpot.items()}
    for slots in offered:
        accepted = judge(exercise, {"--max-num-seqs": slots}).status
        assert accepted == (RIGHT if slots == right else WRONG)
        keeps = tpot[slots] <= promise
        assert keeps if slots == right else not keeps or cost[slots] > 1.1 * cost[right]
