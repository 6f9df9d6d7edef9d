"""What an engine stores is the engine's to say: lists of types, columns of a convolution, switches that are on."""

import pytest

from course.models import ModelSpec, engine_defaults, gpus
from tests.helpers.model_configs import HYBRID, KV, dense

LATENT_KEYS = {"kv_lora_rank": 128, "q_lora_rank": 256, "qk_nope_head_dim": 48, "qk_rope_head_dim": 16}


def read(config):
    return ModelSpec.from_config(config)


@pytest.mark.parametrize("family", ["deepseek_v2", "glm4_moe_lite", "kimi_k2", "bailing_hybrid", "sarvam_mla", ""])
def test_a_latent_row_where_the_engine_keeps_one(family):
    spec = read(dense(6, 1024, 12, 12, model_type=family, **LATENT_KEYS))
    assert spec.kv_bytes_per_token == 6 * (128 + 16) * 2
    assert not any("kv_lora_rank" in note for note in spec.notes)


@pytest.mark.parametrize("family", ["minicpm3", "plm", "a_type_of_tomorrow"])
def test_full_heads_for_every_other_type(family):
    """vLLM's MiniCPM3: K of nope + rope dimensions, V padded to the same, for every head."""
    spec = read(dense(6, 1024, 12, 12, model_type=family, v_head_dim=48, **LATENT_KEYS))
    assert spec.kv_bytes_per_token == 6 * 12 * (64 + 64) * 2
    assert any("keeps K and V of all 12 heads" in note and "144 elements" in note for note in spec.notes)


def test_minicpm3_4b_by_hand():
    keys = {"kv_lora_rank": 256, "q_lora_rank": 768, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32}
    assert read(dense(62, 2560, 40, 40, model_type="minicpm3", **keys)).kv_bytes_per_token == 952_320


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("qwen3-next-80b", 36 * (2 * 16 * 128 + 32 * 128) * 2),
        ("mamba-2", 64 * (8192 + 2 * 8 * 128) * 2),
        ("granite-4-h-small", 36 * (8192 + 2 * 128) * 2),
        # vLLM 0.19 passes no drafts to these: Mamba 1, short convolutions, Kimi's delta attention, lightning attention
        ("mamba-2.8b", 0),
        ("lfm2-1.2b", 0),
        ("kimi-linear-48b", 0),
        ("minimax-text-01", 0),
    ],
)
def test_a_drafted_token_is_a_column_of_the_convolution(name, column):
    config, _, state = HYBRID[name]
    spec = read(config)
    assert [spec.state_bytes_with(k) for k in (0, 1, 5)] == [state, state + column, state + 5 * column]


def test_switches_that_are_on_where_the_file_says_nothing():
    lfm = dense(4, 512, 8, 4, model_type="lfm2", conv_L_cache=3, full_attn_idxs=[1], vocab_size=100, block_ff_dim=3000)
    # Two thirds of 3,000, up to a multiple of 256
    assert read(lfm).weights == read(lfm | {"block_auto_adjust_ff_dim": True}).weights
    off = read(lfm | {"block_auto_adjust_ff_dim": False})
    assert off.parameters - read(lfm).parameters == 4 * 3 * 512 * (3000 - 2048)
    assert read(lfm | {"block_ffn_dim_multiplier": 1.5}).parameters - read(lfm).parameters == 4 * 3 * 512 * (
        3072 - 2048
    )
    assert read(dense(3, 512, 8, model_type="gpt_bigcode")).kv_bytes_per_token == KV * 3 * 64
    assert read(dense(3, 512, 8, model_type="falcon")).kv_bytes_per_token == KV * 3 * 64
    assert read(dense(3, 512, 8, model_type="falcon", multi_query=False)).kv_bytes_per_token == KV * 3 * 8 * 64
    gated = dense(3, 512, 8, 2, model_type="qwen3_next", intermediate_size=64, vocab_size=100)
    more = read(gated).parameters - read(gated | {"attn_output_gate": False}).parameters
    assert more == 3 * 512 * 8 * 64


@pytest.mark.parametrize(("number", "size", "full"), [(24, 8, 3), (20, 5, 4), (23, 8, 2 + 7), (8, 1, 8)])
def test_one_layer_of_a_group_has_attention(number, size, full):
    """Ring-linear: the last of each group, and those that make up no whole group; the others keep a state."""
    config = dense(number, 1024, 8, 2, model_type="bailing_moe_linear", head_dim=128, layer_group_size=size)
    spec = read(config)
    assert spec.kv_bytes_per_token == KV * full * 2 * 128
    assert spec.state_bytes == (number - full) * 8 * 128 * 128 * 2


def test_rwkv_keeps_a_state_alone():
    five = {"model_type": "rwkv5", "hidden_size": 1024, "num_hidden_layers": 12, "vocab_size": 65536}
    five |= {"attention_hidden_size": 1024, "head_size": 64, "head_size_divisor": 8}
    spec = read(five)
    assert spec.kv_bytes_per_token == 0 and spec.weights is None
    assert spec.state_bytes == 12 * (2 * 1024 * 2 + 16 * 64 * 64 * 4)
    four = read({**five, "model_type": "rwkv", "head_size": None})
    assert four.state_bytes == 12 * (2 * 1024 * 2 + 3 * 1024 * 4)
    with pytest.raises(ValueError, match="heads of 60 do not make up attention_hidden_size, 1024"):
        read({**five, "head_size": 60})


@pytest.mark.parametrize(
    "harmless",
    [
        {"_attn_implementation_autoset": True},
        {"full_attn_mod": 1},
        {"mamba_inner_layernorms": True},
        {"anyres_pooling_size": 2},
        {"pool_type": "conv"},
    ],
)
def test_keys_of_real_files_that_say_nothing_about_caches(harmless):
    assert read(dense(4, 256, 4, 2) | harmless).kv_bytes_per_token == KV * 4 * 2 * 64


def test_a_harmless_key_with_another_value_is_refused():
    with pytest.raises(ValueError, match="full_attn_mod = 2 is not understood"):
        read(dense(4, 256, 4, 2, full_attn_mod=2))


def test_no_experts_is_a_dense_model():
    config = dense(4, 256, 4, 2, intermediate_size=512, vocab_size=100)
    assert read(config | {"num_experts": 0}).weights == read(config).weights


def test_layers_that_only_drafts_run_have_weights_of_their_own():
    """A layer like the last, and a projection from two hidden states to one; not in the weights of the model."""
    config = dense(6, 1024, 8, 2, intermediate_size=2048, vocab_size=100, head_dim=128)
    with_mtp, without = read(config | {"num_nextn_predict_layers": 2}), read(config)
    layer = 1024 * 128 * 2 * (8 + 2) + 3 * 1024 * 2048
    assert with_mtp.weights.draft_bytes == 2 * 2 * (layer + 2 * 1024 * 1024)
    assert with_mtp.weights_bytes == without.weights_bytes


def test_defaults_by_release():
    release = engine_defaults.release
    assert release(None) == release("0.19") == release("vLLM 0.19.1") and release(None).name == "vLLM 0.19"
    assert [release(v).gpu_memory_utilization for v in ("0.10.2", "0.19", "0.20.1", "0.27")] == [0.9, 0.9, 0.92, 0.92]
    assert [release(v).tokens_by_concurrency for v in ("0.19", "0.20", "0.21", "v0.25.0")] == [False, False, True, True]
    assert release("0.7.3").whole_prompts and not release("0.8").whole_prompts
    for strange in ("latest", "", "19", 19):
        with pytest.raises(ValueError, match="an engine's version is written like "):
            release(strange)


def test_a_batch_is_filled_in_as_vllm_does():
    fill = engine_defaults.batch_of_length
    large = engine_defaults.batch(gpus.gpu("H100"))
    assert fill(None, None, large, 4096) == (1024, 8192)
    assert fill(4, None, large, 512) == (4, 2048)  # 4 x 512 tokens at most
    assert fill(None, 100, large, 4096) == (100, 100)  # one token a decode
    assert fill(None, None, large, 40_000, whole_prompts=True) == (1024, 40_000)
    assert fill(300, 200, large, 4096) == (300, 200)  # what is asked for is left alone


# Of files that people publish


def test_an_indexer_that_layers_share_is_listed():
    """GLM-5.2: one layer in four has an indexer of its own; the keys that say so another way say nothing more."""
    keys = {
        **LATENT_KEYS,
        "index_head_dim": 128,
        "index_n_heads": 32,
        "index_topk_freq": 4,
        "index_skip_topk_offset": 1,
    }
    config = dense(6, 1024, 12, 12, model_type="glm_moe_dsa", **keys)
    types = ["full", "shared", "shared", "full", "shared", "shared"]
    spec = read(config | {"indexer_types": types, "layer_types": ["deepseek_sparse_attention"] * 6})
    assert spec.index_bytes_per_token == 2 * (128 + 4) and spec.kv_bytes_per_token == 6 * (128 + 16) * 2
    with pytest.raises(ValueError, match="index_topk_freq = 4 is not understood"):
        read(config)


def test_a_draft_module_by_letters():
    """Nemotron 3: one layer of attention and one of experts."""
    config, *_ = HYBRID["nemotron-nano-9b-v2"]
    for pattern, number in (("*E", 1), ("*E*E", 2), ("ME", 0)):
        spec = read(config | {"mtp_hybrid_override_pattern": pattern, "num_nextn_predict_layers": 1})
        assert spec.draft_bytes_per_token == number * KV * 8 * 128


def test_experts_on_a_shorter_vector():
    """Two projections a layer, and experts of 3 x 128 x 64 instead of 3 x 512 x 64."""
    config = dense(3, 512, 8, 2, vocab_size=100, num_experts=16, num_experts_per_tok=2, moe_intermediate_size=64)
    plain, short = read(config), read(config | {"moe_latent_size": 128})
    assert plain.parameters - short.parameters == 3 * (16 * 3 * (512 - 128) * 64 - 2 * 512 * 128)
    assert read(config | {"routed_expert_hidden_size": 128}).weights == short.weights


def test_groups_of_different_bits_for_attention_and_the_rest():
    group = lambda bits, targets, **more: {"weights": {"num_bits": bits, "type": "float", **more}, "targets": targets}  # noqa: E731
    config = dense(2, 512, 8, 2, vocab_size=100, intermediate_size=1024)
    groups = {"a": group(8, ["layers.0.self_attn.q_proj"]), "b": group(4, ["layers.0.mlp.up_proj"], group_size=16)}
    spec = read(config | {"quantization_config": {"quant_method": "modelopt", "config_groups": groups}})
    attention, mlp = 2 * 512 * 64 * 2 * (8 + 2), 2 * 3 * 512 * 1024
    assert spec.weights.layer_bytes == attention + mlp * 4.5 / 8
    both = {
        "a": group(8, ["layers.0.self_attn.q_proj", "layers.0.mlp.up_proj"]),
        "b": group(4, ["layers.1.mlp.up_proj"]),
    }
    assert read(config | {"quantization_config": {"quant_method": "modelopt", "config_groups": both}}).weights is None


@pytest.mark.parametrize("key", ["for_llm_compressor", "attn_res_block_size"])
def test_more_keys_that_say_nothing_about_caches(key):
    assert read(dense(4, 256, 4, 2) | {key: 12}).kv_bytes_per_token == KV * 4 * 2 * 64


def test_the_key_that_says_most_is_named():
    """What is known to be missing comes before what is not known."""
    with pytest.raises(ValueError, match=r"compress_ratios .* means compressed caches"):
        read(dense(4, 256, 4, 2) | {"o_lora_rank": 64, "compress_ratios": [0, 4, 128, 0]})


def test_a_quantisation_file_beside_a_config_of_another_name(tmp_path):
    import json

    config = dense(2, 512, 8, 2, vocab_size=100, intermediate_size=1024)
    (tmp_path / "some--model_config.json").write_text(json.dumps(config))
    beside = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "some--model_hf_quant_config.json").write_text(json.dumps(beside))
    spec = read(tmp_path / "some--model_config.json")
    assert spec.kv_cache_dtype == "fp8" and spec.weights.layer_bytes < read(config).weights.layer_bytes / 3


def test_a_quantisation_without_a_method():
    """MLX: 4 bits, with a scale and a bias of 16 bits for each 64 weights."""
    config = dense(2, 512, 8, 2, vocab_size=100, intermediate_size=1024)
    spec = read(config | {"quantization_config": {"group_size": 64, "bits": 4, "mode": "affine"}})
    assert spec.weights.layer_bytes == read(config).weights.layers * 4.5 / 8


def test_an_mlp_of_four_times_the_width():
    phi = {"model_type": "phi-msft", "n_layer": 3, "n_embd": 512, "n_head": 8, "vocab_size": 100, "n_inner": None}
    assert read(phi).weights.layers == 3 * (4 * 512 * 512 + 2 * 512 * 2048)
