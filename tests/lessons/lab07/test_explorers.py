"""Lab 07's explorers: every control at its ends, in corners, and what must hold there; what their figures show."""

import itertools

import numpy as np
import pytest

from course import Workload, policies, serve, steptime
from course.figures import theme
from course.lessons.lab07 import figures as draw
from course.lessons.lab07 import long_prompt, prefill
from course.lessons.lab07.long_prompt import BUDGETS, PROMPT, STEP, THEORY, WHOLE
from course.lessons.lab07.prompt_chunks import seconds_of_steps
from tests.helpers.figures import valid


def by_hand(run):
    """The longest gap of each request, one after the other."""
    times = [run.token_times(i) for i in range(len(run))]
    return np.array([np.diff(tokens).max() if len(tokens) > 1 else np.nan for tokens in times])


# The longest gap of each request


@pytest.mark.parametrize(("budget", "cap"), [(WHOLE, 0), (512, 0), (128, 0), (2_048, 256)])
def test_longest_gaps_are_those_of_the_token_times(budget, cap):
    run = serve(long_prompt.requests(num_chats=200), long_prompt.engine(budget, cap), STEP)
    assert np.array_equal(long_prompt.longest_gaps(run), by_hand(run))


def test_an_answer_of_one_token_has_no_gap():
    load = Workload(arrival=[0, 0, 3], prompt_tokens=[5, 5, 5], output_tokens=[1, 3, 1])
    run = serve(load, policies.Continuous(4, 64), steptime.PowerLaw(t0=1, c=0, alpha=1))
    gaps = long_prompt.longest_gaps(run)
    assert np.isnan(gaps[[0, 2]]).all() and gaps[1] == 1.0
    alone = serve(load.head(1), policies.Continuous(4, 64), steptime.PowerLaw(t0=1, c=0, alpha=1))
    assert np.isnan(long_prompt.longest_gaps(alone)).all()


def test_the_requests_are_what_the_scenario_says():
    load = long_prompt.requests(every=10, num_chats=500)
    long = load.class_ == "long"
    assert set(load.prompt_tokens[long]) == {PROMPT} and set(load.prompt_tokens[~long]) == {200}
    assert load.arrival[long].tolist() == [5, 15, 25, 25, 25, 35, 45, 55]  # the third, and each fourth from then on
    assert load.arrival[load.class_ == "class"].tolist() == [45] * 40
    assert long_prompt.requests(every=10, num_chats=500, faster=2).arrival == pytest.approx(load.arrival / 2)
    assert load.output_tokens[~long].mean() == pytest.approx(300, rel=0.07)  # 540 draws with a CV of 0.5: good to 2%
    assert len(long_prompt.requests(every=2.0)) <= 2_000  # the busiest setting of a slider


# One long prompt, step by step


@pytest.mark.parametrize(
    ("budget", "cap", "at_once", "crowd"),
    [(WHOLE, 0, 1, 0), *itertools.product((128, WHOLE), (0, 256), (1, 3), (0, 40))],
)
def test_one_long_prompt_in_the_engine(budget, cap, at_once, crowd):
    found, streaming = long_prompt.moment(budget, cap, at_once, crowd), 12
    run, steps = found.run, found.run.steps
    assert set(run.workload.prompt_tokens[list(found.longs)]) == {PROMPT} and len(found.longs) == at_once
    assert len(found.newcomers) == 3 and len(run) == streaming + at_once + 3 + crowd
    begins, ends = found.chunk_steps
    most = min(cap or budget, budget)
    assert len(begins) >= -(-PROMPT // most) and begins[0] == run.admitted[found.long]
    assert ends[-1] == run.first_computed[found.long]
    assert (steps.decodes + steps.prefill_tokens).max() <= budget
    first, last = found.longest_gap
    assert last - first == pytest.approx(by_hand(run)[:streaming].max())
    assert last - first <= steps.seconds.max() * (1 + 1e-12)
    assert (run.response[:streaming] > ends[-1]).all()  # who streams, streams all the time
    rows = dict(long_prompt.moment_rows(found))
    assert rows["steps it took"] == f"{len(begins):,}"
    figure = draw.moment(found)
    assert f"longest: {rows['longest gap of a chat']}" in figure.layout.annotations[0].text
    tokens = figure.data[-1]
    assert len(tokens.x) == len(tokens.y) and set(tokens.y) <= set(range(len(figure.layout.yaxis.ticktext)))
    assert min(bar.base[0] for bar in figure.data[:-1] if len(bar.base)) >= 0


def test_the_cap_lets_newcomers_in_and_the_budget_does_not():
    def waits(*setting):
        found = long_prompt.moment(*setting)
        return found.run.ttft[list(found.newcomers)]

    assert (waits(512, 0) > waits(WHOLE, 0)).all() and (waits(2_048, 512) < 0.05).all()


# The trade


@pytest.mark.parametrize(("budget", "cap"), [(BUDGETS[0], 0), (1_024, 512), (WHOLE, 0)])
def test_the_trade(budget, cap):
    result = long_prompt.trade(budget, cap)
    assert len(result.line) == len(BUDGETS) and result.here is result.line[BUDGETS.index(budget)]
    assert not result.warnings
    longest = [found.itl["max"] for found in result.line]
    assert (np.diff(longest) > -1e-3).all()  # a larger budget never shortens the longest gap
    figure = draw.trade(result)
    valid(figure)
    for trace in figure.data:
        low, high = (10**edge for edge in figure.layout["yaxis" + trace.yaxis[1:]].range)
        assert all(low < y < high for y in trace.y), trace.name
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    assert len(marks) == 4 and {mark.x[0] for mark in marks} == {budget}
    assert marks[2].y[0] == pytest.approx(result.here.itl["max"], rel=1e-5)


def test_a_setting_seen_before_is_not_served_again():
    assert long_prompt.trade(512, 0).here is long_prompt.trade(512, 0).here


# What a percentile hides


@pytest.mark.parametrize(
    ("budget", "cap", "every", "limit"),
    [(WHOLE, 0, 20, 100), (128, 256, 2, 10), (WHOLE, 0, 60, 1_000)],
)
def test_the_two_counts_of_the_gaps_are_drawn(budget, cap, every, limit):
    result = long_prompt.hidden(budget, cap, every, limit)
    gaps = by_hand(result.outcome.run)[result.outcome.chats]
    assert result.outcome.stalled(limit / 1e3) == (gaps[~np.isnan(gaps)] > limit / 1e3).mean()
    figure = draw.hidden(result)
    for trace in figure.data[::2]:  # the two lines fall from all to none
        shares = [share for share in trace.y if share is not None]
        assert shares[0] == 1 and shares == sorted(shares, reverse=True)
    low, high = (10**edge for edge in figure.layout.xaxis.range)
    assert all(low < figure.data[i].x[0] < high for i in (1, 3))


def test_survival_counts_what_is_above():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1, 2, 1])
    assert draw.survival(values, weights, np.array([0.5, 1.0, 2.5, 3.0])) == pytest.approx([1, 0.5, 0.25, 0])


def test_percentiles_over_tokens_come_to_see_long_prompts_that_come_often():
    """A long gap hits rate x streaming time = 12 tokens of rate x 300 x every: 1% of them where one comes in 5 s."""
    p99 = [long_prompt.hidden(WHOLE, 0, every, 100).outcome.itl["p99"] for every in (2, 5, 20)]
    assert p99 == sorted(p99, reverse=True) and p99[0] > 10 * p99[1] and p99[1] < 2 * p99[2]


# Figures of what was measured


def test_the_recorded_figure_shows_both_sources():
    sizes = (64, 512, 1_024, 4_096, 8_192)
    figure = prefill.by_chunk(STEP, THEORY, PROMPT, sizes)
    valid(figure)
    colours = {trace.name.split()[0]: trace.line.color for trace in figure.data}
    assert colours == {kind: theme.COLOURS[kind] for kind in ("recorded", "theory")}
    for trace in figure.data:
        assert list(trace.y) == theme.round_digits(np.array(trace.y))  # the same on every machine
    by_name = {trace.name: trace.y for trace in figure.data}
    assert by_name["recorded"] == pytest.approx([seconds_of_steps(PROMPT, size).sum() for size in sizes], rel=1e-5)
    assert all(real > model for real, model in zip(by_name["recorded"], by_name["theory"], strict=True))


def test_steps_in_time_stand_one_after_the_other():
    figure = prefill.in_time({"a": ("recorded", np.array([1.0, 2.0])), "b": ("measured", np.array([0.5] * 3))})
    valid(figure)
    assert [list(bar.base) for bar in figure.data] == [[0, 1], [0, 0.5, 1]]
    assert [list(bar.x) for bar in figure.data] == [[1, 2], [0.5] * 3]
    assert figure.data[0].xaxis == "x" and figure.data[1].xaxis == "x2"
