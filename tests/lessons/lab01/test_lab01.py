"""Lab 01: the window, the parts of a TTFT, the explorers at their corners, the exercises and the ticket."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from course.calibration import vllm_live, vllm_pages
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, judge
from course.figures.words import seconds
from course.lessons import lab01, load
from course.lessons.lab01 import chat, figures, further, part_by_part, reader, replicas, result_file
from course.lessons.lab01.chat import PARTS
from course.lm.errors import LMError
from tests.helpers.figures import valid
from tests.helpers.places import SOLUTIONS

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
    *_, rows = chat.two_clocks()
    assert rows[1].startswith(f"{found.run.workload.output_tokens.sum() / found.run.steps.seconds.sum():,.0f} ")
    assert rows[2].startswith(f"{np.median(found.run.workload.output_tokens / found.e2e):.0f} ")


def test_the_bars_are_the_parts():
    found = chat.chat(rate=12)
    bars = {bar.name: bar for bar in figures.where_it_goes(found).data if bar.type == "bar"}
    assert list(bars) == list(PARTS)
    assert bars["queue"].x[0] == pytest.approx(1e3 * found.mean("queue"), rel=1e-4)
    assert bars["queue"].base[2] == pytest.approx(
        1e3 * (found.near("outside", 99) + found.near("window", 99)), rel=1e-4
    )


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


# Exercises


def test_the_reader_is_what_a_run_says():
    run = chat.chat().run
    for one in (3, 70, 500):
        moments = run.token_times(one).tolist()
        ttft, tpot, e2e, longest = reader.four_times(float(run.arrival[one]), moments)
        assert (ttft, tpot, e2e) == pytest.approx((run.ttft[one], run.tpot[one], run.e2e[one]))
        assert longest == pytest.approx(np.diff(moments).max())


def test_times_with_the_wrong_sign_get_a_hint_of_their_own():
    backwards = lambda sent, tokens: tuple(-value for value in reader.four_times(sent, tokens))  # noqa: E731
    assert "negative" in judge(exercise("reader"), backwards).hint


def test_the_lines_of_the_notebook_are_those_of_the_result_file():
    shown = (SOLUTIONS / "01_the_first_token.py").read_text(encoding="utf-8")
    lines = re.findall(r"^# (\w+) +([\d.]+)$", shown, re.MULTILINE)
    assert len(lines) == 4
    for name, value in lines:
        found = vllm_pages.bench()[name]
        assert value == (f"{found}" if isinstance(found, int) else f"{found:.3f}"), name


def test_the_engine_had_a_slot_for_everybody_in_each_second_of_its_log():
    log = (vllm_pages.FOLDER / "serve_wide.log").read_text(encoding="utf-8")
    assert f"'max_num_seqs': {result_file.SLOTS}," in log
    assert set(re.findall(r"Waiting: (\d+) reqs", log)) == {"0"}


def test_the_decision_takes_what_a_hand_writes():
    assert judge(exercise("decision"), {"Max_Queue_Delay_Microseconds": "20,000"}).status == RIGHT
    assert judge(exercise("decision"), None).status == NOT_ATTEMPTED


def test_a_delay_that_is_not_offered_is_not_called_too_high():
    assert result_file.users(30_000, rate=result_file.rate(), inside=result_file.engine()) <= result_file.GOAL, (
        "it keeps the promise"
    )
    said = "That cannot be judged: 30000 is none of the values to choose from: 0, 5,000, 10,000, 20,000, 50,000."
    assert judge(exercise("decision"), {"max_queue_delay_microseconds": 30_000}).hint == said
    assert "milliseconds" in judge(exercise("decision"), {"max_queue_delay_microseconds": 20}).hint
    said = 'That cannot be judged: give a dictionary with one flag and its value, such as {"--flag": 1}.'
    assert judge(exercise("decision"), 20_000).hint == said


def test_three_times_of_four_are_counted_before_a_parameter_is_missed():
    assert "has 3 elements where 4" in judge(exercise("reader"), lambda sent, tokens: (tokens[0], 1, 2)).hint


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
    found = chat.chat()
    tails = sum(np.percentile(part, 99) for part in found.parts.values())
    assert tails > 1.2 * found.percentile(99)
    _, *rows, total = lab01.vllm_by_parts().rows
    for column, slots in ((1, 8), (2, 4)):
        run = vllm_live.read(f"questions_{slots}")
        assert total[column] == seconds(float((run.client_first - run.sent).mean()))
    assert rows[3][0] == "queue" and rows[3][1].endswith(" ms") and rows[3][2].endswith(" s")


@pytest.mark.parametrize(("rate", "slots", "reached"), [(128, 1, True), (2, 1, False), (128, 2, False)])
def test_the_line_is_long_with_one_slot_and_a_high_rate(rate, slots, reached):
    shown = lab01.words_and_waits()
    task = next(task for task in shown.tasks if task.id == "line")
    settings = shown.defaults | {"rate": rate, "max_num_seqs": slots}
    assert task.reached(settings, shown.compute(**settings)) is reached
