"""From a Hugging Face config.json to a ModelSpec."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.base.textfiles import json_value, path_of, text
from course.models import attention, engine_defaults, families, pattern, quantisation, recurrent, unknown, weights
from course.models.keys import CONTEXT, DRAFTS, HEAD_DIM, LAYERS, MAX_CONTEXT, MAX_LAYERS, VOCABULARY, WIDTH, Keys
from course.models.layers import Heads, Layer

ModelSpec = Any  # course.models.spec.ModelSpec, which stands above
Make = Callable[..., ModelSpec]
MAX_BYTES = 2**26
INSIDE = ("text_config", "llm_config", "language_config", "thinker_config", "language_model_config", "lm_config")
QUANTISATION = "hf_quant_config.json"


def read(make: Make, config: str | PathLike | Mapping[str, Any], name: str | None = None) -> ModelSpec:
    """See `ModelSpec.from_config`. make: that class."""
    if isinstance(config, Mapping):
        return _spec(make, config, name or Keys(config, "").family or "model", "the config", {}, None)
    path = path_of(config, "a model's config")
    if path.is_dir():
        path = path / "config.json"
    stem = path.parent.resolve().name if path.name == "config.json" else path.stem
    beside = [path.with_name(f"{path.stem}.{QUANTISATION}")]
    if path.name.endswith("config.json"):
        beside.append(path.with_name(path.name.removesuffix("config.json") + QUANTISATION))
    quantised = next((_object(one) for one in beside if one.is_file()), {})
    return _spec(make, _object(path), name or stem, path.name, quantised, _checkpoint_bytes(path))


def _object(path: Path) -> dict[str, Any]:
    values = json_value(path, text(path, "config.json", "JSON", limit=MAX_BYTES))
    if not isinstance(values, dict):
        raise ValueError(f"{path.name}: a config is a JSON object, not {quote(values)}")
    return values


def _checkpoint_bytes(path: Path) -> int | None:
    """Bytes of the checkpoint beside the config, if its index says so."""
    index = path.with_name("model.safetensors.index.json")
    if path.name != "config.json" or not index.is_file():
        return None
    metadata = _object(index).get("metadata")
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    return size if isinstance(size, int) and not isinstance(size, bool) and 0 < size < 10**15 else None


def _spec(
    make: Make,
    config: Mapping[str, Any],
    name: str,
    place: str,
    quantised: Mapping,
    stored: int | None,
) -> ModelSpec:
    outer = Keys(config, place)
    keys, inside = _language(outer)
    keys, notes = families.with_defaults(keys, inside)
    unknown.check(keys)
    quantisation.check_dtype(outer)
    quantisation.check_dtype(keys)
    number = _number(keys)
    drafts = _drafts(keys)
    kinds = pattern.kinds(keys, number, drafts)
    if keys.family.startswith("longcat_flash"):  # its num_layers are pairs
        kinds = [kind for kind in kinds for _ in (0, 1)]
    layers = _layers(keys, kinds)
    quantisation_of = quantisation.read(outer, quantised)
    spec = _sizes(make, keys, kinds, layers, name, place)
    weight_counts, more = weights.count(outer, keys, kinds, quantisation_of, stored, drafts)
    return replace(
        spec,
        draft_layers=_draft_layers(keys, layers, drafts),
        kv_cache_dtype=quantisation_of.kv_cache_dtype,
        weights=weight_counts,
        notes=(
            *notes,
            *unknown.renamed(keys),
            *_latent_note(keys, layers),
            *_kv_note(spec, quantisation_of.kv_cache_dtype),
            *more,
        ),
    )


def _number(keys: Keys) -> int:
    """The number of layers; that of a list with one entry each if it is not given."""
    number = keys.size(*LAYERS, high=MAX_LAYERS)
    if number is None:
        pair = keys.listed(*pattern.LISTS)
        listed = pair[1] if pair else keys.raw("hybrid_override_pattern")
        number = len(listed) if isinstance(listed, str | list) and listed else None
    return number or keys.needed("the number of layers", *LAYERS)


def _language(keys: Keys) -> tuple[Keys, bool]:
    """The level that describes the language model, and whether it lies inside of another."""
    for _ in range(3):
        inner = next((name for name in INSIDE if isinstance(keys.values.get(name), Mapping)), None)
        if inner is None:
            return keys, False
        below = keys.inner(inner)
        if any(name in below for name in LAYERS) or below.family in families.INSIDE:
            return below, True
        if any(name in keys for name in LAYERS):
            return keys, False
        keys = below
    return keys, True


def _layers(keys: Keys, kinds: list[pattern.Kind]) -> tuple[Layer, ...]:
    """The caches of each layer; those that read another layer's K and V keep none of their own."""
    number = len(kinds)
    shared = keys.size("num_kv_shared_layers", low=0, high=number) or 0  # Gemma 3n: the last ones
    every = keys.size("cla_share_factor") or 1 if keys.flag("use_cla") else 1  # Hunyuan: in rows of this many
    heads = attention.Attention(keys, number)
    state = recurrent.parts(keys) if any(kind.linear for kind in kinds) else ()
    layers = []
    for i, kind in enumerate(kinds):
        own = kind.attention and i < number - shared and i % every == 0 and not _lacks_attention(keys, i)
        layers.append(Layer(heads.layer(i, kind) if own else None, state if kind.linear else ()))
    if not any(layer.attention or layer.state for layer in layers):
        raise keys.refusal("no layer keeps anything of a sequence: the keys of attention or of a recurrence are needed")
    return tuple(layers)


def _lacks_attention(keys: Keys, i: int) -> bool:
    """Whether a Nemotron-NAS block has no attention."""
    blocks = keys.listed("block_configs")
    if not blocks or i >= len(blocks[1]) or not isinstance(blocks[1][i], dict):
        return False
    block = blocks[1][i].get("attention")
    return isinstance(block, dict) and (block.get("no_op") is True or block.get("replace_with_linear") is True)


def _drafts(keys: Keys) -> int:
    """Layers that only speculative decoding runs (multi-token prediction)."""
    modules = keys.size(*DRAFTS, low=0, high=1000) or 0
    return modules * (keys.size("mtp_transformer_layers", high=1000) or 1)


def _draft_layers(keys: Keys, layers: tuple[Layer, ...], drafts: int) -> tuple[Layer, ...]:
    """The caches of draft layers: full attention, in the shape of the model's own layers."""
    full = [layer.attention for layer in layers if layer.attention and layer.attention.window is None]
    pair = keys.listed("mtp_layers_block_type")
    types = pair[1] if pair else keys.raw("mtp_hybrid_override_pattern")  # Nemotron 3: "*E"
    if types:
        drafts *= sum(pattern.NAMES.get(one) == pattern.FULL for one in types if isinstance(one, str))
    return (Layer(full[-1]),) * drafts if full else ()


def _sizes(make: Make, keys: Keys, kinds: list, layers: tuple[Layer, ...], name: str, place: str) -> ModelSpec:
    """The sizes that describe the model as a whole; if layers differ, the largest."""
    heads = [layer.attention for layer in layers if isinstance(layer.attention, Heads)]
    caches = [layer.attention for layer in layers if layer.attention]
    wide = keys.raw("intermediate_size")
    widest = max((one for one in wide if isinstance(one, int)), default=0) if isinstance(wide, list) else 0
    return make(
        name=name,
        num_layers=len(kinds),
        hidden_size=keys.size(*WIDTH) or 0,
        intermediate_size=widest if isinstance(wide, list) else weights.mlp_width(keys) or 0,
        num_heads=max((one.query_heads for one in caches), default=0),
        num_kv_heads=max((one.kv_heads for one in heads), default=1 if caches else 0),
        head_dim=max((one.key_dim for one in caches), default=0) or (keys.first(*HEAD_DIM) or 0),
        vocab_size=keys.size(*VOCABULARY) or 0,
        source=place,
        max_position_embeddings=keys.first(*CONTEXT, high=MAX_CONTEXT),
        layers=layers,
    )


def _latent_note(keys: Keys, layers: tuple[Layer, ...]) -> tuple[str, ...]:
    """Whether a model with a latent row is one of which vLLM keeps all heads."""
    cache = next((layer.attention for layer in layers if layer.attention), None)
    if "kv_lora_rank" not in keys or not isinstance(cache, Heads) or attention.latent(keys):
        return ()
    row = (keys.size("kv_lora_rank") or 0) + (keys.size("qk_rope_head_dim", low=0) or 0)
    return (
        f"kv_lora_rank: {engine_defaults.VERSION} keeps K and V of all {cache.kv_heads} heads for model_type "
        f"{quote(keys.family)}, which is not in its list of latent attention; a latent row would be {row} elements a "
        "token and layer",
    )


def _kv_note(spec: ModelSpec, dtype: str | None) -> tuple[str, ...]:
    if dtype is None:
        return ()
    if dtype not in quantisation.KV_BYTES:
        return (f"the checkpoint asks for a KV cache in {dtype}, whose size is not known here",)
    size = spec.with_kv_dtype(dtype).kv_bytes_per_token
    return (f"the checkpoint asks for a KV cache in {dtype}, {size:,} bytes a token: kv_dtype auto takes that",)
