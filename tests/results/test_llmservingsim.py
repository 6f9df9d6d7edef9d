"""Request logs of real vLLM runs: latencies on one clock, offered and answered rates, and what is refused."""

import json
import shutil

import numpy as np
import pytest

from course import results
from tests.helpers import places
from tests.helpers.places import REAL

DATA = places.DATA / "results"
LOG = "llmservingsim_requests.jsonl"
ROWS = (DATA / LOG).read_text().splitlines()
NAN = float("nan")


@pytest.fixture
def log(tmp_path):
    """Writes a log and reads it."""

    def read(*rows):
        path = tmp_path / "requests.jsonl"
        path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
        return results.read(path)

    return read


def row(**changes):
    return json.loads(ROWS[0]) | changes


def test_four_requests_by_hand():
    found = results.read(DATA / LOG)
    table = found.requests
    assert found.tool == "LLMServingSim request log" and len(table) == 4
    assert table.arrival.tolist() == [0, 0.5, 1, 2]
    np.testing.assert_array_equal(table.prompt_tokens, [100, 200, 300, 400])
    np.testing.assert_array_equal(table.output_tokens, [11, 1, 21, 0])
    np.testing.assert_array_equal(table.failed, [False, False, False, True])
    # 500.1 is no binary fraction: differences of it are off by the spacing of float64 there, 6e-14.
    np.testing.assert_allclose(table.ttft, [0.5, 0.25, 0.75, NAN], rtol=1e-12)
    np.testing.assert_allclose(table.e2e, [1.5, 0.25, 4.75, NAN], rtol=1e-12)
    np.testing.assert_allclose(table.tpot, [0.1, NAN, 0.2, NAN], rtol=1e-12)  # none for an answer of one token
    np.testing.assert_allclose(table.queue_wait, [0.1, 0, 0.25, NAN], atol=1e-12)
    assert table.itl is None
    assert found.summary["ttft"]["mean"] == 0.5 and found.summary["ttft"]["p50"] == 0.5
    assert found.summary["tpot"]["mean"] == pytest.approx(0.15) and "itl" not in found.summary
    assert found.ours == found.summary


def test_totals_and_notes():
    found = results.read(DATA / LOG)
    expected = {
        "requests": 3, "failed": 1, "prompt_tokens": 600, "output_tokens": 33,
        "offered_rate": 3 / 2, "duration": 6, "requests_per_second": 3 / 6, "output_tokens_per_second": 33 / 6,
        "in_flight": 6.5 / 6, "kv_peak": 0.625,
    }  # fmt: skip
    assert found.totals == pytest.approx(expected, rel=1e-12)
    said = "\n".join(found.notes)
    assert "1 of 4 requests failed (25.0%)" in said
    assert "1.5 requests/s were offered and 0.5 answered" in said
    assert "Requests in flight on average (Little's law): 1.083" in said
    assert "0.062 s after its arrival_time on average and 0.250 s at the most" in said
    assert "KV cache in use: 62.5%" in said


def test_what_stands_beside_the_log():
    found = results.read(DATA / LOG)
    assert found.setup["model"] == "example/tiny-1b" and found.setup["gpu"] == "Example GPU"
    assert found.setup["max_num_seqs"] == 8 and found.setup["num_gpu_blocks"] == 64
    assert "max_model_len" not in found.setup  # null in the file: not known, not zero
    assert found.series["kv_usage"].tolist() == [0.125, 0.625, 0.5]
    assert found.series["waiting"].tolist() == [0, 1, 0]


def test_replay_leaves_out_what_failed_and_says_so():
    load = results.read(DATA / LOG).workload()
    assert load.arrival.tolist() == [0, 0.5, 1]
    assert load.prompt_tokens.tolist() == [100, 200, 300] and load.output_tokens.tolist() == [11, 1, 21]
    assert len(load.notes) == 1 and "1 of 4 requests failed and are not replayed" in load.notes[0]


def test_alone_without_meta_and_series(log):
    found = log(*ROWS[::-1])
    assert found.setup == {} and found.series == {}
    assert "no meta.json beside the log" in found.notes[0]
    assert found.requests.arrival.tolist() == [2, 1, 0.5, 0]  # in the order of the file
    assert found.workload().arrival.tolist() == [0, 0.5, 1]  # in the order of time
    for name, values in results.read(DATA / LOG).totals.items():
        assert name == "kv_peak" or found.totals[name] == pytest.approx(values, rel=1e-12)


def test_all_failed(log):
    found = log(ROWS[3])
    assert found.summary == {} and found.totals["failed"] == 1
    with pytest.raises(ValueError, match="all 1 requests failed"):
        found.workload()


def test_a_usage_of_zero_throughout_was_not_measured(tmp_path):
    for name in (LOG, "llmservingsim_meta.json"):
        shutil.copy(DATA / name, tmp_path / name)
    series = tmp_path / "llmservingsim_timeseries.csv"
    series.write_text("t,running,kv_cache_pct\n1.0,3,0.0\n2.0,4,0.0\n")
    found = results.read(tmp_path / LOG)
    assert set(found.series) == {"t", "running"} and "kv_peak" not in found.totals
    series.write_text("t,running,kv_cache_pct\n1.0,3,101\n")
    with pytest.raises(ValueError, match="kv_cache_pct is in percent, 0 to 100, and reaches 101"):
        results.read(tmp_path / LOG)
    series.write_text("t,running\n1.0,3,101\n")
    with pytest.raises(ValueError, match="is not a table of numbers"):
        results.read(tmp_path / LOG)


def test_a_log_shorter_than_its_meta_says(tmp_path):
    shutil.copy(DATA / "llmservingsim_meta.json", tmp_path)
    (tmp_path / LOG).write_text("\n".join(ROWS[:2]))
    assert any("speaks of 4 requests, the log holds 2" in note for note in results.read(tmp_path / LOG).notes)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (row(first_token_ts=499.0), "row 2: first_token_ts is 1.1 s before scheduled_ts"),
        (row(last_token_ts=500.4), "row 2: last_token_ts is 0.1 s before first_token_ts"),
        (row(last_token_ts=9e7), "row 2: last_token_ts is 9e[+]07 s after first_token_ts"),
        (row(scheduled_ts=1e300), "row 2: scheduled_ts is 1e[+]300, which is not a time"),
        (row(queued_ts=float("inf")), "row 2: queued_ts is inf, which is not a number"),
        (row(queued_ts="500"), "row 2: queued_ts is '500', which is not a number"),
        (row(queued_ts=True), "row 2: queued_ts is True, which is not a number"),
        (row(arrival_time=None), "row 2: arrival_time is null"),
        (row(input_toks=-1), "row 2: input_toks is -1, which is no count"),
        (row(output_toks=1.5), "row 2: output_toks is 1.5, which is no count"),
        (row(output_toks=10**30), "row 2: output_toks is 10+, which is no count"),
        ('{"input_toks": 1}', "row 2: no output_toks and no arrival_time"),
        ("[1]", "row 2: an object in braces was expected, not \\[1\\]"),
        (ROWS[1][:60], "row 2: this is not JSON .*Is the file complete"),
        ("[" * 100_000, "row 2: its brackets are nested too deeply"),
        ('{"input_toks": ' + "9" * 5000 + "}", "row 2: it has a number with more than 300 digits"),
    ],
    ids=range(16),
)
def test_what_cannot_be_is_refused_with_the_row(log, broken, why):
    with pytest.raises(ValueError, match=why) as caught:
        log(ROWS[0], broken, ROWS[1])
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_real_runs_of_vllm():
    if not REAL.is_dir():
        pytest.skip("the folder of real result files is not here")
    oracles = json.loads((REAL / "oracles" / "bench_recomputed.json").read_text())
    checked = 0
    for oracle in oracles:
        if "makespan_s" not in oracle:
            continue
        found = results.read(REAL / "bench" / oracle["file"])
        totals, summary = found.totals, found.summary
        assert totals["requests"] == oracle["n"] and totals["failed"] == 0
        assert totals["prompt_tokens"] == oracle["in_tok"] and totals["output_tokens"] == oracle["out_tok"]
        measured = {
            "mean_ttft_s": summary["ttft"]["mean"],
            "p99_ttft_s": summary["ttft"]["p99"],
            "mean_queue_s": summary["queue_wait"]["mean"],
            "mean_tpot_ms": 1000 * summary["tpot"]["mean"],
            "p99_tpot_ms": 1000 * summary["tpot"]["p99"],
            "makespan_s": totals["duration"],
            "offered_rps": totals["offered_rate"],
            "out_tok_per_s": totals["output_tokens_per_second"],
            "mean_inflight": totals["in_flight"],
            "peak_tokens_needed": totals["prompt_tokens"] + totals["output_tokens"],
        }
        assert measured == pytest.approx({key: oracle[key] for key in measured}, rel=1e-12)
        assert len(found.workload()) == oracle["n"]
        checked += 1
    assert checked == 3
