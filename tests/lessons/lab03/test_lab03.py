"""Lab 03: the scenario, its explorers in corners that no other test visits, the exercises, vLLM's page, the evening."""

import itertools
import re

import numpy as np
import pytest

from course import queueing, serve
from course.calibration import vllm_pages
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab03, load
from course.lessons.lab03 import evening, full_batch, lab, metrics_page, one_engine
from course.lessons.lab03 import figures as draw
from course.steptime import Step
from tests.helpers.figures import valid
from tests.helpers.places import SOLUTIONS

LITTLE, WAITING, CAPACITY, DECISION = load("03").exercises


def run(rate: float, cv: float = 1.0, count: int = 2_000, max_num_seqs: int = one_engine.SLOTS, seed: int = 0):
    return serve(one_engine.requests(rate, cv, count, seed), one_engine.engine(max_num_seqs), one_engine.STEP)


# Exercises


def test_the_exercises_answers():
    assert LITTLE.solution == pytest.approx(run(17).little().L)
    assert WAITING.solution == 0.5
    assert CAPACITY.solution(*CAPACITY.probes[0]) == pytest.approx(one_engine.capacity(), rel=0.01)


def test_the_capacity_exercise_takes_a_second_way_of_writing_it():
    def by_rate_of_tokens(step_time, prompt, output, context, slots):
        step = queueing.continuous_capacity(
            queueing.Demand(prompt, output, context), step_time, max_num_seqs=slots, max_num_batched_tokens=8192
        )
        return step.output_tokens_per_s / output

    assert judge(CAPACITY, by_rate_of_tokens).status == RIGHT


def test_the_step_with_a_prompt_holds_the_decodes_of_the_other_slots():
    asked = []

    def second_a_step(step):
        asked.append(step)
        return 1.0

    assert full_batch.capacity(second_a_step, 512, 256, 768, 32) == 32 / 256
    assert asked == [Step(32, 32 * 768, ()), Step(31, 31 * 768, ((512, 0),))]


def test_every_probe_of_the_capacity_exercise_meets_the_formulas_conditions():
    for _, prompt, output, _, slots in CAPACITY.probes:
        assert output > slots and prompt + slots - 1 <= one_engine.BUDGET


def test_the_decision_takes_what_a_hand_writes():
    for value in (10.6, 11, "11"):
        assert judge(DECISION, {"max_concurrency": value}).status == RIGHT
    assert judge(DECISION, {"--max-concurrency": None}).status == NOT_ATTEMPTED
    for wrong in (9, 10, 12):
        assert judge(DECISION, {"--max-concurrency": wrong}).status == WRONG
    assert judge(DECISION, {"--max-concurrency": 11, "--request-rate": 2}).status == WRONG


def test_the_lines_of_the_notebook_are_those_of_vllms_page():
    pages = [
        (vllm_pages.FOLDER / f"metrics_preempted_{when}.txt").read_text(encoding="utf-8") for when in vllm_pages.WHEN
    ]
    shown = (SOLUTIONS / "03_littles_law.py").read_text(encoding="utf-8")
    lines = re.findall(r"^# vllm:(\w+)((?: +[\d.]+)+)$", shown, re.MULTILINE)
    assert [name for name, _ in lines] == [
        *metrics_page.GAUGES,
        metrics_page.QUEUE,
        metrics_page.COUNT,
        metrics_page.E2E,
    ]
    for name, values in lines:
        for value, page in zip(values.split(), pages, strict=True):
            (line,) = [line for line in page.splitlines() if line.startswith(f"vllm:{name}{{")]
            assert value == f"{float(line.split()[-1]):.1f}", name


# The explorers


@pytest.mark.parametrize(("cv", "slots", "kind"), list(itertools.product((0.0, 5.0), (16, 1_024), ("drawn", "trace"))))
@pytest.mark.parametrize("rate", [2.0, 40.0])
def test_the_load_explorer_at_every_corner(rate, cv, slots, kind):
    result = one_engine.under_load(rate, cv, slots, kind)
    assert (result.forecast is None) == (rate >= one_engine.capacity(slots, kind))
    assert result.run.little().residual == pytest.approx(0, abs=1e-9)
    rows = one_engine.comparison(result)
    assert {len(row) for row in rows} == {3} and not any("nan" in cell for row in rows for cell in row)
    figure = draw.latency_against_load(result)
    low, high = (10**edge for edge in figure.layout.yaxis.range)
    for trace in figure.data:
        assert all(low < y < high for y in trace.y), trace.hovertemplate
    valid(figure)


@pytest.mark.parametrize("slots", [16, 1_024])
def test_the_slider_of_the_rate_moves_the_marks_and_nothing_else(slots):
    start, *others = (
        draw.latency_against_load(one_engine.under_load(rate, 1.5, slots)).to_dict() for rate in (2.0, 23.5, 40.0)
    )
    for other in others:
        assert other["layout"] == start["layout"]
        assert other["data"][:-1] == start["data"][:-1]
        assert {key for key, value in other["data"][-1].items() if value != start["data"][-1][key]} == {"x", "y"}


def test_the_table_and_the_lines_say_which_percentile():
    result = one_engine.under_load(14.0)
    rows = {name: cells for name, *cells in one_engine.comparison(result)}
    simulated, theory = np.percentile(result.run.ttft, 99), result.forecast.ttft_percentile_s(0.99)
    assert rows["TTFT, p99"] == [one_engine.seconds(simulated), one_engine.seconds(theory)]
    line = result.curve
    for rate, p99 in zip(line.rate[::11], line.p99_ttft[::11], strict=True):
        assert p99 == pytest.approx(one_engine.forecast(float(rate)).ttft_percentile_s(0.99))


def test_a_run_says_beyond_what_its_steps_are_modelled_and_where_memory_would_end():
    assert one_engine.under_load(38.0, max_num_seqs=256).warnings == ()
    assert one_engine.under_load(40.0, max_num_seqs=512).warnings[-1] == "Its steps are modelled beyond 256 decodes."
    full = one_engine.under_load(40.0, max_num_seqs=1_024, kind=one_engine.TRACE)
    assert full.run.steps.decode_context.max() > 421_072  # tokens: `course kv llama-3.1-8b --gpu H100`
    assert full.warnings[-1].endswith("the card has room for 421,072.")


@pytest.mark.parametrize(("rate", "cv"), list(itertools.product((4.0, 17.0), (0.0, 5.0))))
def test_the_window_explorer_at_every_corner(rate, cv):
    for start, length in itertools.product((0, 80), (1, 60)):
        result = one_engine.window(rate, cv, start, length)
        assert result.little.residual == pytest.approx(0, abs=1e-9)
        assert one_engine.window_rows(result)[-1] == ("left unexplained", "0.00")
        figure = draw.number_over_time(result)
        valid(figure)
        assert max(result.little.L, result.little.arrival_rate * result.little.W) < figure.layout.yaxis.range[1]


def test_a_window_of_ten_seconds_is_the_worst_of_its_run_and_the_whole_run_is_exact():
    every = [one_engine.window(14.0, 1.0, start, 10).little for start in range(0, 140, 5)]
    off = [abs(law.arrival_rate * law.W / law.L - 1) for law in every]
    assert int(np.argmax(off)) == 70 // 5
    whole = one_engine.window(14.0, 1.0, 0, 1_000).little
    assert whole.arrival_rate * whole.W == pytest.approx(whole.L, rel=1e-12)


def test_a_window_in_which_nobody_is_there_has_no_share():
    quiet = one_engine.Window(run(1e-4, count=3), 1e5, 1e5 + 1)
    assert ("λ W against L", "nobody was there") in one_engine.window_rows(quiet)


def test_slots_taken_counts_who_finds_all_slots_taken():
    # Two slots, three at once: the third finds both taken.
    crowd = one_engine.requests(1e6, num_requests=3)
    assert one_engine.slots_taken(serve(crowd, one_engine.engine(2), one_engine.STEP)) == pytest.approx(1 / 3)


# The figure by hand, and the evening


def test_the_figure_by_hand_holds_its_twelve_seconds():
    figure = lab03.by_hand()
    valid(figure)
    (line,) = [trace for trace in figure.data if trace.name == "in the system"]
    assert np.diff(line.x) @ np.array(line.y)[:-1] == sum(end - begin for begin, end in lab.FOUR) == 12


def test_the_evening_has_a_queue_from_the_campaign_that_drains_when_it_is_over():
    found = evening.evening()
    valid(lab03.ticket_graphs())
    quiet, campaign, after = found.waiting[5], found.waiting[evening.BEGIN : evening.END + 1], found.waiting[31:47]
    assert quiet < 10 and (np.diff(campaign) > 0).all() and (np.diff(after) < 0).all()
    assert found.waiting[-1] < 50
    inside = slice(*evening.SHOWN)
    assert found.arrived[inside].mean() == pytest.approx(evening.USUAL, rel=0.05)
    assert found.finished[inside].mean() == pytest.approx(one_engine.capacity(), rel=0.03)
