"""The forward pass in NumPy: any batch of chunks and decodes over a paged cache.

Llama's layer (https://arxiv.org/abs/2302.13971): RMSNorm, attention with rotary positions and grouped queries, then
RMSNorm and SwiGLU. All tokens of a step go through the matrix products together; in attention, the rows that compute
one token do so together and each longer chunk by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.lm.cache import Blocks, PagedKV
from course.lm.config import Config
from course.lm.errors import LMError


@dataclass(frozen=True)
class Layer:
    """The weights of one layer, float32, ready to multiply from the right: y = x @ weight."""

    attention_norm: np.ndarray
    qkv: np.ndarray  # queries, keys and values side by side
    output: np.ndarray
    mlp_norm: np.ndarray
    gate_up: np.ndarray  # both side by side
    down: np.ndarray


@dataclass(frozen=True)
class Rows:
    """Where the tokens of one step are: which row, which position, and which place in the cache."""

    positions: np.ndarray  # [tokens]
    ends: np.ndarray  # [rows], one past the last token of each row in the step's tokens
    lengths: np.ndarray  # [rows], tokens of each row after the step
    tables: np.ndarray  # [rows, blocks]
    blocks: np.ndarray  # [tokens], the block that each token is written to ...
    offsets: np.ndarray  # ... and its place there
    single: np.ndarray  # rows that compute one token
    chunks: tuple[int, ...]  # the other rows


class Model:
    """A model that computes in float32.

    weights: tensors by Hugging Face's names, as `weights.read` gives them. LMError if one is missing or has another
    shape than the config says.
    """

    def __init__(self, config: Config, weights: Mapping[str, np.ndarray]):
        for name, shape in config.shapes().items():
            if name not in weights or weights[name].shape != shape:
                present = f"shape {weights[name].shape}" if name in weights else "nothing"
                raise LMError(
                    f"The weights do not fit config.json: {name} should have shape {shape}; there is {present}."
                )
        self.config = config

        def tensor(name: str) -> np.ndarray:
            return weights[f"model.{name}.weight"].astype(np.float32)

        def transposed(*names: str) -> np.ndarray:
            return np.ascontiguousarray(np.concatenate([tensor(name) for name in names]).T)

        self.embedding, self.norm = tensor("embed_tokens"), tensor("norm")
        self.unembedding = np.ascontiguousarray(self.embedding.T)
        self.layers = []
        for number in range(config.num_hidden_layers):
            at = f"layers.{number}."
            self.layers.append(
                Layer(
                    tensor(at + "input_layernorm"),
                    transposed(*(f"{at}self_attn.{part}_proj" for part in "qkv")),
                    transposed(at + "self_attn.o_proj"),
                    tensor(at + "post_attention_layernorm"),
                    transposed(at + "mlp.gate_proj", at + "mlp.up_proj"),
                    transposed(at + "mlp.down_proj"),
                )
            )
        powers = np.arange(0, config.head_dim, 2) / config.head_dim
        angles = np.arange(config.max_position_embeddings)[:, None] * config.rope_theta**-powers
        self.cos, self.sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def paged_kv(self, num_blocks: int, block_size: int = 16) -> Blocks:
        """An empty cache for this model's `forward`. Errors as of PagedKV."""
        return PagedKV(self.config, num_blocks, block_size)

    def forward(
        self,
        tokens: Sequence[int] | np.ndarray,
        counts: Sequence[int] | np.ndarray,
        computed: Sequence[int] | np.ndarray,
        block_tables: Sequence[Sequence[int]] | np.ndarray,
        cache: Blocks,
        *,
        every: bool = False,
    ) -> np.ndarray:
        """Compute one step and write its keys and values to the cache.

        tokens: ids of all rows, one row after the other. counts: how many of them each row has, at least 1. computed:
        tokens of each row that are in the cache already. block_tables: for each row the numbers of its blocks in the
        order of its tokens, those of this step included; what comes after them is ignored. Rows may share full blocks
        of a common prefix.

        Returns logits, float32 [rows, vocabulary], of each row's last token; with `every`, [tokens, vocabulary]. Raises
        LMError for arguments that do not fit each other, the vocabulary, the context or the cache.
        """
        if not isinstance(cache, PagedKV):
            raise LMError("This cache is another device's: make one with the paged_kv of this model.")
        tokens, rows = self._checked(tokens, counts, computed, block_tables, cache)
        x = self.embedding[tokens]
        for layer, keys, values in zip(self.layers, cache.keys, cache.values, strict=True):
            x = x + self.attended(x, layer, keys, values, rows)
            x = x + self.fed_forward(x, layer)
        return self._normed(x if every else x[rows.ends - 1], self.norm) @ self.unembedding

    def attended(self, x: np.ndarray, layer: Layer, keys: np.ndarray, values: np.ndarray, rows: Rows) -> np.ndarray:
        """What attention adds to x [tokens, hidden]; writes keys and values of the step to the layer's cache.

        layer, keys, values: of all heads, or of some KV heads and the heads that share them: what these add.
        """
        dim, kv_heads = self.config.head_dim, keys.shape[2]
        heads = layer.output.shape[0] // dim
        cos, sin = self.cos[rows.positions][:, None], self.sin[rows.positions][:, None]
        y = (self._normed(x, layer.attention_norm) @ layer.qkv).reshape(len(x), heads + 2 * kv_heads, dim)
        turned = rotate(y[:, : heads + kv_heads], cos, sin)
        keys[rows.blocks, rows.offsets] = turned[:, heads:]
        values[rows.blocks, rows.offsets] = y[:, heads + kv_heads :]
        return self._attention(turned[:, :heads], keys, values, rows) @ layer.output

    def fed_forward(self, x: np.ndarray, layer: Layer) -> np.ndarray:
        """What the SwiGLU adds to x [tokens, hidden]. layer: all of it, or what some of its inner numbers add."""
        y = self._normed(x, layer.mlp_norm) @ layer.gate_up
        inner = len(layer.down)
        return (silu(y[:, :inner]) * y[:, inner:]) @ layer.down

    def _normed(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """RMSNorm of each row."""
        mean = np.einsum("ij,ij->i", x, x)[:, None] / np.float32(x.shape[1])
        return x / np.sqrt(mean + np.float32(self.config.rms_norm_eps)) * weight

    def _attention(self, queries: np.ndarray, keys: np.ndarray, values: np.ndarray, rows: Rows) -> np.ndarray:
        """Attention of one layer: queries [tokens, heads, dim] to a mix of values [tokens, heads * dim]."""
        heads, kv_heads, dim = queries.shape[1], keys.shape[2], queries.shape[2]
        shared = heads // kv_heads
        mixed = np.empty((len(queries), heads * dim), np.float32)
        if rows.single.size:
            at, lengths = rows.ends[rows.single] - 1, rows.lengths[rows.single]
            tables = rows.tables[rows.single, : -(-int(lengths.max()) // keys.shape[1])]
            hidden = np.arange(tables.shape[1] * keys.shape[1]) >= lengths[:, None]
            grouped = queries[at].reshape(len(at), kv_heads, shared, dim)
            mixed[at] = attend(grouped, keys, values, tables, hidden[:, None, None]).reshape(len(at), -1)
        for row in rows.chunks:
            end, length = rows.ends[row], int(rows.lengths[row])
            start = 0 if row == 0 else rows.ends[row - 1]
            table = rows.tables[row : row + 1, : -(-length // keys.shape[1])]
            hidden = np.arange(table.shape[1] * keys.shape[1]) > rows.positions[start:end, None]
            # All queries that share a KV head stand below each other: [1, KV heads, shared * tokens, dim].
            grouped = (
                queries[start:end]
                .reshape(-1, kv_heads, shared, dim)
                .transpose(1, 2, 0, 3)
                .reshape(1, kv_heads, -1, dim)
            )
            mixture = attend(grouped, keys, values, table, np.tile(hidden, (shared, 1)))
            mixture = mixture.reshape(kv_heads, shared, -1, dim).transpose(2, 0, 1, 3)
            mixed[start:end] = mixture.reshape(end - start, -1)
        return mixed

    def _checked(
        self, tokens: Any, counts: Any, computed: Any, block_tables: Any, cache: Blocks
    ) -> tuple[np.ndarray, Rows]:
        """The arguments of `forward` as arrays that fit each other."""
        tokens, counts, computed = (np.asarray(argument, np.intp) for argument in (tokens, counts, computed))
        if (
            not counts.size
            or counts.shape != computed.shape
            or counts.ndim != 1
            or counts.min() < 1
            or computed.min() < 0
        ):
            raise LMError("A step needs at least one row, and each row at least one token to compute.")
        ends, lengths = counts.cumsum(), computed + counts
        if tokens.shape != (ends[-1],):
            raise LMError(f"The rows compute {ends[-1]} tokens, but {tokens.size} are given.")
        if tokens.min() < 0 or tokens.max() >= self.config.vocab_size:
            raise LMError(f"A token is not one of the {self.config.vocab_size} of the vocabulary.")
        if lengths.max() > self.config.max_position_embeddings:
            raise LMError(
                f"A row of {lengths.max()} tokens is longer than the context of {self.config.max_position_embeddings}."
            )
        row_of = np.repeat(np.arange(len(counts)), counts)
        positions = np.arange(len(tokens)) - (ends - counts)[row_of] + computed[row_of]
        tables = cache.tables(block_tables, lengths)
        blocks, offsets = tables[row_of, positions // cache.block_size], positions % cache.block_size
        if np.unique(blocks * cache.block_size + offsets).size < len(tokens):
            raise LMError(
                "Two tokens of this step would be written to the same place because a block is in two block tables."
            )
        single = np.flatnonzero(counts == 1)
        chunks = tuple(np.flatnonzero(counts > 1).tolist())
        return tokens, Rows(positions, ends, lengths, tables, blocks, offsets, single, chunks)


def rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Rotary positions (https://arxiv.org/abs/2104.09864) for x [tokens, heads, dim]: first half against second."""
    one, two = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return np.concatenate((one * cos - two * sin, two * cos + one * sin), -1)


def silu(x: np.ndarray) -> np.ndarray:
    """X times its logistic function."""
    with np.errstate(over="ignore"):  # exp(89) is infinite in float32, and x / inf is the 0 that it should be
        return x / (1 + np.exp(-x))


def attend(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, tables: np.ndarray, hidden: np.ndarray
) -> np.ndarray:
    """softmax(q k / sqrt(dim)) v over the blocks of each row.

    queries [rows, KV heads, queries, dim]; keys, values [blocks, block size, KV heads, dim]; tables [rows, blocks];
    hidden: what a query must not see, broadcast to [rows, KV heads, queries, tokens].
    """
    rows, kv_heads, _, dim = queries.shape
    keys, values = (part[tables].reshape(rows, -1, kv_heads, dim) for part in (keys, values))
    scores = queries @ keys.transpose(0, 2, 3, 1) * np.float32(dim**-0.5)
    scores = np.where(hidden, np.float32(-np.inf), scores)  # each query sees itself, so no row is all hidden
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights @ values.transpose(0, 2, 1, 3)
