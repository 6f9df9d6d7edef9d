"""The shapes of a model that decide how long a step takes: weights to read, FLOPs a token, KV bytes a token."""

from dataclasses import dataclass, fields

from . import settings


@dataclass(frozen=True)
class ModelSpec:
    """A dense decoder-only transformer with a gated MLP. Sizes are counts of elements, not bytes.

    Norm weights are left out: for Llama-3.1-8B they are 0.003% of the parameters. Raises ValueError for a size that is
    not a whole number of at least 1.
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

    def __post_init__(self):
        for size in fields(self):
            if size.name not in ("name", "source"):
                object.__setattr__(self, size.name, settings.whole(size.name, getattr(self, size.name)))

    @property
    def layer_parameters(self) -> int:
        """Parameters of all layers: the q, k, v and o projections and the three matrices of the gated MLP."""
        attention = self.hidden_size * self.head_dim * 2 * (self.num_heads + self.num_kv_heads)
        return self.num_layers * (attention + 3 * self.hidden_size * self.intermediate_size)

    @property
    def head_parameters(self) -> int:
        """Parameters of the output head, which turns the last hidden state into logits."""
        return self.vocab_size * self.hidden_size

    @property
    def step_weight_bytes(self) -> int:
        """Bytes of weights that every step reads. The embedding table is not among them: a step gathers rows of it."""
        return (self.layer_parameters + self.head_parameters) * self.bytes_per_parameter

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of K and V that one token keeps: 2 x layers x KV heads x head dimension x bytes an element."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * self.kv_bytes_per_element

    @property
    def attention_flops_per_pair(self) -> int:
        """FLOPs that one query-key pair costs: a multiply and an add a dimension, for the score and for the value."""
        return 4 * self.num_layers * self.num_heads * self.head_dim


_MODELS = {
    spec.name: spec
    for spec in (
        ModelSpec(
            name="llama-3.1-8b",
            num_layers=32,
            hidden_size=4096,
            intermediate_size=14336,
            num_heads=32,
            num_kv_heads=8,
            head_dim=128,
            vocab_size=128256,
            source="config.json of meta-llama/Llama-3.1-8B",
        ),
        ModelSpec(
            name="llama-2-7b",
            num_layers=32,
            hidden_size=4096,
            intermediate_size=11008,
            num_heads=32,
            num_kv_heads=32,
            head_dim=128,
            vocab_size=32000,
            source="config.json of meta-llama/Llama-2-7b-hf",
        ),
    )
}


def model(name: str) -> ModelSpec:
    """The model of that name. Raises ValueError with the known names otherwise."""
    try:
        return _MODELS[name]
    except (KeyError, TypeError):
        raise ValueError(f"no model is called {name!r}; known models: {', '.join(sorted(_MODELS))}") from None
