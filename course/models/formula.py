"""The arithmetic behind the sizes of a model, written out with its numbers."""

from collections import Counter
from collections.abc import Iterable

from course.models.layers import Heads, Latent, Layer
from course.models.spec import ModelSpec


def kv_bytes_per_token(spec: ModelSpec) -> str:
    """Bytes of K and V a token as a formula, such as "32 layers x 8 KV heads x (128 + 128) x 2 B"."""
    return _sum(spec.layer_caches, spec.kv_bytes_per_element)


def kv_bytes_after_window(spec: ModelSpec) -> str:
    """The formula of the layers without a window."""
    return _sum((layer for layer in spec.layer_caches if _window(layer) is None), spec.kv_bytes_per_element)


def window_bytes(spec: ModelSpec) -> str:
    """The formula of the layers with a window, times that window."""
    return _sum((layer for layer in spec.layer_caches if _window(layer)), spec.kv_bytes_per_element, windows=True)


def state_bytes(spec: ModelSpec, drafts: int = 0) -> str:
    """Bytes of a state, such as "28 layers x (8,192 channels x 32 B + 8,192 channels x 6 B)". drafts: tokens a step."""
    states = Counter(layer.state for layer in spec.layer_caches if layer.state)
    terms = []
    for parts, number in states.items():
        inside = " + ".join(
            f"{part.units:,} {part.what} x {part.unit_bytes + drafts * part.draft_bytes:,} B" for part in parts
        )
        terms.append(f"{_layers(number)} x ({inside})")
    return " + ".join(terms) or "0"


def draft_bytes_per_token(spec: ModelSpec) -> str:
    """The formula of the layers that only speculative decoding runs."""
    return _sum(spec.draft_layers, spec.kv_bytes_per_element)


def index_bytes_per_token(spec: ModelSpec) -> str:
    """Bytes a token of an indexer's key in 8 bits and its scales, as a formula."""
    sizes = Counter(layer.attention.extra_bytes for layer in spec.layer_caches if layer.attention)
    return " + ".join(f"{_layers(number)} x {size} B" for size, number in sizes.items() if size) or "0"


def weights_bytes(spec: ModelSpec) -> str:
    """Parameters times bytes a parameter, on average if those differ, as a formula."""
    size, number = spec.weights_bytes, spec.parameters
    if size is None or number is None:
        return "not counted"
    return f"{number:,} parameters x {size / number:.4g} B"


def _window(layer: Layer) -> int | None:
    return layer.attention.window if layer.attention else None


def _layers(number: int) -> str:
    return f"{number} layer{'' if number == 1 else 's'}"


def _sum(layers: Iterable[Layer], element: int, windows: bool = False) -> str:
    kinds = Counter(layer.attention for layer in layers if layer.attention)
    terms = []
    for attention, number in kinds.items():
        kind = last = ""
        if windows:
            last = f" x {attention.window:,} tokens"
        elif attention.window is not None:
            kind = f" with a {'chunk' if attention.chunked else 'window'}"
        terms.append(f"{_layers(number)}{kind} x {_row(attention)} x {element} B{last}")
    return " + ".join(terms) or "0"


def _row(attention: Heads | Latent) -> str:
    """Elements a token and layer: "8 KV heads x (128 + 128)", or of a latent row "(512 + 64)"."""
    if isinstance(attention, Heads):
        heads = f"{attention.kv_heads} KV head{'' if attention.kv_heads == 1 else 's'}"
        return f"{heads} x ({attention.key_dim} + {attention.value_dim})"
    if attention.packed:
        return f"({attention.rank} + {4 * -(-attention.rank // 128)} + 2 x {attention.rope_dim})"
    return f"({attention.rank} + {attention.rope_dim})"
