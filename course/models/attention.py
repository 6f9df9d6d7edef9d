"""What the attention of one layer keeps of a token: heads and their dimensions, or a latent row."""

from typing import Any

from course.base.settings import quote
from course.models.families import MLA, ON_BY_DEFAULT
from course.models.keys import HEAD_DIM, HEADS, KV_HEADS, WIDTH, Keys
from course.models.layers import Heads, Latent
from course.models.pattern import CHUNKED, SLIDING, Kind

OF_A_LAYER = frozenset((*HEADS, *KV_HEADS, *HEAD_DIM, "kv_lora_rank", "q_lora_rank", "v_head_dim", "qk_nope_head_dim"))


def latent(keys: Keys) -> bool:
    """Whether an engine keeps the latent row of a model with kv_lora_rank; a file without a model_type may be."""
    return keys.family in MLA or not keys.family


class Attention:
    """The attention of a model; `layer(i, kind)` gives the cache of one layer of `number`."""

    def __init__(self, keys: Keys, number: int):
        self.keys, self.number = keys, number
        self.own = _per_layer(keys)
        inner = keys.inner("attn_config")  # MPT and DBRX
        self.inner = inner if inner.values else None
        self.other = keys.inner("attention_other_setting")  # Step 3.5

    def layer(self, i: int, kind: Kind) -> Heads | Latent:
        """ValueError if heads or dimensions cannot be told."""
        if i in self.own:
            plain = {name: value for name, value in self.keys.values.items() if name != "per_layer_config"}
            return Attention(Keys(plain | self.own[i], self.keys.place), self.number).layer(i, kind)
        keys, chunked = self.keys, kind.attention == CHUNKED
        if "kv_lora_rank" in keys and keys.values.get("use_mla") is not False:
            return self._latent(i, kind) if latent(keys) else self._expanded(i, kind)
        if "index_head_dim" in keys:
            raise keys.refusal("index_head_dim without kv_lora_rank: what the indexer keeps of a token is not known")
        heads = self._query_heads(i, kind)
        kv_heads = self._kv_heads(i, kind, heads)
        if heads % kv_heads:
            raise keys.refusal(f"{heads} query heads cannot share {kv_heads} KV heads evenly")
        key_dim = self._variant("head_dim", kind) or self._head_dim(heads)
        value_dim = self._variant("v_head_dim", kind) or keys.size("v_head_dim") or key_dim
        return Heads(kv_heads, key_dim, value_dim, heads, kind.window, chunked)

    def _latent(self, i: int, kind: Kind) -> Latent:
        keys = self.keys
        rank = keys.needed("the latent row", "kv_lora_rank")
        rope = keys.needed("the rotary part of the key", "qk_rope_head_dim", low=0)
        nope = keys.size("qk_nope_head_dim", low=0)
        value = keys.size("v_head_dim")
        index = keys.size("index_head_dim") or 0
        types = keys.listed("indexer_types")
        if types:
            if i >= len(types[1]) or types[1][i] not in ("full", "shared"):
                raise keys.refusal("indexer_types must have full or shared for each layer")
            index = index if types[1][i] == "full" else 0
        heads = self._query_heads(i, kind)
        return Latent(
            rank, rope, heads, (nope or 0) + rope, value or nope or rank, index, kind.window, kind.attention == CHUNKED
        )

    def _expanded(self, i: int, kind: Kind) -> Heads:
        """K and V of all heads, computed from the latent row; vLLM pads V to the length of K."""
        nope = self.keys.needed("the key of a head", "qk_nope_head_dim", low=0)
        dim = nope + self.keys.needed("the rotary part of the key", "qk_rope_head_dim", low=0)
        heads = self._query_heads(i, kind)
        return Heads(heads, dim, dim, heads, kind.window, kind.attention == CHUNKED)

    def _query_heads(self, i: int, kind: Kind) -> int:
        names = ("num_attention_heads_per_layer", *HEADS)
        return (
            self._variant("num_attention_heads", kind)
            or self._entry(i, names, "the number of heads")
            or self._none("the number of heads", HEADS)
        )

    def _kv_heads(self, i: int, kind: Kind, heads: int) -> int:
        keys = self.keys
        blocks = keys.listed("block_configs")  # Nemotron-NAS
        if blocks:
            return heads // self._grouped(i, blocks[1])
        special = self._variant("num_key_value_heads", kind)
        if special:
            return special
        multi_query = keys.flag("multi_query", absent=keys.family in ON_BY_DEFAULT["multi_query"])
        if keys.family == "falcon" and multi_query and not keys.flag("new_decoder_architecture"):
            return 1  # the class ignores num_kv_heads then
        if "multi_query_group_num" in keys or "multi_query_attention" in keys:  # ChatGLM
            return (keys.size("multi_query_group_num") or 1) if keys.flag("multi_query_attention") else heads
        number = self._entry(i, KV_HEADS, "the number of KV heads")
        if number is None and self.inner is not None:
            kind_of = self.inner.raw("attn_type")
            if kind_of not in (None, "multihead_attention", "multiquery_attention", "grouped_query_attention"):
                raise keys.refusal(f"attn_config has attn_type {quote(kind_of)}, which is not known")
            number = 1 if kind_of == "multiquery_attention" else self.inner.size(*KV_HEADS)
            if number is None and kind_of == "grouped_query_attention":
                raise keys.refusal("attn_config has grouped queries, but kv_n_heads is missing")
        if number is None and multi_query:
            return 1
        return number or heads

    def _grouped(self, i: int, blocks: list) -> int:
        """Query heads that share a KV head of this layer."""
        block = blocks[i].get("attention") if i < len(blocks) and isinstance(blocks[i], dict) else None
        group = block.get("n_heads_in_group") if isinstance(block, dict) else None
        return self.keys.number("n_heads_in_group", group)

    def _variant(self, name: str, kind: Kind) -> int | None:
        """The size that only layers with a window have, or only those without, under another name."""
        keys = self.keys
        if kind.attention == SLIDING:
            if self.other.values and self.other.raw("attention_type") in (None, "sliding_attention"):
                names = {"num_key_value_heads": ("num_attention_groups",)}.get(name, ())
                return self.other.size(name, *names)
            return keys.size(f"swa_{name}") or (
                keys.size("num_sliding_attention_heads") if name == "num_attention_heads" else None
            )
        if name == "num_key_value_heads":
            # Gemma 4 reads it only if K and V are one projection; both are stored all the same.
            return keys.size("num_global_key_value_heads") if keys.flag("attention_k_eq_v") else None
        return keys.size("global_head_dim") if name == "head_dim" else None

    def _head_dim(self, heads: int) -> int:
        keys = self.keys
        size = keys.first(*HEAD_DIM)
        if size:
            return size
        width = keys.needed("the dimension of a head", *WIDTH)
        if width % heads:
            raise keys.refusal(f"head_dim is missing, and a width of {width} is no multiple of {heads} heads")
        return width // heads

    def _entry(self, i: int, names: tuple[str, ...], meaning: str) -> int | None:
        """A number for all layers, or the one of a list that is this layer's."""
        for name in names:
            value: Any = self.keys.values.get(name)
            if isinstance(value, list):
                if len(value) != self.number:
                    raise self.keys.refusal(f"{name} has {len(value)} entries for {self.number} layers")
                return self.keys.number(name, value[i])
        return self.keys.size(*names)

    def _none(self, meaning: str, names: tuple[str, ...]) -> int:
        raise self.keys.refusal(f"{meaning} cannot be told: {' or '.join(names[:3])} is needed")


def _per_layer(keys: Keys) -> dict[int, dict[str, Any]]:
    """per_layer_config: keys that some layers have of their own, by the layer's number."""
    layers = {}
    for name, values in keys.inner("per_layer_config").values.items():
        if not isinstance(name, str) or not name.isdecimal() or len(name) > 9 or not isinstance(values, dict):
            raise keys.refusal(f"per_layer_config must hold an object for the number of a layer, not {quote(name)}")
        strange = sorted(set(values) - OF_A_LAYER)
        if strange:
            raise keys.refusal(f"per_layer_config has {strange[0]}, which is not understood for one layer alone")
        layers[int(name)] = values
    return layers
