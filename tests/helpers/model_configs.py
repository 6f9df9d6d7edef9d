"""Keys of published config.json files, written down here, and what one token keeps, worked out by hand.

Each entry: the keys, bytes a token while every layer holds it, bytes a token once windows are full, bytes of full
windows, bytes of recurrent state; 2 B an element. A, B: 2 (K and V) x 2 B.
"""

from tests.helpers.model_hybrids import HYBRID, KV, dense, layers

__all__ = ["GROUPED", "HYBRID", "KV", "LATENT", "WINDOWED", "dense", "layers"]

GROUPED = {
    "qwen2.5-72b": (
        dense(80, 8192, 64, 8, use_sliding_window=False, sliding_window=131072, max_window_layers=80),
        KV * 80 * 8 * 128,
    ),
    "mistral-small-24b": (dense(40, 5120, 32, 8, head_dim=128, sliding_window=None), KV * 40 * 8 * 128),
    "phi-4": (dense(40, 5120, 40, 10), KV * 40 * 10 * 128),
    "yi-34b": (dense(60, 7168, 56, 8), KV * 60 * 8 * 128),
    "command-r-plus": (dense(64, 12288, 96, 8, model_type="cohere", use_qk_norm=True), KV * 64 * 8 * 128),
    "glm-4.5": (dense(92, 5120, 96, 8, head_dim=128, num_nextn_predict_layers=1, n_group=1), KV * 92 * 8 * 128),
    "olmo-7b": (dense(32, 4096, 32, clip_qkv=None), KV * 32 * 32 * 128),
    "qwen3-coder-480b": (
        dense(62, 6144, 96, 8, head_dim=128, num_experts=160, decoder_sparse_step=1),
        KV * 62 * 8 * 128,
    ),
    "phi-2": (dense(32, 2560, 32, 32, model_type="phi", qk_layernorm=False), KV * 32 * 32 * 80),
    "opt-66b": (dense(64, 9216, 72, model_type="opt", ffn_dim=36864, word_embed_proj_dim=9216), KV * 64 * 72 * 128),
    "bloom-176b": (
        {"n_layer": 70, "n_embed": 14336, "num_attention_heads": 112, "model_type": "bloom"},
        KV * 70 * 14336,
    ),
    "gpt2-xl": ({"n_layer": 48, "n_embd": 1600, "n_head": 25, "n_ctx": 1024, "n_positions": 1024}, KV * 48 * 1600),
    "mpt-30b": (
        {"d_model": 7168, "n_heads": 64, "n_layers": 48, "attn_config": {"attn_type": "multihead_attention"}},
        KV * 48 * 7168,
    ),
    "mpt, one head": (
        {"d_model": 2048, "n_heads": 16, "n_layers": 24, "attn_config": {"attn_type": "multiquery_attention"}},
        KV * 24 * 1 * 128,
    ),
    "dbrx": (
        {"d_model": 6144, "n_heads": 48, "n_layers": 40, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8}},
        KV * 40 * 8 * 128,
    ),
    # The class ignores num_kv_heads where multi_query is on and the decoder is the old one.
    "falcon-7b": (
        dense(32, 4544, 71, model_type="falcon", multi_query=True, num_kv_heads=71, new_decoder_architecture=False),
        KV * 32 * 1 * 64,
    ),
    "falcon-40b, old names": (
        {"n_layer": 60, "hidden_size": 8192, "n_head": 128, "n_head_kv": 8, "model_type": "RefinedWeb"},
        KV * 60 * 8 * 64,
    ),
    "chatglm2-6b": (
        dense(28, 4096, 32, kv_channels=128, multi_query_attention=True, multi_query_group_num=2),
        KV * 28 * 2 * 128,
    ),
    "chatglm-6b, all heads": (
        dense(28, 4096, 32, kv_channels=128, multi_query_attention=False, multi_query_group_num=1),
        KV * 28 * 32 * 128,
    ),
    "a list of heads": (
        {
            "num_transformer_layers": 3,
            "model_dim": 1280,
            "head_dim": 64,
            "num_query_heads": [12, 12, 16],
            "num_kv_heads": [3, 3, 4],
        },
        KV * (3 + 3 + 4) * 64,
    ),
    "nemotron-nas": (
        dense(3, 8192, 64, head_dim=128)
        | {
            "num_key_value_heads": None,
            "block_configs": [
                {"attention": {"n_heads_in_group": 8, "no_op": False}},
                {"attention": {"n_heads_in_group": None, "no_op": True}},
                {"attention": {"n_heads_in_group": 16, "no_op": False}},
            ],
        },
        KV * (8 + 0 + 4) * 128,
    ),
    # K and V shared by two layers in a row, and by the last ten
    "hunyuan-large": (dense(64, 6400, 80, 8, head_dim=128, use_cla=True, cla_share_factor=2), KV * 32 * 8 * 128),
    "the last ten share": (dense(30, 2048, 16, 8, num_kv_shared_layers=10), KV * 20 * 8 * 128),
    "step-3": (dense(61, 7168, 64, head_dim=256, num_attention_groups=1, share_q_dim=2048), KV * 61 * 1 * 256),
    "pixtral-12b, nested": (
        {
            "model_type": "llava",
            "vision_config": dense(24, 1024, 16),
            "text_config": {
                **{"model_type": "mistral", "num_hidden_layers": 40, "hidden_size": 5120, "head_dim": 128},
                **{"num_key_value_heads": 8, "sliding_window": None, "vocab_size": 131072},
            },
        },
        KV * 40 * 8 * 128,
    ),
    "llava-1.5, all by default": (
        {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}},
        KV * 32 * 32 * 128,
    ),
    "qwen2.5-omni, nested twice": (
        {"model_type": "qwen2_5_omni", "thinker_config": {"text_config": dense(28, 3584, 28, 4)}},
        KV * 28 * 4 * 128,
    ),
    "deepseek-vl2-tiny": (
        {
            "language_config": dense(12, 1280, 10, 10, use_mla=False, kv_lora_rank=None, v_head_dim=0)
            | {"v_head_dim": None}
        },
        KV * 12 * 10 * 128,
    ),
    "internvl": ({"llm_config": dense(48, 5120, 40, 8)}, KV * 48 * 8 * 128),
}

LATENT = {
    "deepseek-v2": (dense(60, 5120, 128, 128, kv_lora_rank=512, qk_rope_head_dim=64), 60 * (512 + 64) * 2),
    "kimi-k2": (
        dense(61, 7168, 64, 64, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128),
        61 * (512 + 64) * 2,
    ),
    "minicpm3-4b": (
        dense(62, 2560, 40, 40, kv_lora_rank=256, qk_rope_head_dim=32, q_lora_rank=768),
        62 * (256 + 32) * 2,
    ),
    # It has the key of a latent row, and a switch that turns it off.
    "hunyuan-a13b": (dense(32, 4096, 32, 8, use_mla=False, kv_lora_rank=512, qk_rope_head_dim=64), KV * 32 * 8 * 128),
    # Two attentions in each of its layers
    "longcat-flash": (
        {"model_type": "longcat_flash", "num_layers": 28, "hidden_size": 6144, "num_attention_heads": 64}
        | {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "attention_method": "MLA"},
        2 * 28 * (512 + 64) * 2,
    ),
}

ROW_R7B, ROW_G3, ROW_G2, ROW_SC, ROW_L4 = KV * 8 * 128, KV * 16 * 128, KV * 16 * 128, KV * 4 * 128, KV * 8 * 128
WINDOWED = {
    "command-r7b": (
        dense(32, 4096, 32, 8, sliding_window=4096, layer_switch=4, sliding_window_pattern=4),
        *(32 * ROW_R7B, 8 * ROW_R7B, 24 * ROW_R7B * 4096),
    ),
    "gemma-3-27b": (
        {"text_config": dense(62, 5376, 32, 16, model_type="gemma3_text", head_dim=128, sliding_window=1024)},
        *(62 * ROW_G3, 10 * ROW_G3, 52 * ROW_G3 * 1024),
    ),
    "gemma-3-4b, as published": (
        {
            "text_config": {
                **{"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024},
            }
        },
        *(KV * 34 * 4 * 256, KV * 5 * 4 * 256, KV * 29 * 4 * 256 * 1024),
    ),
    "gemma-2-27b": (
        dense(46, 4608, 32, 16, model_type="gemma2", head_dim=128, sliding_window=4096),
        *(46 * ROW_G2, 23 * ROW_G2, 23 * ROW_G2 * 4096),
    ),
    "starcoder2-15b": (
        dense(40, 6144, 48, 4, model_type="starcoder2", sliding_window=4096, max_position_embeddings=16384),
        *(40 * ROW_SC, 0, 40 * ROW_SC * 4096),
    ),
    "a window as long as the context": (
        dense(32, 4096, 32, 8, sliding_window=32768, max_position_embeddings=32768),
        *(32 * ROW_R7B, 32 * ROW_R7B, 0),
    ),
    "qwen2 with its window on": (
        dense(80, 8192, 64, 8, use_sliding_window=True, sliding_window=32768, max_window_layers=70)
        | {"max_position_embeddings": 131072},
        *(80 * ROW_R7B, 70 * ROW_R7B, 10 * ROW_R7B * 32768),
    ),
    "exaone-4, letters": (
        dense(64, 5120, 40, 8, head_dim=128, sliding_window=4096, sliding_window_pattern="LLLG"),
        *(64 * ROW_R7B, 16 * ROW_R7B, 48 * ROW_R7B * 4096),
    ),
    "one truth a layer": (
        dense(4, 4096, 32, 8, sliding_window=512, sliding_window_pattern=[True, True, False, True]),
        *(4 * ROW_R7B, 1 * ROW_R7B, 3 * ROW_R7B * 512),
    ),
    "one window a layer": (
        dense(4, 4096, 32, 8, sliding_window=[512, None, 128, None]),
        *(4 * ROW_R7B, 2 * ROW_R7B, ROW_R7B * (512 + 128)),
    ),
    "ministral-8b, interleaved": (
        dense(36, 4096, 32, 8, head_dim=128, interleaved_sliding_window=[None, 32768, 32768, 32768]),
        *(36 * ROW_R7B, 9 * ROW_R7B, 27 * ROW_R7B * 32768),
    ),
    "gpt-neo-2.7b": (
        {"num_layers": 32, "hidden_size": 2560, "num_heads": 20, "window_size": 256}
        | {"attention_types": [[["global", "local"], 16]]},
        *(KV * 32 * 2560, KV * 16 * 2560, KV * 16 * 2560 * 256),
    ),
    "llama-4, by no_rope_layers": (
        dense(4, 5120, 40, 8, head_dim=128, attention_chunk_size=8192, no_rope_layers=[1, 1, 1, 0]),
        *(4 * ROW_L4, 1 * ROW_L4, 3 * ROW_L4 * 8192),
    ),
    # Other heads and other dimensions in the layers with a window, K longer than V
    "mimo-v2-flash": (
        dense(6, 4096, 64, 4, head_dim=192, v_head_dim=128, sliding_window_size=128, attention_chunk_size=128)
        | {"swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128}
        | {"hybrid_layer_pattern": [0, 1, 1, 1, 1, 0]},
        *(2 * (2 * 4 + 4 * 8) * (192 + 128), 2 * 2 * 4 * (192 + 128), 2 * 4 * 8 * (192 + 128) * 128),
    ),
    "step-3.5-flash, with its drafts listed": (
        dense(3, 4096, 64, head_dim=128, num_attention_groups=8, sliding_window=512, num_nextn_predict_layers=1)
        | {
            "attention_other_setting": {
                "attention_type": "sliding_attention",
                "num_attention_heads": 96,
                "num_attention_groups": 8,
                "head_dim": 128,
            }
        }
        | {"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]},
        *(KV * 3 * 8 * 128, KV * 1 * 8 * 128, KV * 2 * 8 * 128 * 512),
    ),
    "gemma-3n-e4b": (
        dense(35, 2048, 8, 2, model_type="gemma3n_text", head_dim=256, sliding_window=512, num_kv_shared_layers=15)
        | {"layer_types": layers(35, 5, "sliding_attention", "full_attention")},
        *(KV * 20 * 2 * 256, KV * 4 * 2 * 256, KV * 16 * 2 * 256 * 512),
    ),
}
