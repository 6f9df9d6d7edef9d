"""Lab 04: what it shows of vLLM's own runs is what was recorded."""

from __future__ import annotations

import json

import pytest

from course.lessons import lab04
from course.lessons.lab04 import as_vllm, refill
from tests.helpers.places import ROOT

RECORDED = {
    name: json.loads((ROOT / f"course/data/vllm/{name}.json").read_text(encoding="utf-8"))
    for name in ("questions_4", "questions_8")
}


def schedule(name: str) -> list[dict[int, int]]:
    """The tokens of each request in each step, requests counted from 1, straight from the file."""
    return [
        {
            (entry if isinstance(entry, int) else entry[0]) + 1: 1 if isinstance(entry, int) else entry[1]
            for entry in row
        }
        for row in RECORDED[name]["steps"]["batch"]
    ]


def test_the_decisions_are_the_recorded_steps():
    steps, waiting = schedule("questions_4"), RECORDED["questions_4"]["steps"]["waiting"]
    assert [one.tokens for one in as_vllm.decisions()] == steps
    assert [len(one.waiting.keys() - one.tokens) for one in as_vllm.decisions()] == waiting
    assert all(one.running.keys() <= one.tokens.keys() for one in as_vllm.decisions())  # nobody is preempted
    outputs = RECORDED["questions_4"]["requests"]["output_tokens"]
    for one in as_vllm.decisions():  # who ended has had as many steps as its answer has tokens
        assert all(
            sum(request in step for step in steps[: one.step - 1]) == outputs[request - 1] for request in one.ended
        )


def test_the_table_lists_refills_of_full_slots_beside_the_learners():
    head, *rows, last = lab04.beside_vllm(refill.refill).rows
    steps = schedule("questions_4")
    assert len(rows) == as_vllm.SHOWN and head[-1] == "your refill"
    for step, ended, _, computed, yours in rows:
        assert computed == str(steps[int(step) - 1]) and yours == "the same"
        assert int(ended) in steps[int(step) - 2] and int(ended) not in steps[int(step) - 1]
    assert last[-1] == f"the same in {len(steps)}"
    said = lab04.beside_vllm(refill.refill).caption
    assert said == "vLLM 0.32.0, small model, two cores, 2026-11-29: 24 questions, 4 slots [recorded]"


@pytest.mark.parametrize("slip", [refill.only_when_empty, refill.forgets_the_running, refill.one_token_each,
                                  refill.ignores_the_slots, refill.stops_for_newcomers])  # fmt: skip
def test_another_rule_is_not_vllms(slip):
    *rows, last = (row[-1] for row in lab04.beside_vllm(slip).rows)
    assert "the same" not in rows and last != f"the same in {len(as_vllm.decisions())}"


def test_an_untouched_refill_and_one_that_raises_leave_vllms_part():
    rows = lab04.beside_vllm(lambda running, waiting, slots: None).rows
    assert {row[-1] for row in rows[1:-1]} == {"-"} and rows[-1][-1] == "the same in 0"
    rows = lab04.beside_vllm(lambda running, waiting, slots: waiting.clear() or running[99]).rows
    assert {row[-1] for row in rows[1:-1]} == {"-"} and rows[1][3] == str(as_vllm.decisions()[50].tokens)


@pytest.mark.parametrize(("slots", "name"), [(4, "questions_4"), (8, "questions_8"), (1, None)])
def test_its_line_beside_the_words(slots, name):
    label, static, dynamic, continuous, gain = as_vllm.line({"max_num_seqs": slots})
    assert label == "vLLM 0.32.0, small model, two cores, 2026-11-29: 24 questions"
    assert static == dynamic == "-" and gain == ""
    if name is None:
        assert continuous == "-"
    else:
        tokens = sum(RECORDED[name]["requests"]["output_tokens"])
        assert continuous == f"{tokens / len(schedule(name)):.2f} tokens a step"
