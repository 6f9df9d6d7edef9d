"""`course flags`: both directions, as text and as JSON, and one sentence for bad input."""

import json

import pytest
from typer.testing import CliRunner

from course import flags, policies
from course.cli import app
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION


def course(*arguments):
    return CliRunner().invoke(app, ["flags", *map(str, arguments)])


def test_a_policy_for_three_engines():
    ran = course("--max-num-seqs", 128, "--max-num-batched-tokens", 4096, "--model", "my/model")
    assert ran.exit_code == 0
    for heading in ("vLLM 0.19", "SGLang 0.5.9", "TensorRT-LLM 1.2 (PyTorch backend)"):
        assert heading in ran.stdout.splitlines()
    assert "  vllm serve my/model \\\n    --max-num-seqs 128 \\\n    --max-num-batched-tokens 4096" in ran.stdout
    assert "  --max-num-seqs 128             slots: the most sequences in a step" in ran.stdout.splitlines()
    assert all(line.startswith("warning: ") for line in ran.stderr.splitlines())
    assert any("SGLang has no scheduler_reserve_full_isl" in line for line in ran.stderr.splitlines())


def test_one_engine_and_dynamic_batching():
    ran = course("--policy", "dynamic", "--max-queue-delay-ms", 50, "--engine", "vllm,TensorRT-LLM")
    assert ran.exit_code == 0 and "SGLang" not in ran.stdout + ran.stderr
    assert "    batch_wait_timeout_ms: 50" in ran.stdout
    assert "warning: vLLM: vLLM has no max_queue_delay: no request waits for others" in ran.stderr


def test_a_command_line_back_to_a_policy():
    line = "vllm serve my/model --max-num-seqs 64 --max-num-batched-tokens 8k --enforce-eager --max-num-seqs 32"
    ran = course("--from", line, "--gpu", "H100", "--engine", "vllm")
    lines = ran.stdout.splitlines()
    assert lines[0] == "Policy: Continuous(max_num_seqs=32, max_num_batched_tokens=8000)"
    assert "Model: my/model" in lines and "  enable_chunked_prefill: on by default in vLLM 0.19" in lines
    assert "  changes neither batching nor KV memory here: --enforce-eager" in lines
    assert "note: --max-num-seqs is given twice: the last one counts, '32'" in ran.stderr


def test_json_says_the_same():
    ran = course("--from", "vllm serve m -tp 2 --kv-cache-dtype fp8", "--gpu", "L40S", "--json")
    found = json.loads(ran.stdout)
    assert found["policy"] == {
        "name": "Continuous", "max_num_seqs": 256, "max_num_batched_tokens": 2048, "enable_chunked_prefill": True,
        "long_prefill_token_threshold": 0, "scheduler_reserve_full_isl": True, "engine_version": DEFAULT_ENGINE_VERSION,
        "watermark": 0.0,
    }  # fmt: skip
    assert found["kv"]["tensor_parallel_size"] == 2 and found["parsed"]["model"] == "m"
    assert "L40S" in found["parsed"]["defaults"]["max_num_seqs"]
    (export, *_) = flags.for_policy(policies.Continuous(256, 2048), flags.KVSettings(**found["kv"]), model="m")
    assert found["engines"][0]["command"] == export.command
    assert json.loads(course("--json").stdout)["parsed"] is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--policy", "magic"), "no policy is called 'magic'; there are continuous, bucket"),
        (("--engine", "vlm"), "no engine is called 'vlm'"),
        (("--max-num-seqs", 0), "--max-num-seqs must be"),
        (("--max-num-seqs", 4096), "smaller than one decode"),
        (("--block-size", 0), "--block-size must be"),
        (("--gpu-memory-utilization", 7), "--gpu-memory-utilization must be"),
        (("--kv-cache-dtype", "int1"), "--kv-cache-dtype is one of"),
        (("--policy", "dynamic", "--max-queue-delay-ms", -1), "max_queue_delay must be|--max-queue-delay"),
        (("--model", "--x"), ""),
        (("--gpu", "H100"), "--gpu needs --from"),
        (("--ignore-unknown",), "--ignore-unknown needs --from"),
        (("--from", "vllm serve m", "--max-num-seqs", 3), "leave out --max-num-seqs, or --from"),
        (("--from", "vllm serve m --swap-space 4"), "vLLM 0.19 has no option '--swap-space'"),
        (("--from", "vllm serve m", "--gpu", "H1"), "no GPU is called"),
        (("--from", ""), "this is nothing"),
    ],
    ids=range(15),
)
def test_refusals_in_one_sentence(arguments, why):
    ran = course(*arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert any(part in ran.stderr for part in why.split("|")) and len(ran.stderr.splitlines()) == 1


def test_names_that_no_terminal_should_print():
    ran = course("--from", "vllm serve 'a\x1b[31m\nb' --max-num-seqs 4")
    assert ran.exit_code == 0 and "\x1b" not in ran.stdout and "\\x1b[31m" in ran.stdout


def test_values_of_variables_in_a_command_line():
    line = "vllm serve $MODEL --max-num-seqs $N"
    run = CliRunner().invoke(app, ["flags", "--from", line, "--env", "MODEL=a/b", "--env", "N=7"])
    assert run.exit_code == 0 and "max_num_seqs=7" in run.stdout and "Model: a/b" in run.stdout
    for options, why in (
        (["--from", line, "--env", "N"], "--env takes NAME=VALUE, not 'N'"),
        (["--from", line, "--env", "N=7", "--env", "P=1"], "no variable is called P"),
        (["--env", "N=7"], "--env needs --from"),
        (["--from", line], "give it with --env"),
    ):
        run = CliRunner().invoke(app, ["flags", *options])
        assert run.exit_code != 0 and why in f"{run.stderr}{run.exception}", options
