"""Which layer does what: full attention, a window, a chunk, a recurrence, both, or neither."""

from typing import NamedTuple

from course.base.settings import quote
from course.models import recurrent
from course.models.families import EVERY, MUST_LIST
from course.models.keys import CONTEXT, MAX_CONTEXT, WINDOW, Keys

FULL, SLIDING, CHUNKED, LINEAR, BOTH = "full", "sliding", "chunked", "linear", "both"
DENSE, EXPERTS, BY_KEYS = "dense", "experts", "by keys"
NAMES = {
    **dict.fromkeys(
        ("full_attention", "attention", "full", "global", "indexed_attention", "deepseek_sparse_attention", "*"), FULL
    ),
    **dict.fromkeys(("sliding_attention", "sliding_window_attention", "sliding", "local"), SLIDING),
    "chunked_attention": CHUNKED,
    **dict.fromkeys(("linear_attention", "mamba", "mamba2", "recurrent", "conv", "short_conv", "kda", "M"), LINEAR),
    "hybrid": BOTH,
    **dict.fromkeys(("mlp", "-"), DENSE),
    **dict.fromkeys(("moe", "E"), EXPERTS),
}
ATTENTION = {FULL: FULL, SLIDING: SLIDING, CHUNKED: CHUNKED, BOTH: FULL}
LISTS = ("layer_types", "layers_block_type")


class Kind(NamedTuple):
    """attention: FULL, SLIDING, CHUNKED or None. window: tokens, of the last two. linear: has a recurrence.

    mlp: DENSE or EXPERTS if the layer is nothing else, None if such layers are listed apart, else BY_KEYS.
    """

    attention: str | None
    window: int | None
    linear: bool
    mlp: str | None


def kinds(keys: Keys, number: int, drafts: int) -> list[Kind]:
    """What each of `number` layers does. A list in the file may go on with `drafts` more entries."""
    names = _from_lists(keys, number, drafts) or _hybrid(keys, number) or _from_windows(keys, number)
    chunk = keys.size("attention_chunk_size")
    apart = DENSE in names or EXPERTS in names
    layers = []
    for i, name in enumerate(names):
        window = None
        if name == SLIDING:
            window = _window(keys, i, number)
            if window is None:
                raise keys.refusal(f"layer {i} has sliding attention, but its window is missing: give sliding_window")
        if name == CHUNKED:
            window = chunk
            if chunk is None:
                raise keys.refusal(f"layer {i} has chunked attention, but attention_chunk_size is missing")
        if name in (DENSE, EXPERTS):
            mlp: str | None = name
        else:
            mlp = None if apart else BY_KEYS
        layers.append(Kind(ATTENTION.get(name), window, name in (LINEAR, BOTH), mlp))
    return layers


def _kinds_of(keys: Keys, key: str, entries: list | str) -> list[str]:
    kinds = []
    for entry in entries:
        if not isinstance(entry, str) or entry not in NAMES:
            why = "and what such a layer keeps of a token is not known: it needs a rule"
            raise keys.refusal(f"{key} has {quote(entry)}, {why}")
        kinds.append(NAMES[entry])
    if FULL in kinds and "attention_window_size" in keys:  # RecurrentGemma: its attention is local
        kinds = [SLIDING if name == FULL else name for name in kinds]
    return kinds


def _fitting(keys: Keys, key: str, entries: list | str, number: int, drafts: int = 0) -> list:
    if len(entries) not in (number, number + drafts):
        raise keys.refusal(f"{key} has {len(entries)} entries for {number} layers: one an each layer is needed")
    return list(entries[:number])


def _from_lists(keys: Keys, number: int, drafts: int) -> list[str] | None:
    """The kinds of layers from keys that list every layer, else None."""
    pair = keys.listed(*LISTS)
    if pair:
        return _kinds_of(keys, pair[0], _fitting(keys, *pair, number, drafts))
    if "block_types" in keys:
        cycle = keys.entries("block_types")
        return _kinds_of(keys, "block_types", [cycle[i % len(cycle)] for i in range(number)] if cycle else [])
    if "hybrid_override_pattern" in keys:
        pattern = keys.values["hybrid_override_pattern"]
        if not isinstance(pattern, str):
            raise keys.refusal(f"hybrid_override_pattern must be letters, not {quote(pattern)}")
        letters = _fitting(keys, "hybrid_override_pattern", pattern.replace("|", ""), number)
        return _kinds_of(keys, "hybrid_override_pattern", letters)
    for key, meanings in (
        ("attn_type_list", {0: LINEAR, 1: FULL}),  # MiniMax-Text-01
        ("hybrid_layer_pattern", {0: FULL, 1: SLIDING}),  # MiMo-V2
    ):
        if key in keys:
            entries = _fitting(keys, key, keys.entries(key), number, drafts)
            if any(isinstance(entry, bool) or entry not in (0, 1) for entry in entries):
                raise keys.refusal(f"{key} must hold 0 and 1 only")
            return [meanings[entry] for entry in entries]
    if "attention_layers" in keys:  # GPT-Neo
        entries = _fitting(keys, "attention_layers", keys.entries("attention_layers"), number)
        return _kinds_of(keys, "attention_layers", entries)
    if "attention_types" in keys:
        return _expand(keys, number)
    return None


def _expand(keys: Keys, number: int) -> list[str]:
    """GPT-Neo's [[["global", "local"], 12]]: each list so many times."""
    entries: list[str] = []
    for pair in keys.entries("attention_types"):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], list) or len(pair[0]) > number:
            raise keys.refusal(f"attention_types must hold pairs of a list and a number, not {quote(pair)}")
        entries += pair[0] * keys.number("attention_types", pair[1], high=number)
        if len(entries) > number:
            break
    return _kinds_of(keys, "attention_types", _fitting(keys, "attention_types", entries, number))


def _hybrid(keys: Keys, number: int) -> list[str] | None:
    """The kinds from keys of models with a recurrence, which name the layers with attention by number or by period."""
    if not recurrent.has_recurrence(keys):
        return None
    if keys.family in recurrent.RWKV:
        return [LINEAR] * number
    linear = keys.inner("linear_attn_config")
    for keys_of, key, first, meaning in (
        (linear, "full_attn_layers", 1, FULL),
        (keys, "attn_layer_indices", 0, FULL),
        (keys, "full_attn_idxs", 0, FULL),
        (keys, "hybrid_layer_ids", 0, BOTH),
    ):
        pair = keys_of.listed(key)
        if pair:
            places = {keys_of.number(key, one, low=first, high=number - 1 + first) - first for one in pair[1]}
            return [meaning if i in places else LINEAR for i in range(number)]
    period = keys.size("attn_layer_period")
    if period is not None and keys.family != "zamba":
        offset = keys.size("attn_layer_offset", low=0) or 0
        return [FULL if i % period == offset else LINEAR for i in range(number)]
    interval = keys.size("full_attention_interval")
    if interval is not None:
        return [LINEAR if (i + 1) % interval else FULL for i in range(number)]
    size = keys.size("layer_group_size")
    if size is not None:  # Ling and Ring: the last layer of a group has attention, and so have those after all groups
        return [FULL if (i + 1) % size == 0 or i >= number // size * size else LINEAR for i in range(number)]
    if not recurrent.has_attention(keys) or keys.family == "bamba":
        return [LINEAR] * number
    if keys.family == "falcon_h1":
        return [BOTH] * number
    raise keys.refusal(
        "there is a recurrent state beside attention heads, but not which layers have which: layer_types is needed"
    )


def _from_windows(keys: Keys, number: int) -> list[str]:
    """The kinds from keys of models with attention in every layer, in some of them over a window."""
    chunk, window = keys.size("attention_chunk_size"), keys.raw(*WINDOW, "interleaved_sliding_window")
    if chunk is not None:
        return _with_rope(keys, number)
    if window in (None, 0, -1) or keys.values.get("use_sliding_window") is False:
        return [FULL] * number
    if isinstance(window, list) or "interleaved_sliding_window" in keys:
        return [FULL if _window(keys, i, number) is None else SLIDING for i in range(number)]
    context = keys.first(*CONTEXT, high=MAX_CONTEXT)
    pattern = keys.raw(
        "sliding_window_pattern", "_sliding_window_pattern", "layer_switch", "global_attn_every_n_layers"
    )
    if isinstance(pattern, str):
        letters = {"L": SLIDING, "G": FULL}
        if not pattern or set(pattern) - set(letters):
            raise keys.refusal(f"sliding_window_pattern must be of the letters L and G, not {quote(pattern)}")
        return [letters[pattern[i % len(pattern)]] for i in range(number)]
    if isinstance(pattern, list):
        entries = _fitting(keys, "sliding_window_pattern", pattern, number)
        if not all(isinstance(entry, bool) for entry in entries):
            raise keys.refusal("a sliding_window_pattern of one entry a layer must hold true and false only")
        return [SLIDING if entry else FULL for entry in entries]
    if pattern is not None or keys.family in EVERY:
        every = EVERY[keys.family] if pattern is None else keys.number("sliding_window_pattern", pattern)
        return [SLIDING if (i + 1) % every else FULL for i in range(number)]
    if keys.family in MUST_LIST:
        raise keys.refusal(
            f"model_type {keys.family} has a window in some layers only: layer_types is needed to tell which"
        )
    first = 0
    if keys.flag("use_sliding_window"):
        first = keys.needed("the first layer with a window", "max_window_layers", low=0)
    width = _window(keys, 0, number)
    if width is None or (context is not None and width >= context):
        return [FULL] * number
    return [FULL if i < first else SLIDING for i in range(number)]


def _with_rope(keys: Keys, number: int) -> list[str]:
    """Llama 4: layers with rotary positions attend within a chunk, those without to everything."""
    pair = keys.listed("no_rope_layers")
    if pair and pair[1]:
        entries = _fitting(keys, *pair, number)
        if any(entry not in (0, 1) for entry in entries):
            raise keys.refusal("no_rope_layers must hold 0 and 1 only")
        return [CHUNKED if entry else FULL for entry in entries]
    every = keys.size("no_rope_layer_interval", "nope_layer_interval")
    if every is None:
        if keys.family not in ("llama4", "llama4_text"):
            raise keys.refusal("attention_chunk_size is there, but not for which layers: layer_types is needed")
        every = 4
    return [CHUNKED if (i + 1) % every else FULL for i in range(number)]


def _window(keys: Keys, i: int, number: int) -> int | None:
    """The window of layer i, None if it has none."""
    names = [name for name in (*WINDOW, "interleaved_sliding_window") if name in keys]
    for name in names:
        value = keys.values[name]
        if isinstance(value, list):
            if name != "interleaved_sliding_window":
                _fitting(keys, name, value, number)
            if not value:
                raise keys.refusal(f"{name} is an empty list")
            value = value[i % len(value)]
            return None if value in (None, 0, -1) else keys.number(name, value)
    sizes = [name for name in names if keys.values[name] not in (0, -1)]
    if not sizes and ("attention_layers" in keys or "attention_types" in keys):
        sizes = ["window_size"]
    return keys.size(*sizes) if sizes else None
