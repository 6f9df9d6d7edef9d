"""Command lines as people have them: scripts, variables, YAML of compose and Kubernetes, files for --config."""

import pytest
from typer.testing import CliRunner

from course.cli import app
from course.flags import parse

COMPOSE = """
x-common: &common
  restart: always
services:
  cache:
    image: redis:7
    command: ["redis-server", "--maxmemory", "1gb"]
  llm:
    <<: *common
    image: vllm/vllm-openai:v0.19.0
    environment:
      - SLOTS=48
    command: >
      --model my/model --max-num-seqs ${SLOTS} --max-num-batched-tokens ${BUDGET:-4096}
      --gpu-memory-utilization 0.8
"""
KUBERNETES = """
apiVersion: v1
kind: Service
metadata: {name: llm}
---
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      initContainers:
        - {name: fetch, image: busybox, command: ["sh", "-c", "echo fetch"]}
      containers:
        - name: server
          image: vllm/vllm-openai:latest
          args: ["--model=$(MODEL)", "--max-num-seqs=24", "--max-num-batched-tokens=2k", "-tp", "2"]
          env:
            - {name: MODEL, value: my/model}
            - name: TOKEN
              valueFrom: {secretKeyRef: {name: s, key: k}}
"""
SHELL = """
kind: Pod
spec:
  containers:
  - name: a
    image: nvcr.io/any
    command: [/bin/bash, -c]
    args:
    - |
      set -e
      export MAX=24
      # vllm serve wrong --max-num-seqs 1
      exec vllm serve my/model \\
        --max-num-seqs $MAX --max-num-batched-tokens 2000
"""


@pytest.mark.parametrize("form", ["text", "file"])
def test_a_file_of_compose(form, tmp_path):
    given = COMPOSE
    if form == "file":
        (tmp_path / "docker-compose.yml").write_text(COMPOSE)
        given = str(tmp_path / "docker-compose.yml")
    found = parse(given, "H100")
    assert (found.model, found.policy.max_num_seqs, found.policy.max_num_batched_tokens) == ("my/model", 48, 4096)
    assert found.kv.gpu_memory_utilization == 0.8 and found.notes[0] == "read from llm of the YAML"
    assert "BUDGET is a variable without a value: its default counts, '4096'" in found.notes


def test_a_manifest_of_kubernetes():
    found = parse(KUBERNETES)
    assert (found.model, found.policy.max_num_seqs, found.policy.max_num_batched_tokens) == ("my/model", 24, 2000)
    assert found.kv.tensor_parallel_size == 2
    script = parse(SHELL)
    assert (script.model, script.policy.max_num_seqs) == ("my/model", 24)


def test_lists_of_yaml_and_files_for_config(tmp_path):
    for text in ("- --model=my/model\n- --max-num-seqs=12", "args:\n  - --model=my/model\n  - --max-num-seqs=12\n",
                 'command: ["vllm", "serve", "my/model"]\nargs: ["--max-num-seqs", "12"]'):  # fmt: skip
        found = parse(text)
        assert (found.model, found.policy.max_num_seqs) == ("my/model", 12), text
    options = tmp_path / "serve.yaml"
    options.write_text(
        "model: my/model\nmax_num_seqs: 12\nmax-num-batched-tokens: 3000\nno-enable-prefix-caching: true\n"
    )
    found = parse(f"vllm serve --config {options} --max-num-seqs 16")
    assert (found.model, found.policy.max_num_seqs, found.policy.max_num_batched_tokens) == ("my/model", 16, 3000)
    assert not found.kv.enable_prefix_caching and not any("twice" in note for note in found.notes)
    assert "4 options come from serve.yaml; those of the command line count before them" in found.notes
    assert parse(str(options)).policy.max_num_seqs == 12
    assert any("which is not here" in note for note in parse("vllm serve m --config /none.yaml").notes)


def test_scripts_and_their_variables():
    script = """#!/bin/bash
    # usage: vllm serve any --max-num-seqs 1
    MODEL=${NAME:-"my/model"}
    export SLOTS=32; LIMIT='--max-model-len 4k'
    python -m vllm.entrypoints.openai.api_server --model $MODEL
        --max-num-seqs ${SLOTS} $LIMIT $EXTRA
    echo done
    """
    found = parse(script)
    assert (found.model, found.policy.max_num_seqs, found.kv.max_model_len) == ("my/model", 32, 4000)
    assert "$EXTRA is a shell variable without a value, and what it stands for is not read" in found.notes
    found = parse("vllm serve --model m --max-num-seqs 8 ${CACHE:---no-enable-prefix-caching}")
    assert not found.kv.enable_prefix_caching
    assert parse("docker run -e A=1 vllm/vllm-openai --model m --max-num-seqs 9").policy.max_num_seqs == 9


def test_arrays_of_a_script():
    script = """ARGS=(
  --max-num-seqs 12  # slots
  --max-model-len "4096"
)
ARGS+=(--no-enable-prefix-caching)
vllm serve m "${ARGS[@]}"
"""
    found = parse(script)
    assert (found.model, found.policy.max_num_seqs, found.kv.max_model_len) == ("m", 12, 4096)
    assert not found.kv.enable_prefix_caching
    with pytest.raises(ValueError, match="MORE is an array that the text does not set"):
        parse('vllm serve m "${MORE[@]}"')


def test_values_of_variables_are_given_beside_the_text():
    script = "SLOTS=32\nvllm serve $MODEL --max-num-seqs ${SLOTS:-8} ${CACHE:+--no-enable-prefix-caching}\n"
    found = parse(script, env={"MODEL": "my/model", "SLOTS": "4", "CACHE": "1"})
    assert (found.model, found.policy.max_num_seqs) == ("my/model", 4)  # before what the script sets
    assert not found.kv.enable_prefix_caching and not any("variable" in note for note in found.notes)
    sglang = parse("python -m sglang.launch_server --model-path $MODEL", env={"MODEL": "a/b"})
    assert sglang.model == "a/b"
    with pytest.raises(ValueError, match=r"no variable is called MODE; the variables of this text: \$MODEL"):
        parse("vllm serve $MODEL", env={"MODE": "a/b"})
    with pytest.raises(ValueError, match="'1A' is no name of a variable"):
        parse("vllm serve $MODEL", env={"1A": "a/b"})


def test_a_manifest_of_kserve_without_options_says_which_key_has_them():
    manifest = """apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: llama}
spec:
  predictor:
    model:
      modelFormat: {name: huggingface}
      storageUri: hf://my/model
"""
    with pytest.raises(ValueError, match=r"spec\.predictor\.model\.args.*spec\.predictor\.containers"):
        parse(manifest)
    given = manifest + "      args: [--model=my/model, --max-num-seqs=12]\n"
    assert parse(given).policy.max_num_seqs == 12


def test_parts_of_a_json_option_by_short_names():
    found = parse("vllm serve m -cc.mode=3 -ac.backend FLASH_ATTN -cc.cudagraph_mode=NONE --max-num-seqs 7")
    assert found.policy.max_num_seqs == 7 and {"--compilation-config", "--attention-config"} <= set(found.left_out)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("vllm serve m --max-num-seqs $N", r"--max-num-seqs is '\$N': \$N is a variable without a value"),
        ("vllm serve m --enforce-eager=${a.b}", "a variable without a value: write its value instead"),
        ("vllm serve m --max-model-len <n> --x", "needs a value"),
        ("#!/bin/sh\n# vllm serve m\necho hi\n", "no line of this script starts a server of vLLM"),
        ("services:\n  a: {image: x, command: [ls, -l]}\n", "names no container that runs vLLM.* Its services are a"),
        ("services:\n  a: [\n", "looks like YAML and cannot be read, line"),
        ("image: {{ .Values.image }}\nargs: []\n", "a template of Helm"),
        ("- '--max-num-seqs 8'", "'--max-num-seqs 8' is one word: an option and its value are two items"),
        ("missing.yaml", "there is no file 'missing.yaml'"),
        ("vllm serve m --disable-log-requests", "older versions had it .* --ignore-unknown leaves it out"),
        ("vllm serve m --no-such-option", "has no option '--no-such-option'.*--ignore-unknown leaves it out"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(text, why):
    with pytest.raises(ValueError, match=why) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_several_engines_in_a_file_are_chosen_by_name():
    two = COMPOSE + "  other:\n    image: vllm/vllm-openai\n    command: [--model, b, --max-num-seqs, '5']\n"
    with pytest.raises(
        ValueError, match="2 services of this YAML run an engine, llm, other: choose one with --service"
    ):
        parse(two)
    assert parse(two, service="other").policy.max_num_seqs == 5
    with pytest.raises(ValueError, match="no service is called 'x'; there are cache, llm, other"):
        parse(two, service="x")
    ran = CliRunner().invoke(app, ["flags", "--from", two, "--service", "other", "--engine", "vllm"])
    assert ran.exit_code == 0 and "Model: b" in ran.stdout


@pytest.mark.parametrize(
    "option",
    ["--disable-hybrid-kv-cache-manager", "-dcp 2", "-pcp 4", "-q fp8", "--dtype float32", "--mamba-cache-mode align",
     "--mamba-ssm-cache-dtype float32", "--enable-expert-parallel", "--disable-sliding-window"],
)  # fmt: skip
def test_what_changes_memory_is_not_called_harmless(option):
    found = parse(f"vllm serve m {option}")
    assert not found.left_out and len(found.notes) == 1
    assert "KV" in found.notes[0]


@pytest.mark.parametrize(
    "option", ["-dcp 1", "--dtype bfloat16", "--mamba-cache-mode none", "-pp 1", "--no-enable-eplb"]
)
def test_what_changes_nothing_as_it_is_given_is(option):
    found = parse(f"vllm serve m {option}")
    assert len(found.left_out) == 1 and not found.notes
