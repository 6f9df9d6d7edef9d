"""Lab 03: Little's law on questions that the language model answers here, beside recorded steps."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from course import lm
from course.explore import Explorer
from course.lessons import lab03
from course.lessons.lab03 import live_words, shown_figures
from course.lessons.lab03.live_words import CONTROLS, PROMPTS, REQUESTS, Served, recorded
from course.lessons.lab03.one_engine import STEP
from tests.helpers.figures import valid


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return lab03.law_on_live_words()


@pytest.mark.parametrize("rate", CONTROLS[0].stops)
@pytest.mark.parametrize("slots", CONTROLS[1].stops)
def test_the_law_holds_on_recorded_steps_at_every_setting(rate, slots):
    found = recorded(rate, slots)
    assert found.law_holds and found.here is None and len(found.recorded) == REQUESTS
    valid(shown_figures.numbers_in_system(found.runs))


def test_more_are_in_the_system_where_the_rate_is_higher_or_the_slots_are_fewer():
    rates = [recorded(rate, 4).recorded.little().L for rate in (16, 64, 128)]
    slots = [recorded(64, slots).recorded.little().L for slots in (1, 4)]
    assert rates[0] < rates[1] < rates[2] and slots[0] > slots[1]


@pytest.mark.parametrize("settings", [{}, {"rate": 128, "max_num_seqs": 1}])
def test_the_law_holds_on_live_words_by_the_clock_of_this_machine(explorer, settings):
    found = explorer.compute(**settings)
    law, run = found.here.little(), found.here
    assert found.law_holds and law.arrival_rate * law.W == pytest.approx(law.L, rel=1e-9)
    stays = run.response - run.arrival
    assert stays.sum() / (run.response.max() - run.arrival.min()) == pytest.approx(law.L)  # by hand
    assert run.words == tuple(prompt.answer for prompt in PROMPTS)
    assert (run.workload.output_tokens == found.recorded.workload.output_tokens).all()
    assert (run.arrival == found.recorded.arrival).all()
    assert float(np.diff(run.arrival).mean()) == pytest.approx(1 / settings.get("rate", 64), rel=0.3)  # 59 gaps, CV 1


def test_the_table_shows_both_sides_of_the_law_and_the_words(explorer):
    rows = {label: cells for label, *cells in explorer.rows(explorer.compute())}
    assert rows[""] == [f"simulated: {STEP.card}", "measured here"]
    assert rows["λ W"] == rows["L, counted over time"]
    found = explorer.compute().here
    assert rows["the last answer"][1] == found.words[int(found.response.argmax())]
    assert rows["W, mean E2E"][1] == f"{1e3 * found.e2e.mean():.6g} ms"
    valid(explorer.drawn(explorer.compute()))


def test_a_law_that_does_not_hold_is_noticed(explorer):
    found = explorer.compute()

    class Off:
        """A run whose L is 1% too small, or too large."""

        def __init__(self, factor):
            self.factor = factor

        def little(self):
            law = found.recorded.little()
            return type("Law", (), {"L": self.factor * law.L, "W": law.W, "arrival_rate": law.arrival_rate})

    assert not any(Served(Off(factor)).law_holds for factor in (0.99, 1.01))
    assert not Served(found.recorded, Off(0.99)).law_holds


def test_its_text_is_the_recording_and_nothing_is_served_for_it(monkeypatch):
    monkeypatch.setattr(lm, "serve_live", lambda *_: pytest.fail("the model was asked"))
    text = lab03.law_on_live_words().text()
    assert "measured" not in text and text.startswith(f"{REQUESTS} questions, answered here [{STEP.simulated}]")


def test_a_setting_is_served_once_and_no_thread_is_left(explorer):
    before = threading.enumerate()
    first = explorer.compute(max_num_seqs=8)
    assert explorer.compute(max_num_seqs=8).here is first.here is not explorer.compute().here
    explorer._repr_mimebundle_()
    explorer._repr_mimebundle_()  # the cell runs again
    assert threading.enumerate() == before


def test_two_threads_do_not_serve_at_once(monkeypatch):
    """JupyterLab handles widgets in a thread beside that of the cells."""
    inside, most = [0], [0]
    serve_live = lm.serve_live

    def counted(*given):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        try:
            return serve_live(*given)
        finally:
            inside[0] -= 1

    monkeypatch.setattr(lm, "serve_live", counted)
    shown = lab03.law_on_live_words()
    threads = [threading.Thread(target=shown.compute, kwargs={"rate": 128, "max_num_seqs": n}) for n in (2, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] and not any(thread.is_alive() for thread in threads)


def test_damaged_weights_leave_the_recording_and_a_sentence(monkeypatch):
    def load():
        raise lm.LMError("The weights model.safetensors are damaged.")

    monkeypatch.setattr(lm, "load", load)
    shown = lab03.law_on_live_words()
    found = shown.default_result()
    assert found.law_holds and found.here is None
    assert found.warnings == ("Nothing is measured here: The weights model.safetensors are damaged.",)
    assert {len(row) for row in live_words.rows(found)} == {2}
    shown._repr_mimebundle_()
    assert "are damaged" in shown.view.notice.value
    valid(shown_figures.numbers_in_system(found.runs))
