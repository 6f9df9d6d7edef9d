"""A page of metrics as vLLM prints it: means, buckets, what happened between two scrapes, what is odd and its lab."""

import os

import pytest
from typer.testing import CliRunner

from course import results
from course.cli import app
from course.results.exposition import Histogram, pages

BOUNDS = (0.25, 1.0, 4.0)


def histogram(name, counts, total, engine="0"):
    """counts: at or below each of BOUNDS, then in all."""
    labels = f'engine="{engine}",model_name="demo"'
    lines = [f'{name}_bucket{{{labels},le="{bound}"}} {n}' for bound, n in zip((*BOUNDS, "+Inf"), counts, strict=True)]
    return [*lines, f"{name}_count{{{labels}}} {counts[-1]}", f"{name}_sum{{{labels}}} {total}"]


def page(*, ended=200, running=8, waiting=0, kv=0.4, preempted=0, e2e=2.0, queue=0.01, aborted=0, tokens=20_000,
         stalls=100, engine="0"):  # fmt: skip
    gaps = (tokens - stalls, tokens, tokens, tokens)
    labels = f'engine="{engine}",model_name="demo"'
    return "\n".join(
        [
            "# HELP vllm:num_requests_running Number of requests in model execution batches.",
            "# TYPE vllm:num_requests_running gauge",
            f"vllm:num_requests_running{{{labels}}} {running}.0",
            f"vllm:num_requests_waiting{{{labels}}} {waiting}.0",
            f"vllm:kv_cache_usage_perc{{{labels}}} {kv}",
            f"vllm:num_preemptions_total{{{labels}}} {preempted}",
            f"vllm:prompt_tokens_total{{{labels}}} {ended * 300}",
            f"vllm:generation_tokens_total{{{labels}}} {tokens}",
            f"vllm:prefix_cache_queries_total{{{labels}}} 1000",
            f"vllm:prefix_cache_hits_total{{{labels}}} 250",
            f'vllm:request_success_total{{finished_reason="stop",{labels}}} {ended - 20}',
            f'vllm:request_success_total{{finished_reason="length",{labels}}} 20',
            f'vllm:request_success_total{{finished_reason="abort",{labels}}} {aborted}',
            *histogram("vllm:e2e_request_latency_seconds", (0, ended // 2, ended, ended), ended * e2e, engine),
            *histogram("vllm:time_to_first_token_seconds", (ended // 2, ended, ended, ended), ended * 0.3, engine),
            *histogram("vllm:request_queue_time_seconds", (ended, ended, ended, ended), ended * queue, engine),
            *histogram("vllm:inter_token_latency_seconds", gaps, tokens * 0.02, engine),
            f'vllm:cache_config_info{{block_size="16",cache_dtype="auto",num_gpu_blocks="5000",engine="{engine}"}} 1.0',
        ]
    ) + "\n"  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def written(*texts, **options):
        paths = []
        for number, text in enumerate(texts):
            paths.append(tmp_path / f"page{number}.prom")
            paths[-1].write_text(text)
        return results.read_files(paths, **options)

    return written


def said(found, part):
    return any(part in note for note in found.notes)


def test_one_scrape_since_the_start(read):
    (found,) = read(page())
    assert (
        found.tool == "vLLM metrics page" and found.setup["model"] == "demo" and found.setup["num_gpu_blocks"] == 5000
    )
    assert found.totals["requests"] == 200 and found.totals["running"] == 8 and found.totals["kv_usage"] == 0.4
    assert found.ours["ttft"]["mean"] == pytest.approx(0.3) and found.ours["e2e"]["mean"] == pytest.approx(2.0)
    # The 150th of 200 values is halfway from 0.25 to 1; the 100th of E2E is at the end of its bucket.
    assert found.ours["e2e"]["p50"] == pytest.approx(1.0) and found.ours["ttft"]["p50"] == pytest.approx(0.25)
    assert found.ours["ttft"]["p90"] == pytest.approx(0.25 + 0.75 * 0.8)
    assert "requests_per_second" not in found.totals and said(found, "there are no rates")
    assert said(found, "L = lambda W makes 4 requests/s of a mean E2E of 2 s (lab 03)")
    assert said(
        found, "KV cache in use at the scrape: 40.0% of 5,000 blocks of 16 tokens, 4,000 tokens for each running"
    )
    assert said(found, "25.0% of prompt tokens were found in the prefix cache")
    assert said(found, "p99 is somewhere in one, that of TTFT between 0.25 and 1 s")
    assert not any(lab in note for note in found.notes for lab in ("lab 07", "lab 08", "lab 16"))


def test_between_two_scrapes(read):
    before, after = page(), page(ended=500, running=9, tokens=80_000, e2e=2.6)
    (found,) = read(before, after, interval=50)
    assert found.totals["requests"] == 300 and found.totals["requests_per_second"] == 6
    assert found.totals["output_tokens_per_second"] == 1200
    assert found.ours["e2e"]["mean"] == pytest.approx(3.0)  # (500 x 2.6 - 200 x 2) / 300
    assert found.totals["in_flight"] == pytest.approx(18.0)  # 6/s x 3 s
    assert said(
        found, "L = lambda W: 6 requests/s x 3 s are 18 in flight on average; 8 running and 0 waiting at the first"
    )
    (unknown,) = read(before, after)
    assert "requests_per_second" not in unknown.totals and said(unknown, "(--interval) give those")
    assert unknown.ours["e2e"]["mean"] == pytest.approx(3.0)
    (together,) = read(before + after, interval=50)  # two pages in one file
    assert together.totals == found.totals


def test_moments_in_the_pages_count(read):
    def timed(text, moment):
        return "\n".join(line if line[0] == "#" else f"{line} {moment}" for line in text.splitlines())

    (found,) = read(timed(page(), 1_700_000_000_000), timed(page(ended=500, e2e=2.6), 1_700_000_050_000))
    assert found.totals["duration"] == 50 and said(found, "50 s apart by the moments in the pages")


def test_times_of_files_count_where_they_go_with_what_is_in_flight(read, tmp_path):
    texts = page(running=16), page(ended=500, running=20, e2e=2.6)
    for apart, known in ((50, True), (2, False), (5_000, False)):
        read(*texts)
        for number, path in enumerate(sorted(tmp_path.glob("*.prom"))):
            os.utime(path, (10**9 + number * apart, 10**9 + number * apart))
        (found,) = results.read_files(sorted(tmp_path.glob("*.prom")))
        assert ("duration" in found.totals) == known, apart
        assert said(found, "by the times at which the files were written") == known


def test_what_is_odd_names_its_lab(read):
    before = page()
    (full,) = read(before, page(ended=500, preempted=30, running=40, waiting=12, kv=0.97), interval=50)
    assert said(full, "30 preemptions (0.6/s), 0.1 for each request that ended") and said(full, "(lab 08)")
    assert said(full, "12 requests wait: the KV pool is 97% full, so memory holds them back (lab 08)")
    assert said(full, "More than the average: the load or the queue grows")
    (slots,) = read(before, page(ended=500, running=8, waiting=12), interval=50)
    assert said(slots, "memory does not hold them back: 8 running is the slots (max_num_seqs, lab 04)")
    (queue,) = read(page(queue=0.2))
    assert said(queue, "Of a mean TTFT of 0.3 s, 0.2 s are the wait in the engine's queue and not prefill (lab 03)")
    (stall,) = read(page(stalls=600))  # 3% of the gaps in the bucket above 0.25 s; the mean is 20 ms
    assert said(stall, "One gap in a hundred is longer than 250 ms where the mean is 20 ms")
    (left,) = read(page(aborted=40))
    assert said(left, "40 of 240 requests were aborted by their clients") and left.totals["failed"] == 40
    (two,) = read(page(running=30) + page(engine="1", running=4))
    assert said(two, "2 engines run from 4 to 30 requests: the load is not even") and two.totals["running"] == 34
    assert two.totals["requests"] == 400 and two.setup["data_parallel_size"] == 2


def test_drafts(read):
    labels = '{engine="0",model_name="demo"}'
    drafts = [("num_drafts", 100), ("num_draft_tokens", 300), ("num_accepted_tokens", 150)]
    (found,) = read(page() + "".join(f"vllm:spec_decode_{name}_total{labels} {n}\n" for name, n in drafts))
    assert said(found, "a step brought 2.5 tokens of a request on average, 50.0% of the drafted tokens were accepted")


@pytest.mark.parametrize(
    ("texts", "options", "why"),
    [
        (
            (page(ended=500), page()),
            {},
            "ran back from .*: was the engine started again, or are the two scrapes in the",
        ),
        (("# HELP x y\nsglang:num_running_reqs 3\n",), {}, "without metrics of vLLM .* Its metrics are 'sglang'"),
        (
            ("# HELP x y\nthis is not a sample\n",),
            {},
            "row 2: 'this is not a sample' is not a sample of a metrics page",
        ),
        ((page() + 'vllm:x{a="b"} many\n',), {}, "is not a sample"),
        ((page(),), {"interval": -1}, "interval must be"),
        (("{}",), {"interval": 10, "format": "aiperf"}, "none of these files is such a page|holds no|request"),
        (("{}",), {"format": "vllm-metrics"}, "is not a sample"),
    ],
)
def test_what_is_no_page(read, texts, options, why):
    with pytest.raises(ValueError, match=why):
        read(*texts, **options)


def test_labels_as_prometheus_writes_them(tmp_path):
    (found,) = pages(tmp_path / "x", 'a{b="c,d=\\"e\\"",f="g\\\\h"} 1e3\na{b="i"} NaN\nempty 2\n')
    assert dict(next(iter(found.samples["a"]))) == {"b": 'c,d="e"', "f": "g\\h"}
    assert found.total("empty") == 2 and found.total("no", "empty") == 2


def test_percentiles_at_the_edges():
    some = Histogram(10, 20.0, {1.0: 0, 2.0: 8, float("inf"): 10})
    assert some.percentile(40) == (1.5, 1.0, 2.0) and some.percentile(99) == (2.0, 2.0, float("inf"))
    assert some.less(some) is None


def test_the_command(tmp_path):
    for name, text in (("a", page()), ("b", page(ended=500, e2e=2.6))):
        (tmp_path / name).write_text(text)
    ran = CliRunner().invoke(app, ["results", str(tmp_path / "a"), str(tmp_path / "b"), "--interval", "50"])
    assert ran.exit_code == 0 and "a to b" in ran.stdout and "KV cache in use" in ran.stdout
    ran = CliRunner().invoke(app, ["results", str(tmp_path / "a"), "--interval", "0"])
    assert ran.exit_code == 2 and "--interval must be" in ran.stderr
