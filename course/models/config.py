"""From a Hugging Face config.json to a ModelSpec."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

from course.settings import shown
from course.textfiles import json_value, path_of, text

from .keys import MAX_LAYERS, Keys
from .spec import ModelSpec

MAX_BYTES = 2**26


def read(config: str | PathLike | Mapping[str, Any], name: str | None = None) -> ModelSpec:
    """See `ModelSpec.from_config`."""
    if isinstance(config, Mapping):
        return _spec(Keys(config, name or "the config"), name or str(config.get("model_type") or "model"), "a dict")
    path = path_of(config, "a model's config")
    if path.is_dir():
        path = path / "config.json"
    values = json_value(path, text(path, "config.json", "JSON", limit=MAX_BYTES))
    if not isinstance(values, dict):
        raise ValueError(f"{path.name}: a config is a JSON object, not {shown(values)}")
    stem = path.parent.resolve().name if path.name == "config.json" else path.stem
    return _spec(Keys(values, path.name), name or stem, path.name)


def _spec(keys: Keys, name: str, source: str) -> ModelSpec:
    layers = keys.needed("number of layers", "num_hidden_layers", "n_layer", "num_layers", high=MAX_LAYERS)
    hidden = keys.needed("width", "hidden_size", "n_embd")
    heads = keys.needed("number of heads", "num_attention_heads", "n_head")
    kv_heads = keys.size("num_key_value_heads") or heads
    head_dim = keys.size("head_dim")
    if head_dim is None:
        if hidden % heads:
            raise keys.refusal(f"head_dim is missing, and hidden_size {hidden} is no multiple of {heads} heads")
        head_dim = hidden // heads
    return ModelSpec(
        name=name,
        num_layers=layers,
        hidden_size=hidden,
        intermediate_size=keys.size("intermediate_size", "n_inner") or 4 * hidden,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=keys.needed("size of the vocabulary", "vocab_size"),
        source=source,
        max_position_embeddings=keys.size("max_position_embeddings", "n_positions"),
    )
