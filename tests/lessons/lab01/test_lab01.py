"""Lab 01: the window, the parts of a TTFT, the explorers at their corners, the exercises and the ticket."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from course.exercises.judge import NOT_ATTEMPTED, RIGHT, judge
from course.lessons import lab01, load
from course.lessons.lab01 import chat, figures, further, metrics_page, part_by_part, reader, replicas
from course.lessons.lab01.chat import PARTS
from course.lm.errors import LMError
from tests.helpers.figures import valid

LAB = load("01")


def exercise(name):
    return next(item for item in LAB.exercises if item.id == name)


# The window


def test_a_window_opens_with_a_request_and_passes_all_on_at_its_end():
    sent = np.array([0.0, 0.04, 0.1, 0.11, 0.5])
    assert chat.passed_on(sent, 0.1).tolist() == pytest.approx([0.1, 0.1, 0.1, 0.21, 0.6])
    assert chat.passed_on(sent, 0.0).tolist() == sent.tolist()
    together = np.array([1.0, 1.0, 1.0])
    assert chat.passed_on(together, 0.0).tolist() == [1.0] * 3


@pytest.mark.parametrize("rate", [1, 5, 20])
def test_the_mean_wait_in_a_window_is_the_formula(rate):
    sent = chat.requests(rate, 50_000, seed=1).arrival
    wait = chat.passed_on(sent, 0.1) - sent
    assert wait.min() >= 0 and wait.max() <= 0.1 + 1e-9
    # 10,000 windows and more, whose means spread by less than a third of a window each: good to a percent.
    assert wait.mean() == pytest.approx(chat.mean_window_wait(0.1, rate), rel=0.01)


def test_the_formula_goes_from_the_whole_window_to_half_of_it():
    assert chat.mean_window_wait(0.1, 1e-9) == pytest.approx(0.1)
    assert chat.mean_window_wait(0.1, 1e9) == pytest.approx(0.05)


# The chat


@pytest.mark.parametrize(
    ("rate", "window_ms", "prompt", "outside_ms"),
    [(10, 100, 512, 60), *itertools.product((2, 16), (0, 200), (128, 2_048), (0, 200))],
)
def test_the_parts_add_up_at_every_corner(rate, window_ms, prompt, outside_ms):
    found = chat.chat(rate, window_ms, prompt, outside_ms)
    assert sum(found.parts.values()) == pytest.approx(found.ttft)
    assert all((part >= -1e-12).all() for part in found.parts.values())
    assert (found.e2e >= found.ttft - 1e-12).all()
    assert found.engine == pytest.approx(float(found.run.ttft.mean()))
    table = chat.rows(found)
    assert [row[0] for row in table] == ["", *PARTS, "TTFT"]
    # The 20 requests around a percentile have a mean near it; at the tail they spread.
    assert sum(found.near(part, 99) for part in PARTS) == pytest.approx(found.percentile(99), rel=0.05)
    valid(figures.where_it_goes(found))


def test_one_request_by_two_clocks():
    """What users see is what the engine sees, and the window and the time outside on top."""
    found = chat.chat()
    extra = found.ttft - found.run.ttft
    assert extra == pytest.approx(0.060 + found.run.arrival - found.sent)
    head, *rows = chat.two_clocks()
    assert head[0] == "" and [row[0] for row in rows] == ["TTFT, mean", "TTFT, p99", "tokens/s"]
    assert rows[2][1].startswith(f"{found.run.workload.output_tokens.sum() / found.run.steps.seconds.sum():,.0f} ")
    assert rows[2][2].startswith(f"{np.median(found.run.workload.output_tokens / found.e2e):.0f} ")


def test_the_bars_are_the_parts():
    found = chat.chat(rate=12)
    bars = {bar.name: bar for bar in figures.where_it_goes(found).data if bar.type == "bar"}
    assert list(bars) == list(PARTS)
    assert bars["queue"].x[0] == pytest.approx(1e3 * found.mean("queue"), rel=1e-4)
    assert bars["queue"].base[2] == pytest.approx(
        1e3 * (found.near("outside", 99) + found.near("window", 99)), rel=1e-4
    )


def test_the_axis_rests_while_a_slider_moves_a_little():
    ends = [figures.where_it_goes(chat.chat(window_ms=window)).layout.xaxis.range[1] for window in (80, 100, 120)]
    assert len(set(ends)) == 1


# Measured here


def test_the_text_of_what_is_launched_is_the_recording():
    fails = part_by_part.launch_explorer(lambda *_: pytest.fail("something was measured"))
    assert fails.text() == part_by_part.launch_explorer().text() and "measured" not in fails.text()


@pytest.mark.parametrize("settings", [{}, {"sentences": 1, "answer": 1}, {"sentences": 6, "answer": 41}])
def test_one_question_part_by_part(settings):
    explorer = part_by_part.launch_explorer(part_by_part.ask)  # once, in place of medians
    found = explorer.compute(**settings)
    assert list(found.here) == list(part_by_part.PARTS) and min(found.here.values()) >= 0
    assert found.here["prefill"] > 0 and (found.answer > 1) == (found.recorded["decodes"] > 0)
    head, *rows = explorer.rows(found)
    assert head == ("", "H100, recorded", "here, measured")
    assert [row[0] for row in rows] == [*part_by_part.PARTS, "TTFT", "E2E"]
    assert rows[0][1] == "-" and rows[4][1] == rows[1][1]  # no tokenizer was recorded
    valid(explorer.figure(found))


def test_a_setting_is_measured_once_and_a_failure_is_a_sentence():
    asked = []

    def measure(*setting):
        asked.append(setting)
        return dict.fromkeys(part_by_part.PARTS, 1e-3)

    explorer = part_by_part.launch_explorer(measure)
    assert explorer.compute().here is explorer.compute().here and len(asked) == 1

    def fails(*_):
        raise LMError("There is no memory.")

    found = part_by_part.launch_explorer(fails).compute()
    assert found.here is None and found.warnings == ("Nothing is measured here: There is no memory.",)
    assert {len(row) for row in part_by_part.rows(found)} == {2}


# Exercises


def test_the_reader_is_what_a_run_says():
    run = chat.chat().run
    for one in (3, 70, 500):
        moments = run.token_times(one).tolist()
        ttft, tpot, e2e, longest = reader.four_times(float(run.arrival[one]), moments)
        assert (ttft, tpot, e2e) == pytest.approx((run.ttft[one], run.tpot[one], run.e2e[one]))
        assert longest == pytest.approx(np.diff(moments).max())


def test_the_reader_takes_other_ways_of_writing_it():
    def with_numpy(sent, tokens):
        gaps = np.diff(tokens)
        return [tokens[0] - sent, gaps.mean(), tokens[-1] - sent, gaps.max()]

    def backwards(sent, tokens):
        return tuple(-value for value in reader.four_times(sent, tokens))

    assert judge(exercise("reader"), with_numpy).status == RIGHT
    assert "negative" in judge(exercise("reader"), backwards).hint
    assert judge(exercise("reader"), lambda sent, tokens: None).status == NOT_ATTEMPTED


def test_the_decision_is_what_the_page_and_the_simulation_say():
    here = {"rate": metrics_page.rate(), "inside": metrics_page.engine()}
    assert metrics_page.largest(metrics_page.GOAL, **here) == 20_000
    kept = {us: float(chat.chat(window_ms=us / 1e3).ttft.mean()) <= metrics_page.GOAL for us in metrics_page.CHOICES_US}
    assert max(us for us, keeps in kept.items() if keeps) == 20_000  # with the engine as it is then
    half = [us for us in metrics_page.CHOICES_US if 0.060 + us / 2e6 + here["inside"] <= metrics_page.GOAL]
    assert max(half) == 50_000  # the mistake
    assert judge(exercise("decision"), {"Max_Queue_Delay_Microseconds": "20,000"}).status == RIGHT
    assert judge(exercise("decision"), None).status == NOT_ATTEMPTED


# The ticket, and the optional notebook


def test_the_ticket_is_what_three_replicas_make():
    found = replicas.service()
    assert found.minutes.shape == found.running.shape == (3, 30)
    assert found.running[0].mean() > 2.5 * found.running[1].mean() and found.running.max() <= 32 + 1e-9
    valid(lab01.ticket_graphs())
    even = replicas.service((9.0, 9.0, 9.0))
    assert even.late == 0 and even.dashboard < 0.1 * found.dashboard


def test_what_the_deeper_notebook_says():
    short, long = further.draws(100), further.draws(2_000)
    assert max(short) < 1.1 * min(short) and max(short) < min(long) * 1.01  # "none of them shows the tail"
    assert max(long) > 3 * min(long)  # "differ threefold"
    assert chat.requests(12, 100).arrival[-1] == pytest.approx(8, abs=2)  # "last 8 seconds"
    valid(lab01.twenty_draws())
    found = chat.chat()
    tails = sum(np.percentile(part, 99) for part in found.parts.values())
    assert tails > 1.2 * found.percentile(99)
    # 200 users who draw 100 requests each: the share of those who are spared spreads by 3%.
    assert further.share_of_users(100) == pytest.approx(1 - 0.99**100, abs=0.1)
    assert further.share_of_users(1) == pytest.approx(0.01, abs=1e-4)
    run = found.run
    assert run.ttft + (run.workload.output_tokens - 1) * np.nan_to_num(run.tpot) == pytest.approx(run.e2e)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'words_and_weights'"):
        lab01.words_and_weights  # noqa: B018


@pytest.mark.parametrize(("rate", "slots", "reached"), [(128, 1, True), (2, 1, False), (128, 2, False)])
def test_the_line_is_long_with_one_slot_and_a_high_rate(rate, slots, reached):
    shown = lab01.words_and_waits()
    task = next(task for task in shown.tasks if task.id == "line")
    settings = shown.defaults | {"rate": rate, "max_num_seqs": slots}
    assert task.reached(settings, shown.compute(**settings)) is reached
