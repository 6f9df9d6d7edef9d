"""A mixture of experts by its keys: how many, how wide, and in which layers."""

from dataclasses import dataclass

from course.models.keys import Keys
from course.models.pattern import DENSE, EXPERTS, Kind

NUMBER = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size", "ffn_hidden_size")
PER_TOKEN = (
    *("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "experts_per_tok", "moe_topk", "moe_top_k"),
    *("moe_k", "top_k_experts"),
)
SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
SHARED_WIDTH = (
    *("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size"),
    *("share_expert_dim", "shared_experts_intermediate_size"),
)


@dataclass(frozen=True)
class Experts:
    """number experts of this width, of which per_token work on a token, beside shared ones of shared_width together."""

    number: int
    width: int
    per_token: int
    shared_width: int


def read(keys: Keys, dense_width: int | None) -> Experts | None:
    """The experts of the model, None for one without. ValueError if their sizes are missing."""
    inner = keys.inner("ffn_config")  # DBRX
    level = inner if inner.values else keys
    number = level.first(*NUMBER, low=0)
    if number in (None, 0, 1) or keys.values.get("enable_moe_block") is False:
        return None
    width = level.first(*WIDTH[:-1]) or (inner.size(WIDTH[-1]) if inner.values else dense_width)
    if width is None:
        raise keys.refusal("the width of an expert is missing: moe_intermediate_size is needed")
    per_token = level.first(*PER_TOKEN, high=number)
    if per_token is None:
        raise keys.refusal("how many experts work on a token is missing: num_experts_per_tok is needed")
    shared = level.first(*SHARED_EXPERTS, low=0) or 0
    shared_width = level.first(*SHARED_WIDTH, low=0)
    if shared_width is None:
        shared_width = shared * width
        if keys.family in ("llama4", "llama4_text"):
            shared_width = width
    elif shared > 1 and keys.family not in ("nemotron_h",):
        shared_width = max(shared_width, shared * width)
    return Experts(number, width, per_token, shared_width)


def here(keys: Keys, i: int, kind: Kind) -> bool:
    """Whether layer i has experts instead of a dense MLP."""
    if kind.mlp in (DENSE, EXPERTS):
        return kind.mlp == EXPERTS
    types = keys.listed("mlp_layer_types")
    if types and i < len(types[1]):
        return types[1][i] == "sparse"
    if i < (keys.first("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", low=0) or 0):
        return False
    only = keys.listed("mlp_only_layers")
    if only and i in only[1]:
        return False
    frequency = keys.raw("moe_layer_freq")
    if isinstance(frequency, list):
        return i < len(frequency) and frequency[i] == 1
    numbers = keys.raw("moe_layers_enum")  # Step 3: "4,5,6"
    if isinstance(numbers, str):
        return str(i) in numbers.replace(" ", "").split(",")
    pair = keys.listed("moe_layers")
    if pair:
        return i in pair[1]
    period = keys.size("expert_layer_period")
    if period is not None:  # Jamba
        return i % period == (keys.size("expert_layer_offset", low=0) or 0)
    step = keys.first("decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step", "moe_layer_interval", low=0)
    return (i + 1) % (step or 1) == 0
