"""Result files of every tool: the same four requests in eight vocabularies, and the trap that each one sets."""

from functools import partial

import numpy as np
import pytest

from course import results
from tests.helpers.result_files import DATA, changed, said, written

NAN = float("nan")

# The requests of data/results/README.md. Percentiles of three values and of six gaps, interpolated by hand.
TTFT = {"mean": 0.3, "p50": 0.3, "p99": 0.398, "max": 0.4}
TPOT = {"mean": 0.15, "p50": 0.15, "p99": 0.199, "max": 0.2}
ITL = {"mean": 0.8 / 6, "p50": 0.1, "p99": 0.1 + 0.2 * 0.95, "max": 0.3}
E2E = {"mean": 1.7 / 3, "p50": 0.6, "p99": 0.796, "max": 0.8}
PER_REQUEST = {
    "vllm_bench_detailed.json": {"arrival", "itl"},
    "sglang_bench.jsonl": {"itl"},
    "inference_perf_requests.json": {"arrival", "itl"},
    "guidellm_v0.json": {"arrival"},
    "guidellm_v2.json": {"arrival"},
    "llmperf_individual_responses.json": set(),
    "aiperf_records.jsonl": {"arrival", "itl"},
}
TOOLS = {
    "vllm": "vLLM bench serve",
    "sglang": "SGLang bench_serving",
    "inference": "inference-perf",
    "guidellm": "guidellm",
    "llmperf": "llmperf",
    "aiperf": "aiperf",
    "genai": "genai-perf",
    "llmservingsim": "LLMServingSim request log",
}


@pytest.fixture
def result(tmp_path):
    """Writes a document, or documents as lines, and reads it."""
    return partial(written, tmp_path)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json*")), ids=lambda path: path.name)
def test_every_tool_is_told_by_its_content(path, tmp_path):
    if "meta" in path.name:
        with pytest.raises(ValueError, match="was not written by a tool that the course knows"):
            results.read(path)
        return
    found = results.read(path)
    assert found.tool == TOOLS[path.name.split("_")[0]]
    other = tmp_path / "unnamed"
    other.write_bytes(path.read_bytes())
    again = results.read(other)
    assert again.tool == found.tool and again.definitions == found.definitions


@pytest.mark.parametrize("name", PER_REQUEST)
def test_one_table_from_every_tool_that_keeps_requests(name):
    found = results.read(DATA / name)
    table, has = found.requests, PER_REQUEST[name]
    # Differences of clock times near 1000 s, of which float64 keeps 1e-13; sums of written gaps.
    close = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(table.prompt_tokens, [100, 200, 50, 70])
    np.testing.assert_array_equal(table.failed, [False, False, False, True])
    np.testing.assert_allclose(table.ttft, [0.2, 0.4, 0.3, NAN], **close)
    np.testing.assert_allclose(table.e2e, [0.6, 0.8, 0.3, NAN], **close)
    np.testing.assert_allclose(table.tpot, [0.1, 0.2, NAN, NAN], **close)
    np.testing.assert_allclose(table.output_tokens[:3], [5, 3, 1])
    np.testing.assert_allclose(table.arrival, [0, 0.5, 1, 1.5] if "arrival" in has else [NAN] * 4, **close)
    if "itl" in has:
        assert [gap.round(9).tolist() for gap in table.itl] == [[0.1] * 4, [0.3, 0.1], [], []]
    assert found.totals["failed"] == 1 and said(found, "1 of 4 requests failed (25.0%); no average counts them")
    for metric, expected in (("ttft", TTFT), ("tpot", TPOT), ("e2e", E2E)):
        ours = found.ours[metric]
        assert {key: ours[key] for key in expected} == pytest.approx(expected, abs=1e-9), metric
    if "itl" in has:
        assert {key: found.ours["itl"][key] for key in ITL} == pytest.approx(ITL, abs=1e-9)


@pytest.mark.parametrize("name", [name for name, has in PER_REQUEST.items() if "arrival" in has])
def test_replay(name):
    load = results.read(DATA / name).workload()
    np.testing.assert_allclose(load.arrival, [0, 0.5, 1], atol=1e-9)
    assert load.prompt_tokens.tolist() == [100, 200, 50] and load.output_tokens.tolist() == [5, 3, 1]
    assert "1 of 4 requests failed and are not replayed" in load.notes[0]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("llmperf_individual_responses.json", "request 0 has no arrival"),
        ("sglang_bench.jsonl", "request 0 has no arrival, so the run cannot be replayed"),
        ("vllm_bench_summary.json", "a summary and no requests.*--save-detailed"),
        ("genai_perf.json", "a summary and no requests"),
    ],
)
def test_what_cannot_be_replayed(name, why):
    with pytest.raises(ValueError, match=why):
        results.read(DATA / name).workload()


SUMMARIES = {
    "vllm_bench_summary.json": (TTFT, TPOT, ITL, E2E),
    "inference_perf_stage.json": (TTFT, TPOT, ITL, E2E),
    "aiperf_summary.json": (TTFT, TPOT, None, E2E),
    "genai_perf.json": (TTFT, TPOT, None, E2E),
    "guidellm_v0.json": (TTFT, None, None, E2E),
    "llmperf_summary.json": (TTFT, None, None, E2E),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_summaries_in_seconds_under_one_name_a_statistic(name):
    found = results.read(DATA / name)
    for metric, expected in zip(("ttft", "tpot", "itl", "e2e"), SUMMARIES[name], strict=True):
        if expected is not None:
            given = {key: value for key, value in found.summary[metric].items() if key in expected}
            assert {"mean", "p50", "p99"} <= set(given)
            assert given == pytest.approx({key: expected[key] for key in given}, abs=1e-9), metric
    assert found.totals["requests_per_second"] == pytest.approx(3 / 1.6)
    assert found.totals["output_tokens_per_second"] == pytest.approx(9 / 1.6)
    assert found.totals["in_flight"] == pytest.approx(1.7 / 1.6)  # sum of E2E over the duration


def test_definitions_that_differ_are_kept_apart():
    """Expected from the four requests by each tool's own formula."""
    first = results.read(DATA / "guidellm_v0.json")
    assert not first.definitions["tpot"].same and not first.definitions["itl"].same
    assert first.summary["tpot"]["mean"] == pytest.approx((0.4 + 0.4 + 0) / 9)  # decode over n, once a token
    assert first.summary["itl"]["mean"] == pytest.approx((4 * 0.1 + 2 * 0.2) / 6)  # over n - 1, once a gap
    assert first.ours["itl"] == pytest.approx({"mean": 0.8 / 6}) and first.ours["tpot"]["mean"] == pytest.approx(0.15)
    assert said(first, "TPOT is another quantity here")

    bare, full = results.read_all(DATA / "guidellm_v2.json")
    for later in (bare, full):
        whole = 5 * 0.6 / 5 + 3 * 0.8 / 3 + 0.3  # E2E over n, once a token
        assert later.summary["tpot"]["mean"] == pytest.approx(whole / 9)
        assert later.ours["itl"] == pytest.approx({"mean": 0.8 / 6})  # of this mean, and of no percentile
        assert said(later, "Requests cut off at the end of the run, and in no average: 2")
    assert bare.requests is None and "tpot" not in bare.ours  # it cannot be had from the summary
    assert full.ours["tpot"]["mean"] == pytest.approx(0.15)

    individual = results.read(DATA / "llmperf_individual_responses.json")
    assert individual.summary["itl"]["mean"] == pytest.approx(
        (0.6 / 5 + 0.8 / 3 + 0.3) / 3
    )  # with the wait for the first
    assert individual.ours["itl"] == pytest.approx({"mean": 0.8 / 6})
    summary = results.read(DATA / "llmperf_summary.json")
    assert "itl" not in summary.ours and summary.ours["tpot"] == pytest.approx({"mean": (1.7 / 3 - 0.3) / 2})
    assert said(summary, "TPOT is from the means")


def test_vllm_spellings(result):
    """request_rate as a number, text or infinity; the key with its colon; no E2E; failures by count."""
    assert results.read(DATA / "vllm_bench_detailed.json").totals["requested_rate"] == 2
    for rate in ("inf", float("inf"), None):
        assert "requested_rate" not in result(changed("vllm_bench_summary.json", request_rate=rate)).totals
    assert result(changed("vllm_bench_summary.json", **{"request_goodput:": 1.5})).totals["goodput"] == 1.5
    assert result(changed("vllm_bench_summary.json", request_goodput=1.5)).totals["goodput"] == 1.5
    assert result(changed("vllm_bench_summary.json", failed=...)).totals["failed"] == 1  # 4 prompts, 3 completed
    doc = {k: v for k, v in changed("vllm_bench_summary.json").items() if "e2el" not in k}
    found = result(doc)
    assert found.ours["e2e"] == pytest.approx({"mean": 0.3 + 0.8 / 6 * 2})  # gaps of the mean answer: 9 / 3 - 1
    assert said(found, "E2E is not in the file")
    assert said(found, "The mean TPOT of 150 ms counts every request alike, the mean ITL of 133.3 ms every gap")


def test_several_runs_in_a_file(result):
    line = changed("sglang_bench.jsonl")
    found = result(line, line | {"completed": 2, "request_throughput": 2 / 1.6}, line)
    assert found.name == "result:2" and said(found, "holds 3 runs; this is number 2, counted from 0")
    assert result(line, line | {"duration": 3.2}, run=1).totals["duration"] == 3.2
    with pytest.raises(ValueError, match="run must be a whole number from 0 to 1, not 2"):
        result(line, line, run=2)
    assert result(line).name == "result" and not said(result(line), "holds")
