"""The shapes of a model that decide memory and step time: weights, FLOPs a token, KV bytes a token."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any

from course.base import settings
from course.models.layers import Heads, Latent, Layer
from course.models.parameters import Weights

_SIZES = (
    "num_layers",
    "hidden_size",
    "intermediate_size",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "vocab_size",
    "bytes_per_parameter",
    "kv_bytes_per_element",
)
_MAY_BE_0 = ("hidden_size", "intermediate_size", "num_heads", "num_kv_heads", "head_dim", "vocab_size")


def _pack(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return tuple(
        replace(layer, attention=replace(layer.attention, packed=True))
        if isinstance(layer.attention, Latent)
        else layer
        for layer in layers
    )


@dataclass(frozen=True)
class ModelSpec:
    """A decoder-only transformer, or a hybrid of one. Sizes are counts of elements unless the name says bytes.

    Without `layers` and `weights` it is a dense model with a gated MLP, plain attention in every layer and an output
    head of its own. Norm weights are left out then: for Llama-3.1-8B they are 0.003% of the parameters.
    `ModelSpec.from_config` fills both in from a config.json.

    layers: the caches of each layer. draft_layers: those of layers that only speculative decoding runs. weights: None
    if the parameters could not be counted. kv_cache_dtype: what the checkpoint asks for, None for its own 16 bits.
    notes: what a reader of the numbers should know.

    Raises ValueError for a size that is not a whole number of at least 1; with `layers`, some may be 0: not known.
    """

    name: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    source: str
    bytes_per_parameter: int = 2
    kv_bytes_per_element: int = 2
    max_position_embeddings: int | None = None
    layers: tuple[Layer, ...] | None = None
    draft_layers: tuple[Layer, ...] = ()
    weights: Weights | None = None
    kv_cache_dtype: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        for size in fields(self):
            if size.name in _SIZES:
                low = 0 if self.layers is not None and size.name in _MAY_BE_0 else 1
                object.__setattr__(self, size.name, settings.whole(size.name, getattr(self, size.name), low=low))

    @classmethod
    def from_config(cls, config: str | PathLike | Mapping[str, Any], name: str | None = None) -> "ModelSpec":
        """The model that a Hugging Face config.json describes: a path to it or to its folder, or the dict itself.

        name: the model's name, the file's or folder's by default. ValueError, with the key and what would be needed,
        for anything that cannot be understood; OSError for a file that cannot be opened.
        """
        from course.models.config import read

        return read(cls, config, name)

    def with_kv_dtype(self, dtype: str | None) -> "ModelSpec":
        """The same model with K and V stored as `dtype`, by vLLM's names; "auto" takes what the checkpoint asks for.

        ValueError for a type that is not known, and for fp8_ds_mla if there is no latent attention.
        """
        from course.models.quantisation import kv_bytes

        if dtype is None:
            return self
        if dtype == "auto":
            dtype = self.kv_cache_dtype or dtype
        spec = replace(self, kv_bytes_per_element=kv_bytes(dtype))
        if dtype != "fp8_ds_mla":
            return spec
        layers, drafts = _pack(self.layer_caches), _pack(self.draft_layers)
        if layers == self.layer_caches:
            raise ValueError(f"fp8_ds_mla is a layout of latent attention, which {self.name} does not have: take fp8")
        return replace(spec, layers=layers, draft_layers=drafts)

    def with_state_dtype(self, dtype: str) -> "ModelSpec":
        """The same model with its recurrence stored as `dtype`, vLLM's mamba_ssm_cache_dtype; "auto" changes nothing.

        ValueError for a type that is not known, and if no layer has a recurrence whose type can be set.
        """
        from course.models.recurrent import BYTES

        if dtype not in ("auto", *BYTES):
            raise ValueError(f"mamba_ssm_cache_dtype must be auto, {', '.join(BYTES)}, not {settings.quote(dtype)}")
        if not any(part.elements for layer in self.layer_caches for part in layer.state):
            raise ValueError(f"mamba_ssm_cache_dtype: {self.name} has no recurrent state whose type can be set")
        if dtype == "auto":
            return self
        layers = (
            tuple(
                replace(part, unit_bytes=part.elements * BYTES[dtype]) if part.elements else part
                for part in layer.state
            )
            for layer in self.layer_caches
        )
        caches = tuple(replace(one, state=state) for one, state in zip(self.layer_caches, layers, strict=True))
        return replace(self, layers=caches)

    # Memory of a sequence

    @property
    def layer_caches(self) -> tuple[Layer, ...]:
        """The caches of each layer, in order; empty for a layer that keeps nothing."""
        if self.layers is not None:
            return self.layers
        heads = Heads(self.num_kv_heads, self.head_dim, self.head_dim, self.num_heads)
        return (Layer(heads),) * self.num_layers

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of K and V that one token keeps while every layer holds it.

        2 x layers x KV heads x head dimension x bytes an element, if all layers are alike.
        """
        return self._bytes(self.layer_caches)

    @property
    def kv_bytes_after_window(self) -> int:
        """Bytes that one more token adds once every window is full: the layers without a window."""
        return self._bytes(layer for layer in self.layer_caches if layer.attention and layer.attention.window is None)

    @property
    def window_bytes(self) -> int:
        """Bytes that a long sequence keeps in the layers with a window: window x bytes a token."""
        return self.kv_bytes_per_element * sum(
            layer.attention.elements() * layer.attention.window
            for layer in self.layer_caches
            if layer.attention and layer.attention.window is not None
        )

    @property
    def state_bytes(self) -> int:
        """Bytes of recurrent state that a sequence keeps whatever its length."""
        return sum(layer.state_bytes() for layer in self.layer_caches)

    def state_bytes_with(self, num_speculative_tokens: int) -> int:
        """The same with drafted tokens: the convolution of some recurrences then keeps a column more for each."""
        return sum(layer.state_bytes(drafts=num_speculative_tokens) for layer in self.layer_caches)

    @property
    def index_bytes_per_token(self) -> int:
        """Bytes a token beside K and V: the keys of a sparse-attention indexer."""
        return sum(layer.attention.extra_bytes for layer in self.layer_caches if layer.attention)

    @property
    def draft_bytes_per_token(self) -> int:
        """Bytes a token in the layers that only speculative decoding runs."""
        return self._bytes(self.draft_layers)

    def _bytes(self, layers) -> int:
        return self.kv_bytes_per_element * sum(layer.attention.elements() for layer in layers if layer.attention)

    # Weights and work of a step

    @property
    def layer_parameters(self) -> int:
        """Parameters of all layers that one token is multiplied with.

        For a dense model the q, k, v and o projections and the three matrices of the gated MLP.
        """
        if self.layers is not None:
            return self._counts().active
        attention = self.hidden_size * self.head_dim * 2 * (self.num_heads + self.num_kv_heads)
        return self.num_layers * (attention + 3 * self.hidden_size * self.intermediate_size)

    @property
    def head_parameters(self) -> int:
        """Parameters of the output head, which turns the last hidden state into logits."""
        return self.vocab_size * self.hidden_size

    @property
    def step_weight_bytes(self) -> int:
        """Bytes of weights that a step of very many tokens reads: all but the embedding table, of which it gathers.

        A small step reads fewer experts: see `step_weight_bytes_of`.
        """
        if self.layers is not None:
            return self._counts().layer_bytes + self.head_parameters * self.bytes_per_parameter
        return (self.layer_parameters + self.head_parameters) * self.bytes_per_parameter

    def step_weight_bytes_of(self, tokens: int) -> float:
        """Bytes of weights that a step of `tokens` tokens reads, on average.

        Of E experts in a layer, k a token, n tokens touch E (1 - (1 - k / E)^n) if the router spreads them evenly,
        as its training aims at. If it does not, fewer are touched.
        """
        mixture = self.weights
        if mixture is None or not mixture.expert_bytes:
            return self.step_weight_bytes
        idle = (1 - mixture.experts_per_token / mixture.num_experts) ** tokens
        return self.step_weight_bytes - mixture.expert_bytes * idle

    @property
    def fp8_parameters(self) -> int:
        """Those of `layer_parameters` whose products are computed in 8-bit floats, on a card that can."""
        return 0 if self.weights is None else self.weights.fp8

    @property
    def parameters(self) -> int | None:
        """Parameters of the layers, the embedding table and the output head; None if not counted."""
        if self.layers is not None:
            return None if self.weights is None else self.weights.parameters
        return self.layer_parameters + 2 * self.head_parameters

    @property
    def weights_bytes(self) -> int | None:
        """Bytes of all weights in memory: the layers, the embedding table and the head; None if not counted."""
        if self.layers is not None:
            return None if self.weights is None else self.weights.bytes
        return (self.layer_parameters + 2 * self.head_parameters) * self.bytes_per_parameter

    @property
    def attention_flops_per_pair(self) -> int:
        """FLOPs that one query-key pair costs: a multiply and an add a dimension, for the score and for the value."""
        return sum(layer.attention.flops_per_pair for layer in self.layer_caches if layer.attention)

    def _counts(self) -> Weights:
        if self.weights is None:
            raise ValueError(f"the weights of {self.name} could not be counted: {' '.join(self.notes) or 'no keys'}")
        return self.weights
