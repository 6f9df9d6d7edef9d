"""Lab 16: the language model behind a client with a limit, and its recording; figures that are no explorers."""

import numpy as np
import pytest

from course.lessons import lab16
from course.lessons.lab16 import figures, honest, launched, pictures
from course.lm import load
from course.lm.errors import LMError
from tests.helpers.figures import valid


@pytest.fixture(scope="module")
def model():
    return load()


@pytest.mark.parametrize(("limit", "stall"), [(1, 0.5), (2, 0.5), (16, 1.0), (4, 0.0)])
def test_the_recording_leaves_out_those_who_were_held_back(limit, stall):
    found = launched.recorded(limit, stall)
    written, plan = found.recorded.written, found.recorded.run.ttft
    assert (written <= plan + 1e-9).all() and found.here is None and not found.warnings
    if not stall:
        assert plan.max() < 0.05
        return
    due = int(stall * launched.RATE)
    assert written.max() >= stall and (written > stall / 2).sum() <= limit + 1
    # All who were due in the first half of the stall wait for its second half, at least.
    assert (plan > stall / 2).sum() >= due // 2 - 1


def test_the_model_is_stalled_once_and_the_client_misses_it(model):
    """By the wall clock: bounds that hold on any machine, however busy."""
    stall = 0.5
    found = launched.spoken(model, 1, stall)
    written, plan = found.written, found.run.ttft
    assert written.max() >= stall and (written <= plan + 1e-9).all()
    assert (plan > stall / 2).sum() >= int(stall * launched.RATE) // 2 - 1
    assert (found.run.workload.output_tokens == launched.TOKENS).all()
    steps = found.run.steps.seconds
    assert (steps >= stall).any()


def test_the_explorer_says_the_recording_and_launches_a_setting_once(monkeypatch):
    calls = []

    def spoken(model, limit, stall):
        calls.append((limit, stall))
        return launched.recorded(limit, stall).recorded

    monkeypatch.setattr(launched, "spoken", spoken)
    monkeypatch.setattr(launched._Bench, "_loaded", lambda self: None)
    shown = lab16.a_client_that_waits()
    assert "measured here" not in shown.text()
    for _ in range(2):
        found = shown.compute(max_concurrency=2, stall=0.5)
    assert calls == [(2, 0.5)]
    assert [row[0] for row in launched.rows(found)][3:] == ["measured here, p95", "measured here, above half the stall"]
    valid(figures.launched(launched._panels(found)))


def test_a_model_that_cannot_run_leaves_the_recording_and_a_sentence(monkeypatch):
    def spoken(model, limit, stall):
        raise LMError("There is no memory for it.")

    monkeypatch.setattr(launched, "spoken", spoken)
    monkeypatch.setattr(launched._Bench, "_loaded", lambda self: None)
    found = launched.launch_explorer().compute(max_concurrency=2, stall=0.5)
    assert found.here is None and found.warnings == ("Nothing is measured here: There is no memory for it.",)
    valid(figures.launched(launched._panels(found)))


def test_four_requests_by_hand():
    figure = pictures.by_hand()
    valid(figure)
    waits, written = figure.data
    assert tuple(written.x) == pictures.TOOK
    felt = honest.felt_ttft(pictures.PLANNED, pictures.TOOK)
    assert np.allclose(np.array(waits.x) + np.array(written.x), felt)
    assert np.allclose(waits.base, pictures.PLANNED)


def test_the_graphs_of_the_ticket():
    figure = lab16.ticket_graphs()
    valid(figure)
    answered, in_flight, tail = (np.array(trace.y, dtype=float) for trace in figure.data)
    assert (np.diff(answered[-4:]) < 0.1).all() and in_flight.max() < pictures.LIMIT
    assert tail[-1] < tail[pictures.RATES.index(12)]


def test_tables_as_text_and_as_html():
    found = lab16.report_and_users()
    assert "in the report" in repr(found) and "<table" in found._repr_mimebundle_()["text/html"]
    assert len(lab16.what_a_limit_hides().rows) == 6
    said = dict(lab16.result_file("peak").rows)
    assert said["request_throughput"] == "16" and "mean_tpot_ms" in said
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lab16.nothing


def test_the_fifteenth_prompt_is_in_the_step_that_stalls():
    """With room for all, whoever came before has a first token at once, and the fifteenth waits for the whole stall."""
    ttft = launched.recorded(16, 0.75).recorded.run.ttft
    place = launched.STALLED - 1
    assert ttft[:place].max() < 0.1 and ttft[place] >= 0.75
    assert ttft[place + 1] == pytest.approx(0.75 - 1 / launched.RATE, abs=0.05)  # a step is far shorter than 50 ms


@pytest.mark.parametrize(("limit", "stall", "line"), [(2, 0.5, 0.25), (1, 1.0, 0.5), (4, 0.0, 0.125)])
def test_those_above_half_the_stall_are_counted(limit, stall, line):
    found = launched.recorded(limit, stall)
    counts = launched.rows(found)[2][1:]
    ways = (found.recorded.written, found.recorded.run.ttft)
    assert counts == tuple(f"{(way > line).sum()} of 30" for way in ways)
    if stall:
        assert (ways[1] > stall).sum() < (ways[1] > line).sum()
