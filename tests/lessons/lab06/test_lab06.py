"""Lab 06: the scenario against token times and cases by hand, and what its figures show."""

import itertools

import numpy as np
import pytest

from course import Workload, gpu, serve, steptime
from course.engine.metrics import percentiles
from course.lessons import lab06
from course.lessons.lab06 import agents, by_hand, decision, figures, on_device, one_launch, two_orders
from course.lessons.lab06.two_orders import FIRST, MIXED, PROMPT, RULES, SLOTS
from tests.helpers.figures import valid

SHORT = 200  # requests: enough for a gap of several steps


def few(rule, budget=8_192, slots=SLOTS, seed=0):
    return two_orders.served(rule, budget, slots, two_orders.RATE, seed, SHORT)


def all_gaps(run):
    """Every gap of every request, from the times of its tokens."""
    return np.concatenate([np.diff(run.token_times(row)) for row in range(len(run))])


@pytest.mark.parametrize("rule", RULES)
def test_what_is_read_off_a_run_is_what_its_token_times_say(rule):
    found = few(rule)
    gaps = all_gaps(found.run)
    assert found.gap == pytest.approx(gaps.max())
    begin, end = found.longest_gap
    assert end - begin == pytest.approx(found.gap)
    times = [found.run.token_times(row) for row in range(len(found.run))]
    inside = [row for row, own in enumerate(times) if any(abs(own - begin) < 1e-9) and any(abs(own - end) < 1e-9)]
    assert inside  # somebody had a token before and after it
    assert not any(((own > begin + 1e-9) & (own < end - 1e-9)).any() for row, own in enumerate(times) if row in inside)
    assert found.itl_p99 == pytest.approx(percentiles(gaps)["p99"], rel=0.02)  # between two values, or the next one
    assert found.ttft == pytest.approx(found.run.ttft.mean()) and found.e2e == pytest.approx(found.run.e2e.mean())


def test_prompts_first_never_mixes_and_the_gap_holds_whole_prompts():
    found = few(FIRST)
    assert found.mixed == 0 and found.prompts_in_gap == int(found.prompts_in_gap)
    assert few(MIXED).mixed > 0.05 and few(MIXED).gap <= few(MIXED).run.steps.seconds.max() + 1e-12


def test_the_requests_are_what_the_scenario_says():
    load = two_orders.requests(number=4_000)
    assert set(load.prompt_tokens) == {PROMPT} and load.rate == pytest.approx(two_orders.RATE, rel=0.05)
    assert load.output_tokens.mean() == pytest.approx(two_orders.ANSWER, rel=0.05)  # 4,000 draws with a CV of 1: 1.6%
    assert load.output_tokens.std() / load.output_tokens.mean() == pytest.approx(two_orders.CV, rel=0.15)


def test_the_share_of_prompts_is_that_of_the_traffic():
    load = two_orders.requests(number=SHORT)
    total = load.prompt_tokens.sum() + load.output_tokens.sum() - len(load)
    assert few(MIXED).prompt_share == pytest.approx(load.prompt_tokens.sum() / total)


@pytest.mark.parametrize(("order", "budget"), list(itertools.product(two_orders.ORDERS, (512, 8_192))))
def test_the_composition_around_the_gap(order, budget):
    found = two_orders.served(order, budget)
    figure = valid(figures.composition(found)) or figures.composition(found)
    decodes, prompts = figure.data
    begin, end = found.longest_gap
    inside = [y for x, y in zip(decodes.x, decodes.y, strict=True) if 1 < x < 1e3 * (end - begin) - 1]
    if order == FIRST and budget == 8_192:
        last = found.run.steps.seconds[np.searchsorted(found.run.steps.end, end - 1e-9)]
        between = [y for x, y in zip(decodes.x, decodes.y, strict=True) if 1 < x < 1e3 * (end - begin - last) - 1]
        assert not any(between)  # nobody decodes before the last step of the gap
        assert max(prompts.y) <= budget
    assert inside is not None and max(decodes.y) <= found.run.steps.running.max()


def test_the_case_by_hand():
    """A step takes its tokens, 4 ms at least; both prompts have 8 tokens and come at the end of a step."""
    whole, both, half = by_hand.cases().values()
    # 8 and 8 tokens of prompts, then all four decode in 4 ms.
    assert (whole.gap, whole.ttft) == (20.0, [8.0, 16.0])
    # 2 + 6, 2 + 2 + 4, then 3 + 4: the first prompt ends with the second step, the other one with the third.
    assert (both.gap, both.ttft) == (8.0, [16.0, 23.0])
    # 2 + 4 twice, then 3 + 4 twice.
    assert (half.gap, half.ttft) == (7.0, [12.0, 26.0])
    valid(lab06.four_by_hand())


def test_the_graphs_of_the_ticket():
    now = agents.graphs(agents.NOW)
    gaps = all_gaps(now.run)
    assert now.longest.max() == pytest.approx(gaps.max())
    # A gap counts in the ten seconds in which it ends, with the token that comes late.
    ends = [time for row in range(len(now.run)) for time in now.run.token_times(row)[1:]]
    longest = [max(gap for gap, end in zip(gaps, ends, strict=True) if 10 * k <= end < 10 * k + 10) for k in range(16)]
    np.testing.assert_allclose(now.longest, longest)
    late = (now.run.arrival >= 20) & (now.run.arrival < 30)
    assert now.ttft[2] == pytest.approx(now.run.ttft[late].mean())
    assert now.running[2] == ((now.run.admitted <= 30) & (now.run.response > 30)).sum()
    figure = lab06.ticket_graphs()
    for trace in figure.data:  # no line leaves its panel
        assert max(trace.y) <= figure.layout["yaxis" + trace.yaxis[1:]].range[1], trace.name


def test_the_agents_come_together():
    load = agents.requests()
    agent = load.class_ == "agent"
    assert np.unique(load.arrival[agent]).tolist() == list(np.arange(10, 160, 20))
    assert (np.unique(load.arrival[agent], return_counts=True)[1] == agents.AT_ONCE).all()
    assert agents.requests(faster=2).arrival == pytest.approx(load.arrival / 2)


def test_the_log_says_what_the_steps_were():
    lines = decision.log().splitlines()
    found = two_orders.served(FIRST, decision.NOW)
    assert lines[0].count("Decode") == lines[-1].count("Decode") == 1 and len(lines) == decision.LINES + 1
    more = int(lines[3].split()[1])
    shown = sum("Prefill" in line for line in lines)
    begin, end = found.longest_gap
    steps = found.run.steps
    between = (steps.start >= begin - 1e-9) & (steps.end <= end + 1e-9) & (steps.prefill_tokens > 0)
    assert more + shown == between.sum()
    new = [int(line.split("#new-token: ")[1].split(",")[0]) for line in lines if "Prefill" in line]
    assert new[:2] == steps.prefill_tokens[np.flatnonzero(between)[:2]].tolist()
    # What is left out holds more than the lines above it: with its sum the log adds up to the tokens of the gap.
    left_out = int(lines[3].split("#new-token: ")[1].split()[0])
    assert sum(new) + left_out == steps.prefill_tokens[between].sum()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({decision.MIX: True, decision.CHUNK: 2_048}, "mixes as well"),  # both, as on SGLang's command line
        ({decision.RUNNING: "many"}, "give a whole number"),
        ({decision.RUNNING: -3}, "give a whole number"),
        ({decision.VLLM: -1}, "give a whole number"),
    ],
)
def test_the_decision_says_what_it_does_not_take(answer, said):
    with pytest.raises(ValueError, match=said):
        decision.kept(answer)


def test_chunking_off_is_a_value_that_sglang_takes():
    assert decision.kept({decision.CHUNK: -1}) == "gaps are far too long, prompts first"


# Launches


@pytest.fixture
def small(monkeypatch):
    """A small matrix, on NumPy, each launched as often as it must be."""
    monkeypatch.setattr(on_device, "ROWS", {True: 64, False: 64})
    monkeypatch.setattr(on_device, "COLUMNS", 32)
    return one_launch.launch_explorer(gpu.device("numpy"), max_seconds=0)


def test_a_move_launches_apart_and_together(small):
    found = small.compute(decodes=16, chunk=64)
    ways = found.here.times[on_device.PRODUCT]
    assert list(ways) == list(on_device.WAYS) and all(value > 0 for value in ways.values())
    assert on_device.ATTENTION not in found.here.times and not found.warnings
    rows = small.rows(found)
    assert [row[0] for row in rows[1:4]] == [f"matrix product, {way}" for way in ("two launches", "one", "two / one")]
    assert rows[4][2] == "-" and len({len(row) for row in rows}) == 1
    valid(small.drawn(found))


def test_the_text_of_what_is_launched_is_the_recording():
    text = one_launch.launch_explorer(gpu.device("numpy")).text()
    assert text == lab06.one_launch_or_two().text() and "measured" not in text


@pytest.mark.parametrize(("decodes", "chunk"), list(itertools.product((16, 128), (64, 512))))
def test_two_launches_are_the_sum_and_the_recorded_matrix_is_read_no_faster_than_the_card_reads(decodes, chunk):
    found = one_launch.recording().at(decodes, chunk)
    for ways in found.times.values():
        assert one_launch.apart(ways) == ways["decodes"] + ways["prompt"]
        assert max(ways["decodes"], ways["prompt"]) < 1.06 * ways["together"] < 1.2 * one_launch.apart(ways)
    for seconds in found.times[on_device.PRODUCT].values():  # 235 MB at 4.8 TB/s, by the card's data sheet
        assert seconds > 2 * 28_672 * 4_096 / 4.8e12


def test_on_a_gpu_all_is_launched():
    """Where there is a GPU: every launch runs; that the rows are equal, tests/gpu/ops/test_mixed_attention.py asks."""
    device = gpu.device()
    if not device.is_gpu:
        pytest.skip("no GPU here")
    found = on_device.Bench(device, 0.1)(16, 64)
    assert list(found.times) == list(on_device.WHAT)


def test_the_rules_are_the_policies_that_they_name():
    second = steptime.PowerLaw(t0=1, c=0, alpha=1)
    load = Workload([0.0, 0.5], [64, 8_192], [40, 2])
    chunks = {rule: serve(load, two_orders.policy(rule), second).steps.prefill_tokens for rule in two_orders.SHARES}
    assert [int(chunks[rule].max()) for rule in chunks] == [4_096, 2_048, 1_024, 512]
    turns = [serve(load, two_orders.policy(rule, 4_096), second).steps.prefill_tokens for rule in two_orders.TURNS]
    assert [np.flatnonzero(one)[1:3].tolist() for one in turns] == [[2, 4], [4, 8], [8, 16]]
