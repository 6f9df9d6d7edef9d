"""trtllm-bench: the file of --report_json and the printed report say the same."""

import json

import pytest

from course import results

REPORT = {
    "engine": {"model": "demo/8b", "version": "1.2.0", "backend": "Pytorch", "dtype": "bfloat16", "quantization": None},
    "world_info": {"tp_size": 2, "pp_size": 1, "max_batch_size": 64, "max_num_tokens": 4096,
                   "scheduling_policy": "MAX_UTILIZATION", "issue_rate": 3.1e14},
    "request_info": {"num_requests": 50, "avg_num_concurrent_requests": 20.0, "avg_input_length": 200.0,
                     "avg_output_length": 101.0},
    "performance": {"total_latency_ms": 5000.0, "avg_request_latency_ms": 2000.0, "request_throughput_req_s": 10.0,
                    "system_output_throughput_tok_s": 1010.0, "system_total_throughput_tok_s": 3010.0,
                    "request_latency_percentiles_ms": {"p50": 1900.0, "p99": 4900.0, "minimum": 900.0, "maximum": 5e3,
                                                       "average": 2000.0}},
    "streaming_metrics": {"avg_ttft_ms": 800.0, "avg_tpot_ms": 12.0, "ttft_percentiles": {"p50": 700.0, "p99": 1500.0},
                          "tpot_percentiles": {"p50": 12.0, "p99": 20.0}},
}  # fmt: skip
PRINTED = """
[11/28/2026-10:00:00] [TRT-LLM] [I]

===========================================================
= PYTORCH BACKEND
===========================================================
Model:\t\t\tdemo/8b
Model Path:\t\tNone
TensorRT LLM Version:\t1.2.0
Dtype:\t\t\tbfloat16
Quantization:\t\tNone
= REQUEST DETAILS
Number of requests:             50
Number of concurrent requests:  20.0000
Average Input Length (tokens):  200.0000
Average Output Length (tokens): 101.0000
= WORLD + RUNTIME INFORMATION
TP Size:                2
PP Size:                1
Max Runtime Batch Size: 64
Max Runtime Tokens:     4096
Scheduling Policy:      MAX_UTILIZATION
Issue Rate (req/sec):   3.1000E+14
= PERFORMANCE OVERVIEW
Request Throughput (req/sec):                     10.0000
Total Output Throughput (tokens/sec):             1010.0000
Total Token Throughput (tokens/sec):              3010.0000
Total Latency (ms):                               5000.0000
Average request latency (ms):                     2000.0000
Average time-to-first-token [TTFT] (ms):          800.0000
Average time-per-output-token [TPOT] (ms):        12.0000
[TPOT] P50    : 12.0000
[TPOT] P99    : 20.0000
[TTFT] P50    : 700.0000
[TTFT] P99    : 1500.0000
[Latency] P50    : 1900.0000
[Latency] P99    : 4900.0000
[Latency] MINIMUM: 900.0000
[Latency] MAXIMUM: 5000.0000
[Latency] AVERAGE: 2000.0000
"""


@pytest.fixture
def read(tmp_path):
    def written(text):
        (tmp_path / "run.txt").write_text(text if isinstance(text, str) else json.dumps(text))
        return results.read_all(tmp_path / "run.txt")

    return written


def test_the_file_and_the_print_say_the_same(read):
    ((file,), (printed,)) = read(REPORT), read(PRINTED)
    assert file.tool == printed.tool == "trtllm-bench" and file.summary == printed.summary
    assert file.totals == printed.totals and file.notes == printed.notes and file.loop == printed.loop == "burst"
    assert file.setup == printed.setup | {"backend": "Pytorch"} and file.setup["max_num_tokens"] == 4096
    assert file.ours["ttft"] == pytest.approx({"mean": 0.8, "p50": 0.7, "p99": 1.5})
    assert file.ours["e2e"]["min"] == 0.9 and file.totals["in_flight"] == 20 and file.totals["duration"] == 5
    assert any("All requests were sent at once" in note for note in file.notes)
    assert not any("cannot be" in note for note in file.notes)


def test_two_runs_in_a_log_and_a_part_of_one(read):
    runs = read(PRINTED + PRINTED.replace("10.0000", "5.0000").replace("5000.0000", "10000.0000"))
    assert [run.totals["requests_per_second"] for run in runs] == [10, 5] and runs[1].name == "run:1"
    (part,) = read("Request Throughput (req/sec):      4.0\nTotal Latency (ms):    2500.0\n")
    assert part.totals["requests"] == 10 and any("were not streamed (--streaming)" in note for note in part.notes)


def test_a_rate_of_issue_is_an_open_loop(read):
    (found,) = read(REPORT | {"world_info": {"issue_rate": 10.4}})
    assert found.loop == "open" and found.totals["offered_rate"] == 10.4
    with pytest.raises(ValueError, match="a time cannot be negative"):
        read(REPORT | {"performance": REPORT["performance"] | {"avg_request_latency_ms": -1.0}})
