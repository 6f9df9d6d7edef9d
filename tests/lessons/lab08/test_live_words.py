"""Lab 08's live view: a pool that runs out preempts, and no word of an answer changes; measured beside recorded."""

from __future__ import annotations

import threading

import pytest

from course import lm
from course.explore import words as live_view
from course.explore.words import WordsExplorer
from course.lessons import lab08
from course.lessons.lab08.live_words import POOLS, PROMPTS, RATE, SLOTS, STEP, cache, recorded, rows

ALL, SOME, FEW = POOLS


@pytest.fixture(scope="module")
def view() -> WordsExplorer:
    return lab08.a_pool_that_runs_out()


@pytest.mark.parametrize("slots", [2, 4, 8])
def test_no_word_is_lost_with_a_preemption(view: WordsExplorer, slots: int) -> None:
    for name in POOLS:
        assert view.compute(policy=name, max_num_seqs=slots).run.words == tuple(prompt.answer for prompt in PROMPTS)


def test_the_small_pools_preempt_and_what_was_lost_is_computed_again(view: WordsExplorer) -> None:
    runs = {name: view.compute(policy=name).run for name in POOLS}
    prompts = runs[ALL].workload.prompt_tokens.sum()
    assert runs[ALL].steps.preemptions.sum() == 0 and runs[ALL].steps.prefill_tokens.sum() == prompts
    for name in (SOME, FEW):
        steps = runs[name].steps
        assert steps.preemptions.sum() > 0
        assert steps.blocks.max() <= POOLS[name] < runs[ALL].steps.blocks.max()
        # Of each preempted request the lost tokens are a prompt again, with the one that was said and not yet computed.
        assert steps.prefill_tokens.sum() == prompts + steps.dropped.sum() + steps.preemptions.sum()
    assert len(runs[FEW].steps) > len(runs[SOME].steps) > len(runs[ALL].steps)


def test_somebody_is_seen_to_leave_its_lane_and_to_come_back(view: WordsExplorer) -> None:
    """While it speaks: before and after it is away there are words of it."""
    frames = view.compute(policy=FEW)._frames
    for row in range(4):
        said = [step for step, frame in enumerate(frames) for part in frame.parts if part.row == row and part.text]
        away = [step for step, frame in enumerate(frames) if row in frame.waiting and step > said[0]]
        if away:
            assert said[0] < away[0] <= away[-1] < said[-1]
            return
    pytest.fail("nobody was preempted in the middle of an answer")


def test_the_card_preempts_as_well() -> None:
    card = recorded(RATE, SLOTS)
    assert [int(run.steps.preemptions.sum()) > 0 for run in card.values()] == [False, True, True]
    assert card[FEW].makespan > card[SOME].makespan > card[ALL].makespan
    assert cache(ALL) is None and (cache(FEW).num_blocks, cache(FEW).block_size) == (12, 16)


def test_its_text_is_the_same_everywhere(view: WordsExplorer) -> None:
    text = view.text()
    assert text == lab08.a_pool_that_runs_out().text() and "measured" not in text
    assert f"recorded: {STEP.card.split()[1]}, Llama-3.1-8B" in text and text.count("the same words") == 2


def test_a_column_fills_when_its_pool_was_played() -> None:
    shown = lab08.a_pool_that_runs_out()
    before = threading.enumerate()
    shown._repr_mimebundle_()
    assert shown.compared(shown.defaults)[2] == ("measured on this machine", "-", "-", "-")
    result = shown.set(policy=SOME)
    here, blocks, words = shown.compared(shown.view.settings)[2:]
    count = int(result.run.steps.preemptions.sum())
    assert here[2].startswith(f"{result.time(result.run.makespan)}, {count} preempted")
    assert blocks[2] == f"{result.run.steps.blocks.max()}" and words[1:] == ("-", "8 answers", "-")
    shown._repr_mimebundle_()  # the cell runs again
    assert threading.enumerate() == before


def test_damaged_weights_leave_the_recording_and_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "The weights model.safetensors are damaged."

    def load() -> None:
        raise lm.LMError(said)

    monkeypatch.setattr(live_view, "_model", load)
    shown = lab08.a_pool_that_runs_out()
    bundle = shown._repr_mimebundle_()
    assert said in shown.view.notice.value and said in bundle["text/plain"]
    assert "recorded: H100" in shown.view.compared.value


def test_a_table_needs_no_run() -> None:
    assert [cell for row in rows({"rate": RATE, "max_num_seqs": SLOTS}, {})[2:] for cell in row[1:]] == ["-"] * 9
