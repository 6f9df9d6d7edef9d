"""The `course` command: what it prints where, what it refuses, and that its numbers are those of `serve`."""

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from course import KVCache, Workload, memory, policies, serve, steptime, traces
from course.cli import app, progress_bar
from course.workload import lengths
from tests.helpers.sizes import PATIENCE

COMMAND = [sys.executable, "-c", "from course.cli import main; main()"]
SMALL = ["simulate", "--rate", "20", "--num-requests", "60"]
TRACE = ["simulate", "--trace", str(traces.example()), "--head", "200"]


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def simulated(*args):
    """The JSON of a run that must succeed."""
    result = call(*args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def same(found, summary):
    """Equal numbers; null stands for NaN."""
    assert found.keys() == summary.keys()
    for key, value in summary.items():
        assert found[key] == (None if value != value else value), key


def test_a_trace_through_three_policies_has_the_numbers_of_serve():
    found = simulated(*TRACE, "--policy", "static,dynamic", "--policy", "continuous", "--max-num-seqs", 16)
    load = traces.read(traces.example()).head(200)
    chosen = [policies.Static(16), policies.Dynamic(16, 0.1), policies.Continuous(16, 2048)]
    assert [run["name"] for run in found["runs"]] == ["static", "dynamic", "continuous"]
    # What the H100 has left: 0.9 x 79.18 GiB, less weights, activations of 16 sequences and the CUDA context.
    length = int((load.prompt_tokens + load.output_tokens).max())
    step = {"max_num_seqs": 16, "max_num_batched_tokens": 2048}
    blocks = memory.ledger("llama-3.1-8b", "H100", max_model_len=length, **step).num_blocks
    assert blocks * 16 * 131_072 / 2**30 == pytest.approx(0.9 * 79.18 - 14.96 - 0.4, abs=0.5)
    for run, policy in zip(found["runs"], chosen, strict=True):
        expected = serve(load, policy, steptime.Roofline("llama-3.1-8b", "H100"), KVCache(blocks, 16))
        same(run["summary"], expected.summary())
        assert run["warnings"] == list(expected.warnings) and run["policy"] == repr(policy)
    assert found["step_time"]["source"] == "modelled"
    assert found["kv_cache"] == {"num_blocks": blocks, "block_size": 16} and "left of H100" in found["kv_cache_from"]
    same(found["workload"], {"name": "azure_style_conv", "notes": [], **load.describe()})


EVERY_SETTING = """
simulate --rate 30 --num-requests 80 --prompt-tokens 900 --prompt-cv 0.5 --output-tokens 40 --output-cv 2
--arrival-cv 3 --seed 7 --head 70 --scale-rate 25 --max-num-seqs 8 --max-num-batched-tokens 512
--long-prefill-token-threshold 128 --no-scheduler-reserve-full-isl --num-gpu-blocks 900 --block-size 8
--step-time power-law:t0=0.006,c=2e-5,alpha=0.9,prefill=2e-5,context=4e-8,pairs=1e-10
--ttft-slo-ms 200 --tpot-slo-ms 15 --e2e-slo-ms 900 --warmup 0.5
"""


def test_every_setting_reaches_the_engine():
    found = simulated(*EVERY_SETTING.split())
    prompts, outputs = lengths.lognormal(900, 0.5), lengths.lognormal(40, 2)
    load = Workload.gamma(30, 3, 80, prompts, outputs, seed=7).head(70).scaled(rate=25)
    policy = policies.Continuous(8, 512, long_prefill_token_threshold=128, scheduler_reserve_full_isl=False)
    timing = steptime.PowerLaw(0.006, 2e-5, 0.9, prefill=2e-5, context=4e-8, pairs=1e-10)
    run = serve(load, policy, timing, KVCache(900, 8))
    same(found["runs"][0]["summary"], run.summary(ttft_slo=0.2, tpot_slo=0.015, e2e_slo=0.9, warmup=0.5))
    assert found["settings"]["seed"] == 7 and found["kv_cache"] == {"num_blocks": 900, "block_size": 8}
    assert found["slo_seconds"] == {"ttft": 0.2, "tpot": 0.015, "e2e": 0.9}


def test_dynamic_and_unchunked_settings_reach_the_engine():
    found = simulated(*SMALL, "--policy", "dynamic", "--max-queue-delay-ms", 7, "--max-num-seqs", 4)
    assert found["runs"][0]["policy"] == repr(policies.Dynamic(4, 0.007))
    found = simulated(*SMALL, "--no-enable-chunked-prefill", "--max-num-batched-tokens", 20_000)
    assert found["runs"][0]["policy"] == repr(policies.Continuous(64, 20_000, enable_chunked_prefill=False))
    found = simulated(*SMALL, "--model", "llama-2-7b", "--gpu", "A100")
    assert found["step_time"]["model"] == repr(steptime.Roofline("llama-2-7b", "A100"))


def test_the_table_shows_every_policy_with_units_and_leaves_stderr_alone():
    result = call(
        *SMALL, "--policy", "static,continuous", "--max-num-seqs", 8, "--ttft-slo-ms", 500, "--num-gpu-blocks", 5_000
    )
    assert result.exit_code == 0
    rows = result.stdout.splitlines()
    assert any(row.split() == ["unit", "static", "continuous"] for row in rows)
    numbers = {tuple(row.split()[:2]): row.split()[2:] for row in rows}
    unit, *cells = numbers["TTFT", "p95"]
    found = simulated(*SMALL, "--policy", "static,continuous", "--max-num-seqs", 8, "--num-gpu-blocks", 5_000)
    scale = {"s": 1, "ms": 1_000}[unit]
    for cell, run in zip(cells, found["runs"], strict=True):
        # Printed with two digits or more.
        assert float(cell.replace(",", "")) == pytest.approx(scale * run["summary"]["ttft_p95"], rel=0.05)
    assert numbers["TPOT", "mean"][1] == "-"  # static does not stream
    assert "modelled" in result.stdout and "Goodput: TTFT at most 500 ms" in result.stdout
    assert "5,000 blocks of 16 tokens" in result.stdout
    assert "static answers when the whole batch is done" in result.stdout
    columns = {
        row.rindex(row.split()[-1]) + len(row.split()[-1]) for row in rows if row.startswith(("TTFT", "E2E", "steps"))
    }
    assert len(columns) == 1, "the last column is not aligned to the right"


def test_the_table_of_one_request_and_of_all_at_once(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2030-01-01 00:00:00,100,1")
    one = call("simulate", "--trace", path)
    assert one.exit_code == 0 and "1 requests, all at once" in one.stdout and "nan" not in one.stdout
    assert simulated("simulate", "--trace", path)["runs"][0]["summary"]["tpot_mean"] is None
    path.write_text(path.read_text() + "\n2030-01-01 00:00:00,100,5")
    both = call("simulate", "--trace", path)
    assert both.exit_code == 0 and "2 requests, all at once" in both.stdout and "nan" not in both.stdout


def test_json_is_alone_on_stdout_and_warnings_are_in_both_places():
    result = call(
        "simulate",
        "--rate",
        50,
        "--policy",
        "static",
        "--max-num-seqs",
        2,
        *["--unlimited-kv", "--block-size", "8", "--json"],
    )
    found = json.loads(result.stdout)
    assert found["warnings"] == ["--block-size has no effect: KV memory is unlimited"]
    assert "queue grew" in found["runs"][0]["warnings"][0]
    assert result.stderr.splitlines() == [
        f"warning: {found['warnings'][0]}",
        f"warning: static: {found['runs'][0]['warnings'][0]}",
    ]
    assert "NaN" not in result.stdout and "Infinity" not in result.stdout


def test_rows_left_out_are_reported_once(tmp_path, recwarn):
    path = tmp_path / "t.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2030-01-01 00:00:01,5,6\nx,5,6\n2030-01-01 00:00:00,5,6")
    refused = call("simulate", "--trace", path)
    assert refused.exit_code == 2 and "row 3" in refused.stderr and "--on-error skip" in refused.stderr
    refused = call("simulate", "--trace", path, "--on-error", "skip")
    assert refused.exit_code == 2 and "row 4" in refused.stderr and "with --sort" in refused.stderr
    result = call("simulate", "--trace", path, "--on-error", "skip", "--sort")
    assert result.exit_code == 0 and result.stderr.count("1 of 3 rows were left out") == 1
    assert not recwarn.list


@pytest.mark.parametrize(
    ("args", "warning"),
    [
        (["--max-queue-delay-ms", 5], "--max-queue-delay-ms has no effect: no policy of this run is dynamic"),
        (["--policy", "static", "--max-num-batched-tokens", 99], "--max-num-batched-tokens has no effect: no policy"),
        (
            ["--step-time", "power-law:t0=1e-3,c=1e-5", "--model", "llama-2-7b"],
            "--model has no effect: --step-time is not roofline, and no --gpu is given",
        ),
        (["--sort"], "--sort has no effect: there is no --trace"),
        (["--format", "csv"], "--format has no effect: there is no --trace"),
    ],
)
def test_an_option_without_effect_says_so(args, warning):
    result = call(*SMALL, *args)
    assert result.exit_code == 0 and warning in result.stderr


def test_an_error_of_our_own_is_not_dressed_up_as_bad_input(monkeypatch):
    def broken(*_):
        raise KeyError("a bug")

    monkeypatch.setattr("course.engine.serving.serve", broken)
    assert isinstance(call(*SMALL).exception, KeyError)


def test_interrupted_runs_end_with_130(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("course.engine.serving.serve", interrupted)
    result = call(*SMALL)
    assert result.exit_code == 130 and result.stdout == ""


def test_version_and_help():
    assert call("--version").stdout == f"course {version('llm-batching-course')}\n"
    for args in ([], ["-h"], ["--help"]):
        result = call(*args)
        assert result.exit_code == 0 and "simulate" in result.stdout
    text = call("simulate", "--help").stdout
    for option in ("--no-enable-chunked-prefill", "--no-scheduler-reserve-full-isl", "--long-prefill-token-threshold"):
        assert option in text  # in full, however long


def test_no_progress_bar_on_short_runs_or_without_a_terminal(monkeypatch, capsys):
    load, model = Workload.poisson(10, 50, 100, 20), steptime.Roofline("llama-3.1-8b", "H100")
    for terminal, long in ((True, 51), (False, 50)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        monkeypatch.setattr(progress_bar, "LONG", long)
        with progress_bar.progress_bar(model, load, "static") as clock:
            assert clock is model
    # Where nobody could see a bar move, a long run says once what it does.
    assert capsys.readouterr() == ("", "serving 50 requests, static ...\n")


@pytest.mark.parametrize(
    "policy", [policies.Static(8), policies.Dynamic(8, 0.01), policies.Continuous(8, 256)], ids=repr
)
def test_the_progress_bar_changes_no_number(monkeypatch, policy):
    load, model = Workload.poisson(10, 50, 100, 20), steptime.Roofline("llama-3.1-8b", "H100")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress_bar, "LONG", 50)
    with progress_bar.progress_bar(model, load, "a policy") as clock:
        assert clock is not model and clock.source == "modelled"
        watched = serve(load, policy, clock)
    assert watched.e2e.tolist() == serve(load, policy, model).e2e.tolist()


def test_progress_is_told_now_and_then_and_never_backwards():
    told = []
    load = Workload.poisson(100, 400, lengths.geometric(100), 5)
    total = int(load.prompt_tokens.sum())
    clock = progress_bar.WatchedStepTime(steptime.PowerLaw(1e-3, 1e-5, 1), total // 10, told.append)
    serve(load, policies.Continuous(16, 64), clock)
    assert told == sorted(told) and 5 <= len(told) <= 10 and told[-1] <= total


def test_as_a_process_the_table_goes_to_stdout_and_the_status_is_zero():
    done = subprocess.run([*COMMAND, *TRACE, "--max-num-seqs", "8"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "azure_style_conv: 200 requests" in done.stdout and "continuous" in done.stdout


def test_as_a_process_bad_input_has_status_two():
    done = subprocess.run([*COMMAND, "simulate", "--rate", "nan"], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name, which this system has not")
def test_as_a_process_ctrl_c_has_status_130(tmp_path):
    pipe = tmp_path / "endless.csv"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [*COMMAND, "simulate", "--trace", str(pipe)], stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    with pipe.open("w"):  # opens when the command reads from it, and it waits for more until we close
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (130, "course: stopped by Ctrl-C\n")


def test_memory_is_that_of_the_card_unless_said_otherwise(tmp_path):
    def kv(*args):
        return simulated("simulate", "--rate", 2, "--num-requests", 20, *args)

    one, two = kv("--gpu", "RTX 4090"), kv("--gpu", "RTX 4090", "--tp", 2)
    assert 2 < two["kv_cache"]["num_blocks"] / one["kv_cache"]["num_blocks"] < 7  # half the weights, half the heads
    assert two["step_time"]["model"].endswith("tp=2)")
    half = kv("--gpu", "RTX 4090", "--kv-cache-dtype", "fp8")["kv_cache"]["num_blocks"]
    assert half // 2 == pytest.approx(one["kv_cache"]["num_blocks"], abs=1)
    assert kv("--unlimited-kv")["kv_cache"] is None
    assert kv("--num-gpu-blocks-override", 700)["kv_cache"]["num_blocks"] == 700
    law = "power-law:t0=1e-3,c=1e-5"
    assert kv("--step-time", law)["kv_cache"] is None
    assert kv("--step-time", law, "--gpu", "RTX 4090")["kv_cache"] == one["kv_cache"]
    # Any config.json; layers with a window make room for more sequences.
    config = {"num_hidden_layers": 8, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4}
    config |= {"intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 8192, "model_type": "llama"}
    full, windowed = tmp_path / "full.json", tmp_path / "windowed.json"
    full.write_text(json.dumps(config))
    types = ["sliding_attention"] * 6 + ["full_attention"] * 2
    windowed.write_text(json.dumps(config | {"sliding_window": 64, "layer_types": types}))
    step = ("--max-num-batched-tokens", 128, "--prompt-tokens", 4000, "--gpu", "T4")
    many, more = (kv("--model", path, *step)["kv_cache"]["num_blocks"] for path in (full, windowed))
    assert more > 2 * many
