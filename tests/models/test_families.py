"""KV bytes a token of the families that people serve, against arithmetic by hand."""

import pytest

from course.models import ModelSpec
from tests.helpers.model_configs import GROUPED, HYBRID, KV, LATENT, WINDOWED, dense


def read(config):
    return ModelSpec.from_config(config)


@pytest.mark.parametrize("name", [*GROUPED, *LATENT])
def test_every_layer_alike(name):
    config, flat = (GROUPED | LATENT)[name]
    spec = read(config)
    assert (spec.kv_bytes_per_token, spec.kv_bytes_after_window) == (flat, flat)
    assert (spec.window_bytes, spec.state_bytes) == (0, 0)


@pytest.mark.parametrize("name", WINDOWED)
def test_windows(name):
    config, *numbers = WINDOWED[name]
    spec = read(config)
    assert [spec.kv_bytes_per_token, spec.kv_bytes_after_window, spec.window_bytes] == numbers
    assert spec.state_bytes == 0


@pytest.mark.parametrize("name", HYBRID)
def test_recurrent_states(name):
    config, flat, state = HYBRID[name]
    spec = read(config)
    assert (spec.kv_bytes_per_token, spec.kv_bytes_after_window, spec.state_bytes) == (flat, flat, state)


def test_draft_layers_are_counted_apart():
    assert read(GROUPED["glm-4.5"][0]).draft_bytes_per_token == KV * 8 * 128
    latent = dense(61, 7168, 128, 128, kv_lora_rank=512, qk_rope_head_dim=64, num_nextn_predict_layers=1)
    assert read(latent).draft_bytes_per_token == (512 + 64) * 2
    minimax = dense(62, 3072, 48, 8, head_dim=128, use_mtp=True, num_mtp_modules=3, mtp_transformer_layers=1)
    assert read(minimax).draft_bytes_per_token == 3 * KV * 8 * 128


def test_the_key_of_an_indexer_is_counted_apart():
    """One byte a dimension and a scale of four bytes for each 128, a layer; where layers share one, only the owners."""
    config = dense(4, 7168, 128, 128, kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128, index_n_heads=64)
    assert read(config).index_bytes_per_token == 4 * (128 + 4)
    assert read(config).kv_bytes_per_token == 4 * (512 + 64) * 2
    shared = read(config | {"indexer_types": ["full", "shared", "shared", "full"]})
    assert shared.index_bytes_per_token == 2 * (128 + 4)


def test_layers_with_keys_of_their_own():
    config = dense(3, 4096, 32, 8, per_layer_config={"1": {"num_key_value_heads": 4, "head_dim": 256}})
    assert read(config).kv_bytes_per_token == KV * (8 * 128 + 4 * 256 + 8 * 128)


def test_a_packed_latent_row():
    """vLLM's fp8_ds_mla: 512 B and 4 scales of 4 B, and 64 dimensions of 2 B, which is 656 B a layer."""
    spec = read(LATENT["kimi-k2"][0])
    assert spec.with_kv_dtype("fp8_ds_mla").kv_bytes_per_token == 61 * 656
    assert spec.with_kv_dtype("fp8").kv_bytes_per_token == 61 * (512 + 64)
    with pytest.raises(ValueError, match="fp8_ds_mla is a layout of latent attention, which model does not have"):
        read(GROUPED["phi-4"][0]).with_kv_dtype("fp8_ds_mla")
