"""Lab 16: its scenarios against oracles, and its explorers with every control at its ends and in random corners."""

from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import Workload, serve
from course.lessons.lab16 import figures as draw
from course.lessons.lab16 import load_test, many_tools, steady_window
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


@pytest.mark.parametrize(
    ("rate", "limit", "document"), [(12, 16, 65_536), (20, 8, 0), (40, 64, 98_304), (5, 8, 16_384)]
)
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
    places = np.flatnonzero(load_test.requests(12, 16_384, documents=40).prompt_tokens == 16_384)
    assert len(places) == 40 and len(set(np.diff(places))) == 1


# The interval


def exactly(n, q, rank):
    """P(fewer than `rank` of n below the q-th percentile), from binomial coefficients."""
    return sum(comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(rank))


@pytest.mark.parametrize(
    ("n", "percent"), [(5, 50), (20, 50), (20, 90), (100, 99), (368, 99), (367, 99), (500, 95), (1, 50)]
)
def test_the_interval_is_the_narrowest_with_its_tails(n, percent):
    band, q = steady_window.percentile_interval(np.arange(n), percent), percent / 100
    tail = 0.025 + 1e-9
    assert exactly(n, q, band.low_rank) <= tail < exactly(n, q, band.low_rank + 1)
    if band.high_rank <= n:
        assert 1 - exactly(n, q, band.high_rank) <= tail < 1 - exactly(n, q, band.high_rank - 1)
        assert band.high == band.high_rank - 1  # the values are 0, 1, 2, ...
    else:
        assert band.high == np.inf and 1 - exactly(n, q, n) > tail
    assert (band.low == band.low_rank - 1) if band.low_rank else band.low == -np.inf
    assert band.low <= band.value <= band.high


def test_the_p99_has_an_upper_bound_from_368_requests_on():
    bounded = [np.isfinite(steady_window.percentile_interval(np.arange(n), 99).high) for n in (367, 368)]
    assert bounded == [False, True]
    with pytest.raises(ValueError, match="make the window longer"):
        steady_window.percentile_interval([], 99)


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


def test_pieces_keep_the_first_and_the_last_token():
    run = many_tools.read_by_all(8, 1.0, 1).run
    for size in (1, 3, 8):
        seen = many_tools.streams(run, size)
        for i in (0, 7, 100):
            times = run.token_times(i)
            assert seen.gaps[i].sum() == pytest.approx(times[-1] - times[0])
            assert seen.piece_tokens[i].sum() == len(times) - 1 and (seen.piece_tokens[i] <= size).all()


# The explorers

RNG = np.random.default_rng(16)
CLOCKS = [(12.0, 16, 65_536), *product((2.0, 40.0), (8, 256), (0, 98_304))]
CLOCKS += [
    (float(RNG.integers(2, 41)), int(RNG.choice(load_test.LIMITS)), int(RNG.integers(7)) * 16_384) for _ in range(4)
]


@pytest.mark.parametrize(("rate", "limit", "document"), CLOCKS)
def test_the_explorer_of_two_clocks_at_every_corner(rate, limit, document):
    test = load_test.run_test(rate, limit, document)
    assert (test.sent >= test.run.arrival).all() and (np.diff(test.sent) >= 0).all()
    assert (test.written > 0).all() and (test.written <= test.run.ttft + 1e-9).all()
    assert test.in_flight <= limit + 1e-9
    assert test.stall == 0 if document == 0 else test.written.max() >= test.stall * (1 - 1e-9)
    rows = load_test.rows(test)
    assert {len(row) for row in rows} == {4} and not any("nan" in cell or "inf" in cell for row in rows for cell in row)
    figure = draw.two_clocks(test)
    valid(figure)
    low, high = (10**edge for edge in figure.layout.yaxis.range)
    assert all(low < y < high for trace in figure.data for y in trace.y)


TOOLS = [(64, 1.0, 1), *product((4, 128), (0.0, 2.0), (1, 8)), (16, 0.5, 3), (32, 1.75, 6)]


@pytest.mark.parametrize(("rate", "output_cv", "size"), TOOLS)
def test_the_explorer_of_tools_at_every_corner(rate, output_cv, size):
    result = many_tools.read_by_all(rate, output_cv, size)
    found = {(r.tool, r.metric): r.mean for r in result.readings}
    ours = found["this course", "TPOT"]
    assert all(np.isfinite(mean) and mean > 0 for mean in found.values())
    assert found["vLLM bench serve", "TPOT"] == found["genai-perf, aiperf", "inter token latency"] == ours
    assert found["guidellm 0.2, 0.3", "TPOT"] < found["guidellm 0.2, 0.3", "ITL"] == found["this course", "ITL"]
    assert ours < found["llmperf", "inter token latency"]
    if size == 1:
        assert found["vLLM bench serve", "ITL"] == pytest.approx(found["this course", "ITL"])
        assert found["inference-perf", "TPOT"] == pytest.approx(ours)
    if output_cv == 0:
        assert found["this course", "ITL"] == pytest.approx(ours)
    rows = dict(many_tools.few_rows(result))
    assert rows["our ITL over our TPOT"] == f"{found['this course', 'ITL'] / ours:.3f}"
    assert rows["highest over lowest"] == f"{max(found.values()) / min(found.values()):.2f}"
    figure = draw.many_tools(result)
    valid(figure)
    assert figure.layout.xaxis.range[1] > max(figure.data[0].x)
    drawn = [name for name in found if name not in many_tools.SAME_AS_OTHERS]
    # What is left out says nothing new: some bar has the same number.
    same = {round(found[name] * 1e6) for name in drawn}
    assert all(round(found[name] * 1e6) in same for name in many_tools.SAME_AS_OTHERS if name[1] != "ITL")
    colours = dict(zip(drawn, figure.data[0].marker.color, strict=True))
    assert colours["vLLM bench serve", "TPOT"] == draw.theme.COLOURS["decode"]


def test_at_a_low_rate_with_one_token_a_piece_tools_nearly_agree():
    calm, busy = many_tools.read_by_all(4, 1.0, 1), many_tools.read_by_all(128, 1.0, 1)
    for result, most in ((calm, 0.05), (busy, 1)):
        ours = result.readings[0].mean
        off = max(abs(r.mean / ours - 1) for r in result.readings)
        assert off < most
    assert off > 0.2


WINDOWS = [(64, 0, 20), *product((16, 128), (0, 100), (1, 60)), (32, 37, 11), (64, 5, 40)]


@pytest.mark.parametrize(("users", "start", "length"), WINDOWS)
def test_the_explorer_of_windows_at_every_corner(users, start, length):
    result = steady_window.window(users, start, length)
    ended = result.run.arrival.max() < start
    assert bool(result.warnings) == ended == (not result.inside.any())
    assert users + 1e-9 >= result.run.little().L
    rows = steady_window.rows(result)
    assert {len(row) for row in rows} == {4} and not any("nan" in cell or "inf" in cell for row in rows for cell in row)
    figure = draw.window(result)
    valid(figure)
    bands = [shape for shape in figure.layout.shapes if shape.xref == "x2"]
    assert len(bands) == (0 if ended else len(steady_window.PERCENTILES))
    low, high = (10**edge for edge in figure.layout.yaxis2.range)
    assert all(low * 0.999 <= band.y0 <= band.y1 <= high * 1.001 for band in bands)


def test_the_window_after_the_end_says_so():
    late = steady_window.window(128, 100, 1)
    assert "Move the window to the left" in late.warnings[0]
    assert steady_window.rows(late)[1][1] == "none" and late.tokens_per_second == 0


def test_the_tests_are_served_once():
    steady_window.compute_tests()
    assert steady_window.closed_loop(64) is steady_window.window(64, 3, 9).run


def test_the_queue_inside_the_client_grows_line_by_line():
    tests = {f"{rate}/s": load_test.run_test(rate, 16, 0) for rate in (12, 40)}
    figure = draw.lateness(tests, ("continuous", "wasted"))
    valid(figure)
    calm, late = (np.array(trace.y, dtype=float) for trace in figure.data)
    assert calm.max() < 0.5 and late.max() > 45
    assert all(after >= before - 1 for before, after in pairwise(late))
    assert [note.text for note in figure.layout.annotations] == ["12/s", "40/s"]


def test_text_is_rounded_for_people():
    assert [load_test.seconds(value) for value in (0.0123, 0.9999, 12.34)] == ["12.3 ms", "1 s", "12.3 s"]
