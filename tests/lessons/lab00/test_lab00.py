"""Lab 00: the answer and its cache, steps together, the traffic of part 2, and the explorers at their corners."""

import itertools
import json
import re

import numpy as np
import pytest

from course.exercises.judge import RIGHT, WRONG, judge
from course.lessons import lab00, load
from course.lessons.lab00 import answer, figures, machines, tasks, together, traffic
from course.steptime import Roofline, Step, recorded
from course.steptime.files import FOLDER as PROFILES
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
        figure = figures.step(result)
        valid(figure)
        # Nothing is drawn beyond the number chosen, so that the figure does not answer the prediction beside it.
        assert all(
            len(trace.x) == sequences for trace in figure.data if "measured" in trace.name or "H100" in trace.name
        )
        rows = together.rows(result)
        assert len({len(row) for row in rows}) == 1
        assert rows[1][1] == f"{1e3 * together.on_h100(sequences):.2f} ms"
    assert set(together.here()) == set(together.SIZES)


def test_the_recorded_line_is_the_recording():
    """To the six digits of a figure: a value that is off by 1% is noticed."""
    recording = recorded("h100-llama3-8b")
    alone = recording(Step(1, 512, ()))
    (line,) = [trace for trace in figures.step(together.step(16)).data if trace.name == "H100, recorded"]
    assert list(line.x) == list(range(1, 17))
    for count, times in zip(line.x, line.y, strict=True):
        assert times == pytest.approx(recording(Step(int(count), 512 * int(count), ())) / alone, rel=1e-5)
    for tokens in (128, 512):
        assert together.prefill_on_h100(tokens) == recording(Step(0, 0, ((tokens, 0),)))


def test_its_times_lie_between_those_that_were_measured():
    """From the rows of the file: behind 512 tokens each, a third of the way from 256 to 1,024, to 0.8% (the model of
    the recording is a fit there)."""
    points = json.loads((PROFILES / "h100_llama3_8b.json").read_text(encoding="utf-8"))["points"]
    rows = zip(points["decodes"], points["decode_context"], points["chunk"], points["seconds"], strict=True)
    measured = {(decodes, context): seconds for decodes, context, chunk, seconds in rows if not chunk}
    for count in together.SIZES:
        short, long = (measured[count, count * each] for each in (256, 1_024))
        assert together.on_h100(count) == pytest.approx(short + (long - short) / 3, rel=8e-3)


@pytest.mark.parametrize("log", [False, True])
def test_the_histogram_counts_every_request_where_it_is_drawn(log):
    """From the TTFT of the run alone: bars begin half a width before their middle."""
    result = traffic.traffic(10.0, 3.0, log)
    bars = figures.traffic(result).data[1]
    values = np.sort(np.log10(result.run.ttft) if log else result.run.ttft)
    middles, width = np.array(bars.x, dtype=float), float(bars.width)
    for middle, count in zip(middles, bars.y, strict=True):
        # Edges have six digits, so a value on one may fall to either side.
        slack = 1e-5 * width
        least = ((values > middle - width / 2 + slack) & (values < middle + width / 2 - slack)).sum()
        most = ((values >= middle - width / 2 - 2e-3 * width) & (values <= middle + width / 2 + 2e-3 * width)).sum()
        assert least - 1 <= count <= most, (middle, least, count, most)
    assert sum(bars.y) == len(values)
    arrivals = figures.traffic(result).data[0]
    for second, count in zip(arrivals.x, arrivals.y, strict=True):
        assert count == (np.floor(result.run.arrival) == int(second)).sum()


@pytest.mark.parametrize(
    ("answer_", "hint"),
    [
        (119.24, "Two things"), (119.2, "Two things"), (512 * 13.4, "do not multiply|in milliseconds"),
        (512 * 0.0134, "do not multiply"), (512 * 0.0134 + 20 * 0.00504, "do not multiply"), (114.2, "thousand times"),
        (100.8, "Two things"), (0.1008, "Something comes before"), (0.00543, "for one token"),
    ],
)  # fmt: skip
def test_likely_slips_of_the_first_check_get_a_hint(answer_, hint):
    verdict = judge(LAB.exercises[0], answer_)
    assert verdict.status == WRONG and re.search(hint, verdict.hint), verdict.hint


@pytest.mark.parametrize(
    ("answer_", "hint"), [(12 * 60 * 0.01, "in a minute"), (12 * 60, "Two things"), (0.12, "in one second")]
)
def test_likely_slips_of_the_second_check_get_a_hint(answer_, hint):
    verdict = judge(LAB.exercises[1], answer_)
    assert verdict.status == WRONG and hint in verdict.hint


def test_no_term_stands_in_the_first_figure_before_it_is_explained():
    shown = lab00.one_answer()
    result = shown.default_result()
    texts = [shown.text(), *(note.text for note in shown.drawn(result).layout.annotations)]
    assert not re.search("prefill|decode|KV|cache", " ".join(texts))


def test_nothing_before_the_prediction_says_how_long_sixteen_take():
    objectives = " ".join(objective.text for objective in LAB.objectives)
    asked = " ".join((*(question.question for question in LAB.quiz), *(o for q in LAB.quiz for o in q.options)))
    assert not re.search("sixteen|hardly", f"{objectives} {asked}")


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
    far = next(task for task in LAB.tasks if task.id == "far")
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
