"""How many parameters a model has, and where they are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Weights:
    """Where a model's parameters are, and the bytes they take as stored. Counts of parameters unless said otherwise.

    layers: of all layers, every expert included. active: of those, what one token is multiplied with. embedding: the
    input table. head: the output matrix, 0 if it is the input table again (tied). layer_bytes, other_bytes: memory
    of the layers, and of embedding and head together.

    expert_bytes: the part of layer_bytes that is experts of which a router chooses; num_experts of them in each such
    layer, and experts_per_token for a token. fp8: parameters of `active` whose products are computed in 8-bit floats.
    draft_bytes: memory of the layers that only speculative decoding runs, which layer_bytes leaves out.
    """

    layers: int
    active: int
    embedding: int
    head: int
    layer_bytes: int
    other_bytes: int
    expert_bytes: int = 0
    num_experts: int = 0
    experts_per_token: int = 0
    fp8: int = 0
    draft_bytes: int = 0

    @property
    def parameters(self) -> int:
        """All parameters, embedding and output head included."""
        return self.layers + self.embedding + self.head

    @property
    def bytes(self) -> int:
        """Bytes of the checkpoint."""
        return self.layer_bytes + self.other_bytes
