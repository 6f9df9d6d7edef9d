"""Open loops, closed ones and bursts, measured windows, a client's own queue, and which cause a third number names."""

import json
from functools import partial

import numpy as np
import pytest

from tests.helpers.result_files import changed, said, written


@pytest.fixture
def result(tmp_path):
    """Writes a document, or documents as lines, and reads it."""
    return partial(written, tmp_path)


def stats(value, n, **more):
    return {"successful": {"mean": value, "median": value, "count": n, "total_sum": value * n, "std_dev": 0.0,
                           "percentiles": {"p50": value, "p99": value}, **more}}  # fmt: skip


def report(moments, strategy, *, window=None, counted=None, **benchmark):
    """A report of guidellm: requests of (sent, first token, last token) with 21 tokens each."""
    n = len(moments) if counted is None else counted
    rows = [
        {"info": {"timings": {"request_start": a, "first_token_iteration": b, "last_token_iteration": c,
                              "request_end": c}}, "prompt_tokens": 40, "output_tokens": 21}
        for a, b, c in moments
    ]  # fmt: skip
    metrics = {"request_latency": stats(2.0, n), "time_to_first_token_ms": stats(400.0, n),
               "inter_token_latency_ms": stats(80.0, n), "output_token_count": stats(21.0, n),
               "requests_per_second": stats(0.5, n)}  # fmt: skip
    one = {"config": {"strategy": strategy}, "metrics": metrics, "requests": {"successful": rows, "errored": []},
           "scheduler_metrics": {"requests_made": {"successful": len(moments), "errored": 0}}, **benchmark}  # fmt: skip
    if window:
        one |= {"start_time": window[0], "end_time": window[1], "duration": window[1] - window[0],
                "warmup_duration": 5.0, "cooldown_duration": 2.0}  # fmt: skip
    return {"metadata": {"version": 2}, "benchmarks": [one]}


ONE_BY_ONE = [(7.0, 9.5, 12.0), *((12.0 + 2 * k, 12.4 + 2 * k, 14.0 + 2 * k) for k in range(6)), (24.0, 24.9, 29.0)]


def test_a_measured_window_has_its_own_requests(result):
    """Eight requests, one after the other; the first and the last are warm-up and cool-down, and slower."""
    found = result(report(ONE_BY_ONE, {"type_": "synchronous"}, window=(12.0, 24.0), counted=6))
    assert len(found.requests) == 6 and found.ours["ttft"]["mean"] == pytest.approx(0.4)
    assert found.totals["in_flight"] == pytest.approx(1.0) and found.totals["max_concurrency"] == 1
    assert said(
        found, "Averages are of the 6 requests in the measured window of 12 s; the other 2 of 8 were its warm-up"
    )
    assert not said(found, "One is wrong")


def test_who_touches_the_window_is_counted(result):
    """guidellm counts requests that touch the window: the edges are in where its count says so."""
    found = result(report(ONE_BY_ONE, {"type_": "synchronous"}, window=(13.0, 23.0), counted=6))
    assert len(found.requests) == 6 and found.totals["in_flight"] == pytest.approx(1.0)  # 1 + 2 x 4 + 1 s of 10
    lost = result(report(ONE_BY_ONE, {"type_": "synchronous"}, window=(13.0, 23.0), counted=3))
    assert lost.requests is None and said(lost, "which of its 8 those are is not to be seen")


@pytest.mark.parametrize(
    ("strategy", "loop", "most"),
    [
        ({"type_": "synchronous"}, "closed", 1),
        ({"type_": "concurrent", "streams": 4}, "closed", 4),
        ({"type_": "concurrent", "max_concurrency": 4}, "closed", 4),
        ({"type_": "throughput", "max_concurrency": 64}, "closed", 64),
        ({"type_": "throughput"}, "burst", None),
        ({"type_": "constant", "rate": 3.0, "max_concurrency": 10240}, "open", None),
        ({"type_": "poisson", "rate": 3.0}, "open", None),
    ],
)
def test_the_strategy_says_which_loop(result, strategy, loop, most):
    moments = [(5.0 + 1e-4 * k, 5.4, 7.0) for k in range(4)]
    found = result(report(moments, strategy, duration=2.0))
    assert found.loop == loop and found.totals.get("max_concurrency") == most
    assert ("offered_rate" in found.totals) == (loop == "open")
    if loop != "open":
        assert not said(found, "offered and") and not said(found, "keep up") and not said(found, "queue built")
    assert said(found, "A closed loop: the next request is sent when one is answered") == (loop == "closed")


def test_a_limit_in_flight_that_is_reached_holds_requests_back(result):
    """40 requests/s asked for, 5 in flight for 0.5 s each: 10 a second. The client could; the limit said no."""
    slow = changed("vllm_bench_summary.json", request_rate=40.0, max_concurrency=5, duration=10.0, completed=100,
                   num_prompts=100, failed=0, request_throughput=10.0, total_output_tokens=300, output_throughput=30.0,
                   total_input_tokens=100, total_token_throughput=40.0, mean_e2el_ms=500.0,
                   mean_ttft_ms=300.0)  # fmt: skip
    found = result(slow)
    assert found.loop == "open"
    assert said(found, "the client's limit of 5 in flight was reached (5 on average) and held requests back")
    assert not said(found, "could not keep up") and not said(found, "queue built up")


def stage(rate, n, duration, ttft, e2e, **more):
    more = {"max_concurrency": None} | more
    return changed("vllm_bench_summary.json", request_rate=rate, num_prompts=n, completed=n, failed=0,
                   duration=duration, request_throughput=n / duration, total_output_tokens=3 * n, total_input_tokens=n,
                   output_throughput=3 * n / duration, total_token_throughput=4 * n / duration,
                   mean_ttft_ms=1000 * ttft, mean_e2el_ms=1000 * e2e, p99_e2el_ms=1000 * e2e, **more)  # fmt: skip


def test_a_queue_or_a_short_run(result):
    """The wait, the tail and the longest answer decide; where they do not, no cause is named."""
    queue = result(stage(10.0, 200, 40.0, ttft=10.0, e2e=11.0))  # sent in 20 s, the last answered 20 s later
    assert said(queue, "a queue built up, for a TTFT of 10 s")
    short = result(stage(10.0, 200, 22.0, ttft=0.05, e2e=1.9))
    assert said(short, "the run is short, for its last answers took 2.1 s of its 22 s") and not said(
        short, "queue built"
    )
    idle = result(stage(10.0, 200, 60.0, ttft=0.05, e2e=1.9))
    assert said(idle, "the tool counted time in which nothing was in flight")
    open_ = result(stage(10.0, 200, 40.0, ttft=0.5, e2e=19.0))
    assert said(open_, "whether the engine would keep up over a longer run the file does not say")


def test_without_a_duration_it_follows_from_what_was_answered(result):
    """A stage of inference-perf: 200 sent in 20 s, 5 a second answered, so for 40 s."""
    whole = changed("inference_perf_stage.json", failures={"count": 0})
    whole["load_summary"] |= {"count": 200, "requested_rate": 10.0, "achieved_rate": 10.0}
    whole["successes"] |= {"count": 200, "throughput": {"requests_per_sec": 5.0}}
    whole["successes"]["latency"] |= {"time_to_first_token": {"mean": 10.0}, "request_latency": {"mean": 11.0}}
    found = result(whole)
    assert said(found, "a queue built up, for a TTFT of 10 s in the middle is much of the 20.1 s")
    assert not any(" nan" in note for note in found.notes)


def log(arrival, e2e, ttft=0.01):
    rows = []
    for at, took in zip(arrival, e2e, strict=True):
        rows.append({"input_toks": 9, "output_toks": 5, "arrival_time": at, "queued_ts": at, "scheduled_ts": at,
                     "first_token_ts": at + ttft, "last_token_ts": at + took})  # fmt: skip
    return rows


def test_the_number_in_the_system_tells_a_growing_queue_from_a_tail(result):
    arrival = np.arange(200) / 10
    grows = result(*log(arrival, 0.2 + 0.9 * arrival))  # answers get slower and slower; TTFT does not
    assert said(grows, "more and more were in the system") and not said(grows, "run is short")
    steady = result(*log(arrival, np.full(200, 2.0)))
    assert said(steady, "the run is short") and said(steady, "20 were in the system halfway through the sending")


def test_the_wait_in_the_client_counts_from_the_plan(result):
    """Requests of 400 ms that the client held back for 1,100 ms on average."""
    held = stage(4.0, 40, 30.0, ttft=0.1, e2e=0.4, max_concurrency=1, mean_client_queue_time_ms=1100.0)
    found = result(held)
    assert found.ours["client_wait"] == {"mean": 1.1}
    assert found.ours["e2e_from_plan"]["mean"] == pytest.approx(1.5)
    assert found.ours["ttft_from_plan"]["mean"] == pytest.approx(1.2)
    assert said(found, "The client held requests back for 1.1 s on average at its limit of 1 in flight")
    there = result(held | {"mean_e2el_including_client_queue_ms": 1490.0, "p99_e2el_including_client_queue_ms": 2e3})
    assert there.ours["e2e_from_plan"] == pytest.approx({"mean": 1.49, "p99": 2.0})
    lists = result(held | {"mean_client_queue_time_ms": None, "queue_times": [1.0, 1.2] * 20})  # as vLLM 0.30 writes
    assert lists.ours["client_wait"]["mean"] == pytest.approx(1.1) and said(lists, "held requests back for 1.1 s")
    free = result(held | {"max_concurrency": None})  # as in the recorded file: no limit, so none held anything back
    assert said(free, "sent requests 1.1 s late on average, without a limit in flight") and not said(free, "nan")
    prompt = result(held | {"max_concurrency": None, "mean_client_queue_time_ms": 0.085})
    assert not said(prompt, "late") and not said(prompt, "held") and not said(prompt, "nan")


def test_a_wait_that_the_file_has_is_not_called_uncounted(result):
    """Two in flight, 96 of 240 seconds late on average: with the wait in the file, what counts from the plan has it."""
    held = stage(5.0, 480, 240.0, ttft=0.2, e2e=0.99, max_concurrency=2)
    assert said(result(held), "the client's limit of 2 in flight was reached")
    assert said(result(held), "and no latency counts")
    found = result(held | {"mean_client_queue_time_ms": 96_000.0})
    assert said(found, "only what counts from the plan has that wait") and not said(found, "no latency counts")


def test_all_due_at_once_is_no_plan(result):
    """At an unlimited rate the wait in the client is the test's own making."""
    found = result(stage("inf", 40, 16.0, 0.1, 0.4, max_concurrency=1, queue_times=[0.4 * k for k in range(40)]))
    assert found.loop == "closed" and "e2e_from_plan" not in found.ours
    assert said(found, "No rate was asked for, so all were due at once")


def test_the_client_waits_of_each_request(result):
    doc = changed("vllm_bench_detailed.json", queue_times=[0.0, 0.25, 1.0, 0.0], max_concurrency=2)
    found = result(doc)
    np.testing.assert_allclose(found.requests.e2e_from_plan[:3], [0.6, 1.05, 1.3], atol=1e-9)
    assert found.ours["ttft_from_plan"]["max"] == pytest.approx(1.3)
    assert json.dumps(found.definitions["e2e_from_plan"].tool)  # it has a meaning beside it


def test_answers_without_a_token_are_no_answers(result):
    """A file that counts them as completed: rates and means without them, and one sentence."""
    doc = changed("vllm_bench_detailed.json", completed=4, failed=0, request_throughput=2.5, errors=["", "", "", ""])
    found = result(doc)
    assert found.totals["requests"] == 3 and found.totals["failed"] == 1
    assert found.totals["requests_per_second"] == pytest.approx(3 / 1.6)
    assert said(found, "1 of the 4 requests that the file counts as completed have no token")
    assert not said(found, "one of them is wrong") and not said(found, "The file's mean")


@pytest.mark.parametrize("inside", [True, False])
def test_ttft_among_the_gaps(result, inside):
    """As many gaps as tokens, TTFT the first of them: taken out. A first gap that is none stays."""
    n, first = 30, 0.25 if inside else 0.05
    doc = changed("vllm_bench_detailed.json", completed=n, start_times=..., input_lens=[7] * n, output_lens=[4] * n,
                  ttfts=[0.25] * n, itls=[[first, 0.05, 0.05, 0.05]] * n, errors=[""] * n)  # fmt: skip
    found = result(doc)
    assert said(found, "TTFT is the first of the gaps in this file") == inside
    assert found.ours["e2e"]["mean"] == pytest.approx(0.25 + (0.15 if inside else 0.2))


def test_what_a_tool_asked_for_and_what_it_counted(result):
    genai = changed("genai_perf.json") | {"input_config": {"output_tokens_mean": 60, "synthetic_input_tokens_mean": 117,
                                                           "concurrency": 3}}  # fmt: skip
    found = result(genai)
    assert said(found, "Asked for were answers of 60 tokens, counted 3 on average") and found.loop == "closed"
    old = changed("aiperf_summary.json") | {"input_config": {"input": {"prompt": {"output_tokens": {"mean": 3}}},
                                                             "loadgen": {"request_rate": 2.0}}}  # fmt: skip
    assert not said(result(old), "Asked for")
    new = changed("aiperf_summary.json") | {
        "input_config": {
            "phases": {"warmup": {"concurrency": 99}, "profiling": {"type": "poisson", "rate": 7.0, "concurrency": 5}},
            "datasets": {"main": {"prompts": {"isl": {"mean": 30}, "osl": 12}}},
        }
    }
    found = result(new)
    assert (found.totals["requested_rate"], found.totals["max_concurrency"]) == (7.0, 5.0)
    assert said(found, "prompts of 30 tokens") and said(found, "answers of 12 tokens, counted 3 on average, 0.25 times")
    sglang = changed("sglang_bench.jsonl", random_range_ratio=0.5, random_output_len=40)
    assert said(result(sglang), "Asked for were answers of 30 tokens, counted 3")  # from 20 to 40 evenly
    assert said(result(sglang | {"random_range_ratio": None, "random_output_len": 2}), "of at most 2 tokens, counted 3")
    text = report(ONE_BY_ONE, {"type_": "synchronous"}) | {"args": {"data": ["prompt_tokens=40,output_tokens=210"]}}
    assert said(result(text), "Asked for were answers of 210 tokens, counted 21 on average, 0.1 times as many")
