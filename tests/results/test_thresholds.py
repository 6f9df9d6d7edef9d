"""Where a remark begins, on both sides of its threshold; names of statistics; and which of two numbers counts."""

import json
from functools import partial

import numpy as np
import pytest

from course import results
from course.results import load, remarks, rows
from tests.helpers.result_files import DATA, changed, said, written


@pytest.fixture
def result(tmp_path):
    """Writes a document, or documents as lines, and reads it."""
    return partial(written, tmp_path)


@pytest.mark.parametrize(
    ("key", "name"),
    [("p50", "p50"), ("median", "p50"), ("avg", "mean"), ("mean", "mean"), ("std_dev", "std"), ("p99", "p99"),
     ("p99.9", "p99.9"), ("p999", "p99.9"), ("p001", "p0.1"), ("p01", "p1"), ("p05", "p5"), ("p100", "p100"),
     ("p101", "p10.1"), ("p", None), ("count", None), ("p1000", None)],
)  # fmt: skip
def test_names_of_statistics(key, name):
    assert rows.statistic(key) == name


@pytest.mark.parametrize(("value", "found"), [(2, 2.0), ("2.5", 2.5), (0, None), ("inf", None), (None, None)])
def test_a_rate_that_was_asked_for(value, found):
    got = rows.setting({"rate": value}, "rate")
    assert np.isnan(got) if found is None else got == found


def test_a_time_above_eleven_days_is_none():
    assert rows.seconds("here", {"t": 999_999.0}, "t") == 999_999
    with pytest.raises(ValueError, match="more than eleven days"):
        rows.seconds("here", {"t": 2e6}, "t")


@pytest.mark.parametrize(
    ("totals", "part", "there"),
    [
        ({"requested_rate": 100, "offered_rate": 94}, "could not keep up", True),
        ({"requested_rate": 100, "offered_rate": 97}, "could not keep up", False),
        ({"offered_rate": 100, "requests_per_second": 94}, "94 answered", True),
        ({"offered_rate": 100, "requests_per_second": 97}, "answered", False),
        # What was really sent counts, and not what was asked for.
        ({"requested_rate": 100, "offered_rate": 80, "requests_per_second": 80}, "answered", False),
        ({"in_flight": 10.2, "max_concurrency": 10}, "one of these numbers cannot be", True),
        ({"in_flight": 9.5, "max_concurrency": 10}, "cannot be", False),
    ],
)
def test_what_was_offered_and_who_was_in_flight(totals, part, there):
    found = load.on_load(totals, {}, load.loop_of(totals, unlimited=False), estimated=False)
    assert any(part in sentence for sentence in found) == there


@pytest.mark.parametrize(("rate", "there"), [(1.875, False), (1.88, False), (1.95, True), (2.2, True)])
def test_a_rate_against_its_count_and_seconds(rate, there):
    totals = {"requests": 3, "duration": 1.6, "requests_per_second": rate}
    assert any("cannot be" in sentence for sentence in remarks.on_totals(totals, {}, {})) == there


def test_failures_are_counted_among_all():
    assert remarks.on_failures({"failed": 1, "requests": 3}) == [
        "1 of 4 requests failed (25.0%); no average counts them"
    ]
    assert remarks.on_failures({"failed": 0, "requests": 3}) == []


@pytest.mark.parametrize(("share", "there"), [(0.99, False), (1.01, False), (0.9, True), (1.1, True)])
def test_tokens_counted_twice(result, share, there):
    counts = {"completed": 3, "total_output_tokens": 9_000, "total_output_tokens_retokenized": round(9_000 * share)}
    found = result(changed("sglang_bench.jsonl", output_throughput=..., output_lens=..., **counts))
    assert said(found, "the client's tokeniser") == there


@pytest.mark.parametrize(("share", "streamed"), [(1.0005, False), (1.05, True)])
def test_nothing_is_streamed_where_ttft_is_e2e(result, share, streamed):
    same = {"mean_ttft_ms": 500.0, "median_ttft_ms": 500.0, "p99_ttft_ms": 700.0}
    found = result(changed("vllm_bench_summary.json", **same, mean_e2el_ms=500 * share, median_e2el_ms=500 * share))
    assert ("tpot" in found.summary) == streamed == (not said(found, "nothing was streamed"))


def test_the_files_own_summary_comes_before_that_of_its_rows(result):
    found = result(changed("vllm_bench_detailed.json", mean_ttft_ms=310.0))
    assert found.summary["ttft"]["mean"] == pytest.approx(0.310) and found.ours["ttft"]["mean"] == pytest.approx(0.3)


def test_the_number_in_flight_is_over_the_files_own_seconds(result):
    found = result(changed("vllm_bench_detailed.json", duration=3.2, request_throughput=3 / 3.2))
    assert found.totals["in_flight"] == pytest.approx(1.7 / 3.2)  # the sum of E2E, not their mean


def test_a_replay_begins_with_the_first_request_that_was_answered(result):
    """The first one failed: the run begins with the second, half a second later."""
    doc = changed("vllm_bench_detailed.json", errors=["lost", "", "", ""], output_lens=[5, 3, 1, 2], completed=3)
    load = result(doc).workload()
    assert load.arrival.tolist() == [0.0, 0.5, 1.0] and load.output_tokens.tolist() == [3, 1, 2]


@pytest.mark.parametrize(("std_dev", "known"), [(0.0, True), (2.0, False)])
def test_equal_answers_make_a_mean_over_tokens_one_over_requests(result, std_dev, known):
    doc = changed("guidellm_v2.json")
    del doc["benchmarks"][1:]
    doc["benchmarks"][0]["metrics"]["output_token_count"]["successful"]["std_dev"] = std_dev
    assert ("tpot" in result(doc).ours) == known


def test_a_prompt_is_no_output():
    table = results.read_all(DATA / "guidellm_v2.json")[1].requests
    good = ~table.failed
    assert table.prompt_tokens[good].tolist() == [100, 200, 50] and table.output_tokens[good].tolist() == [5, 3, 1]
    assert results.read(DATA / "vllm_bench_summary.json").totals["prompt_tokens"] == 350


def test_an_answer_ends_with_its_last_token_and_not_when_the_line_is_closed(result):
    doc = json.loads((DATA / "inference_perf_requests.json").read_text())
    doc[0]["end_time"] += 5.0
    assert result(doc).requests.e2e[0] == pytest.approx(0.6)


def test_an_answer_without_a_token_has_failed_whether_or_not_it_says_so(result):
    table = result(changed("vllm_bench_detailed.json", errors=["", "", "", ""])).requests
    assert table.failed.tolist() == [False, False, False, True] and np.isnan(table.ttft[3])


@pytest.mark.parametrize(("ms", "there"), [(133.3, False), (110, False), (160, False), (100, True), (170, True)])
def test_a_tpot_that_its_e2e_and_tokens_do_not_make(result, ms, there):
    """(566.7 - 300) ms over two gaps of three tokens: 133.3 ms, and a quarter more or less may be."""
    found = result(changed("vllm_bench_summary.json", mean_tpot_ms=ms, mean_itl_ms=ms))
    assert said(found, "over 2 gaps are 133.3 ms") == said(found, "does not go with its E2E and TTFT") == there
