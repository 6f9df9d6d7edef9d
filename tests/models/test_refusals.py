"""Configs that cannot be understood: the sentence names the file and the key, and nothing is guessed."""

import pytest

from course.models import ModelSpec
from tests.helpers.model_configs import HYBRID, LATENT, WINDOWED, dense

GPT = {"num_layers": 4, "hidden_size": 64, "num_heads": 4}
JAMBA, QWEN, KIMI = (HYBRID[name][0] for name in ("jamba-1.5-large", "qwen3-next-80b", "kimi-linear-48b"))
LATENT_ROW = LATENT["deepseek-v2"][0]


def four(**more):
    return dense(4, 256, 4, 2) | more


REFUSED = {
    # Which layer does what
    "too few entries": (four(layer_types=["full_attention"] * 3), "layer_types has 3 entries for 4 layers"),
    "an unknown kind": (four(layer_types=["full_attention", "moebius"] * 2), "layer_types has 'moebius'"),
    "a kind that is no text": (four(layer_types=[1, 2, 3, 4]), "layer_types has 1"),
    "no list": (four(layer_types="full_attention"), "layer_types must be a list"),
    "window missing": (four(layer_types=["sliding_attention"] * 4), "its window is missing: give sliding_window"),
    "chunk missing": (four(layer_types=["chunked_attention"] * 4), "attention_chunk_size is missing"),
    "chunks, but where": (four(attention_chunk_size=128), "attention_chunk_size is there, but not for which layers"),
    "no_rope_layers": (four(attention_chunk_size=128, no_rope_layers=[1, 0, 2, 1]), "no_rope_layers must hold 0 and 1"),
    "a pattern of letters": (four(sliding_window=8, sliding_window_pattern="LXG"), "letters L and G"),
    "a pattern of numbers": (four(sliding_window=8, sliding_window_pattern=[1, 0, 1, 0]), "true and false only"),
    "a pattern of nothing": (four(sliding_window=8, sliding_window_pattern=0), "sliding_window_pattern must be"),
    "two windows": (four(sliding_window=8, sliding_window_size=16), "sliding_window = 8 and sliding_window_size = 16"),
    "no windows": (four(interleaved_sliding_window=[]), "interleaved_sliding_window is an empty list"),
    "window on, but where": (four(sliding_window=8, use_sliding_window=True), "max_window_layers is needed"),
    "a family with a rule of its own": (four(model_type="gemma4_text", sliding_window=8), "layer_types is needed"),
    "hybrid letters": (four(hybrid_override_pattern="M*Q-"), "hybrid_override_pattern has 'Q'"),
    "hybrid no letters": (four(hybrid_override_pattern=5), "hybrid_override_pattern must be letters"),
    "attn_type_list": (four(attn_type_list=[0, 1, 2, 1]), "attn_type_list must hold 0 and 1 only"),
    "attention_types": (GPT | {"attention_types": [["global", 4]]}, "attention_types must hold pairs"),
    "which have a recurrence": (
        {key: value for key, value in JAMBA.items() if not key.startswith("attn_layer")},
        "not which layers have which: layer_types is needed",
    ),
    "a layer that is not there": (four(attn_layer_indices=[0, 9], mamba_d_state=16), "attn_layer_indices must be"),
    # Attention
    "no heads": ({"num_hidden_layers": 4, "hidden_size": 64}, "num_attention_heads or n_head"),
    "heads that do not share": (four(num_key_value_heads=3), "4 query heads cannot share 3 KV heads evenly"),
    "heads of another name": (four(num_kv_heads=4), "num_key_value_heads = 2 and num_kv_heads = 4"),
    "a list too short": (four(num_key_value_heads=[2, 2]), "num_key_value_heads has 2 entries for 4 layers"),
    "attn_type": (
        {"n_layers": 4, "d_model": 64, "n_heads": 4, "attn_config": {"attn_type": "sparse"}},
        "attn_config has attn_type 'sparse'",
    ),
    "groups, but how many": (
        {"n_layers": 4, "d_model": 64, "n_heads": 4, "attn_config": {"attn_type": "grouped_query_attention"}},
        "kv_n_heads is missing",
    ),
    "half a latent row": (LATENT_ROW | {"qk_rope_head_dim": None}, "qk_rope_head_dim is needed"),
    "indexer types": (LATENT_ROW | {"index_head_dim": 128, "indexer_types": ["full"]}, "indexer_types must have"),
    "an indexer without it": (four(index_head_dim=128), "index_head_dim without kv_lora_rank"),
    "a key for one layer": (four(per_layer_config={"1": {"sliding_window": 8}}), "per_layer_config has sliding_window"),
    "no layer's number": (four(per_layer_config={"first": {}}), "per_layer_config must hold an object"),
    "a switch that is none": (
        four(num_key_value_heads=None, multi_query="yes"),
        "multi_query must be true or false, not 'yes'",
    ),
    # Recurrences
    "no shape": (four(layer_types=["linear_attention", "full_attention"] * 2), "the size of its state cannot be told"),
    "half a shape": (QWEN | {"linear_key_head_dim": None}, "linear_key_head_dim is needed"),
    "no convolution": (JAMBA | {"mamba_d_conv": None}, "mamba_d_conv or conv_kernel"),
    "a convolution of 1": (QWEN | {"linear_conv_kernel_dim": 1}, "linear_conv_kernel_dim must be"),
    "no width": (JAMBA | {"mamba_expand": None}, "mamba_expand or mamba_n_heads is needed"),
    "a width that is none": (JAMBA | {"mamba_expand": -2}, "expand must be a number above 0"),
    "heads of another width": (
        HYBRID["bamba-9b"][0] | {"mamba_d_ssm": 100},
        "128 heads of 64 do not make up the width of the recurrence, 100",
    ),
    "a type of state": (
        QWEN | {"mamba_ssm_dtype": "posit8"},
        "the type of the recurrent state, 'posit8', is not known",
    ),
    "kimi without a shape": (
        KIMI | {"linear_attn_config": {"full_attn_layers": [4]}},
        "linear_attn_config: the recurrent state cannot be told: num_heads is needed",
    ),
    # The rest
    "no object": (four(quantization_config=[1]), "quantization_config must be an object"),
    "a cache scheme": (
        four(quantization_config={"quant_method": "fp8", "kv_cache_scheme": {"num_bits": "eight"}}),
        "the KV cache scheme {'num_bits': 'eight'} is not understood",
    ),
    "nothing kept": (
        {"num_hidden_layers": 2, "hidden_size": 64, "layers_block_type": ["mlp", "moe"]},
        "no layer keeps",
    ),
    "all shared": (four(num_kv_shared_layers=4), "no layer keeps anything"),
    "a gemma without layers": ({"text_config": {"model_type": "gemma3_text"}}, "num_hidden_layers or n_layer"),
    "an encoder and a decoder": (four(is_encoder_decoder=True), "is_encoder_decoder"),
    "a key of tomorrow": (four(attention_sketch_rank=8), "attention_sketch_rank = 8 is not understood"),
    "a key that is no word": (four(**{"kv \x1b[31m": 8}), "'kv \\x1b[31m' = 8 is not understood"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_key(name):
    config, said = REFUSED[name]
    with pytest.raises(ValueError) as refusal:
        ModelSpec.from_config(config)
    assert said in str(refusal.value)
    assert "\x1b" not in str(refusal.value)


@pytest.mark.parametrize("off", [None, False, 0, "", [], {}])
def test_an_unknown_key_that_is_off_says_nothing(off):
    assert ModelSpec.from_config(four(attention_sketch_rank=off)).kv_bytes_per_token == 2 * 2 * 4 * 2 * 64


@pytest.mark.parametrize(
    "harmless",
    [
        {"attention_dropout": 0.1, "attn_pdrop": 0.1, "attention_bias": True, "attn_logit_softcapping": 50.0},
        {"rope_scaling": {"type": "yarn"}, "swa_rope_theta": 1e4, "rope_local_base_freq": 1e4},
        {"vision_config": {"num_hidden_layers": 99}, "image_token_index": 7, "router_aux_loss_coef": 0.1},
        {"time_step_limit": [0.0, float("inf")], "initializer_range": float("nan")},
        {"id2label": {"0": "LABEL"}, "architectures": ["X"], "unheard_of": 3, "pretraining_tp": 1},
    ],
)
def test_keys_that_have_nothing_to_do_with_caches(harmless):
    assert ModelSpec.from_config(four(**harmless)).kv_bytes_per_token == 2 * 2 * 4 * 2 * 64


def test_windows_that_say_nothing():
    for window in (None, 0, -1):
        assert ModelSpec.from_config(four(sliding_window=window)).window_bytes == 0
    config = WINDOWED["qwen2 with its window on"][0] | {"use_sliding_window": False}
    assert ModelSpec.from_config(config).window_bytes == 0


@pytest.mark.parametrize("path", [None, 5, b"\0", ["a"]])
def test_what_is_no_path(path):
    with pytest.raises((ValueError, OSError)):
        ModelSpec.from_config(path)
