"""Lab 04's live view: the same words under three policies, and measured beside recorded, never mixed up."""

from __future__ import annotations

import threading

import pytest

from course import lm
from course.explore import words as live_view
from course.explore.words import WordsExplorer
from course.lessons import lab04
from course.lessons.lab04 import live_words
from course.lessons.lab04.live_words import PROMPTS, RATE, SLOTS, recorded, rows
from course.lessons.lab04.side_by_side import NAMES
from course.lessons.lab04.three_batchers import STEP

START = {"rate": RATE, "max_num_seqs": SLOTS}


@pytest.fixture(scope="module")
def view() -> WordsExplorer:
    return lab04.three_policies_speak()


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine whose weights are damaged; returns the sentence."""
    said = "The weights model.safetensors are damaged."

    def load() -> None:
        raise lm.LMError(said)

    monkeypatch.setattr(live_view, "_model", load)
    return said


@pytest.mark.parametrize("slots", [1, 4, 8])
def test_the_words_are_the_same_under_every_policy_and_right(view: WordsExplorer, slots: int) -> None:
    runs = [view.compute(policy=name, max_num_seqs=slots).run for name in NAMES]
    assert {run.words for run in runs} == {tuple(prompt.answer for prompt in PROMPTS)}
    assert live_words.said({name: view.compute(policy=name) for name in NAMES}) == {
        "static": "12 answers",
        "dynamic": "the same words",
        "continuous": "the same words",
    }


def test_other_words_are_noticed(view: WordsExplorer) -> None:
    static, other = (lab04.three_policies_speak().compute(policy=name) for name in ("static", "continuous"))
    other.run.words = ("Nothing.", *other.run.words[1:])
    assert live_words.said({"static": static, "continuous": other})["continuous"] == "other words"


def test_the_counted_steps_are_those_of_the_recording(view: WordsExplorer) -> None:
    """A static batch holds the same requests whatever a step takes, and nobody knows a length beforehand."""
    card = recorded(**START)
    for name in ("static", "dynamic"):
        counted = view.compute(policy=name).run
        assert len(counted.steps) == len(card[name].steps)
        assert (counted.workload.output_tokens == card[name].workload.output_tokens).all()
        assert counted.steps.wasted.sum() == card[name].steps.wasted.sum() > 0
    assert card["continuous"].steps.wasted.sum() == 0
    for run in card.values():  # of as many tokens, at the same times
        assert (run.arrival == view.begin(view.defaults | {"policy": "static"}).watch.load.arrival).all()


def test_somebody_waits_at_the_start_until_the_last_question_has_a_slot(view: WordsExplorer) -> None:
    """So that the gain is one of saturation: all have come long before the last is admitted, on any machine."""
    card = recorded(**START)["continuous"]
    assert card.arrival.max() < 0.5 * card.admitted.max()
    few, many = (recorded(RATE, slots) for slots in (1, SLOTS))
    gains = [run["static"].makespan / run["continuous"].makespan for run in (few, many)]
    assert gains[0] == pytest.approx(1, rel=0.01) and gains[1] > 1.5


def test_its_text_has_all_three_counted_in_steps(view: WordsExplorer) -> None:
    text = view.text()
    assert text == lab04.three_policies_speak().text() and "measured" not in text
    table = [line for line in text.splitlines() if line.startswith("  counted in steps")]
    assert len(table) == 1 and table[0].count(" steps, ") == 3
    card = next(line for line in text.splitlines() if line.startswith("  recorded: "))
    assert STEP.card.split()[1] in card and card.count("tokens/s") == 3 and "the same words" in text


def test_a_column_fills_when_its_policy_was_played() -> None:
    shown = lab04.three_policies_speak()
    before = threading.enumerate()
    shown._repr_mimebundle_()
    head, card, here, padding, words = shown.compared(shown.defaults)
    assert head == ("", *NAMES, "gain") and "-" not in card
    assert here[0] == "measured on this machine"
    assert here[1:] == ("-",) * 4 and padding[1:4] == words[1:4] == ("-",) * 3
    for done, name in enumerate(NAMES, start=1):
        result = shown.set(policy=name)
        _, again, here, padding, words = shown.compared(shown.view.settings)
        assert again == card  # what is recorded does not hang on this machine
        assert [cell == "-" for cell in here[1:4]] == [place >= done for place in range(3)]
        assert here[done] == f"{result.time(result.run.makespan)}, {result.speed}"
        assert padding[done] == f"{result.padding:,} of {result.computed:,} tokens"
        assert here[done] in shown.view.compared.value
        assert words[1 : done + 1] == ("12 answers", "the same words", "the same words")[:done]
    static, continuous = (shown._measured[RATE, SLOTS, name].run.makespan for name in ("static", "continuous"))
    assert here[4] == f"{static / continuous:.2f}x" and padding[3].startswith("0 of ")
    shown.set(max_num_seqs=8)
    assert shown.compared(shown.view.settings)[2][1:] == ("-",) * 2 + shown.compared(shown.view.settings)[2][3:4] + (
        "-",
    )
    shown._repr_mimebundle_()  # the cell runs again
    assert threading.enumerate() == before


def test_damaged_weights_leave_the_recording_and_a_sentence(broken: str) -> None:
    shown = lab04.three_policies_speak()
    bundle = shown._repr_mimebundle_()
    assert broken in shown.view.notice.value and broken in bundle["text/plain"]
    assert shown.view.stage.load == {"run": 0}
    assert "recorded: H100" in shown.view.compared.value
    shown.view.controls["max_num_seqs"].value = 8
    assert broken in shown.view.notice.value


def test_a_table_needs_no_run() -> None:
    assert [row[0] for row in rows(START, {})][2] == "measured on this machine"
