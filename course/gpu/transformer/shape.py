"""The sizes of a Llama-shaped model: dense, grouped query heads, gated MLP, RMSNorm, rotary embedding."""

from __future__ import annotations

from dataclasses import dataclass

from course.gpu.ops import numbers
from course.models import ModelSpec


@dataclass(frozen=True)
class Shape:
    """Counts of elements. theta: base of the rotary embedding; epsilon: of RMSNorm.

    tied: whether the output head is the embedding table. Raises ValueError for sizes the kernels do not have.
    """

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    width: int
    vocabulary: int
    theta: float = 500_000.0
    epsilon: float = 1e-5
    tied: bool = False

    def __post_init__(self) -> None:
        for name in ("hidden", "inner"):
            if getattr(self, name) % 32:
                raise ValueError(f"the {name} size must be a multiple of 32, not {getattr(self, name)}")
        if self.vocabulary % 16:
            raise ValueError(f"the vocabulary must be a multiple of 16, not {self.vocabulary}: pad it")
        if self.heads % self.kv_heads or self.heads // self.kv_heads > 8 or self.width not in (32, 64, 128):
            raise ValueError(
                f"{self.heads} query heads over {self.kv_heads} KV heads of {self.width}: "
                "the kernels take 1 to 8 query heads per KV head, of 32, 64 or 128 numbers"
            )

    @classmethod
    def of(cls, spec: ModelSpec, *, tied: bool = False) -> Shape:
        """The sizes of a ModelSpec. Raises ValueError for a model that is not dense throughout."""
        sizes = (spec.num_layers, spec.hidden_size, spec.intermediate_size, spec.num_heads, spec.num_kv_heads)
        if not all((*sizes, spec.head_dim, spec.vocab_size)):
            raise ValueError(f"{spec.name} does not say all its sizes: this step is for dense models")
        shape = cls(*sizes, spec.head_dim, spec.vocab_size, tied=tied)
        if shape.layer_parameters != spec.layer_parameters:
            raise ValueError(
                f"{spec.name} has {spec.layer_parameters:,} parameters a token where a dense model of its sizes has "
                f"{shape.layer_parameters:,}: experts, windows and other layers are not in this step"
            )
        return shape

    @property
    def qkv_rows(self) -> int:
        """Rows of Wq, Wk and Wv together."""
        return (self.heads + 2 * self.kv_heads) * self.width

    @property
    def layer_parameters(self) -> int:
        """Parameters of all layers that a token is multiplied with."""
        attention = self.hidden * (self.qkv_rows + self.heads * self.width)
        return self.layers * (attention + 3 * self.hidden * self.inner)

    def step_weight_bytes(self, kind: str) -> int:
        """Bytes of weights that a step reads: the layers and the head, not the embedding table."""
        return (self.layer_parameters + self.vocabulary * self.hidden) * numbers.dtype(kind).itemsize

    def kv_bytes_per_token(self, kind: str) -> int:
        """Bytes of K and V that a token keeps."""
        return 2 * self.layers * self.kv_heads * self.width * numbers.dtype(kind).itemsize
