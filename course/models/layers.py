"""What one layer keeps of a sequence: K and V of its heads, a latent row, a recurrent state, or nothing.

Tensor parallelism over `tp` ranks spreads the KV heads; below one head a rank they are copied instead, and a latent row
is copied always. Sizes are counts of elements unless the name says bytes.
"""

from dataclasses import dataclass


def on_rank(what: str, number: int, tp: int, copied: bool = True) -> int:
    """How many of `number` heads or channels one of `tp` ranks holds; fewer than `tp` are copied if `copied`.

    ValueError if they cannot be spread evenly: engines refuse that too.
    """
    if number % tp == 0:
        return number // tp
    if copied and number < tp and tp % number == 0:
        return 1
    raise ValueError(
        f"{number} {what} cannot be spread over {tp} ranks: tensor parallelism needs a divisor of {number}"
        + (" or a multiple of it" if copied else "")
    )


@dataclass(frozen=True)
class Heads:
    """K and V of every KV head: multi-head, grouped-query and multi-query attention.

    window: the last tokens that stay, None for all of them. chunked: they are those since the last multiple of `window`
    instead (Llama 4's local attention).
    """

    kv_heads: int
    key_dim: int
    value_dim: int
    query_heads: int
    window: int | None = None
    chunked: bool = False

    def elements(self, tp: int = 1) -> int:
        """Elements a token and layer on one of `tp` ranks: KV heads x (key dimension + value dimension)."""
        return on_rank("KV heads", self.kv_heads, tp) * (self.key_dim + self.value_dim)

    @property
    def extra_bytes(self) -> int:
        """Bytes a token beside K and V, whatever their type."""
        return 0

    @property
    def flops_per_pair(self) -> int:
        """FLOPs of a query-key pair: a multiply and an add a dimension, for the score and for the value."""
        return 2 * self.query_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (MLA, DeepSeek-V2, arXiv 2405.04434): one row for all heads instead of K and V each.

    rank: kv_lora_rank. rope_dim: the part of the key with positions. key_dim, value_dim: of a head, once expanded.
    index_dim: dimension of the key that a sparse-attention indexer keeps beside it (DeepSeek-V3.2), 0 without one.
    packed: stored as vLLM's fp8_ds_mla, at one byte an element: the latent row with a scale of four bytes for each 128
    dimensions, and two bytes for each of the rotary key.
    """

    rank: int
    rope_dim: int
    query_heads: int
    key_dim: int
    value_dim: int
    index_dim: int = 0
    window: int | None = None
    chunked: bool = False
    packed: bool = False

    def elements(self, tp: int = 1) -> int:
        """Elements a token and layer: the latent row and the rotary key, once, and in full on every rank."""
        if self.packed:
            return self.rank + 4 * -(-self.rank // 128) + 2 * self.rope_dim
        return self.rank + self.rope_dim

    @property
    def extra_bytes(self) -> int:
        """Bytes of the indexer's key: one a dimension (fp8) and a scale of four for each 128 of them."""
        return self.index_dim + 4 * -(-self.index_dim // 128)

    @property
    def flops_per_pair(self) -> int:
        """FLOPs of a query-key pair with K and V expanded, as a prefill computes it."""
        return 2 * self.query_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True)
class Part:
    """One tensor of a recurrent state: `units` heads or channels of `unit_bytes` each, spread over the ranks.

    draft_bytes: what a unit keeps on top for each drafted token: the convolution of Mamba 2 and of gated delta rules
    then has a column more (vLLM 0.19, mamba_utils.py: kernel - 1 + number of drafts). elements: of a unit, if
    their type is a setting of the engine; 0 where it is fixed.
    """

    what: str
    units: int
    unit_bytes: int
    copied: bool = False
    draft_bytes: int = 0
    elements: int = 0

    def bytes(self, tp: int = 1, drafts: int = 0) -> int:
        """Bytes on one of `tp` ranks, with `drafts` drafted tokens a step."""
        return on_rank(self.what, self.units, tp, self.copied) * (self.unit_bytes + drafts * self.draft_bytes)


@dataclass(frozen=True)
class Layer:
    """The caches of one layer; both if attention and a recurrence run side by side, neither in an MLP.

    state: the parts of a recurrent state, whose size does not depend on the length of the sequence.
    """

    attention: Heads | Latent | None = None
    state: tuple[Part, ...] = ()

    def state_bytes(self, tp: int = 1, drafts: int = 0) -> int:
        """Bytes of one state, on one of `tp` ranks and with `drafts` drafted tokens a step."""
        return sum(part.bytes(tp, drafts) for part in self.state)
