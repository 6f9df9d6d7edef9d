"""Result files that are refused: with the place in the file, in one sentence."""

from functools import partial

import pytest

from course import results
from tests.helpers.result_files import DATA, changed, written


@pytest.fixture
def result(tmp_path):
    """Writes a document, or documents as lines, and reads it."""
    return partial(written, tmp_path)


@pytest.mark.parametrize("digits", [301, 400, 5_000])
def test_a_number_of_hundreds_of_digits_is_refused(digits, tmp_path):
    """A float ends at 309 of them: later it would be a sum that cannot be converted."""
    path = tmp_path / "large.json"
    text = (DATA / "guidellm_v0.json").read_text(encoding="utf-8")
    path.write_text(text.replace('"rate": ', f'"rate": {"9" * digits}, "rate_": ', 1), encoding="utf-8")
    with pytest.raises(ValueError, match="it has a number with more than 300 digits"):
        results.read(path)


@pytest.mark.parametrize(
    ("doc", "why"),
    [
        (changed("vllm_bench_summary.json", mean_ttft_ms=-3.0), "its mean TTFT is -0.003 s: a time cannot be negative"),
        (changed("vllm_bench_summary.json", p99_itl_ms=1e12), "its p99 ITL is 1e[+]09 s: that is more than"),
        (changed("vllm_bench_summary.json", duration=-1), "duration is -1: a time cannot be negative"),
        (changed("vllm_bench_summary.json", completed=2.5), "completed is 2.5, which is no count"),
        (changed("vllm_bench_summary.json", completed="three"), "completed is 'three', which is not a number"),
        (changed("vllm_bench_summary.json", mean_ttft_ms="fast"), "mean_ttft_ms is 'fast', which is not a number"),
        (changed("vllm_bench_summary.json", mean_ttft_ms=float("inf")), "mean_ttft_ms is inf, which is not a number"),
        (changed("vllm_bench_summary.json", output_throughput=-1), "output_throughput is -1: a rate cannot"),
        (changed("vllm_bench_detailed.json", ttfts=[0.2, -0.4, 0.3, 0]), "request 1: ttfts is -0.4: a time cannot"),
        (changed("vllm_bench_detailed.json", ttfts=[0.2]), "1 ttfts but 4 output_lens: one per request is needed"),
        (changed("vllm_bench_detailed.json", ttfts=5), "ttfts is 5, no list"),
        (changed("vllm_bench_detailed.json", itls=[[0.1], [0.1, -1], [], []]), "request 1, gap 1: itl is -1: a time"),
        (changed("vllm_bench_detailed.json", itls=[5, [], [], []]), "request 0: itls is 5, which is not a list"),
        (changed("vllm_bench_detailed.json", start_times=["a", 1, 2, 3]), "request 0: start_times is 'a', which"),
        ({"benchmarks": [{"metrics": {"request_latency": {"successful": 5}}}]}, "successful: an object in braces was"),
        ({"benchmarks": [{"metrics": {}}, 5]}, "benchmark 1: an object in braces was expected, not 5"),
        ([{"start_time": 5, "end_time": 4, "info": {}, "error": None}], "request 0: end_time - start_time is -1"),
        ([{"start_time": None, "end_time": 4, "info": {}, "error": None}], "request 0: start_time is missing"),
        ([{"end_to_end_latency_s": -1, "ttft_s": 1}], "request 0: end_to_end_latency_s is -1: a time cannot"),
        ([{"end_to_end_latency_s": 1, "ttft_s": 2, "number_output_tokens": 3}], "request 0: its TTFT of 2 s is longer"),
        ([{"end_to_end_latency_s": 1, "ttft_s": 1}, 7], "request 1: an object in braces was expected, not 7"),
        ({"metadata": {"request_start_ns": 1.5}, "metrics": {}}, "request_start_ns is 1.5, which is not a whole"),
        ({"a": 1}, "result.json was not written by a tool that the course knows. Its keys are 'a'"),
        ([], "was not written by a tool that the course knows"),
        (5, "was not written by a tool that the course knows"),
    ],
    ids=range(25),
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_place(result, doc, why):
    with pytest.raises(ValueError, match=why) as caught:
        result(doc)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("result")


def test_files_that_are_none(tmp_path, result):
    with pytest.raises(ValueError, match=r"format must be one of course-sweep, llmservingsim, .*, not 'excel'"):
        results.read(DATA / "genai_perf.json", format="excel")
    with pytest.raises(ValueError, match="result file is read from a path, not from 5"):
        results.read(5)
    with pytest.raises(ValueError, match="is a folder: give the result file inside it"):
        results.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        results.read(tmp_path / "missing.json")
    for content, why in (
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("{", "this is not JSON"),
        ('{"a": 1}\n{"a"', "row 2"),
    ):
        with pytest.raises(ValueError, match=why):
            result(content)
    with pytest.raises(ValueError, match="no input_toks and no output_toks"):
        results.read(DATA / "genai_perf.json", format="llmservingsim")
