"""Parameters of a model by its keys, and the bytes they take.

Matrices only: norms, biases, position tables and what a vision or audio part has on top are left out. If something
is not understood the answer is None and a note: the caches of such a model can be known all the same.
"""

from math import ceil
from typing import NamedTuple

from course.base.settings import quote
from course.models import experts, recurrent
from course.models.attention import Attention
from course.models.families import ON_BY_DEFAULT
from course.models.keys import VOCABULARY, WIDTH, Keys
from course.models.layers import Heads, Latent
from course.models.parameters import Weights
from course.models.pattern import Kind
from course.models.quantisation import Quantisation

HALF = 2
MLP_WIDTH = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "block_ff_dim")
FOUR_TIMES = {"gpt2", "gptj", "gpt_neo", "gpt_bigcode", "bloom", "falcon", "mpt", "codegen", "phi-msft"}
UNGATED_FAMILIES = FOUR_TIMES | {
    "gpt_neox",
    "opt",
    "starcoder2",
    "phi",
    "persimmon",
    "nemotron",
    "nemotron_h",
    "xglm",
    "biogpt",
}
UNGATED_ACTIVATIONS = {"relu", "relu2", "xielu"}
TIED_FAMILIES = {
    *("gpt2", "gpt_bigcode", "bloom", "opt", "falcon", "mpt", "cohere", "cohere2", "gemma", "gemma2", "gemma3"),
    *("gemma3_text", "gemma4", "gemma4_text", "gpt_neo", "mamba", "lfm2", "starcoder2", "smollm3", "recurrent_gemma"),
}
"""Families whose class ties the output head to the embedding table if the file says nothing."""
OTHERWISE = {
    **dict.fromkeys(("gemma3n", "gemma3n_text"), "embeddings in every layer"),
    **dict.fromkeys(("zamba", "zamba2"), "attention weights that layers share"),
    **dict.fromkeys(("deci", "nemotron-nas", "openelm"), "layers of different widths"),
    "longcat_flash": "two kinds of MLP in a layer",
    **dict.fromkeys(("recurrent_gemma", *recurrent.RWKV), "a recurrence whose matrices are not known here"),
}
MORE_BY_KEY = {
    "hidden_size_per_layer_input": "embeddings in every layer",
    "use_double_wide_mlp": "an MLP of twice the width in some layers",
}
"""Keys that mean matrices which are not counted here, whatever the family is called."""
NO_MLP = {"mamba", "mamba2", "falcon_mamba"}


class Part(NamedTuple):
    """Parameters of a layer: of attention, the rest, all experts, the experts that see one token, a recurrence."""

    attention: int
    rest: int
    experts: int = 0
    active_experts: int = 0
    recurrence: int = 0


def mlp_width(keys: Keys) -> int | None:
    """Width of the MLP: of the file, or four times the model's if the family leaves it out."""
    if isinstance(keys.raw(*MLP_WIDTH), list):
        return None
    width = keys.first(*MLP_WIDTH, "mlp_hidden_size")
    if width is None and keys.family in FOUR_TIMES:
        return (keys.size("expansion_ratio") or 4) * keys.needed("the width of the model", *WIDTH)
    if width and keys.flag("block_auto_adjust_ff_dim", absent=keys.family in ON_BY_DEFAULT["block_auto_adjust_ff_dim"]):
        multiple = keys.size("block_multiple_of") or 256
        return multiple * ceil(int(_factor(keys) * int(2 * width / 3)) / multiple)
    return width // 2 if width and keys.family == "qwen" else width  # Qwen 1 counts gate and up together


def _factor(keys: Keys) -> float:
    """block_ffn_dim_multiplier, 1 if it is absent."""
    factor = keys.raw("block_ffn_dim_multiplier")
    if factor is None:
        return 1.0
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= 1000:
        raise keys.refusal(f"block_ffn_dim_multiplier must be a number above 0 and at most 1000, not {quote(factor)}")
    return factor


def count(
    outer: Keys, keys: Keys, kinds: list[Kind], quantised: Quantisation, stored: int | None, drafts: int = 0
) -> tuple[Weights | None, tuple[str, ...]]:
    """The weights and notes on them; None with the reason if they could not be counted.

    stored: bytes of the checkpoint, if its index says so. drafts: layers for speculative decoding beside `kinds`.
    """
    try:
        return _count(outer, keys, kinds, quantised, stored, drafts)
    except ValueError as error:
        return None, (f"the weights could not be counted ({error})",)


def _count(
    outer: Keys, keys: Keys, kinds: list[Kind], quantised: Quantisation, stored: int | None, drafts: int
) -> tuple[Weights, tuple[str, ...]]:
    if keys.family in OTHERWISE:
        raise keys.refusal(f"model_type {keys.family} has {OTHERWISE[keys.family]}")
    for key, what in MORE_BY_KEY.items():
        if keys.raw(key):
            raise keys.refusal(f"{key} means {what}")
    if not quantised.understood:
        raise keys.refusal(f"the bits of a weight quantised with {quantised.method} are not known")
    hidden = keys.needed("the width of the model", *WIDTH)
    vocabulary = keys.needed("the size of the vocabulary", *VOCABULARY)
    embedding = vocabulary * hidden
    head = 0 if _ties_head(outer, keys) else embedding
    mixture = experts.read(keys, mlp_width(keys))
    each = _parts(keys, kinds, hidden, mixture)
    parts = Part(*(sum(column) for column in zip(*each, strict=True)))
    layer_bytes, other_bytes = _layer_bytes(parts, quantised), HALF * (embedding + head)
    expert_bytes = _layer_bytes(Part(0, 0, parts.experts), quantised)
    # A layer like the last one, and a projection of two hidden states to one (DeepSeek-V3, arXiv 2412.19437).
    draft_bytes = drafts * (_layer_bytes(each[-1], quantised) + HALF * 2 * hidden * hidden)
    notes = []
    if stored is not None:
        layers_stored = max(stored - other_bytes, 0)
        if layers_stored - layer_bytes > draft_bytes / 2:  # the checkpoint has the draft layers too
            layers_stored = max(layers_stored - draft_bytes, 0)
        expert_bytes = min(ceil(expert_bytes * layers_stored / layer_bytes), layers_stored) if layer_bytes else 0
        layer_bytes = layers_stored
        notes.append("the size of the weights is that of the checkpoint, as its index says")
    elif any(name in outer for name in ("vision_config", "audio_config")):
        notes.append("weights of the vision and audio parts are not counted")
    rest = parts.rest + parts.recurrence
    dense = parts.attention + rest
    narrow = rest + parts.active_experts + (0 if quantised.attention_kept else parts.attention)
    result = Weights(
        layers=dense + parts.experts,
        active=dense + parts.active_experts,
        embedding=embedding,
        head=head,
        layer_bytes=layer_bytes,
        other_bytes=other_bytes,
        expert_bytes=expert_bytes,
        num_experts=mixture.number if mixture else 0,
        experts_per_token=mixture.per_token if mixture else 0,
        fp8=narrow if quantised.fp8 else 0,
        draft_bytes=draft_bytes,
    )
    return result, tuple(notes)


def _ties_head(outer: Keys, keys: Keys) -> bool:
    """Whether the output head is the embedding table: by the file, else by the family."""
    levels = [level for level in (outer, keys) if "tie_word_embeddings" in level]
    return levels[0].flag("tie_word_embeddings") if levels else keys.family in TIED_FAMILIES


def _parts(keys: Keys, kinds: list[Kind], hidden: int, mixture: experts.Experts | None) -> list[Part]:
    """The parameters of each layer."""
    attention = Attention(keys, len(kinds))
    width = mlp_width(keys)
    by_case: dict[tuple, Part] = {}
    parts = []
    for i, kind in enumerate(kinds):
        shape = attention.layer(i, kind) if kind.attention else None
        sparse = mixture is not None and kind.mlp is not None and experts.here(keys, i, kind)
        case = (shape, kind.linear, kind.mlp, sparse)
        if case not in by_case:
            by_case[case] = _layer(keys, hidden, shape, kind, mixture if sparse else None, width)
        parts.append(by_case[case])
    return parts


def _layer_bytes(parts: Part, quantised: Quantisation) -> int:
    """Bytes of these layers, with what the checkpoint leaves in 16 bits."""
    bits = 16 if quantised.bits is None else quantised.bits
    rest = 16 if quantised.experts_only else bits
    mixers = rest if quantised.attention_bits is None else quantised.attention_bits
    attention = 16 if quantised.attention_kept else mixers
    return ceil(
        (parts.experts * bits + parts.rest * rest + parts.attention * attention + parts.recurrence * mixers) / 8
    )


def _layer(
    keys: Keys,
    hidden: int,
    shape: Heads | Latent | None,
    kind: Kind,
    mixture: experts.Experts | None,
    width: int | None,
) -> Part:
    attention = _attention(keys, shape, hidden) if shape else 0
    recurrence, rest = _recurrence(keys, hidden) if kind.linear else 0, 0
    if kind.mlp is None or keys.family in NO_MLP:
        return Part(attention, rest, recurrence=recurrence)
    activation = keys.raw("hidden_act", "mlp_hidden_act")
    matrices = 2 if keys.family in UNGATED_FAMILIES or activation in UNGATED_ACTIVATIONS else 3
    if mixture is None:
        dense = keys.size("intermediate_size_mlp", "dense_intermediate_size") or width  # Llama 4, MiniMax
        if dense is None:
            raise keys.refusal("the width of the MLP is missing: intermediate_size is needed")
        return Part(attention, rest + matrices * hidden * dense, recurrence=recurrence)
    shorter = keys.size("moe_latent_size", "routed_expert_hidden_size")  # experts work on a projection of this width
    one = matrices * (shorter or hidden) * mixture.width
    rest += matrices * hidden * mixture.shared_width + hidden * mixture.number + 2 * hidden * (shorter or 0)
    return Part(attention, rest, mixture.number * one, mixture.per_token * one, recurrence)


def _has_gate(keys: Keys) -> bool:
    return keys.flag("attn_output_gate", absent=keys.family in ON_BY_DEFAULT["attn_output_gate"])


def _attention(keys: Keys, shape: Heads | Latent, hidden: int) -> int:
    """The projections of queries, keys, values and output; of MLA those down to the latent row and back up."""
    if not isinstance(shape, Latent):
        gate = hidden * shape.query_heads * shape.value_dim if _has_gate(keys) else 0
        return hidden * (shape.query_heads + shape.kv_heads) * (shape.key_dim + shape.value_dim) + gate
    low, up = keys.size("q_lora_rank"), shape.query_heads * shape.key_dim
    queries = low * (hidden + up) if low else hidden * up
    nope = shape.key_dim - shape.rope_dim
    latent = hidden * (shape.rank + shape.rope_dim) + shape.rank * shape.query_heads * (nope + shape.value_dim)
    index = 0
    if shape.index_dim:
        index_heads = keys.size("index_n_heads") or 0
        index = (low or hidden) * index_heads * shape.index_dim + hidden * (shape.index_dim + index_heads)
    return queries + latent + shape.query_heads * shape.value_dim * hidden + index


def _recurrence(keys: Keys, hidden: int) -> int:
    """The matrices around a recurrent state, by its parts."""
    parts = {part.what: part.units for part in recurrent.parts(keys)}
    if "linear key heads" in parts:
        of_keys = parts["linear key heads"] * keys.needed("the recurrent state", "linear_key_head_dim")
        of_values = parts["linear value heads"] * keys.needed("the recurrent state", "linear_value_head_dim")
        return hidden * (2 * of_keys + 3 * of_values + 2 * parts["linear value heads"])
    if "linear heads" in parts:
        heads = parts["linear heads"]
        inside = keys.inner("linear_attn_config")
        each = keys.size("linear_head_dim") or inside.needed("the recurrent state", "head_dim")
        return hidden * (4 * heads * each + 2 * each + heads) + 2 * each * heads * each
    if "heads of linear attention" in parts:
        inner = parts["heads of linear attention"] * (
            keys.size("head_dim") or hidden // parts["heads of linear attention"]
        )
        return 5 * hidden * inner
    if "recurrence heads" in parts:
        inner, groups = parts["convolution channels"], parts["state groups"]
        state = keys.needed("the size of the recurrent state", *recurrent.STATE_SIZE)
        return hidden * (3 * inner + 2 * groups * state + parts["recurrence heads"])
    if "recurrence channels" in parts:
        inner = parts["recurrence channels"]
        state = keys.needed("the size of the recurrent state", *recurrent.STATE_SIZE)
        rank = keys.raw("mamba_dt_rank", "time_step_rank")
        step = keys.number("mamba_dt_rank", rank) if isinstance(rank, int) else ceil(hidden / 16)
        return 3 * hidden * inner + inner * (2 * step + 3 * state)
    return 4 * hidden * hidden  # a short convolution between gates, as in LFM2
