"""What the files of some families leave out, because the class of that model_type has it as its default.

Taken from the configuration classes of Transformers 5.24. Only what published files rely on; a file that lacks more
than this is refused.
"""

from collections.abc import Mapping

from course.models.keys import Keys

_LLAMA = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "max_position_embeddings": 2048,
    "vocab_size": 32000,
}
_MISTRAL = _LLAMA | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "head_dim": None,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
}
_GEMMA3 = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262208,
    "sliding_window": 4096,
    "max_position_embeddings": 131072,
}
INSIDE: Mapping[str, Mapping[str, int | None]] = {"llama": _LLAMA, "mistral": _MISTRAL, "gemma3_text": _GEMMA3}
"""Defaults of language models inside of others (LLaVA, Pixtral, Gemma 3), whose text_config may be nearly empty."""

EVERY = {
    "gemma2": 2,
    "vaultgemma": 2,
    "gpt_oss": 2,
    "cohere2": 4,
    "olmo3": 4,
    "exaone4": 4,
    "exaone_moe": 4,
    "afmoe": 4,
    "gemma3n": 5,
    "gemma3n_text": 5,
    "gemma3": 6,
    "gemma3_text": 6,
}
"""model_type: every how manieth layer has full attention, the others a window, if no key says so."""

MUST_LIST = {
    "cohere2_moe",
    "cwm",
    "gemma4",
    "gemma4_text",
    "granite_swa",
    "granitemoe_swa",
    "mimo_v2_flash",
    "qwen2_moe",
}
"""Families with a window in some layers whose rule is another one: their files must list the layers."""


ON_BY_DEFAULT = {
    "block_auto_adjust_ff_dim": frozenset({"lfm2", "lfm2_vl"}),
    "attn_output_gate": frozenset({"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"}),
    "multi_query": frozenset({"falcon", "gpt_bigcode"}),
}
"""Switches that are on if the file says nothing, because the class of that model_type has them on."""

MLA = frozenset(
    {
        *("axk1", "AXK1", "bailing_hybrid", "bailing_hybrid_mtp", "deepseek_mtp", "deepseek_v2", "deepseek_v3"),
        *("deepseek_v32", "deepseek_v4", "deepseek_vl_v2", "glm4_moe_lite", "glm4_moe_lite_mtp", "glm_moe_dsa"),
        *("k3_dspark", "kimi_k2", "kimi_linear", "longcat_flash", "longcat_flash_ngram", "longcat_next"),
        *("pangu_ultra_moe", "pangu_ultra_moe_mtp", "sarvam_mla"),
    }
)
"""Types for which vLLM keeps a latent row: is_deepseek_mla in model_arch_config_convertor.py (0.19.0 to 0.27), and
sarvam.py. Every other model with kv_lora_rank keeps K and V of all its heads there, such as MiniCPM3 (minicpm3.py)."""


def with_defaults(keys: Keys, inside: bool) -> tuple[Keys, tuple[str, ...]]:
    """The keys with the class defaults that this family's files rely on, and a note for each that was filled in.

    inside: whether the keys are those of a language model inside of another model.
    """
    defaults = INSIDE.get(keys.family, {}) if inside else {}
    # A key that is there with null means null, not the default.
    missing = {name: value for name, value in defaults.items() if name not in keys.values}
    missing = {name: value for name, value in missing.items() if value is not None}
    if not missing:
        return keys, ()
    values = ", ".join(f"{name} {value}" for name, value in missing.items())
    note = f"not in the file, so the defaults of model_type {keys.family}: {values}"
    return Keys(missing | dict(keys.values), keys.place), (note,)
