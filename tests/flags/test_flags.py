"""Policies as engine settings and back: identity through vLLM's options, facts of vLLM 0.19, refusals in a sentence."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import flags, policies
from course.flags import KVSettings, command_line, for_policy, parse
from course.models import engine_defaults, gpus
from tests.helpers.strategies import examples

CONTINUOUS = policies.Continuous(64, 2048)


@st.composite
def continuous(draw):
    seqs = draw(st.integers(1, 5000))
    chunked = draw(st.booleans())
    return policies.Continuous(
        seqs,
        draw(st.integers(seqs, 300_000)),
        chunked,
        draw(st.integers(0, 100_000)) if chunked else 0,
        draw(st.booleans()),
    )


KV = st.builds(
    KVSettings,
    gpu_memory_utilization=st.floats(0.01, 1.0),
    kv_cache_dtype=st.sampled_from(["auto", "bfloat16", "fp8", "fp8_e5m2"]),
    block_size=st.sampled_from([1, 8, 16, 32, 128]),
    max_model_len=st.none(),
    tensor_parallel_size=st.integers(1, 64),
    num_gpu_blocks_override=st.none() | st.integers(1, 10**6),
    kv_cache_memory_bytes=st.none() | st.integers(1, 10**14),
    enable_prefix_caching=st.booleans(),
)
NAMES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=20).filter(
    lambda name: name.strip() and not name.startswith("-") and "=" not in name
)


# There and back


@given(policy=continuous(), kv=KV, name=NAMES)
@examples(60)
def test_a_policy_through_vllm_options_is_itself(policy, kv, name):
    (export,) = for_policy(policy, kv, model=name, engines=["vllm"])
    back = parse(export.command)
    assert vars(back.policy) | {"engine_version": policy.engine_version} == vars(policy)  # no option says the release
    assert back.kv == kv
    assert back.model == name
    assert back.left_out == () and not any("twice" in note for note in back.notes)


@given(policy=continuous(), length=st.integers(1, 10**6))
@examples(30)
def test_lengths_too(policy, length):
    kv = KVSettings(max_model_len=length)
    (export,) = for_policy(policy, kv, engines=["vllm"])
    if not policy.enable_chunked_prefill and policy.max_num_batched_tokens < length:
        with pytest.raises(ValueError, match="vLLM refuses --no-enable-chunked-prefill"):
            parse(export.command)
    else:
        assert (vars(parse(export.command).policy), parse(export.command).kv) == (vars(policy), kv)


# Settings of the engines


def settings(policy, kv=None, engine="vllm"):
    (export,) = for_policy(policy, kv, engines=[engine])
    return {setting.name: setting.value for setting in export.settings}, export


def test_vllm():
    found, export = settings(policies.Continuous(8, 512, True, 100, False), KVSettings(kv_cache_dtype="fp8"))
    assert found == {
        "--max-num-seqs": "8", "--max-num-batched-tokens": "512", "--enable-chunked-prefill": None,
        "--long-prefill-token-threshold": "100", "--no-scheduler-reserve-full-isl": None, "--kv-cache-dtype": "fp8",
    }  # fmt: skip
    assert export.version == "vLLM 0.19" and export.command.startswith("vllm serve MODEL \\\n  --max-num-seqs 8")
    off, export = settings(policies.Continuous(8, 512, enable_chunked_prefill=False))
    assert "--no-enable-chunked-prefill" in off and "refuses to start unless" in export.warnings[0]


def test_sglang():
    found, export = settings(CONTINUOUS, KVSettings(num_gpu_blocks_override=2588, tensor_parallel_size=2), "sglang")
    assert found == {
        "--max-running-requests": "64", "--chunked-prefill-size": "2048", "--enable-mixed-chunk": None,
        "--schedule-policy": "fcfs", "--page-size": "16", "--max-total-tokens": "41408", "--tp-size": "2",
    }  # fmt: skip
    assert export.version == "SGLang 0.5.9"
    # SGLang stops at start where the chunk is no multiple of the page.
    found, export = settings(policies.Continuous(10, 1000), None, "sglang")
    assert found["--chunked-prefill-size"] == "992" and any("992 tokens instead of 1,000" in w for w in export.warnings)
    found, _ = settings(policies.Continuous(10, 1000, enable_chunked_prefill=False), None, "sglang")
    assert found["--chunked-prefill-size"] == "-1" and found["--max-prefill-tokens"] == "1000"
    found, export = settings(policies.Continuous(10, 100_000, long_prefill_token_threshold=9), None, "sglang")
    assert found["--max-prefill-tokens"] == "100000"  # 16,384 by default, and it limits a chunk too
    assert any("no long_prefill_token_threshold" in warning for warning in export.warnings)


def test_tensorrt_llm():
    kv = KVSettings(num_gpu_blocks_override=100, kv_cache_dtype="fp8", max_model_len=4096, enable_prefix_caching=False)
    found, export = settings(CONTINUOUS, kv, "tensorrt-llm")
    assert found["--max_batch_size"] == "64" and found["--max_num_tokens"] == "2048"
    assert found["--enable_chunked_prefill"] is None and found["--max_seq_len"] == "4096"
    assert export.file == (
        "scheduler_config:\n  capacity_scheduler_policy: MAX_UTILIZATION\n"
        "kv_cache_config:\n  tokens_per_block: 16\n  max_tokens: 1600\n  dtype: fp8\n  enable_block_reuse: false\n"
    )
    assert "--config config.yaml" in export.command and "capacity" not in export.command
    assert "--enable_chunked_prefill" not in settings(policies.Continuous(4, 99, False), None, "tensorrt-llm")[0]


@pytest.mark.parametrize("engine", flags.ENGINES)
@pytest.mark.parametrize("policy", [policies.Static(8), policies.Dynamic(8, 0.1)], ids=["static", "dynamic"])
def test_request_level_batching_is_not_to_be_had(engine, policy):
    found, export = settings(policy, None, engine)
    assert "8" in found.values() and "--max-num-batched-tokens" not in found
    said = " ".join(export.warnings)
    if engine == "tensorrt-llm":
        assert found.get("batch_wait_timeout_ms") == ("100" if isinstance(policy, policies.Dynamic) else None)
        assert "legacy" in said or "only the wait" in said
    else:
        assert f"no {'dynamic' if isinstance(policy, policies.Dynamic) else 'static'} batching" in said


@given(policy=continuous(), kv=KV)
@examples(30)
def test_every_setting_has_a_reason_and_every_export_warns_of_prefix_caching(policy, kv):
    for export in for_policy(policy, kv):
        assert all(setting.why and "\n" not in setting.why for setting in export.settings)
        assert len({setting.name for setting in export.settings}) == len(export.settings)
        assert any("prefix caching" in w for w in export.warnings) == kv.enable_prefix_caching
        shlex.split(export.command)


def test_what_no_setting_can_say():
    class Mine(policies.Continuous):
        pass

    with pytest.raises(ValueError, match="cannot be written as settings of an engine"):
        for_policy(Mine(4, 100))
    with pytest.raises(ValueError, match="no engine is called 'vlm'; there are vllm, sglang, tensorrt-llm"):
        for_policy(CONTINUOUS, engines=["vlm"])
    for name in ("", "  ", "--model", 3):
        with pytest.raises(ValueError, match="a model's name must not start with a dash"):
            for_policy(CONTINUOUS, model=name)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"gpu_memory_utilization": 0}, "gpu_memory_utilization must be"),
        ({"gpu_memory_utilization": 1.1}, "gpu_memory_utilization must be"),
        ({"kv_cache_dtype": "int4"}, "kv_cache_dtype is one of auto"),
        ({"block_size": 0}, "block_size must be"),
        ({"tensor_parallel_size": 2.5}, "tensor_parallel_size must be"),
        ({"max_model_len": -1}, "max_model_len must be"),
        ({"enable_prefix_caching": "yes"}, "enable_prefix_caching must be True or False"),
    ],
)
def test_kv_settings_that_vllm_refuses(options, why):
    with pytest.raises(ValueError, match=why):
        KVSettings(**options)


# Reading command lines


def test_every_way_of_writing_an_option():
    for line in (
        "vllm serve m --max-num-seqs 64 --max-num-batched-tokens 512",
        "vllm serve m --max-num-seqs=64 --max-num-batched-tokens=512",
        "vllm serve m --max_num_seqs 64 --max_num_batched_tokens=512",
        "vllm serve --max-num-seqs 64 m --max-num-batched 512",
        "/opt/bin/vllm serve m \\\n  --max-num-seqs '64' \\\r\n  --max-num-batched-tokens \"512\"",
        "X=1 CUDA_VISIBLE_DEVICES=0,1 vllm serve m --max-num-seqs 64 --max-num-batched-tokens 512 2>&1 | tee x",
        "python3 -m vllm.entrypoints.openai.api_server --model m --max-num-seqs 64 --max-num-batched-tokens 512",
        "docker run --gpus all vllm/vllm-openai:v0.19.0 --model=m --max-num-seqs 64 --max-num-batched-tokens 512",
        "--model m --max-num-seqs 64 --max-num-batched-tokens 512 # a remark",
        "vllm serve m -O3 --max-num-seqs 64 --max-num-batched-tokens 512 &",
        "vllm serve -O3 m --max-num-seqs 64 --max-num-batched-tokens 512;echo done",
    ):
        found = parse(line)
        assert (found.model, found.policy.max_num_seqs, found.policy.max_num_batched_tokens) == ("m", 64, 512), line


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # 1k is a thousand and 1K is 1,024, decimals only before small letters: vLLM's human_readable_int
        ("8k", 8_000), ("8K", 8_192), ("25.6k", 25_600), ("1m", 10**6), ("1M", 2**20), ("2048", 2048), ("0.5k", 500),
        (" 2048 ", 2048), ("2_048", 2048),
    ],
)  # fmt: skip
def test_human_readable_numbers(text, tokens):
    found = parse(f"vllm serve m --max-num-seqs 4 --max-num-batched-tokens '{text}' --max-model-len '{text}'")
    assert found.policy.max_num_batched_tokens == tokens and found.kv.max_model_len == tokens


def test_flags_and_what_counts_where_one_is_given_twice():
    found = parse("vllm serve m --enable-chunked-prefill --no-enable-chunked-prefill --max-model-len 1k")
    assert not found.policy.enable_chunked_prefill
    assert found.notes == ("--enable-chunked-prefill is given twice: the last one counts, --no-enable-chunked-prefill",)
    found = parse("vllm serve m --max-num-seqs 4 --max_num_seqs=8 -tp 2 --tensor-parallel-size=4")
    assert (found.policy.max_num_seqs, found.kv.tensor_parallel_size) == (8, 4)
    assert len(found.notes) == 2
    assert parse("vllm serve m --max-num-seqs 4 --max-num-seqs 4").notes == ()  # nothing to say
    found = parse("vllm serve m --max-num-seq 4 2>&1 | tee log")  # an unambiguous beginning, which argparse takes
    assert found.policy.max_num_seqs == 4 and found.notes == (
        "what follows '2>&1' does not belong to vLLM's command, and is left out",
    )


def test_defaults_of_vllm_0_19():
    found = parse("vllm serve m")
    assert (found.policy.max_num_seqs, found.policy.max_num_batched_tokens) == (256, 2048)
    assert found.policy.enable_chunked_prefill and found.policy.scheduler_reserve_full_isl
    assert found.kv == KVSettings() and found.kv.gpu_memory_utilization == 0.9 and found.kv.block_size == 16
    assert len(found.defaults) == 5 and all("vLLM 0.19" in why for why in found.defaults.values())
    large = parse("vllm serve m", "H100").policy
    assert (large.max_num_seqs, large.max_num_batched_tokens) == (1024, 8192)
    assert parse("vllm serve m", "A100").policy.max_num_seqs == 256  # 80 GB, and left out by name
    double = parse("vllm serve m --performance-mode throughput", gpus.gpu("H100"))
    assert (double.policy.max_num_seqs, double.policy.max_num_batched_tokens) == (2048, 16384)
    assert "doubled for throughput" in double.defaults["max_num_seqs"]
    # The slots that nobody asked for are lowered to the budget; the budget nobody asked for to what can come together.
    assert parse("vllm serve m --max-num-batched-tokens 100").policy.max_num_seqs == 100
    assert parse("vllm serve m --max-num-seqs 2 --max-model-len 500").policy.max_num_batched_tokens == 1000
    # Without chunks a prompt of the greatest length must fit.
    whole = parse("vllm serve m --no-enable-chunked-prefill --max-model-len 9000")
    assert whole.policy.max_num_batched_tokens == 9000
    assert whole.defaults["max_num_batched_tokens"] == "max_model_len, since prompts are not split"
    assert parse("vllm serve m --max-model-len auto").kv.max_model_len is None
    assert parse("vllm serve m --max-model-len -1").kv.max_model_len is None


def test_large_cards():
    assert engine_defaults.is_large(gpus.gpu("H200")) and engine_defaults.is_large(gpus.gpu("MI300X"))
    assert not any(map(engine_defaults.is_large, (gpus.gpu("A100"), gpus.gpu("L40S"), gpus.gpu("RTX 4090"), None)))


def test_what_is_left_out_is_named():
    found = parse(
        "vllm serve m --enforce-eager --served-model-name a b --port 80 --trust-remote-code --no-async-scheduling "
        "--scheduling-policy priority --pipeline-parallel-size 2 -dp 1 --compilation-config.mode 3 --enable-lora"
    )
    assert set(found.left_out) == {
        "--enforce-eager", "--served-model-name", "--port", "--trust-remote-code", "--async-scheduling",
        "--data-parallel-size", "--compilation-config",
    }  # fmt: skip
    said = " ".join(found.notes)
    for option in (
        "--scheduling-policy is not modelled",
        "--pipeline-parallel-size is not part",
        "--enable-lora is not",
    ):
        assert option in said
    assert parse("vllm serve m --scheduling-policy fcfs").notes == ()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "starts with `vllm serve MODEL`, or with an option; this is nothing"),
        ("ls -la", "this is 'ls -la'"),
        ("vllm bench serve --model m", "`vllm bench` does not start a server"),
        ("vllm serve m n", "'n' belongs to no option, and the model is 'm' already"),
        ("vllm serve m --model n", "two models are named, 'm' and 'n'"),
        ("vllm serve 'm", "is a quote missing"),
        ("vllm serve m --maxnum-seqs 4", "no option '--maxnum-seqs'; did you mean --max-num-seqs"),
        ("vllm serve m --swap-space 4", "vLLM 0.19 has no option '--swap-space'"),
        ("vllm serve m -x", "no option '-x'"),
        ("vllm serve m --", "no option '--'"),
        ("vllm serve m --max 4", "may be --max-cpu-loras, .* write it out"),
        ("vllm serve m --max-num-seqs", "--max-num-seqs needs a value"),
        ("vllm serve m --max-num-seqs --enforce-eager", "--max-num-seqs needs a value"),
        ("vllm serve m --max-num-seqs many", "--max-num-seqs must be a whole number, not 'many'"),
        ("vllm serve m --max-num-seqs 8k", "vLLM reads 8k only for"),
        ("vllm serve m --max-num-seqs 0", "max_num_seqs must be a whole number"),
        ("vllm serve m --max-num-seqs -4", "max_num_seqs must be a whole number"),
        ("vllm serve m --max-num-batched-tokens 1.5K", "no decimals before K"),
        ("vllm serve m --max-num-batched-tokens 1.5", "must be a whole number, not '1.5'"),
        ("vllm serve m --max-num-batched-tokens 9T", "max_num_batched_tokens must be a whole number"),
        ("vllm serve m --max-num-seqs " + "9" * 5000, "must be a whole number"),
        ("vllm serve m --max-num-seqs 64 --max-num-batched-tokens 32", "smaller than one decode"),
        ("vllm serve m --enable-chunked-prefill=False", "takes no value: write --enable-chunked-prefill or --no-"),
        ("vllm serve m --enable-chunked-prefill False", "'False' belongs to no option"),
        ("vllm serve m --no-enable-chunked-prefill --long-prefill-token-threshold 9", "needs enable_chunked_prefill"),
        ("vllm serve m --no-enable-chunked-prefill --max-model-len 9k --max-num-batched-tokens 8k", "vLLM refuses"),
        ("vllm serve m --max-num-partial-prefills 2", "refuses --max-num-partial-prefills other than 1"),
        ("vllm serve m --gpu-memory-utilization lots", "must be a number, not 'lots'"),
        ("vllm serve m --gpu-memory-utilization 1.5", "gpu_memory_utilization must be"),
        ("vllm serve m --gpu-memory-utilization nan", "gpu_memory_utilization must be"),
        ("vllm serve m --kv-cache-dtype fp4", "kv_cache_dtype is one of"),
        ("vllm serve m --block-size 0", "block_size must be"),
        ("vllm serve m --performance-mode fast", "is balanced, interactivity or throughput, not 'fast'"),
        ("vllm serve m " + "x" * 200_000, "is too long"),
    ],
    ids=range(34),
)
def test_refusals_in_one_sentence(line, why):
    with pytest.raises(ValueError, match=why) as caught:
        parse(line)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_unknown_options_can_be_left_out():
    found = parse("vllm serve --swap-space 4 m --my-plugin=x --max-num-seqs 3", ignore_unknown=True)
    assert found.model == "m" and found.policy.max_num_seqs == 3
    assert found.notes == ("vLLM 0.19 does not know --swap-space, --my-plugin: left out",)


def test_no_line_at_all():
    for thing in (None, 3, ["vllm", "serve"]):
        with pytest.raises(ValueError, match="a command line is text"):
            parse(thing)
    with pytest.raises(ValueError, match="no GPU is called"):
        parse("vllm serve m", "H1000")


def test_the_table_of_options():
    takes, short = command_line.table()
    assert takes["--max-num-seqs"] == "value" and takes["--enable-chunked-prefill"] == "flag"
    assert takes["--served-model-name"] == "values" and takes["--disable-log-stats"] == "switch"
    assert short["-tp"] == "--tensor-parallel-size" and short["-ep"] == "--enable-expert-parallel"
    assert len(takes) == 231 and all(option.startswith("--") and option == option.lower() for option in takes)
    for option in ("--swap-space", "--device", "--guided-decoding-backend"):  # gone before 0.19
        assert option not in takes


@given(st.text(max_size=80))
@examples(200)
def test_any_text_is_a_policy_or_a_sentence(text):
    for line in (text, f"vllm serve {text}", f"vllm serve m --max-num-seqs {text}"):
        try:
            found = parse(line, ignore_unknown=True)
        except ValueError as error:
            assert str(error) and len(str(error)) < 500
        else:
            assert isinstance(found.policy, policies.Continuous)


@given(
    st.lists(
        st.sampled_from(
            ["m", "64", "8k", "-1", "0", "fp8", "auto", "--max-num-seqs", "--max-num-batched-tokens", "--block-size",
             "--enable-chunked-prefill", "--no-enable-chunked-prefill", "--max-model-len", "-tp", "-dp", "-O", "-O2",
             "--kv-cache-dtype", "--served-model-name", "--hf-token", "=", "--x", "-", "--max_num_seqs=4", "''"]
        ), max_size=8,
    )
)  # fmt: skip
@examples(200)
def test_any_options_are_a_policy_or_a_sentence(parts):
    line = " ".join(["vllm serve", *parts])
    try:
        found = parse(line)
    except ValueError as error:
        assert str(error) and "\n" not in str(error)
    else:
        again = parse(for_policy(found.policy, found.kv, engines=["vllm"])[0].command)
        assert (vars(again.policy), again.kv) == (vars(found.policy), found.kv)
