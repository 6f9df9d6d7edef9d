"""The same for models with a recurrent state: keys, bytes a token, bytes of state a sequence. See model_configs."""

KV = 2 * 2


def layers(number, every, usual, odd):
    """`odd` at every so manieth layer, `usual` at the others."""
    return [usual if (i + 1) % every else odd for i in range(number)]


def dense(number, width, heads, kv_heads=None, **more):
    kv = {} if kv_heads is None else {"num_key_value_heads": kv_heads}
    return {"num_hidden_layers": number, "hidden_size": width, "num_attention_heads": heads, **kv, **more}


MAMBA2 = {"mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2}
HYBRID = {
    "jamba-1.5-large": (
        dense(
            72, 8192, 64, 8, attn_layer_period=8, attn_layer_offset=4, mamba_d_state=16, mamba_d_conv=4, mamba_expand=2
        ),
        *(KV * 9 * 8 * 128, 63 * (16384 * 16 * 2 + 16384 * 3 * 2)),
    ),
    "falcon-h1-34b": (
        dense(
            72, 5120, 20, 4, model_type="falcon_h1", head_dim=128, mamba_d_ssm=4096, mamba_n_heads=32, mamba_d_head=128
        )
        | {"mamba_n_groups": 2, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2},
        *(KV * 72 * 4 * 128, 72 * (32 * 128 * 256 * 2 + (4096 + 2 * 2 * 256) * 3 * 2)),
    ),
    "granite-4-h-small": (
        dense(40, 4096, 32, 8, **MAMBA2, mamba_d_state=128)
        | {"layer_types": ["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)]},
        *(KV * 4 * 8 * 128, 36 * (128 * 64 * 128 * 2 + (8192 + 2 * 128) * 3 * 2)),
    ),
    "bamba-9b": (
        dense(32, 4096, 32, 8, **MAMBA2, mamba_d_state=128, attn_layer_indices=[9, 18, 27]),
        *(KV * 3 * 8 * 128, 29 * (128 * 64 * 128 * 2 + (8192 + 2 * 128) * 3 * 2)),
    ),
    "nemotron-nano-9b-v2": (
        dense(8, 4480, 40, 8, head_dim=128, hybrid_override_pattern="M-M*-MM*", mamba_num_heads=128, mamba_head_dim=80)
        | {"n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4, "expand": 2},
        *(KV * 2 * 8 * 128, 4 * (128 * 80 * 128 * 2 + (10240 + 2 * 8 * 128) * 3 * 2)),
    ),
    "mamba-2.8b": (
        {"num_hidden_layers": 64, "hidden_size": 2560, "state_size": 16, "conv_kernel": 4, "expand": 2},
        *(0, 64 * (5120 * 16 * 2 + 5120 * 3 * 2)),
    ),
    "mamba-2": (
        {"num_hidden_layers": 64, "hidden_size": 4096, "state_size": 128, "conv_kernel": 4, "expand": 2}
        | {"num_heads": 128, "head_dim": 64, "n_groups": 8},
        *(0, 64 * (128 * 64 * 128 * 2 + (8192 + 2 * 8 * 128) * 3 * 2)),
    ),
    "lfm2-1.2b": (
        dense(16, 2048, 32, 8, conv_L_cache=3, full_attn_idxs=[2, 5, 8, 10, 12, 14]),
        *(KV * 6 * 8 * 64, 10 * 2048 * 2 * 2),
    ),
    "qwen3-next-80b": (
        dense(
            48, 2048, 16, 2, head_dim=256, full_attention_interval=4, linear_conv_kernel_dim=4, linear_num_key_heads=16
        )
        | {"linear_key_head_dim": 128, "linear_num_value_heads": 32, "linear_value_head_dim": 128},
        *(KV * 12 * 2 * 256, 36 * (32 * 128 * 128 * 2 + (2 * 16 * 128 + 32 * 128) * 3 * 2)),
    ),
    "qwen3.5, state in 32 bits": (
        dense(
            4, 2048, 16, 2, head_dim=256, full_attention_interval=4, linear_conv_kernel_dim=4, linear_num_key_heads=16
        )
        | {"linear_key_head_dim": 128, "linear_num_value_heads": 32, "linear_value_head_dim": 128}
        | {"mamba_ssm_dtype": "float32"},
        *(KV * 1 * 2 * 256, 3 * (32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2)),
    ),
    "kimi-linear-48b": (
        dense(8, 2304, 32, 32, kv_lora_rank=512, qk_rope_head_dim=64, mla_use_nope=True)
        | {
            "linear_attn_config": {
                **{"full_attn_layers": [4, 8], "kda_layers": [1, 2, 3, 5, 6, 7]},
                **{"num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4},
            }
        },
        *(2 * (512 + 64) * 2, 6 * (32 * 128 * 128 * 4 + 3 * 32 * 128 * 3 * 2)),
    ),
    "minimax-text-01": (
        dense(80, 6144, 64, 8, head_dim=128, attn_type_list=layers(80, 8, 0, 1)),
        *(KV * 10 * 8 * 128, 70 * 64 * 128 * 128 * 2),
    ),
    "zamba2": (
        dense(4, 2560, 32, 32, attention_head_dim=160, kv_channels=80, hybrid_layer_ids=[1, 3], mamba_d_state=64)
        | {"n_mamba_heads": 8, "mamba_headdim": 640, "mamba_ngroups": 1, "mamba_d_conv": 4, "mamba_expand": 2},
        *(KV * 2 * 32 * 160, 4 * (8 * 640 * 64 * 2 + (5120 + 2 * 64) * 3 * 2)),
    ),
}
