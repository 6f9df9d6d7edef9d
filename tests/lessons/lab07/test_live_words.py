"""Lab 07's live view: chunks keep the chats' words coming, and change none of them; measured beside recorded."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from course import lm
from course.explore import words as live_view
from course.explore.words import WordsExplorer
from course.lessons import lab07
from course.lessons.lab07.live_words import (
    CHATS,
    LONG,
    NEWCOMER,
    PROMPTS,
    RATE,
    SETTINGS,
    SLOTS,
    longest_gap,
    policy,
    recorded,
    rows,
)  # fmt: skip
from course.lessons.lab07.long_prompt import STEP
from tests.helpers.places import SOLUTIONS

WHOLE, CHUNKS, CAPPED = SETTINGS


@pytest.fixture(scope="module")
def view() -> WordsExplorer:
    return lab07.a_long_question()


def test_the_words_are_the_same_with_and_without_chunks_and_right(view: WordsExplorer) -> None:
    for name in SETTINGS:
        assert view.compute(policy=name).run.words == tuple(prompt.answer for prompt in PROMPTS)


def test_both_chats_stream_when_the_long_question_comes(view: WordsExplorer) -> None:
    """On the card and in counted steps; it is the only one that a budget of 32 cuts."""
    for run in (*recorded(RATE, SLOTS).values(), *(view.compute(policy=name).run for name in SETTINGS)):
        long = run.arrival[LONG]
        assert all(run.token_times(chat)[0] < long < run.response[chat] for chat in CHATS)
        assert run.queue_wait[LONG] < 0.02  # a slot is free: it joins the step after the one under way
    assert [int(tokens) for tokens in view.compute(policy=WHOLE).run.workload.prompt_tokens] == [31, 15, 186, 13]
    assert "conversation of 186 tokens" in (SOLUTIONS / "07_chunked_prefill.py").read_text(encoding="utf-8")


def test_what_a_step_computes_of_the_long_question(view: WordsExplorer) -> None:
    most = {name: view.compute(policy=name).run.steps.prefill_tokens.max() for name in SETTINGS}
    assert most[WHOLE] >= 186 and most[CHUNKS] <= 32
    capped = [part.prefill for frame in view.compute(policy=CAPPED)._frames for part in frame.parts if part.row == LONG]
    assert max(capped) == 32 and sum(capped) == 186
    assert [policy(name, 4).long_prefill_token_threshold for name in SETTINGS] == [0, 0, 32]


def test_on_the_card_chunks_shorten_the_gap_and_lengthen_the_wait() -> None:
    card = recorded(RATE, SLOTS)
    assert longest_gap(card[CHUNKS]) < longest_gap(card[WHOLE])
    assert card[CHUNKS].ttft[LONG] > 2 * card[WHOLE].ttft[LONG]
    assert card[CAPPED].ttft[NEWCOMER] < card[CHUNKS].ttft[NEWCOMER]


def test_the_longest_gap_is_that_of_the_chats() -> None:
    run = recorded(RATE, SLOTS)[WHOLE]
    gaps = [b - a for chat in CHATS for a, b in zip(run.token_times(chat), run.token_times(chat)[1:], strict=False)]
    assert longest_gap(run) == max(gaps) > np.median(gaps)


def test_its_text_is_the_same_everywhere(view: WordsExplorer) -> None:
    text = view.text()
    assert text == lab07.a_long_question().text() and "measured" not in text
    assert f"longest gap, recorded: {STEP.card.split()[1]}" in text and text.count("the same words") == 2


def test_a_column_fills_when_its_budget_was_played() -> None:
    shown = lab07.a_long_question()
    before = threading.enumerate()
    shown._repr_mimebundle_()
    assert shown.compared(shown.defaults)[2] == ("longest gap, measured on this machine", "-", "-", "-")
    result = shown.set(policy=CHUNKS)
    _, card, here, long, newcomer, words = shown.compared(shown.view.settings)
    assert card == shown.compared(shown.defaults)[1]
    assert here[1:] == ("-", result.time(longest_gap(result.run)), "-")
    assert (long[2], newcomer[2]) == tuple(result.time(float(result.run.ttft[who])) for who in (LONG, NEWCOMER))
    assert words[1:] == ("-", "4 answers", "-") and here[2] in shown.view.compared.value
    shown._repr_mimebundle_()  # the cell runs again
    assert threading.enumerate() == before


def test_damaged_weights_leave_the_recording_and_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "The weights model.safetensors are damaged."

    def load() -> None:
        raise lm.LMError(said)

    monkeypatch.setattr(live_view, "_model", load)
    shown = lab07.a_long_question()
    bundle = shown._repr_mimebundle_()
    assert said in shown.view.notice.value and said in bundle["text/plain"]
    assert "recorded: H100" in shown.view.compared.value


def test_a_table_needs_no_run() -> None:
    assert [cell for row in rows({"rate": RATE, "max_num_seqs": SLOTS}, {})[2:] for cell in row[1:]] == ["-"] * 12
