"""What a result file hides: nulls and zeros, pieces of a stream, totals that cannot be; and the real files."""

import json
from functools import partial

import numpy as np
import pytest

from course import results
from tests.helpers.places import REAL
from tests.helpers.result_files import DATA, changed, said, written


@pytest.fixture
def result(tmp_path):
    """Writes a document, or documents as lines, and reads it."""
    return partial(written, tmp_path)


def test_missing_is_not_zero(result):
    found = results.read(DATA / "inference_perf_not_streamed.json")
    assert set(found.summary) == {"e2e"} and said(found, "time_to_first_token")
    assert said(found, "are null: answers were not streamed")
    early = results.read_all(DATA / "sglang_bench.jsonl")[0]
    assert set(early.summary["ttft"]) == {"p50"} and "tpot" not in early.summary
    nothing = result(changed("vllm_bench_summary.json", completed=0, failed=4, mean_ttft_ms=0.0, total_output_tokens=0,
                             output_throughput=0, request_throughput=0, total_token_throughput=0,
                             total_input_tokens=0))  # fmt: skip
    assert nothing.summary == {} and said(nothing, "4 of 4 requests failed")
    assert result(changed("vllm_bench_summary.json", mean_ttft_ms=None)).summary["ttft"]["p50"] == pytest.approx(0.3)


def test_a_server_that_does_not_stream_has_no_tpot(result):
    """E2E = TTFT; what the tool then writes of TPOT (-0.00) and ITL (0.00) is no measurement."""
    flat = changed("sglang_bench.jsonl", line=0, median_ttft_ms=600.0, median_itl_ms=0.0)
    found = result(flat | {"mean_tpot_ms": -0.0001, "median_tpot_ms": -0.0, "mean_ttft_ms": 1700 / 3})
    assert set(found.summary) == {"ttft", "e2e"} and set(found.definitions) == {"ttft", "e2e"}
    assert said(found, "TTFT is E2E: nothing was streamed") and said(found, "says of TPOT and ITL is left out")

    lists = changed("vllm_bench_detailed.json", ttfts=[0.6, 0.8, 0.3, 0.0], itls=[[], [], [], []], mean_ttft_ms=...)
    found = result(lists)
    assert np.isnan(found.requests.tpot).all() and "tpot" not in found.ours
    assert said(found, "nothing was streamed")
    some = changed("vllm_bench_detailed.json", ttfts=[0.6, 0.4, 0.3, 0.0], itls=[[], [0.3, 0.1], [], []])
    found = result(some)
    assert said(found, "1 answers came in one piece") and np.isnan(found.requests.tpot[0])
    assert found.requests.tpot[1] == pytest.approx(0.2)


def test_gaps_between_pieces_of_several_tokens(result):
    found = result(changed("vllm_bench_detailed.json", itls=[[0.2, 0.2], [0.4], [], []]))
    assert said(found, "ITL is between the 3 pieces that the server sent, not between 6 tokens")


def test_a_client_that_cannot_keep_up(result):
    doc = changed("inference_perf_stage.json")
    doc["load_summary"] |= {"requested_rate": 4.0, "schedule_delay": {"mean": 0.7}}
    found = result(doc)
    assert said(found, "The client sent 2 requests/s where 4 were asked for: it could not keep up")
    assert said(found, "Requests were sent 0.7 s late on average, and no latency counts that wait")
    assert not said(results.read(DATA / "inference_perf_stage.json"), "could not keep up")


def test_a_tpot_of_pieces(result):
    """Twice as many pieces as tokens: half the TPOT."""
    doc = changed("inference_perf_stage.json")
    doc["successes"]["latency"]["time_per_output_token"]["mean"] = 0.05
    found = result(doc)
    assert not found.definitions["tpot"].same
    assert found.ours["tpot"] == pytest.approx({"mean": (1.7 / 3 - 0.3) / 2})
    assert said(found, "Its TPOT of 50 ms is a time per piece of the stream") and said(found, "is 133.3 ms")
    found = result(changed("vllm_bench_summary.json", mean_tpot_ms=50.0))
    assert said(found, "requests with few tokens were faster than those with many")
    assert said(found, "ITL x gaps is E2E - TTFT within 0.0%, so every piece was a token")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"request_throughput": 5.0}, "5 requests a second cannot be: 3 in 1.6 s are 1.875"),
        ({"output_throughput": 50.0}, "50 output tokens a second cannot be: 9 in 1.6 s are 5.625"),
        ({"total_token_throughput": 9.0}, "9 tokens a second cannot be: 359 in 1.6 s"),
        ({"max_concurrency": 1}, "more than the 1 that were allowed at once"),
        ({"mean_ttft_ms": 900.0}, "A mean TTFT of 0.9 s above an E2E of 0.5667 s cannot be"),
        ({"request_rate": 8.0}, "8 requests/s were asked for and 1.875 answered"),
    ],
)
def test_totals_that_cannot_be(result, changes, why):
    assert not any(why in note for note in results.read(DATA / "vllm_bench_summary.json").notes)
    assert said(result(changed("vllm_bench_summary.json", **changes)), why)


def test_rows_that_disagree_with_their_own_summary(result):
    found = result(changed("vllm_bench_detailed.json", completed=2, mean_ttft_ms=500.0, total_output_tokens=12))
    assert said(found, "The file says 2 requests, its rows make 3: one of them is wrong")
    assert said(found, "The file says 12 output tokens, its rows make 9")
    assert said(found, "The file's mean TTFT is 0.5 s, its rows make 0.3 s")
    doc = changed("guidellm_v0.json")
    doc["benchmarks"][0]["run_stats"]["requests_made"]["successful"] = 1
    assert said(result(doc), "Requests that succeeded: 1 by the report, 3 by its latencies. One is wrong")
    doc["benchmarks"][0]["requests"]["successful"].pop()
    found = result(doc)
    assert found.requests is None and said(found, "keeps 2 of the 3 requests that it counted")


def test_rates_that_do_not_go_with_their_lengths(result):
    doc = {
        "load_summary": {},
        "successes": {
            "count": 100,
            "rate": 50.0,
            "prompt_len": {"mean": 10, "rate": 100.0},
            "output_len": {"mean": 20, "rate": 1000.0},
            "request_latency": {"mean": 0.5, "p90": 0.8},
            "kv_cache_usage_percentage": {"mean": 0.0},
        },
        "failures": {},
    }
    found = result(doc)
    assert said(found, "50 requests/s of 10 prompt tokens make 500 tokens/s and not 100")
    assert not said(found, "output tokens make") and said(found, "read off histogram buckets")
    assert found.totals["in_flight"] == 25 and "failed" not in found.totals  # not said is not none


def test_numbers_as_text_and_units(result):
    assert results.read(DATA / "genai_perf.json").totals["requests_per_second"] == 1.875  # "1.875" in the file
    doc = changed("aiperf_summary.json")
    doc["request_latency"] |= {"unit": "s"}
    with pytest.raises(ValueError, match="request_latency: its unit is 'parsecs', not one of ns, us, ms"):
        doc["request_latency"]["unit"] = "parsecs"
        result(doc)
    rows = (DATA / "aiperf_records.jsonl").read_text().splitlines()
    assert said(result(*rows), "1 requests of the warm-up were left out")
    # 1,759,813,207,532,900,363 ns is no float64; its differences are exact.
    assert result(*rows).requests.arrival.tolist() == [0, 0.5, 1, 1.5]


def logs(arrivals, ttft):
    """Rows of a request log."""
    for arrival, first in zip(arrivals, ttft, strict=True):
        moments = {"queued_ts": arrival, "scheduled_ts": arrival, "first_token_ts": arrival + first}
        yield {
            "input_toks": 9,
            "output_toks": 3,
            "arrival_time": arrival,
            "last_token_ts": arrival + first + 1,
        } | moments


def test_a_start_that_makes_the_tail(result):
    even = np.arange(100.0)
    found = result(*logs(even, np.where(even < 5, 8.0, 0.5)))
    # p99 of 100 values, five of them 8: 8. Without the 10 that arrive in the first 9.9 s: 0.5.
    assert said(found, "The start makes the p99 of TTFT: 8 s over all, 0.5 s without the 10 requests of the first 10%")
    assert not said(result(*logs(even, np.where(even % 20 == 0, 8.0, 0.5))), "The start makes")
    assert not said(result(*logs(np.zeros(100), np.where(even < 5, 8.0, 0.5))), "The start makes")  # all at once


def test_an_empty_first_piece(result):
    """A role without text comes first: the true first token is the second piece."""
    lists = {"input_lens": [5] * 30, "output_lens": [5] * 30, "ttfts": [0.1] * 30, "errors": [""] * 30}
    doc = changed("vllm_bench_detailed.json", completed=30, start_times=..., **lists)
    found = result(doc | {"itls": [[0.5, 0.1, 0.1, 0.1]] * 30})
    assert said(found, "The first gap of an answer is 5 times the later ones (medians 500 and 100 ms)")
    assert not said(result(doc | {"itls": [[0.2, 0.1, 0.1, 0.1]] * 30}), "The first gap")


def test_kv_use_as_a_share_or_percent(result):
    for block, mean, word in (
        ({"mean": 0.4, "p99": 0.9}, 0.4, "a share"),
        ({"mean": 40.0, "p99": 90.0}, 0.4, "percent"),
    ):
        doc = changed("inference_perf_stage.json")
        doc["successes"]["kv_cache_usage_percentage"] = block
        found = result(doc)
        assert found.totals["kv_mean"] == pytest.approx(mean) and said(found, f"so it was read as {word}")
    doc["successes"]["kv_cache_usage_percentage"] = {"mean": 0.0, "p99": 0.0}
    assert "kv_mean" not in result(doc).totals


def test_a_stage_too_short_and_a_spread_that_is_none(result):
    doc = changed("guidellm_v0.json")
    doc["benchmarks"][0]["args"]["max_duration"] = 30.0
    doc["benchmarks"][0]["metrics"]["requests_per_second"]["successful"]["std_dev"] = 900.0
    found = result(doc)
    assert said(found, "The run lasted 1.6 s of the 30 s asked for") and said(found, "Its spread of requests/s")


@pytest.fixture
def real():
    if not REAL.is_dir():
        pytest.skip("the folder of real result files is not here")
    return REAL


def test_llmperf_recomputed(real):
    oracle = next(
        row
        for row in json.loads((real / "oracles" / "bench_recomputed.json").read_text())
        if row["file"] == "llmperf_individual_fireworks_70b.json"
    )
    found = results.read(real / "bench" / oracle["file"])
    assert found.totals["requests"] == oracle["ok"] and len(found.requests) == oracle["n"]
    assert found.summary["itl"]["mean"] == pytest.approx(oracle["reported_mean_itl"], rel=1e-12)
    assert found.ours["tpot"]["mean"] == pytest.approx(oracle["itl_excluding_ttft"], rel=1e-12)
    each = found.requests.e2e / found.requests.output_tokens
    assert each.mean() == pytest.approx(oracle["e2e_over_tokens"], rel=1e-12)
    summary = results.read(real / "bench" / "llmperf_summary_fireworks_70b.json")
    assert summary.summary["itl"] == pytest.approx(
        {key: found.summary["itl"][key] for key in ("mean", "p50", "p90", "p95", "p99", "max")}
        | {key: summary.summary["itl"][key] for key in ("p25", "p75", "min", "std")}
    )


def test_every_real_file_and_what_it_hides(real):
    expected = {
        "vllm_bench_dstack_gptoss120b_pd_conc128.json": ["E2E is not in the file", "counts every request alike"],
        "inferenceperf_vllm_stage0.json": ["Its TPOT of 3.473 ms is a time per piece", "is 7.23 ms"],
        "inferenceperf_vllm_stage6.json": ["19.9 s late", "sent 106.5 requests/s where 183.4 were asked for"],
        "inferenceperf_vllm_stage1_prometheus.json": ["make 15,564 tokens/s and not 3,315", "histogram buckets"],
        "guidellm_v0_benchmarks_stripped.json": ["keeps 1 of the 46", "1 by the report, 46 by its latencies"],
        "llmperf_individual_fireworks_70b.json": ["no arrival times"],
    }
    runs = {}
    for path in sorted((real / "bench").glob("*.json*")):
        if "meta" not in path.name:
            runs[path.name] = results.read_all(path)
    for name, parts in expected.items():
        assert all(said(runs[name][0], part) for part in parts), (name, runs[name][0].notes)
    online = runs["sglang_llama_3_3_70b_online_output.jsonl"]
    assert len(online) == 7 and online[4].totals["in_flight"] == pytest.approx(1245, abs=1)  # 149.04 s x 8.353/s
    assert said(online[4], "16 requests/s were asked for and 8.353 answered")
    mock = runs["guidellm_report_v2_mockserver.json"]
    assert len(mock) == 2 and mock[0].ours["tpot"]["mean"] == pytest.approx(0.0011508464813)  # answers of equal length
