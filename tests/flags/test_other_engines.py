"""Command lines of SGLang and TensorRT-LLM as policies, and prefill first as settings of each engine."""

import pytest

from course import flags, policies
from course.flags import parse


def test_sglang_has_prompts_first():
    line = (
        "python3 -m sglang.launch_server --model-path m --tp 4 --context-length 8192 --mem-fraction-static 0.85 "
        "--max-running-requests 64 --chunked-prefill-size 4096 --trust-remote-code --port 30000"
    )
    found = parse(line, "H100")
    assert isinstance(found.policy, policies.PrefillFirst) and found.engine == "SGLang 0.5.9" and found.model == "m"
    assert (found.policy.max_num_seqs, found.policy.max_num_batched_tokens) == (64, 4096)
    assert found.kv.tensor_parallel_size == 4 and found.kv.max_model_len == 8192 and found.kv.block_size == 1
    assert found.left_out == ("--trust-remote-code", "--port")
    assert any("has no equal in gpu_memory_utilization" in note for note in found.notes)


def test_sglang_mixed_chunks_and_other_spellings():
    line = (
        "sglang serve --model=m --tensor-parallel-size=2 --enable-mixed-chunk --disable-radix-cache "
        "--max_total_tokens 64000 --page-size 64 --kv-cache-dtype fp8_e5m2 --chunked-prefill-size -1"
    )
    found = parse(line)
    assert type(found.policy) is policies.Continuous and not found.policy.enable_chunked_prefill
    assert found.policy.max_num_batched_tokens == 16_384  # --max-prefill-tokens bounds a step without chunks
    assert found.kv == flags.KVSettings(
        kv_cache_dtype="fp8_e5m2",
        block_size=64,
        tensor_parallel_size=2,
        num_gpu_blocks_override=1000,
        enable_prefix_caching=False,
    )


CHUNKS = {"T4": 2048, "RTX 4090": 2048, "L40S": 4096, "A100": 8192, "H100": 8192, "H200": 8192, "B200": 16_384}


@pytest.mark.parametrize(("card", "chunk"), [*CHUNKS.items(), (None, 8192)])
def test_sglang_chunks_by_card(card, chunk):
    found = parse("python -m sglang.launch_server --model-path m", card)
    assert found.policy.max_num_batched_tokens == chunk and found.policy.max_num_seqs == min(2048, chunk)
    assert "chunked-prefill-size" in found.defaults["max_num_batched_tokens"]


@pytest.mark.parametrize(("options", "slots"), [("", 2_048), (" --chunked-prefill-size 1024", 1_024)])
def test_sglangs_own_slots_are_not_above_the_chunk(options, slots):
    found = parse(f"python -m sglang.launch_server --model-path m{options}")
    assert found.policy.max_num_seqs == slots and found.policy.max_num_batched_tokens >= slots


def test_sglang_notes():
    found = parse("python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE --dp-size 2 "
                  "--schedule-policy lpm --max-running-requests 512 --chunked-prefill-size 256 $ARGS")  # fmt: skip
    said = " ".join(found.notes)
    for part in ("--speculative-algorithm is not modelled", "--dp-size is not modelled", "--schedule-policy is not",
                 "512 slots are lowered to the chunk of 256", "$ARGS is a shell variable"):  # fmt: skip
        assert part in said, part
    with pytest.raises(ValueError, match="--kv-cache-dtype of SGLang is one of"):
        parse("sglang serve --model-path m --kv-cache-dtype int3")
    with pytest.raises(ValueError, match="is a variable without a value"):
        parse("sglang serve --model-path m --tp $TP")


def test_tensorrt_llm_with_its_file(tmp_path):
    file = tmp_path / "extra.yaml"
    file.write_text("enable_chunked_prefill: true\nscheduler_config:\n  capacity_scheduler_policy: MAX_UTILIZATION\n"
                    "kv_cache_config:\n  tokens_per_block: 64\n  max_tokens: 6400\n  enable_block_reuse: false\n"
                    "  free_gpu_memory_fraction: 0.8\nspeculative_config: {decoding_type: MTP}\n")  # fmt: skip
    found = parse(
        f"trtllm-serve m --max_batch_size 32 --max-num-tokens 1024 --tp_size 2 --extra_llm_api_options {file}"
    )
    assert found.engine.startswith("TensorRT-LLM 1.2") and found.model == "m"
    assert found.policy.max_num_seqs == 32 and found.policy.max_num_batched_tokens == 1024
    assert found.policy.enable_chunked_prefill and found.kv.num_gpu_blocks_override == 100
    assert found.kv.block_size == 64 and not found.kv.enable_prefix_caching and found.kv.tensor_parallel_size == 2
    said = " ".join(found.notes)
    assert "capacity_scheduler_policy" not in said and "speculative_config is not modelled" in said
    assert "free_gpu_memory_fraction 0.8 is the share of what is free" in said


def test_tensorrt_llm_defaults():
    found = parse("mpirun -n 2 trtllm-serve serve m --config /nowhere.yaml")
    assert (found.policy.max_num_seqs, found.policy.max_num_batched_tokens) == (2048, 8192)
    assert not found.policy.enable_chunked_prefill and found.kv.block_size == 32
    assert any("GUARANTEED_NO_EVICT admits only what fits to its end" in note for note in found.notes)
    assert any("which is not here" in note for note in found.notes)


def test_prefill_first_as_settings():
    vllm, sglang, trt = flags.for_policy(policies.PrefillFirst(32, 4096), model="m")
    assert any("vLLM cannot run prompts first" in warning for warning in vllm.warnings)
    assert any("cannot run prompts first" in warning for warning in trt.warnings)
    assert "--enable-mixed-chunk" not in sglang.command and "--chunked-prefill-size 4096" in sglang.command
    back = parse(sglang.command)
    assert vars(back.policy) == vars(policies.PrefillFirst(32, 4096)) and back.kv.block_size == 16


def test_sglang_with_a_file(tmp_path):
    """Keys are options with dashes or underscores; the command line counts before them (SGLang's server arguments)."""
    file = tmp_path / "s.yaml"
    file.write_text("model-path: m\nmax_running_requests: 48\nchunked-prefill-size: 4096\nenable-mixed-chunk: true\n"
                    "disable-radix-cache: false\ntp: 2\n")  # fmt: skip
    found = parse(f"python -m sglang.launch_server --config {file} --chunked-prefill-size 1024", "H100")
    assert repr(found.policy) == repr(policies.Continuous(48, 1_024)) and found.model == "m"
    assert found.kv.tensor_parallel_size == 2 and found.kv.enable_prefix_caching is True
    assert "--config" not in found.left_out and any("6 options come from" in note for note in found.notes)
    file.write_text("enable-mixed-chunk: false\n")
    alone = parse(f"sglang serve --model-path m --config {file} --max-running-requests 8", "H100")
    assert isinstance(alone.policy, policies.PrefillFirst) and alone.policy.max_num_seqs == 8


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("vllm serve m", "max-num-seqs: 64"),
        ("python -m sglang.launch_server --model m", "max-running-requests: 64"),
        ("trtllm-serve m", "enable_chunked_prefill: true"),
    ],
)
def test_a_file_that_cannot_be_read_is_said_by_every_engine(tmp_path, line, key):
    for text, said in (("[1, 2", "broken.yaml is not YAML"), ("- a\n- b\n", f"keys and values, as in {key}")):
        (tmp_path / "broken.yaml").write_text(text)
        with pytest.raises(ValueError, match=said):
            parse(f"{line} --config {tmp_path / 'broken.yaml'}")
    assert any("which is not here" in note for note in parse(f"{line} --config {tmp_path / 'none.yaml'}").notes)
