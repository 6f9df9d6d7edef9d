"""Lab 16: its scenarios against oracles, and its explorers with every control at its ends and in random corners."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import Workload, serve
from course.lessons import lab16
from course.lessons.lab16 import figures as draw
from course.lessons.lab16 import honest, launched, load_test, many_tools, pictures, steady_window
from course.lm import load
from course.lm.errors import LMError
from tests.helpers.figures import valid

# The client with a limit


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0.01, 5)), min_size=1, max_size=30),
    st.integers(1, 8),
)
def test_no_more_than_the_limit_in_flight_and_nobody_waits_without_reason(requests, limit):
    planned = np.sort([moment for moment, _ in requests])
    seconds = np.array([took for _, took in requests])
    # Answers come `seconds` after sending: send one by one, looking at all that are out.
    sent, answered = [], []
    for moment, took in zip(planned, seconds, strict=True):
        begin = moment if not sent else max(moment, sent[-1])
        while sum(end > begin for end in answered) >= limit:
            begin = min(end for end in answered if end > begin)
        sent.append(begin)
        answered.append(begin + took)
    found = load_test.sent_times(planned, np.array(answered), limit)
    assert found.tolist() == pytest.approx(sent)


@pytest.mark.parametrize(("rate", "limit", "document"), [(12, 16, 65_536), (20, 8, 0), (40, 64, 98_304)])
def test_a_small_engine_is_a_large_one_behind_a_limited_client(rate, limit, document):
    test = load_test.run_test(rate, limit, document)
    plan = test.run.workload
    behind = serve(
        Workload(arrival=test.sent, prompt_tokens=plan.prompt_tokens, output_tokens=plan.output_tokens),
        load_test.engine(),
        load_test.STEP,
    )
    assert np.array_equal(behind.first_computed, test.run.first_computed)
    assert np.array_equal(behind.response, test.run.response)
    assert np.array_equal(behind.ttft, test.written)


def test_a_document_changes_nothing_but_its_own_request():
    plain, long = load_test.requests(12), load_test.requests(12, 65_536)
    assert np.flatnonzero(plain.prompt_tokens != long.prompt_tokens).tolist() == [1_000]
    assert np.array_equal(plain.arrival, long.arrival) and long.output_tokens[1_000] == 1


# The interval


@pytest.mark.parametrize(
    ("n", "percent"), [(5, 50), (20, 90), (100, 99), (368, 99), (367, 99), (500, 95), (1, 50), (100, 50)]
)
def test_the_ranks_of_an_interval_by_their_definition(n, percent):
    found = steady_window.percentile_interval(np.arange(1, n + 1), percent)
    q, tail = percent / 100, 0.025
    below = np.cumsum([comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)])  # P(at most k below)
    low = max((rank for rank in range(1, n + 1) if below[rank - 1] <= tail), default=0)
    high = min((rank for rank in range(1, n + 1) if 1 - below[rank - 1] <= tail), default=n + 1)
    assert (found.low_rank, found.high_rank) == (low, high)
    assert found.low == (low or -np.inf) and found.high == (high if high <= n else np.inf)
    assert found.low <= found.value <= found.high
    if (n, percent) == (100, 50):  # as tables of the binomial distribution say
        assert (found.low, found.value, found.high) == (40, 50.5, 61)


def test_no_values_have_no_interval_and_a_window_has_those_that_were_sent_in_it():
    with pytest.raises(ValueError, match="make the window longer"):
        steady_window.percentile_interval([], 99)
    run = steady_window.closed_loop(64)
    ttft, speed = steady_window.between(run, 5, 25)
    inside = (run.arrival >= 5) & (run.arrival < 25)
    assert 0 < inside.sum() < (run.arrival >= 5).sum() and np.array_equal(ttft, run.ttft[inside])
    assert speed == pytest.approx(run.steps.useful[(run.steps.end > 5) & (run.steps.end <= 25)].sum() / 20)


# The definitions, on three answers by hand: TTFT 1, 2, 3 s; 1, 3 and 5 tokens; gaps of 0.5 s and of 0.25 s.

BY_HAND = many_tools.Streams(
    ttft=np.array([1.0, 2.0, 3.0]),
    e2e=np.array([1.0, 3.0, 4.0]),
    tokens=np.array([1, 3, 5]),
    gaps=[np.empty(0), np.array([0.5, 0.5]), np.array([0.5, 0.5])],
    piece_tokens=[np.empty(0, dtype=int), np.array([1, 1]), np.array([2, 2])],
)


def test_every_definition_by_hand():
    found = {(r.tool, r.metric): r.mean for r in many_tools.readings(BY_HAND)}
    assert found == pytest.approx(
        {
            ("this course", "TPOT"): (0.5 + 0.25) / 2,
            ("this course", "ITL"): 2 / 6,
            ("vLLM bench serve", "TPOT"): 0.375,
            ("vLLM bench serve", "ITL"): 0.5,
            ("SGLang bench_serving", "ITL"): (0.5 + 0.5 + 2 * 0.25 + 2 * 0.25) / 6,
            ("genai-perf, aiperf", "inter token latency"): 0.375,
            ("aiperf", "inter chunk latency"): 0.5,
            ("inference-perf", "TPOT"): 0.5,
            ("guidellm 0.2, 0.3", "TPOT"): (0 + 1 + 1) / 9,
            ("guidellm 0.2, 0.3", "ITL"): 2 / 6,
            ("guidellm from 0.4", "ITL"): 2 / 6,
            ("guidellm from 0.4", "TPOT"): 8 / 9,
            ("llmperf", "inter token latency"): (1 + 1 + 4 / 5) / 3,
        }
    )


def test_vllms_own_file_says_what_its_definitions_give_and_its_page_less_than_the_client():
    file, table = many_tools.vllms_file(), dict((row[0], row[1]) for row in lab16.vllms_own_file().rows)
    found = {(r.tool, r.metric): 1e3 * r.mean for r in many_tools.readings(many_tools.from_vllms_file())}
    assert found["vLLM bench serve", "TPOT"] == pytest.approx(file["mean_tpot_ms"])
    assert found["vLLM bench serve", "ITL"] == pytest.approx(file["mean_itl_ms"])
    assert table["its own ITL"] == f"{file['mean_itl_ms']:.2f} ms" > table["this course: ITL"]
    assert sum(len(gaps) < 31 for gaps in file["itls"]) == 5
    rows = [[float(cell.removesuffix(" ms").replace(",", "")) for cell in row[1:]]
            for row in lab16.vllms_own_page().rows[1:]]  # fmt: skip
    assert all(plan > sent > server for plan, sent, server in rows)
    run = many_tools.LIVE  # the engine's own clock begins still later
    assert rows[0][2] > 1e3 * run.ttft.mean() and rows[1][2] > 1e3 * run.e2e.mean()


# The explorers

RNG = np.random.default_rng(16)
CLOCKS = [(12.0, 16, 65_536), *product((2.0, 40.0), (8, 256), (0, 98_304))]
CLOCKS += [(float(RNG.integers(2, 41)), int(RNG.choice(load_test.LIMITS)), int(RNG.integers(7)) * 16_384)]


@pytest.mark.parametrize(("rate", "limit", "document"), CLOCKS)
def test_the_explorer_of_two_clocks_at_every_corner(rate, limit, document):
    test = load_test.run_test(rate, limit, document)
    assert (test.sent >= test.run.arrival).all() and (np.diff(test.sent) >= 0).all()
    assert (test.written > 0).all() and (test.written <= test.run.ttft + 1e-9).all()
    assert test.stall == 0 if document == 0 else test.written.max() >= test.stall * (1 - 1e-9)
    rows = {name: cells for name, *cells in load_test.rows(test)}
    ways = (test.run.first_computed - test.sent, test.run.ttft, test.free.ttft)
    for percent in (50, 99):
        assert rows[f"TTFT p{percent}"] == [load_test.seconds(float(np.percentile(way, percent))) for way in ways]
    assert rows["requests above 1 s"] == [f"{(way > 1).sum():,}" for way in ways]
    assert rows["sent, requests/s"][0] == f"{(len(test.run) - 1) / (test.sent[-1] - test.sent[0]):.2f}"
    present = (test.run.response - test.sent).sum() / test.run.makespan
    assert rows["at the server, mean"][0] == f"{present:.1f}" and present <= limit + 1e-9
    figure = draw.two_clocks(test)
    valid(figure)
    low, high = (10**edge for edge in figure.layout.yaxis.range)
    assert all(low < y < high for trace in figure.data for y in trace.y)


TOOLS = [(64, 1.0, 1), *product((4, 128), (0.0, 2.0), (1, 8)), (16, 0.5, 3)]


@pytest.mark.parametrize(("rate", "output_cv", "size"), TOOLS)
def test_the_explorer_of_tools_at_every_corner(rate, output_cv, size):
    result = many_tools.read_by_all(rate, output_cv, size)
    found = {(r.tool, r.metric): r.mean for r in result.readings}
    ours = found["this course", "TPOT"]
    assert all(np.isfinite(mean) and mean > 0 for mean in found.values())
    assert found["guidellm 0.2, 0.3", "TPOT"] < found["guidellm 0.2, 0.3", "ITL"] == found["this course", "ITL"]
    assert ours < found["llmperf", "inter token latency"]
    if size == 1:
        assert found["vLLM bench serve", "ITL"] == pytest.approx(found["this course", "ITL"])
    if output_cv == 0:
        assert found["this course", "ITL"] == pytest.approx(ours)
    rows = dict(many_tools.few_rows(result))
    assert rows["our ITL over our TPOT"] == f"{found['this course', 'ITL'] / ours:.3f}"
    assert rows["highest over lowest"] == f"{max(found.values()) / min(found.values()):.2f}"
    figure = draw.many_tools(result)
    valid(figure)
    assert figure.layout.xaxis.range[1] > max(figure.data[0].x)


# The language model behind a client with a limit


@pytest.mark.parametrize(("limit", "stall"), [(1, 0.5), (2, 0.5), (16, 1.0), (4, 0.0)])
def test_the_recording_leaves_out_those_who_were_held_back(limit, stall):
    found = launched.recorded(limit, stall)
    written, plan = found.recorded.written, found.recorded.run.ttft
    assert (written <= plan + 1e-9).all() and found.here is None and not found.warnings
    line = max(stall, launched.LEAST) / 2
    assert launched.rows(found)[2][1:] == tuple(f"{(way > line).sum()} of 30" for way in (written, plan))
    if not stall:
        assert plan.max() < 0.05
        return
    assert written.max() >= stall and (written > stall / 2).sum() <= limit + 1
    # All who were due in the first half of the stall wait for its second half, at least.
    assert (plan > stall / 2).sum() >= int(stall * launched.RATE) // 2 - 1


def test_the_fifteenth_prompt_is_in_the_step_that_stalls():
    """With room for all, whoever came before has a first token at once, and the fifteenth waits for the whole stall."""
    ttft = launched.recorded(16, 0.75).recorded.run.ttft
    place = launched.STALLED - 1
    assert ttft[:place].max() < 0.1 and ttft[place] >= 0.75
    assert ttft[place + 1] == pytest.approx(0.75 - 1 / launched.RATE, abs=0.05)  # a step is far shorter than 50 ms


def test_the_model_is_stalled_once_and_the_client_misses_it():
    """By the wall clock: bounds that hold on any machine, however busy."""
    stall = 0.5
    found = launched.spoken(load(), 1, stall)
    written, plan = found.written, found.run.ttft
    assert written.max() >= stall and (written <= plan + 1e-9).all()
    assert (plan > stall / 2).sum() >= int(stall * launched.RATE) // 2 - 1
    assert (found.run.workload.output_tokens == launched.TOKENS).all()
    assert (found.run.steps.seconds >= stall).any()


@pytest.mark.parametrize("fails", [False, True])
def test_the_explorer_launches_a_setting_once_or_leaves_a_sentence(monkeypatch, fails):
    calls = []

    def spoken(model, limit, stall):
        calls.append((limit, stall))
        if fails:
            raise LMError("There is no memory for it.")
        return launched.recorded(limit, stall).recorded

    monkeypatch.setattr(launched, "spoken", spoken)
    monkeypatch.setattr(launched._Bench, "_loaded", lambda self: None)
    shown = lab16.a_client_that_waits()
    assert "measured here" not in shown.text()
    found = [shown.compute(max_concurrency=2, stall=0.5) for _ in range(2)][-1]
    valid(draw.launched(launched._panels(found)))
    if fails:
        assert found.here is None and found.warnings == ("Nothing is measured here: There is no memory for it.",)
    else:
        assert calls == [(2, 0.5)] and launched.rows(found)[3][0] == "measured here, p95"


# Figures and tables beside them


def test_four_requests_by_hand():
    figure = lab16.a_client_by_hand()
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
