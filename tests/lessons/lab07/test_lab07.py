"""Lab 07: the scenario against formulas, cases by hand and token times, and what its figures show."""

import itertools

import numpy as np
import pytest

from course import Workload, policies, serve, steptime
from course.calibration import vllm_live
from course.engine.metrics import percentiles
from course.figures import theme
from course.lessons import lab07
from course.lessons.lab07 import by_hand, figures, long_prompt, prompt_chunks, recorded_stops, rush
from course.lessons.lab07.long_prompt import PROMPT, STEP, THEORY, WHOLE
from course.steptime import Step
from tests.helpers.figures import valid


def one_by_one(run):
    """The longest gap of each request, from the times of its tokens."""
    times = [run.token_times(i) for i in range(len(run))]
    return np.array([np.diff(tokens).max() if len(tokens) > 1 else np.nan for tokens in times])


@pytest.mark.parametrize(("budget", "cap"), [(WHOLE, 0), (128, 0), (2_048, 256)])
def test_longest_gaps_are_those_of_the_token_times_and_no_longer_than_a_step(budget, cap):
    run = serve(long_prompt.requests(num_chats=200), long_prompt.engine(budget, cap), STEP)
    found = long_prompt.longest_gaps(run)
    assert np.array_equal(found, one_by_one(run)) and np.nanmax(found) <= run.steps.seconds.max()


def test_an_answer_of_one_token_has_no_gap():
    load = Workload(arrival=[0, 0, 3], prompt_tokens=[5, 5, 5], output_tokens=[1, 3, 1])
    run = serve(load, policies.Continuous(4, 64), steptime.PowerLaw(t0=1, c=0, alpha=1))
    gaps = long_prompt.longest_gaps(run)
    assert np.isnan(gaps[[0, 2]]).all() and gaps[1] == 1.0


def test_the_requests_are_what_the_scenario_says():
    load = long_prompt.requests(every=10, num_chats=500)
    long = load.class_ == "long"
    assert set(load.prompt_tokens[long]) == {PROMPT} and set(load.prompt_tokens[~long]) == {200}
    assert load.arrival[long].tolist() == [5, 15, 25, 25, 25, 35, 45, 55]  # the third, and each fourth from then on
    assert load.arrival[load.class_ == "class"].tolist() == [45] * 40
    assert long_prompt.requests(every=10, num_chats=500, faster=2).arrival == pytest.approx(load.arrival / 2)
    assert load.output_tokens[~long].mean() == pytest.approx(300, rel=0.07)  # 540 draws with a CV of 0.5: good to 2%


@pytest.mark.parametrize(
    ("budget", "cap", "at_once", "crowd"), list(itertools.product((128, WHOLE), (0, 256), (1, 3), (0, 40)))
)
def test_one_long_prompt_in_the_engine(budget, cap, at_once, crowd):
    found, streaming = long_prompt.moment(budget, cap, at_once, crowd), 12
    run, steps = found.run, found.run.steps
    assert len(found.longs) == at_once and len(run) == streaming + at_once + 3 + crowd
    begins, ends = found.chunk_steps
    assert len(begins) >= -(-PROMPT // min(cap or budget, budget)) and begins[0] == run.admitted[found.long]
    assert ends[-1] == run.first_computed[found.long]
    assert found.gap == pytest.approx(one_by_one(run)[:streaming].max())
    assert found.gap <= steps.seconds.max() * (1 + 1e-12)
    assert (run.response[:streaming] > ends[-1]).all()  # who streams, streams all the time
    figure, rows = figures.moment(found), dict(long_prompt.moment_rows(found))
    assert f"longest: {rows['longest gap of a chat']}" in figure.layout.annotations[0].text
    assert min(bar.base[0] for bar in figure.data[:-1] if len(bar.base)) >= 0


@pytest.mark.parametrize(("budget", "every", "limit"), [(WHOLE, 20, 100), (128, 2, 10), (WHOLE, 60, 1_000)])
def test_the_same_gaps_are_counted_twice(budget, every, limit):
    result = long_prompt.hidden(budget, 0, every, limit)
    run, rows = result.outcome.run, dict(long_prompt.hidden_rows(result))
    longest = one_by_one(run)[run.workload.class_ != "long"]
    longest = longest[~np.isnan(longest)]
    said = long_prompt.seconds(limit / 1e3)
    assert rows["p99 over all tokens"] == long_prompt.seconds(percentiles(run.itl)["p99"])
    assert rows["p99 over chats' longest gaps"] == long_prompt.seconds(np.percentile(longest, 99))
    assert rows[f"tokens after a gap above {said}"] == f"{(run.itl > limit / 1e3).mean():.3%}"
    assert rows[f"chats with a gap above {said}"] == f"{(longest > limit / 1e3).mean():.1%}"
    assert rows["TTFT of a long prompt"] == long_prompt.seconds(np.median(run.ttft[run.workload.class_ == "long"]))
    figure = figures.hidden(result)
    for trace in figure.data[::2]:  # the two lines fall from all to none
        shares = [share for share in trace.y if share is not None]
        assert shares[0] == 1 and shares == sorted(shares, reverse=True)
    assert rows["p99 over all tokens"] in figure.layout.annotations[0].text


def test_the_formula_of_a_step():
    bandwidth = THEORY.gpu.read_bandwidth
    for b, c, k, context in ((32, 512, 0, 700), (16, 64, 30_000, 500), (8, 4_096, 8_192, 900)):
        pairs = c * k + c * (c + 1) / 2
        expected = (
            THEORY.launch + max(THEORY.weights, THEORY.per_token * (b + c)) + 131_072 * b * context / bandwidth
            + max(THEORY.per_pair * pairs, 131_072 * (k + c) / bandwidth)
        )  # fmt: skip
        assert THEORY(Step(b, b * context, ((c, k),))) == pytest.approx(expected, rel=0.01)  # the head, for each decode


def test_chunks_add_readings_and_no_pairs():
    gigabytes = []
    for chunk in (64, 256, 512, 2_048, 8_192):
        steps = prompt_chunks.chunk_steps(PROMPT, chunk)
        assert sum(step.prefill_pairs for step in steps) == PROMPT * (PROMPT + 1) // 2 == 536_887_296
        gigabytes.append(sum(step.prefill_context for step in steps) * THEORY.model.kv_bytes_per_token / 1e9)
    assert [round(value) for value in gigabytes] == [1_102, 277, 140, 37, 11]
    assert prompt_chunks.seconds_a_pair(2_048, THEORY) == pytest.approx(THEORY.per_pair)
    # A whole prompt was recorded, and what the model of the simulator reads off is that point.
    assert prompt_chunks.seconds_of_steps(PROMPT)[0] == pytest.approx(1.206, rel=0.01)


def test_throughput_counts_prompts_and_answers():
    """Two prompts of 4 tokens and two answers of 3, one slot, and a second for each step."""
    load = Workload(arrival=[0, 5], prompt_tokens=[4, 4], output_tokens=[3, 3])
    rate = prompt_chunks.saturated_tokens_per_second(load, policies.Continuous(1, 64), lambda step: 1.0)
    assert rate == pytest.approx((4 + 3) / 3)  # the second is let in at 3 s: until then 4 prompt tokens and 3 more


def test_the_case_by_hand_step_by_step():
    """Times in ms: a step takes its tokens, and 4 at least; the new chat comes 1 ms after the long prompt."""
    steps = [
        [[0, 14]],
        [[0, 6], [6, 12], [12, 18]],
        [[0, 4], [4, 10], [10, 15], [15, 20], [20, 25], [25, 30]],
    ]
    waits = ((14, 18, 14), (6, 22, 18), (6, 9, 30))
    for case, spans, (longest, new, long) in zip(by_hand.cases().values(), steps, waits, strict=True):
        assert (np.column_stack(case.chunk_steps) - case.start).tolist() == spans
        assert (case.gap, case.run.ttft[3], case.run.ttft[2]) == (longest, new, long)
    valid(lab07.four_by_hand())


def test_the_graphs_of_the_ticket():
    now = rush.graphs(rush.NOW)
    run = now.run
    late = (run.arrival >= 20) & (run.arrival < 30)
    assert now.ttft[2] == pytest.approx(np.percentile(run.ttft[late], 95))
    assert now.running[2] + now.waiting[2] == ((run.arrival <= 30) & (run.response > 30)).sum()
    times = [np.column_stack((tokens[1:], np.diff(tokens))) for tokens in map(run.token_times, range(len(run)))]
    at, gaps = np.concatenate(times).T
    assert now.gap[2] == pytest.approx(np.percentile(gaps[(at >= 20) & (at < 30)], 99))
    figure = lab07.ticket_graphs()
    for trace in figure.data:  # no line leaves its panel
        assert max(trace.y) <= figure.layout["yaxis" + trace.yaxis[1:]].range[1], trace.name


@pytest.mark.parametrize("load", recorded_stops.LOADS)
def test_the_gaps_of_vllm_are_those_of_its_recording(load):
    """Token by token: the answer's last token is its last gap, and a chunk is a part of a prompt not yet read."""
    found, run = recorded_stops.answer(load), vllm_live.read(load)
    chat = int(np.argmax(run.output_tokens))
    assert len(found.gaps) == len(found.chunk) == run.output_tokens[chat] - 1
    assert found.gaps.sum() == pytest.approx(run.last[chat] - run.first[chat])
    assert found.gaps.mean() == pytest.approx(run.tpot[chat])
    long = [int(tokens) for tokens in run.prompt_tokens if tokens > 400]
    assert found.chunk.sum() == sum(long[-2:]) and found.chunk.max() < found.budget  # the last two of three
    figure = figures.one_answer([found], "vLLM")
    colours = figure.data[0].marker.color
    room = found.budget - (run.policy.max_num_seqs - 1)  # beside a full batch of decodes
    assert colours.count(theme.COLOURS["prefill"]) == (found.chunk > 0).sum() == sum(-(-n // room) for n in long[-2:])
    assert list(figure.data[0].y) == pytest.approx(1e3 * found.gaps, rel=1e-3)
    assert lab07.vllm_stops().layout.annotations[-1].text.startswith("<b>vLLM 0.32.0, small model, two cores, 2026-11-")
