"""A config.json read by the meaning of its keys, whatever a family calls them."""

from collections.abc import Mapping
from typing import Any

from course.base.settings import quote, whole

MAX_LAYERS = 10_000
MAX_SIZE = 10**8  # of a dimension, a vocabulary, a window
MAX_CONTEXT = 10**12

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers")
WIDTH = ("hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads", "num_query_heads")
KV_HEADS = (
    "num_key_value_heads",
    "num_kv_heads",
    "n_head_kv",
    "n_kv_heads",
    "kv_n_heads",
    "num_attention_groups",
    "num_query_groups",
    "num_key_value_heads_per_layer",
)
HEAD_DIM = ("attention_head_dim", "head_dim", "kv_channels")  # if two are given, the first is the cache's
WINDOW = ("sliding_window", "sliding_window_size", "attention_window_size")
CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_sequence_length",
    "max_context_length",
    "model_max_length",
    "seq_length",
    "n_ctx",
)
VOCABULARY = ("vocab_size", "padded_vocab_size")
DRAFTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "num_mtp_modules")


class Keys:
    """The keys of one level of a config; a value of null is as good as absent."""

    def __init__(self, values: Mapping[str, Any], place: str):
        self.values, self.place = values, place
        family = values.get("model_type")
        self.family = family if isinstance(family, str) else ""

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def raw(self, *names: str) -> Any:
        """The value under the first of these names that is there, else None."""
        return next((self.values[name] for name in names if name in self), None)

    def size(self, *names: str, low: int = 1, high: int = MAX_SIZE) -> int | None:
        """The whole number that these names stand for, None without any; ValueError if they disagree."""
        sizes = {name: self.number(name, self.values[name], low, high) for name in names if name in self}
        if len(set(sizes.values())) > 1:
            pairs = " and ".join(f"{name} = {value}" for name, value in sizes.items())
            raise self.refusal(f"{pairs} should be the same: one of them is not understood")
        return next(iter(sizes.values()), None)

    def first(self, *names: str, low: int = 1, high: int = MAX_SIZE) -> int | None:
        """The whole number under the first of these names that is there: the later ones mean less."""
        return next((self.number(name, self.values[name], low, high) for name in names if name in self), None)

    def needed(self, meaning: str, *names: str, low: int = 1, high: int = MAX_SIZE) -> int:
        """`size`, or a ValueError that names the keys if there is none."""
        value = self.size(*names, low=low, high=high)
        if value is None:
            raise self.refusal(f"{meaning} cannot be told: {' or '.join(names[:3])} is needed")
        return value

    def flag(self, name: str, absent: bool = False) -> bool:
        """Whether a switch is on. absent: what it is if it is not there, or null: the default of the class."""
        value = self.values.get(name)
        if value is None:
            return absent
        if isinstance(value, bool):
            return value
        raise self.refusal(f"{name} must be true or false, not {quote(value)}")

    def listed(self, *names: str) -> tuple[str, list] | None:
        """The first of these names that holds a list, with it; None if none is there."""
        for name in names:
            if name in self:
                value = self.values[name]
                if not isinstance(value, list) or len(value) > MAX_LAYERS:
                    raise self.refusal(f"{name} must be a list with one entry a layer, not {quote(value)}")
                return name, value
        return None

    def entries(self, name: str) -> list:
        """The list under this name; ValueError if there is none."""
        pair = self.listed(name)
        if pair is None:
            raise self.refusal(f"{name} is missing: a list with one entry a layer is needed")
        return pair[1]

    def inner(self, name: str) -> "Keys":
        """The object under this name; an empty one if there is none."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise self.refusal(f"{name} must be an object, not {quote(value)}")
        return Keys(value or {}, f"{self.place}, {name}")

    def number(self, name: str, value: Any, low: int = 1, high: int = MAX_SIZE) -> int:
        """`value` as a whole number; the refusal names the file and the key."""
        try:
            return whole(name, value, low=low, high=high)
        except ValueError as error:
            raise self.refusal(str(error)) from None

    def refusal(self, why: str) -> ValueError:
        """The error to raise, with the place in the file in front of `why`."""
        return ValueError(f"{self.place}: {why}")
