"""The real vLLM beside the simulator: the same steps, the same times, and what must break them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from typer.testing import CliRunner

from course import flags, memory, results
from course.calibration import vllm_live, vllm_log
from course.cli import app
from course.engine.metrics import percentiles
from course.lm.http.metrics import Metrics
from course.lm.loading import ROOM
from course.memory.kvcache import KVCache
from course.models import named_or_read
from course.policies import Continuous

NAMES = vllm_live.names()
SERVERS = {"wide": "questions_8", "wide_uncached": "prefix_off", "four_slots": "questions_4", "small_pool": "preempted"}

MS = 1e-3


@cache
def run(name):
    return vllm_live.read(name)


@cache
def replayed(name):
    return run(name).replay()


def log(server):
    return (vllm_live.FOLDER / f"serve_{server}.log").read_text(encoding="utf-8")


# The schedule


@pytest.mark.parametrize("name", NAMES)
def test_every_step_computes_the_same_tokens(name):
    same = run(name).equal_steps(replayed(name))
    assert same.all(), f"{same.sum()} of {len(same)} steps, the first difference in step {np.argmin(same)}"


@pytest.mark.parametrize("name", NAMES)
def test_every_step_holds_the_same_blocks_and_preempts_the_same_requests(name):
    one, other = run(name), replayed(name)
    assert other.steps.blocks.tolist() == one.blocks.tolist()
    assert other.preempted.tolist() == [sum(r in row[1:] for row in one.preempted) for r in range(len(one))]
    assert np.flatnonzero(other.steps.preemptions).tolist() == [row[0] for row in one.preempted]


def test_the_loads_are_what_they_are_called():
    """Slots that are all taken, prompts in pieces, blocks that run out, prefixes that are shared."""
    assert max(map(len, run("questions_4").schedule)) == 4 and run("questions_4").waiting.max() > 0
    assert max(map(len, run("questions_8").schedule)) > 4
    assert len(run("preempted").preempted) >= 5 and run("preempted").blocks.max() == run("preempted").cache.num_blocks
    for name in ("cut_64", "long_64", "long_256", "preempted"):
        one, pieces = run(name), np.zeros(len(run(name)))
        for step in one.schedule:
            for request, (_, cached) in step.items():
                pieces[request] += cached < one.prompt_tokens[request]
        assert pieces.max() > 1, name
    first = {request: (tokens, cached) for step in reversed(run("prefix_on").schedule)
             for request, (tokens, cached) in step.items()}  # fmt: skip
    hits = [first[request][1] for request in range(len(run("prefix_on")))]
    assert sum(hit >= 224 for hit in hits) >= len(hits) - 2
    assert all(hit % run("prefix_on").cache.block_size == 0 for hit in hits)
    assert run("prefix_on").prefix == run("prefix_off").prefix and run("questions_8").prefix is None


def different(name, policy=None, blocks=None):
    """How many steps differ with another policy or pool; a refusal counts as all of them."""
    one = run(name)
    same = one.equal_steps(one.replay(policy, KVCache(blocks or one.cache.num_blocks, one.cache.block_size)))
    return int((~same).sum())


def test_controls_that_must_break_it_do():
    """Where a setting binds another value gives another schedule; where it does not, the same."""
    one = run("preempted")
    sizes = {"max_num_seqs": one.policy.max_num_seqs, "max_num_batched_tokens": one.policy.max_num_batched_tokens}
    assert different("preempted") == 0
    assert different("preempted", blocks=one.cache.num_blocks + 1) > 20
    assert different("preempted", blocks=one.cache.num_blocks - 1) > 20
    assert different("preempted", Continuous(**sizes, scheduler_reserve_full_isl=False)) > 20
    assert different("preempted", Continuous(**sizes | {"max_num_batched_tokens": 63})) > 20
    assert different("questions_4", Continuous(5, 256)) > 20
    assert different("long_64", Continuous(**sizes, long_prefill_token_threshold=32)) > 20
    assert different("questions_4", blocks=run("questions_4").cache.num_blocks - 1) == 0  # memory does not bind there


def test_a_step_begins_when_the_scheduler_looks():
    """With the boundary at the end of the step before, an arrival in the gap between falls into the wrong step."""
    wrong = 0
    for name in NAMES:
        one = replace(run(name), looks=np.append(run(name).looks[0], run(name).done[:-1]))
        wrong += int((~one.equal_steps(one.replay())).sum())
    assert wrong > 0


# The times


@pytest.mark.parametrize("name", NAMES)
def test_every_token_leaves_when_it_left_the_engine(name):
    """In the simulator a step's tokens leave behind the pause before the next look; without it times are equal.

    To 10 us: the files have microseconds, and the simulator adds up some hundred steps.
    """
    one, other = run(name), replayed(name)
    for theirs, ours in ((one.first, other.first_computed), (one.last, other.last_computed)):
        step = np.searchsorted(other.steps.end, ours - 1e-9)
        assert ours - one.pauses[step] == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_percentiles_are_within_a_millisecond_of_the_engines_own(name):
    """Or within the pauses: most are some tenths of a millisecond, a few 15, where another program had the core."""
    one, other = run(name), replayed(name)
    assert np.median(one.pauses) < MS
    late = one.workload.arrival - one.arrival  # what arrives while the engine is idle counts from the scheduler's look
    for theirs, ours, count in (
        (one.ttft, other.ttft + late, 1),
        (one.e2e, other.e2e + late, 1),
        (one.tpot, other.tpot, one.output_tokens[one.output_tokens > 1].min() - 1),  # a pause is divided by the gaps
    ):
        for statistic in ("p50", "p95"):
            difference = abs(percentiles(ours)[statistic] - percentiles(theirs)[statistic])
            assert difference < max(MS, one.pauses.max() / count)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_client_sees_is_the_engines_time_and_what_lies_around_it(name):
    one = run(name)
    parts = sum(one.around.values())
    assert one.client_first - one.sent == pytest.approx(one.ttft + parts, abs=1e-5)
    assert (one.around["returning"] > 0).all() and (one.sent >= one.due - 1e-3).all()
    # `created` is a wall clock read beside a monotonic one: it may be some tenths of a millisecond off.
    assert min(one.around["reading"].min(), one.around["handing_over"].min()) > -MS


# The words, the pool, the flags, the pages


def test_the_words_are_those_of_numpy():
    """Every request of every load, whatever was cached, cut or preempted."""
    for name in NAMES:
        assert run(name).same_as_numpy == len(run(name))


@pytest.mark.parametrize("server", SERVERS)
def test_the_ledger_says_what_vllm_logs_and_keeps_a_block_back(server):
    one = run(SERVERS[server])
    blocks, size = one.engine["num_gpu_blocks"], one.engine["block_size"]
    assert one.engine["free_blocks"] == blocks - 1 == one.cache.num_blocks
    spec = named_or_read(str(ROOM / "config.json")).with_kv_dtype("float32")
    pool = memory.pool(spec, blocks * size * spec.kv_bytes_per_token, block_size=size)
    assert (pool.num_blocks, pool.free_blocks) == (blocks, blocks - 1)
    found = re.search(
        r"KV cache size: ([\d,]+) tokens, Maximum concurrency for 512 tokens per request: ([\d.]+)x", log(server)
    )
    assert f"{pool.num_tokens(512):,}" == found[1]
    assert f"{pool.concurrency(512):.2f}" == found[2]
    assert pool.longest_sequence == (blocks - 1) * size < pool.num_tokens(512)
    whole = re.search(r"Overriding num_gpu_blocks=(\d+) with", log(server))  # what a GiB holds
    assert memory.pool(spec, 2**30, block_size=size).num_blocks == int(whole[1])


@pytest.mark.parametrize("server", SERVERS)
def test_the_flags_of_the_policy_started_that_vllm(server):
    """vLLM logs the settings that `course flags` writes for the policy, and they are read back as the policy."""
    one = run(SERVERS[server])
    kv = flags.KVSettings(
        block_size=32, max_model_len=512, num_gpu_blocks_override=one.engine["num_gpu_blocks"],
        enable_prefix_caching=one.engine["enable_prefix_caching"],
    )  # fmt: skip
    (wanted,) = flags.for_policy(one.policy, kv, model="course-lm", engines=["vllm"])
    said = re.search(r"non-default args: \{(.*)\}", log(server))[1]
    for setting in wanted.settings:
        name, value = setting.words[0].removeprefix("--").replace("-", "_"), "".join(setting.words[1:])
        shown = f"'{name.removeprefix('no_')}': {value or not name.startswith('no_')}"
        assert shown in said, shown
    back = flags.parse(wanted.command.replace("\\\n", " "))
    assert (repr(back.policy), back.kv) == (repr(one.policy), kv)


def test_the_metrics_page_has_the_names_that_the_courses_server_has():
    """Every metric of `course serve` is one of vLLM's, of the same type."""
    page = (vllm_live.FOLDER / "metrics_preempted_after.txt").read_text(encoding="utf-8")
    ours = Metrics("course-lm", KVCache(8)).page().decode()
    theirs, mine = (dict(re.findall(r"^# TYPE (vllm:\S+) (\w+)", text, re.M)) for text in (page, ours))
    mine = {name: kind for name, kind in mine.items() if not name.endswith("_created")}
    assert len(mine) >= 16
    assert mine.items() <= theirs.items()


def test_the_page_counts_what_was_recorded():
    """Before and after the load: requests, tokens, preemptions, and seconds between the engine's and the client's."""
    one = run("preempted")
    paths = [vllm_live.FOLDER / f"metrics_preempted_{when}.txt" for when in ("before", "after")]
    (found,) = results.read_files(paths, interval=1.0)
    assert found.totals["requests"] == len(one)
    assert found.totals["output_tokens"] == one.output_tokens.sum()
    assert found.totals["preemptions"] == sum(len(row) - 1 for row in one.preempted)
    # vLLM's front end counts from the moment at which it has read the request to that at which it gets the token.
    mean = found.summary["e2e"]["mean"]
    assert (one.e2e + one.around["handing_over"]).mean() < mean < (one.client_last - one.created).mean()


def test_course_compare_reads_vllms_own_file():
    line = [
        *("compare", vllm_live.FOLDER / "bench_serve.json", "--model", ROOM / "config.json", "--gpu", "H100"),
        *("--kv-dtype", "bfloat16", "--max-num-seqs", 8, "--max-num-batched-tokens", 256, "--block-size", 32),
        *("--num-gpu-blocks", 169, "--fit", "--json"),
    ]
    ran = CliRunner().invoke(app, list(map(str, line)))
    assert ran.exit_code == 0, ran.output
    rows = {(row["metric"], row["statistic"]): row for row in json.loads(ran.stdout)["metrics"]}
    assert rows["e2e", "p50"]["measured"] == pytest.approx(
        json.loads((vllm_live.FOLDER / "bench_serve.json").read_text())["median_e2el_ms"] / 1e3, rel=1e-3
    )


def test_an_unknown_recording_gets_a_sentence():
    with pytest.raises(ValueError, match="no recording 'night' of vLLM: choose questions_8, "):
        vllm_live.read("night")


def test_nothing_recorded_names_a_machine():
    for path in vllm_live.FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])(?!127\.0\.0\.1)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w.])", text), path.name
        assert not re.search(
            r"/(?:home|root|work|tmp|usr|opt)/|site-packages|https?://(?!127\.0\.0\.1|docs\.)", text
        ), path.name


# What it printed


def test_the_lines_of_a_second_show_the_load():
    """Read back from the log: more wait than fit, the pool is full, and shares of the pool are those of the steps."""
    one = run("preempted")
    lines = vllm_log.seconds_of(one)
    assert len(lines) >= one.done[-1] - 2
    assert max(line.waiting for line in lines) > 5 and max(line.running for line in lines) <= 4
    assert max(line.kv_usage for line in lines) > 0.9
    usages = {round(float(blocks) / one.cache.num_blocks, 3) for blocks in one.blocks}
    assert {round(line.kv_usage, 3) for line in lines} <= usages | {0.0}
    assert sum(line.output_rate for line in lines) == pytest.approx(one.output_tokens.sum(), rel=0.1)


def test_only_a_server_that_caches_prints_a_hit_rate():
    rates = {server: [line.hit_rate for line in vllm_log.seconds(server)] for server in vllm_log.servers()}
    assert set(rates) == set(SERVERS)
    assert max(rates["wide"]) > 0.5
    assert all(rate is None for server in ("wide_uncached", "four_slots", "small_pool") for rate in rates[server])


@pytest.mark.parametrize("server", SERVERS)
def test_a_start_has_the_pool_and_nothing_of_the_load(server):
    lines = vllm_log.start_up(server)
    assert any("KV cache size:" in line for line in lines) and not any("throughput" in line for line in lines)


def test_an_unknown_server_gets_a_sentence():
    with pytest.raises(ValueError, match="no log of a server 'big': choose four_slots, "):
        vllm_log.seconds("big")
