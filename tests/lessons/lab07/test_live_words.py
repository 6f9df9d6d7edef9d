"""Lab 07's live view: the words stay the same in any chunks, and the recorded card has the same whole and parts."""

from __future__ import annotations

import threading

import pytest

from course import lm
from course.lessons.lab07 import live_words
from course.lessons.lab07.live_words import BUDGET, ON_THE_CARD, WHOLE, chunks, explorer, longest_gap
from course.lessons.lab07.long_prompt import PROMPT, moment


@pytest.fixture(scope="module")
def view():
    return explorer()


@pytest.mark.parametrize("budget", BUDGET.stops)
def test_the_words_are_the_same_in_any_chunks(view, budget):
    found = view.compute(max_num_batched_tokens=budget)
    assert found.run.words == live_words.answers() and set(found.run.ended) == {"stop"}
    prompt = int(found.run.workload.prompt_tokens[-1])
    assert chunks(found) == (1 if budget == WHOLE else pytest.approx(-(-prompt // (budget - 4)), abs=1))
    assert longest_gap(found) == pytest.approx(0.01)  # each step counts as 10 ms: every talker has a word in each
    rows = dict((label, values) for label, *values in view.rows(found))
    assert rows["answers that changed"] == ["0 of 5", "-"] and rows["its chunks"][0] == f"{chunks(found)}"
    assert rows["token budget"] == [f"{budget:,}", f"{ON_THE_CARD * budget:,}"]


def test_the_stories_go_on_when_the_long_prompt_comes(view):
    run = view.compute().run
    assert all(run.token_times(row)[0] < live_words.ARRIVES < run.token_times(row)[-1] for row in range(4))


def test_the_recorded_card_stops_as_well(view):
    gaps = []
    for budget in (WHOLE, 64):
        begin, end = moment(ON_THE_CARD * budget, 0, PROMPT, 4).longest_gap
        gaps.append(end - begin)
    assert gaps[0] > 1.5 and gaps[1] < gaps[0] / 2
    assert len(moment(ON_THE_CARD * WHOLE, 0, PROMPT, 4).chunk_steps[0]) == 1


def test_before_it_is_played_the_recording_is_there_alone(view):
    rows = {label: values for label, *values in view.compared(view.defaults)}
    assert rows[""] == ["measured here", "simulated: H200"] and rows["longest gap of a story"][0] == "-"


def test_its_text_is_the_same_each_time_and_measures_nothing(view):
    text = view.text()
    assert text == explorer().text() and "counted in steps" in text and "measured" not in text


def test_shown_and_played_it_measures_and_leaves_no_thread(view):
    before = threading.enumerate()
    for _ in range(2):
        view._repr_mimebundle_()
        found = view.set(max_num_batched_tokens=64)
        assert not found.counted and found.run.words == live_words.answers()
        assert "0 of 5" in view.view.compared.value
    assert threading.enumerate() == before


def test_damaged_weights_leave_the_recording_and_a_sentence(monkeypatch):
    def broken():
        raise lm.LMError("The checksum of model.safetensors is wrong. Install the course again.")

    monkeypatch.setattr(live_words, "_model", broken)
    view = explorer()
    assert "Install the course again." in view.text()
    view._repr_mimebundle_()
    assert "Install the course again." in view.view.notice.value and "simulated: H200" in view.view.compared.value
