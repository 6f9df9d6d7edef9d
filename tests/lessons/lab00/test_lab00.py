"""Lab 00: the answer and its cache, steps together, the traffic of part 2, and the explorers at their corners."""

import itertools

import numpy as np
import pytest

from course.exercises.judge import RIGHT, WRONG, judge
from course.lessons import lab00, load
from course.lessons.lab00 import answer, figures, machines, tasks, together, traffic
from course.steptime import Roofline
from tests.helpers.figures import valid

LAB = load("00")


@pytest.mark.parametrize("question", answer.QUESTIONS)
def test_the_pieces_are_those_of_the_models_own_answer(question):
    shown = answer.upto(question, answer.MOST_STEPS)
    model = answer.model()
    words = "".join(shown.said).replace("·", " ")
    assert words == model.answer(question) + "[end]"
    assert "".join(shown.prompt).replace("·", " ") == f"[user]{question}[model]"
    assert len(shown.said) <= answer.MOST_STEPS


def test_the_slider_reaches_the_end_of_the_longest_answer():
    assert max(len(answer.upto(question, 1).said) for question in answer.QUESTIONS) == answer.MOST_STEPS


def test_the_cache_grows_by_one_token_a_decode_and_the_newest_is_not_in_it():
    steps = [answer.upto(answer.QUESTIONS[0], step) for step in (1, 2, 3)]
    prompt = len(steps[0].prompt)
    assert [one.computed for one in steps] == [prompt, 1, 1]
    assert [one.cached for one in steps] == [prompt, prompt + 1, prompt + 2]


def test_a_step_past_the_end_shows_the_end_and_says_so():
    short = answer.QUESTIONS[1]
    last = answer.upto(short, answer.MOST_STEPS)
    assert last.step == len(last.said) < answer.MOST_STEPS
    assert last.warnings == (f"The answer ended with step {len(last.said)}.",)
    assert answer.upto(short, len(last.said)).warnings == ()


@pytest.mark.parametrize("question", answer.QUESTIONS)
def test_each_step_is_measured_once(question):
    shown = answer.timed(question, 2)
    assert len(shown.seconds) == len(shown.said) and min(shown.seconds) > 0
    assert answer.timed(question, 3).seconds is shown.seconds
    assert answer.rows(shown)[:-1] == answer.rows(answer.upto(question, 2))


@pytest.mark.parametrize("question", answer.QUESTIONS)
def test_the_answer_figure_at_its_corners(question):
    for step in (1, 2, answer.MOST_STEPS):
        for result in (answer.upto(question, step), answer.timed(question, step)):
            figure = figures.answer(result)
            valid(figure)
            boxes, times = figure.data
            assert len(boxes.text) == len(result.prompt) + result.step
            assert len(times.x) == (result.step if result.seconds else 0)
            low = figure.layout.yaxis.range[0]
            assert all(low < row - 0.4 for row in boxes.y)


@pytest.mark.parametrize("sequences", [1, 5, 16])
def test_the_step_figure_and_its_table(sequences):
    for result in (together.step(sequences), together.step_here_too(sequences)):
        valid(figures.step(result))
        rows = together.rows(result)
        assert len({len(row) for row in rows}) == 1
        assert rows[1][1] == f"{1e3 * together.on_h100(sequences):.2f} ms"
    assert set(together.here()) == set(together.SIZES)


def test_the_h100_gains_nearly_as_much_as_there_are_sequences():
    assert together.step(1).gain == 1
    assert 14.5 < together.step(16).gain < 16


def test_sequences_in_one_step_say_what_they_say_alone():
    model = answer.model()
    assert model.answers(answer.QUESTIONS) == [model.answer(question) for question in answer.QUESTIONS]


def test_the_h100_of_the_table_is_that_of_the_roofline():
    card, roofline = machines.h100(), Roofline("llama-3.1-8b", "H100")
    assert card.reading * roofline.gpu.read_bandwidth == pytest.approx(roofline.weights * card.bandwidth)
    assert card.sequences > 200 > 16  # "with fewer sequences than in the last row": sixteen are


def test_the_table_has_a_column_for_each_machine():
    here = machines.Machine("here", 2e10, 4e10, 1e-3, 2e-4)
    assert here.sequences == pytest.approx(5)
    bundle = machines.side_by_side([machines.h100(), here])._repr_mimebundle_()
    assert "<table" in bundle["text/html"]
    assert bundle["text/plain"].splitlines()[-1].split()[-1] == "5"


def test_kv_bytes_are_those_of_the_two_models():
    assert answer.kv_bytes() == 3_072
    assert machines.H100.model.kv_bytes_per_token == 131_072


@pytest.mark.parametrize(("rate", "cv", "log"), list(itertools.product((2.0, 16.0), (0.0, 5.0), (False, True))))
def test_the_traffic_figure_at_every_corner(rate, cv, log):
    result = traffic.traffic(rate, cv, log)
    figure = figures.traffic(result)
    valid(figure)
    assert sum(figure.data[1].y) == len(result.run), "each request is in a bar"
    panel = 3 if log else 2  # a scale has axes of its own
    assert ("xaxis3" in figure.to_dict()["layout"]) == log
    low, high = figure.layout[f"xaxis{panel}"].range
    marks = [shape.x0 for shape in figure.layout.shapes if shape.xref == f"x{panel}"]
    assert len(marks) == 1 + len(traffic.PERCENTS) and all(low <= x <= high for x in marks)


def test_the_log_switch_changes_no_number():
    assert traffic.rows(traffic.traffic(10.0, 3.0)) == traffic.rows(traffic.traffic(10.0, 3.0, log=True))


def test_the_task_on_bursts_asks_for_the_log_axis_and_the_rate_of_the_start():
    (far,) = tasks.TRAFFIC
    there = {**tasks.START, **far.settings}
    assert far.reached(there, traffic.traffic(**there))
    for change in ({"log": False}, {"rate": 12.0}):
        settings = there | change
        assert not far.reached(settings, traffic.traffic(**settings))


def test_rounded_times_are_taken_and_a_decode_too_many_is_not():
    check = LAB.exercises[0]
    assert judge(check, 0.0134 + 20 * 0.005).status == RIGHT
    verdict = judge(check, 0.0134 + 21 * 0.00504)
    assert verdict.status == WRONG and "first token" in verdict.hint
    assert judge(check, 114.2).status == WRONG


def test_all_and_all_but_one_in_a_hundred_get_their_own_hints():
    check = LAB.exercises[1]
    assert "all requests" in judge(check, 43_200).hint and "below the p99" in judge(check, 42_768).hint
    assert judge(check, 432).status == RIGHT


def test_twins_have_other_answers():
    for check in LAB.exercises:
        assert judge(check.twin, check.twin.solution).status == RIGHT
        assert judge(check.twin, check.solution).status == WRONG


@pytest.mark.parametrize("name", ["one_answer", "a_step_together"])
def test_what_is_measured_is_in_no_text(name):
    shown = getattr(lab00, name)()
    assert "this CPU" not in shown.text() and "took here" not in shown.text()
    labels = {row[0] for row in shown.rows(shown.default_result())}
    heads = {cell for row in shown.rows(shown.default_result()) for cell in row}
    assert "this step took here" in labels or "this CPU, measured" in heads


def test_a_second_look_measures_nothing_again():
    assert together.here() is together.here()
    assert np.isfinite(list(together.here().values())).all()
