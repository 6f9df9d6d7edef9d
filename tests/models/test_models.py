"""ModelSpec as steptime uses it, whether asked for by name or read from a config, and the weights it counts."""

import json

import pytest

from course.models import ModelSpec, model, names
from course.steptime import Roofline
from tests.helpers.model_configs import GROUPED, HYBRID, LATENT, WINDOWED, dense

LLAMA_8B = dense(32, 4096, 32, 8, intermediate_size=14336, vocab_size=128256, tie_word_embeddings=False)
LLAMA_7B = dense(32, 4096, 32, 32, intermediate_size=11008, vocab_size=32000, tie_word_embeddings=False)


@pytest.mark.parametrize(("config", "name"), [(LLAMA_8B, "llama-3.1-8b"), (LLAMA_7B, "llama-2-7b")])
def test_a_config_and_the_name_give_the_same_model_to_the_bit(config, name):
    read, known = ModelSpec.from_config(config), model(name)
    for what in ("layer_parameters", "head_parameters", "step_weight_bytes", "weights_bytes", "parameters"):
        assert getattr(read, what) == getattr(known, what)
    for what in ("kv_bytes_per_token", "kv_bytes_after_window", "attention_flops_per_pair"):
        assert getattr(read, what) == getattr(known, what)
    one, other = Roofline(read, "H100"), Roofline(known, "H100")
    for sums in ((1, 512, 0, 0, 0), (32, 20_000, 512, 131_328, 512), (0, 0, 8192, 33_558_528, 8192)):
        assert one.seconds(*sums) == other.seconds(*sums)


def test_names():
    assert {"llama-3.1-8b", "llama-2-7b"} <= set(names())
    with pytest.raises(ValueError, match=r"no model is called 'gpt-9'; known models: deepseek-v3, .*llama-3"):
        model("gpt-9")


def more(**keys):
    return {"vocab_size": 32000, "tie_word_embeddings": False} | keys


# Parameters as published on the models' cards, in billions, with what may be told apart from them: norms and biases
# (below 0.1%), a vision part, draft layers.
PUBLISHED = {
    "mixtral-8x7b": (
        dense(32, 4096, 32, 8, intermediate_size=14336, num_local_experts=8, num_experts_per_tok=2, **more()),
        (46.7, 12.9),
    ),
    "qwen3-30b-a3b": (
        dense(48, 2048, 32, 4, head_dim=128, moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8)
        | more(vocab_size=151936, decoder_sparse_step=1, mlp_only_layers=[]),
        (30.5, 3.3),
    ),
    "deepseek-v3": (
        dense(61, 7168, 128, 128, kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64, qk_nope_head_dim=128)
        | {"v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8}
        | {"moe_intermediate_size": 2048, "intermediate_size": 18432, "first_k_dense_replace": 3, "moe_layer_freq": 1}
        | more(vocab_size=129280),
        (671, 37),
    ),
    "kimi-k2": (
        dense(61, 7168, 64, 64, kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64, qk_nope_head_dim=128)
        | {"v_head_dim": 128, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8}
        | {"moe_intermediate_size": 2048, "intermediate_size": 18432, "first_k_dense_replace": 1, "moe_layer_freq": 1}
        | more(vocab_size=163840),
        (1026, 32.7),
    ),
    "llama-4-scout": (
        dense(48, 5120, 40, 8, head_dim=128, intermediate_size=8192, intermediate_size_mlp=16384)
        | {"num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1}
        | more(vocab_size=202048, model_type="llama4_text"),
        (107.8, 16.1),
    ),
    "jamba-mini": (
        dense(32, 4096, 32, 8, intermediate_size=14336, num_experts=16, num_experts_per_tok=2, mamba_dt_rank=256)
        | {"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1}
        | {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}
        | more(vocab_size=65536),
        (51.6, 12.1),
    ),
    "qwen3-next-80b": (
        HYBRID["qwen3-next-80b"][0]
        | {"num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512}
        | {"shared_expert_intermediate_size": 512, "decoder_sparse_step": 1, "attn_output_gate": True}
        | more(vocab_size=151936),
        (79.7, 3.9),
    ),
    "falcon-h1-34b": (
        HYBRID["falcon-h1-34b"][0] | {"intermediate_size": 21504} | more(vocab_size=261120),
        (33.6, 33.6),
    ),
    "gemma-2b": (
        dense(18, 2048, 8, 1, head_dim=256, intermediate_size=16384, vocab_size=256000, model_type="gemma"),
        (2.51, 2.51),
    ),
    "gpt2-xl": (GROUPED["gpt2-xl"][0] | {"model_type": "gpt2", "vocab_size": 50257}, (1.56, 1.56)),
    "starcoder2-15b": (
        WINDOWED["starcoder2-15b"][0] | {"intermediate_size": 24576, "vocab_size": 49152, "tie_word_embeddings": False},
        (15.96, 15.96),
    ),
    "mamba-2.8b": (HYBRID["mamba-2.8b"][0] | {"model_type": "mamba", "vocab_size": 50280}, (2.77, 2.77)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_as_published(name):
    """Cards round to three digits at best, and count embeddings among the active ones or not: within 1% and 8%."""
    config, (total, active) = PUBLISHED[name]
    spec = ModelSpec.from_config(config)
    assert spec.parameters / 1e9 == pytest.approx(total, rel=0.01)
    weights = spec.weights
    least, most = weights.active + weights.head, weights.active + weights.embedding + weights.head
    assert 0.92 * least <= active * 1e9 <= 1.08 * most


def quantised(**config):
    return ModelSpec.from_config(LLAMA_8B | {"quantization_config": config})


def test_bytes_of_quantised_weights():
    """The layers' 6,979,321,856 parameters by their bits, scales included; embedding and head stay at 16 bits."""
    layers, outside = 6_979_321_856, 2 * 2 * 128256 * 4096
    assert ModelSpec.from_config(LLAMA_8B).weights_bytes == 2 * layers + outside
    assert quantised(quant_method="fp8").weights_bytes == layers + outside
    awq = quantised(quant_method="awq", bits=4, group_size=128)
    assert awq.weights_bytes == layers * (4 + 20 / 128) / 8 + outside
    assert quantised(quant_method="bitsandbytes", load_in_4bit=True).weights_bytes == layers * 4.5 / 8 + outside
    groups = {"group_0": {"weights": {"num_bits": 8, "type": "int", "group_size": None}}}
    assert quantised(quant_method="compressed-tensors", config_groups=groups).weights_bytes == layers + outside
    unknown = quantised(quant_method="tomorrow")
    assert unknown.weights_bytes is None and "quantised with tomorrow" in unknown.notes[0]
    assert unknown.kv_bytes_per_token == 131_072
    with pytest.raises(ValueError, match="could not be counted"):
        Roofline(unknown, "H100")


def test_experts_alone_in_4_bits():
    config = dense(24, 2880, 64, 8, head_dim=64, intermediate_size=2880, num_local_experts=32, num_experts_per_tok=4)
    spec = ModelSpec.from_config(config | more(vocab_size=201088, quantization_config={"quant_method": "mxfp4"}))
    experts = 24 * 32 * 3 * 2880 * 2880
    rest = 24 * (2880 * 64 * 2 * (64 + 8) + 2880 * 32) + 2 * 201088 * 2880
    assert spec.weights_bytes == experts * 4.25 / 8 + 2 * rest


def test_files_beside_the_config(tmp_path):
    """A folder as it is downloaded: the type of the KV cache and the size of the weights are told by other files."""
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B))
    (tmp_path / "hf_quant_config.json").write_text(
        json.dumps(
            {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
        )
    )
    spec = ModelSpec.from_config(tmp_path)
    assert spec.name == tmp_path.name and spec.kv_cache_dtype == "fp8"
    assert spec.weights_bytes == 6_979_321_856 + 2 * 2 * 128256 * 4096
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 9_000_000_000}}))
    assert ModelSpec.from_config(tmp_path).weights_bytes == 9_000_000_000


@pytest.mark.parametrize("config", [GROUPED["pixtral-12b, nested"][0], LATENT["kimi-k2"][0]])
def test_what_was_filled_in_or_left_out_is_said(config):
    assert ModelSpec.from_config(config).notes
