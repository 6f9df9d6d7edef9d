"""Lab 16: what the tables beside the figures say, from the runs themselves."""

from math import comb

import numpy as np
import pytest

from course.lessons.lab16 import load_test, steady_window


def table(rows):
    return {name: cells for name, *cells in rows}


def test_two_clocks():
    test = load_test.run_test(12, 16, 65_536)
    rows = table(load_test.rows(test))
    ways = (test.run.first_computed - test.sent, test.run.ttft, test.free.ttft)
    for percent in load_test.PERCENTILES:
        assert rows[f"TTFT p{percent}"] == [load_test.seconds(float(np.percentile(way, percent))) for way in ways]
    assert rows["requests above 1 s"] == [f"{(way > 1).sum():,}" for way in ways]
    sent = (len(test.run) - 1) / (test.sent[-1] - test.sent[0])
    assert rows["sent, requests/s"][0] == f"{sent:.2f}"
    present = (test.run.response - test.sent).sum() / test.run.makespan
    assert rows["at the server, mean"][0] == f"{present:.1f}"


def test_percentiles_are_the_median_and_the_p99():
    assert load_test.PERCENTILES == (50, 99)


def test_documents_are_spread_evenly():
    load = load_test.requests(12, 16_384, documents=4, num_requests=400)
    assert np.flatnonzero(load.prompt_tokens == 16_384).tolist() == [50, 150, 250, 350]
    assert (load.output_tokens[load.prompt_tokens == 16_384] == 1).all()


def test_a_window():
    users, start, length = 64, 5, 20
    result = steady_window.window(users, start, length)
    run = result.run
    inside = (run.arrival >= start) & (run.arrival < start + length)
    assert 0 < inside.sum() < (run.arrival >= start).sum()
    rows = table(steady_window.rows(result))
    for percent in (50, 90, 95, 99):
        value, _, whole = rows[f"TTFT p{percent}"]
        assert value == load_test.seconds(float(np.percentile(run.ttft[inside], percent)))
        assert whole == load_test.seconds(float(np.percentile(run.ttft, percent)))
    tokens = run.steps.useful[(run.steps.end > start) & (run.steps.end <= start + length)].sum()
    assert rows["output, tokens/s"][0] == f"{tokens / length:,.0f}"


@pytest.mark.parametrize(("count", "percent"), [(100, 50), (299, 99), (700, 99), (60, 95)])
def test_the_ranks_of_an_interval_by_their_definition(count, percent):
    found = steady_window.percentile_interval(np.arange(1, count + 1), percent)
    q, tail = percent / 100, 0.025
    below = np.cumsum([comb(count, k) * q**k * (1 - q) ** (count - k) for k in range(count + 1)])  # P(at most k below)
    low = max((rank for rank in range(1, count + 1) if below[rank - 1] <= tail), default=0)
    high = min((rank for rank in range(1, count + 1) if 1 - below[rank - 1] <= tail), default=count + 1)
    assert (found.low_rank, found.high_rank) == (low, high)
    assert found.low == (low or -np.inf) and found.high == (high if high <= count else np.inf)


def test_the_interval_of_a_median_of_100():
    """The 40th and the 61st value, as tables of the binomial distribution say."""
    found = steady_window.percentile_interval(np.arange(1, 101), 50)
    assert (found.low, found.value, found.high) == (40, 50.5, 61)
