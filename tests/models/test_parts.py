"""Single rules by hand: how heads are spread over ranks, what a checkpoint asks for, a width that counts twice."""

from dataclasses import replace

import pytest

from course.models import ModelSpec, model
from course.models.layers import Heads, Latent, Layer, Part, on_rank
from tests.helpers.model_configs import dense


@pytest.mark.parametrize(("number", "tp", "each"), [(8, 1, 8), (8, 2, 4), (8, 8, 1), (8, 16, 1), (1, 4, 1), (3, 6, 1)])
def test_heads_are_spread_or_copied(number, tp, each):
    assert on_rank("KV heads", number, tp) == each


@pytest.mark.parametrize(("number", "tp", "copied"), [(8, 12, True), (6, 4, True), (8, 3, True), (8, 16, False)])
def test_heads_that_come_out_unevenly_are_refused(number, tp, copied):
    with pytest.raises(ValueError, match=f"{number} KV heads cannot be spread over {tp} ranks"):
        on_rank("KV heads", number, tp, copied)


def test_a_state_is_spread_over_the_ranks_and_a_shared_part_is_on_each():
    layer = Layer(state=(Part("heads", 8, 100), Part("groups", 2, 10, copied=True)))
    assert [layer.state_bytes(tp) for tp in (1, 2, 4, 8)] == [820, 410, 210, 110]


def test_elements_of_a_layer():
    assert Heads(8, 192, 128, 64).elements() == 8 * (192 + 128) and Heads(8, 192, 128, 64).elements(4) == 2 * 320
    assert Latent(512, 64, 128, 192, 128).elements(8) == 576
    packed = Latent(500, 64, 128, 192, 128, packed=True)
    assert packed.elements() == 500 + 4 * 4 + 2 * 64  # four scales for 500 dimensions
    assert Latent(512, 64, 128, 192, 128, index_dim=130).extra_bytes == 130 + 2 * 4


def test_auto_takes_what_the_checkpoint_asks_for():
    plain = model("llama-3.1-8b")
    assert plain.with_kv_dtype("auto").kv_bytes_per_token == plain.kv_bytes_per_token == 131_072
    asks = replace(plain, kv_cache_dtype="fp8")
    assert asks.kv_bytes_per_token == 131_072 and asks.with_kv_dtype("auto").kv_bytes_per_token == 65_536


def test_the_first_qwen_counts_gate_and_up_together():
    config = dense(32, 4096, 32, 32, vocab_size=151_936, intermediate_size=22_016)
    assert ModelSpec.from_config(config | {"model_type": "qwen"}).intermediate_size == 11_008
    assert ModelSpec.from_config(config | {"model_type": "qwen2"}).intermediate_size == 22_016


def test_the_matrices_of_latent_attention():
    """Queries of 32 + 16 a head; down to a row of 64 and a rotary key of 16; up to 32 and 40 a head; and out."""
    config = dense(4, 512, 8, 8, model_type="deepseek_v3", kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32)
    config |= {"v_head_dim": 40, "vocab_size": 1000, "intermediate_size": 256, "tie_word_embeddings": False}
    queries, down, up, out = 512 * 8 * (32 + 16), 512 * (64 + 16), 64 * 8 * (32 + 40), 8 * 40 * 512
    spec = ModelSpec.from_config(config)
    assert spec.weights.layers == 4 * (queries + down + up + out + 3 * 512 * 256)
    low = ModelSpec.from_config(config | {"q_lora_rank": 96})
    assert low.weights.layers - spec.weights.layers == 4 * (512 * 96 + 96 * 8 * (32 + 16) - queries)


def test_attention_that_a_quantisation_leaves_in_16_bits():
    sizes = {"intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False}
    config = dense(32, 4096, 32, 8, **sizes)
    attention, mlp = 32 * 4096 * 128 * 2 * (32 + 8), 32 * 3 * 4096 * 14336
    for kept, each in (([], 1), (["lm_head"], 1), (["model.layers.0.self_attn.q_proj"], 2)):
        fp8 = {"quant_method": "fp8", "modules_to_not_convert": kept}
        spec = ModelSpec.from_config(config | {"quantization_config": fp8})
        assert spec.weights.layer_bytes == mlp + each * attention


def test_which_layers_of_a_hybrid_have_attention():
    """Every fourth, counted from one."""
    sizes = {"linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32}
    sizes |= {"linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4}
    spec = ModelSpec.from_config(dense(12, 2048, 16, 2, head_dim=256, model_type="qwen3_next", **sizes))
    assert [i for i, layer in enumerate(spec.layer_caches) if layer.attention] == [3, 7, 11]
