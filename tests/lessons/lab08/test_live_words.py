"""Lab 08's live view: who is preempted is computed again, and says the same words."""

from __future__ import annotations

import threading

import pytest

from course import lm
from course.lessons.lab08 import live_words
from course.lessons.lab08.live_words import BLOCK_SIZE, POOL, explorer, on_the_card


@pytest.fixture(scope="module")
def view():
    return explorer()


@pytest.mark.parametrize("blocks", POOL.stops)
def test_the_words_come_again_unchanged(view, blocks):
    found = view.compute(num_blocks=blocks)
    run = found.run
    assert {(part.row, part.lane) for frame in found.watch.frames for part in frame.parts} == {(n, n) for n in range(4)}
    assert run.words == tuple(prompt.answer for prompt in live_words.prompts())
    assert run.steps.blocks.max() <= blocks
    again = int(run.steps.dropped.sum())
    needed = int(run.workload.prompt_tokens.sum() + (run.workload.output_tokens - 1).sum())
    assert run.steps.decodes.sum() + run.steps.prefill_tokens.sum() == needed + again
    assert (run.preempted.sum() > 0) == (again > 0) == (blocks < POOL.high)
    assert run.preempted[0] == 0  # admitted first: never the one that gives way
    rows = {label: values for label, *values in view.rows(view.compute(num_blocks=blocks))}
    assert rows["answers that changed"] == ["0 of 4", "-"] and rows["computed again"][0] == f"{again:,} tokens"
    assert rows["preemptions"][0].split()[0] == f"{run.preempted.sum()}"
    assert all((f"#{row}" in rows["preemptions"][0]) == (count > 0) for row, count in enumerate(run.preempted))


@pytest.mark.parametrize("blocks", POOL.stops)
def test_the_card_runs_the_same_requests_in_the_same_steps(view, blocks):
    run, card = view.compute(num_blocks=blocks).run, on_the_card(blocks)
    assert card.workload.prompt_tokens.tolist() == run.workload.prompt_tokens.tolist()
    assert card.workload.output_tokens.tolist() == run.workload.output_tokens.tolist()
    assert card.preempted.tolist() == run.preempted.tolist() and len(card.steps) == len(run.steps)
    assert card.cache.block_size == BLOCK_SIZE


def test_its_text_is_the_same_each_time_and_measures_nothing(view):
    text = view.text()
    assert text == explorer().text() and "counted in steps" in text and "measured" not in text


def test_shown_and_played_it_measures_and_leaves_no_thread(view):
    before = threading.enumerate()
    for _ in range(2):
        view._repr_mimebundle_()
        assert "simulated: H100" in view.view.compared.value
        assert not view.set(num_blocks=20).counted
        assert "0 of 4" in view.view.compared.value
    assert threading.enumerate() == before


def test_damaged_weights_leave_the_recording_and_a_sentence(monkeypatch):
    def broken():
        raise lm.LMError("The checksum of model.safetensors is wrong. Install the course again.")

    monkeypatch.setattr(live_words, "_model", broken)
    view = explorer()
    assert "Install the course again." in view.text()
    view._repr_mimebundle_()
    assert "Install the course again." in view.view.notice.value and "simulated: H100" in view.view.compared.value
