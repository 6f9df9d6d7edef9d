"""Lab 03: the scenario's numbers, its explorers at every corner, and its exercises with their mistakes."""

import itertools
import re

import numpy as np
import pytest

from course import Workload, policies, queueing, serve
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab03, load
from course.lessons.lab03 import evening, full_batch, lab, metrics_page, one_engine
from course.lessons.lab03 import figures as draw
from course.steptime import Step
from course.workload import lengths
from tests.helpers.figures import valid
from tests.helpers.places import SOLUTIONS

LAB = load("03")


def run(rate: float, cv: float = 1.0, count: int = 2_000, max_num_seqs: int = one_engine.SLOTS, seed: int = 0):
    return serve(one_engine.requests(rate, cv, count, seed), one_engine.engine(max_num_seqs), one_engine.STEP)


def test_the_capacity_exercise_takes_a_second_way_of_writing_it():
    def by_rate_of_tokens(step_time, prompt, output, context, slots):
        step = queueing.continuous_capacity(
            queueing.Demand(prompt, output, context), step_time, max_num_seqs=slots, max_num_batched_tokens=8192
        )
        return step.output_tokens_per_s / output

    assert judge(LAB.exercises[2], by_rate_of_tokens).status == RIGHT


def test_slips_that_learners_make_get_the_hint_meant_for_them():
    little, waiting, capacity, _ = LAB.exercises
    at_17 = run(17)
    for rate in (17, len(at_17) / at_17.makespan):
        assert "ends with the first token" in judge(little, rate * at_17.ttft.mean()).hint
    for value, hint in ((38 / 16, "whole stay"), (30 / 16, "in the batch"), (2.0, "reciprocal"), (500, "milliseconds")):
        assert hint in judge(waiting, value).hint

    def counts_the_prompt_step_twice(step_time, prompt, output, context, slots):
        decode = step_time(Step(slots, slots * context, ()))
        with_prompt = step_time(Step(slots - 1, (slots - 1) * context, ((prompt, 0),)))
        return 1 / (output / slots * decode + with_prompt)

    assert "twice" in judge(capacity, counts_the_prompt_step_twice).hint


def test_the_decision_takes_what_a_hand_writes():
    decision = LAB.exercises[3]
    for value in (27, 28, 27.87):
        assert judge(decision, {"max_concurrency": value}).status == RIGHT
    assert judge(decision, {"--max-concurrency": None}).status == NOT_ATTEMPTED
    assert judge(decision, {"--max-concurrency": 28, "--request-rate": 14}).status == WRONG


def test_a_decode_more_or_less_is_told_apart():
    capacity = LAB.exercises[2]
    assert "takes a slot" in judge(capacity, full_batch.one_too_many).hint
    assert "first token" in judge(capacity, full_batch.without_first).hint


def test_the_step_with_a_prompt_holds_the_decodes_of_the_other_slots():
    asked = []

    def second_a_step(step):
        asked.append(step)
        return 1.0

    assert full_batch.capacity(second_a_step, 512, 256, 768, 32) == 32 / 256
    assert asked == [Step(32, 32 * 768, ()), Step(31, 31 * 768, ((512, 0),))]


def test_every_probe_of_the_capacity_exercise_meets_the_formulas_conditions():
    for _, prompt, output, _, slots in LAB.exercises[2].probes:
        assert output > slots and prompt + slots - 1 <= one_engine.BUDGET


def test_the_exercises_answers():
    little, waiting, capacity, _ = LAB.exercises
    assert little.solution == pytest.approx(run(17).little().L)
    assert waiting.solution == 0.5
    assert capacity.solution(*capacity.probes[0]) == pytest.approx(one_engine.capacity(), rel=0.01)


# What the text says in numbers, computed. The tolerance of each is the last digit that the text shows.


def test_today_and_next_month():
    today, later = run(10), run(14)
    assert 14 / one_engine.capacity() < 0.9  # "still below 90%"
    assert np.percentile(later.ttft, 99) > 20 * np.percentile(today.ttft, 99)
    assert later.e2e.mean() < 1.25 * today.e2e.mean()
    assert today.workload.output_tokens.min() <= 20 and today.workload.output_tokens.max() >= 2_000
    assert one_engine.slots_taken(today) == 0
    assert one_engine.slots_taken(later) == pytest.approx(0.25, abs=0.03)  # "one request in four"


def test_bursts_at_the_same_rate():
    calm, bursts = run(10), run(10, cv=4)
    assert np.array_equal(calm.workload.output_tokens, bursts.workload.output_tokens)
    before, after = (np.percentile(r.ttft, 95) for r in (calm, bursts))
    assert 100 < after / before < 150  # "more than a hundred times"
    # "gaps of CV 4 from about 3 requests/s on, a fifth of capacity": one request in a hundred finds all slots taken.
    rare, often = (one_engine.slots_taken(run(rate, 4, 20_000)) for rate in (1, 3))
    assert rare < 0.005 and often > 0.015
    assert 3 / one_engine.capacity() == pytest.approx(1 / 5, abs=0.02)
    assert one_engine.forecast(3).sharing.p_wait < 1e-9


def test_a_window_of_ten_seconds_is_off_by_a_quarter_and_its_edges_explain_it():
    law = one_engine.window(14.0, 1.0, 70, 10).little
    worst = abs(law.arrival_rate * law.W / law.L - 1)
    assert worst == pytest.approx(0.25, abs=0.02)  # "about a quarter"
    assert law.residual == pytest.approx(0, abs=1e-9)
    every = [one_engine.window(14.0, 1.0, start, 10).little for start in range(0, 140, 5)]
    assert max(abs(law.arrival_rate * law.W / law.L - 1) for law in every) == worst
    whole = one_engine.window(14.0, 1.0, 0, 1_000).little
    assert whole.arrival_rate * whole.W == pytest.approx(whole.L, rel=1e-12)


def test_the_p99_leaves_the_floor_between_11_and_12_requests_a_second():
    eleven, twelve = one_engine.forecast(11), one_engine.forecast(12)
    assert eleven.sharing.p_wait < 0.01 < twelve.sharing.p_wait
    p99 = [forecast.ttft_percentile_s(0.99) for forecast in (one_engine.forecast(10), eleven, twelve)]
    assert p99[1] < 1.2 * p99[0] and p99[2] > 5 * p99[1]


def test_one_slot_against_thirty_two():
    service = run(1e-4, max_num_seqs=1).e2e.mean()
    assert one_engine.capacity() * service == pytest.approx(21, abs=0.5)  # of 32: steps grow with the batch
    assert one_engine.capacity(step_time=one_engine.ROOFLINE) == pytest.approx(18.05, abs=5e-3)


def test_sharing_holds_for_any_lengths_until_many_wait():
    """At a load of 0.55 the spread of the answers hardly matters: 3%. At 0.9 a CV of 2 makes theory wrong by 9%."""
    limits = {"max_num_seqs": one_engine.SLOTS, "max_num_batched_tokens": one_engine.BUDGET}
    for cv in (0, 1, 2):
        need = queueing.demand(prompt_tokens=512, output_tokens=256, output_cv=cv)
        for share in (0.55, 0.9):
            rate = share * queueing.continuous_capacity(need, one_engine.STEP, **limits).requests_per_s
            known = queueing.continuous_batching(need, one_engine.STEP, arrival_rate=rate, **limits)
            answers = lengths.lognormal(256, cv)
            drawn = Workload.poisson(rate=rate, num_requests=20_000, prompt_tokens=512, output_tokens=answers, seed=0)
            simulated = serve(drawn, one_engine.engine(), one_engine.STEP).e2e.mean()
            if share < 0.9:
                assert known.mean_e2e_s == pytest.approx(simulated, rel=0.03)
            elif cv == 2:
                assert known.mean_e2e_s < 0.92 * simulated


def test_the_trace_in_numbers():
    trace = one_engine.trace()
    assert len(trace) == 2_000
    gaps = np.diff(trace.arrival)
    assert gaps.std() / gaps.mean() == pytest.approx(1.05, abs=5e-3)
    assert trace.prompt_tokens.mean() == pytest.approx(1_161, abs=0.5)
    assert trace.output_tokens.mean() == pytest.approx(258, abs=0.5)
    for rate in (4.0, 6.0, 8.0):  # "E2E fits": within 5%
        measured = one_engine.under_load(rate, kind=one_engine.TRACE)
        assert measured.forecast.mean_e2e_s == pytest.approx(measured.run.e2e.mean(), rel=0.05)


def test_overload_warns_that_the_queue_grew():
    short, long = run(20, count=1_000), run(20, count=16_000)
    assert long.ttft.mean() > 10 * short.ttft.mean()
    assert np.nanmean(long.tpot) == pytest.approx(np.nanmean(short.tpot), rel=0.02)
    assert long.warnings and "queue grew" in long.warnings[0]


# The explorers: every control at its ends, in all combinations.


@pytest.mark.parametrize(("cv", "slots", "kind"), list(itertools.product((0.0, 5.0), (16, 1_024), ("drawn", "trace"))))
@pytest.mark.parametrize("rate", [2.0, 10.0, 40.0])
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


@pytest.mark.parametrize("slots", [16, 32, 256, 1_024])
def test_the_slider_of_the_rate_moves_the_marks_and_nothing_else(slots):
    start, *others = (
        draw.latency_against_load(one_engine.under_load(rate, 1.5, slots)).to_dict() for rate in (2.0, 23.5, 24.0, 40.0)
    )
    for other in others:
        assert other["layout"] == start["layout"]
        assert other["data"][:-1] == start["data"][:-1]
        assert {key for key, value in other["data"][-1].items() if value != start["data"][-1][key]} == {"x", "y"}


def test_the_table_and_the_lines_say_which_percentile():
    result = one_engine.under_load(14.0)
    rows = {name: cells for name, *cells in one_engine.comparison(result)}
    for percent in (95, 99):
        simulated, theory = np.percentile(result.run.ttft, percent), result.forecast.ttft_percentile_s(percent / 100)
        assert rows[f"TTFT, p{percent}"] == [one_engine.seconds(simulated), one_engine.seconds(theory)]
    line = result.curve
    for rate, p99 in zip(line.rate[::11], line.p99_ttft[::11], strict=True):
        assert p99 == pytest.approx(one_engine.forecast(float(rate)).ttft_percentile_s(0.99))


def test_a_run_seen_before_is_not_served_again():
    first, again = (one_engine.under_load(12.0, 2.0, 16).run for _ in range(2))
    assert first is again
    replayed = [one_engine.under_load(8.0, cv, kind=one_engine.TRACE).run for cv in (0.0, 5.0)]
    assert replayed[0] is replayed[1]  # the CV is not the trace's


@pytest.mark.parametrize("rate", [4.0, 17.0])
@pytest.mark.parametrize("cv", [0.0, 5.0])
def test_the_window_explorer_at_every_corner(rate, cv):
    for start, length in itertools.product((0, 80), (1, 60)):
        result = one_engine.window(rate, cv, start, length)
        assert result.little.residual == pytest.approx(0, abs=1e-9)
        assert one_engine.window_rows(result)[-1] == ("left unexplained", "0.00")
        figure = draw.number_over_time(result)
        valid(figure)
        top = figure.layout.yaxis.range[1]
        product = result.little.arrival_rate * result.little.W
        assert max(result.little.L, product) < top


def test_a_window_in_which_nobody_is_there_has_no_share():
    quiet = one_engine.Window(run(1e-4, count=3), 1e5, 1e5 + 1)
    assert ("λ W against L", "nobody was there") in one_engine.window_rows(quiet)


def test_times_are_written_for_people():
    shown = [one_engine.seconds(value) for value in (0.00123, 0.999, 0.9999, 12.34, np.inf)]
    assert shown == ["1.23 ms", "999 ms", "1 s", "12.3 s", "no limit"]


def test_a_run_says_beyond_what_its_steps_are_modelled():
    assert one_engine.under_load(38.0, max_num_seqs=256).warnings == ()
    assert one_engine.under_load(40.0, max_num_seqs=512).warnings[-1] == "Its steps are modelled beyond 256 decodes."


def test_the_lines_of_the_page_are_those_of_the_run():
    text = (SOLUTIONS / "03_littles_law.py").read_text(encoding="utf-8")
    for name in ("running", "waiting", "count", "e2e_sum"):
        before, after = (f"{getattr(page, name):.1f}" for page in metrics_page.PAGE)
        assert re.search(rf"{name.removeprefix('e2e_')} +{before} +{after}\n", text), name


def test_slots_taken_counts_who_finds_all_slots_taken():
    # Two slots, three at once: the third finds both taken.
    crowd = one_engine.requests(1e6, num_requests=3)
    assert one_engine.slots_taken(serve(crowd, one_engine.engine(2), one_engine.STEP)) == pytest.approx(1 / 3)


def test_the_static_figures_hold_what_they_are_given():
    loads = np.linspace(0.1, 0.9, 9)
    figure = draw.tail_over_mean(loads, {"level": np.full(9, 4.6), "peak": loads**2})
    assert [trace.name for trace in figure.data] == ["level", "peak"]
    assert [note.text for note in figure.layout.annotations] == ["level", "peak"]
    runs = {"17/s": run(17, count=500), "20/s": run(20, count=500)}
    figure = draw.overload(runs, {"20/s": 2.0})
    assert len(figure.data) == 5 and max(figure.data[-1].y) == pytest.approx(2 * runs["20/s"].arrival[-1], rel=1e-3)


def test_little_holds_under_every_policy_of_the_lab():
    for policy in (policies.Static(32), policies.Dynamic(32, 0.05), one_engine.engine()):
        law = serve(one_engine.requests(4, num_requests=500), policy, one_engine.STEP).little()
        assert law.arrival_rate * law.W == pytest.approx(law.L, rel=1e-12)
        assert law.carried_in == law.carried_out == 0


# The table, the figures and the evening


def test_the_table_of_today():
    text = repr(lab03.today())
    assert "[simulated on recorded steps: " in text and f"{one_engine.capacity():.1f} requests/s" in text
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lab03.nothing


def test_the_figures_are_valid():
    valid(lab03.ticket_graphs())
    figure = lab03.by_hand()
    valid(figure)
    (line,) = [trace for trace in figure.data if trace.name == "in the system"]
    held = np.diff(line.x) @ np.array(line.y)[:-1]
    assert held == sum(end - begin for begin, end in lab.FOUR) == 12


def test_the_evening_has_a_queue_from_the_campaign_that_drains_when_it_is_over():
    found = evening.evening()
    quiet, campaign, after = found.waiting[5], found.waiting[evening.BEGIN : evening.END + 1], found.waiting[31:47]
    assert quiet < 10 and (np.diff(campaign) > 0).all() and (np.diff(after) < 0).all()
    assert found.waiting[-1] < 50
    inside = slice(*evening.SHOWN)
    assert found.arrived[inside].mean() == pytest.approx(evening.USUAL, rel=0.05)
    assert found.finished[inside].mean() == pytest.approx(one_engine.capacity(), rel=0.03)
