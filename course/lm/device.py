"""The same model on a device of `course.gpu`: a GPU, or a CPU that runs the GPU's kernels or their twins in NumPy.

    model = lm.load(device="cuda")
    cache = model.paged_kv(64)
    model.forward([5, 6, 7], [3], [0], [[0]], cache)

Three forms of the same model, which differ in who starts the kernels of a step:

- "launches": this program, one after the other. All is float32, as in `forward`; sums are taken in another order.
- "graph": a step of 1 to 32 decodes is captured once in a few sizes, and replayed in the next size as one launch. All
  is bf16, and what stands between two products is folded into them, so that a step has 32 kernels and not 57. Steps
  with a prompt are launched one by one.
- "persistent": `answers` are written by one kernel, which takes the most likely token by itself. `forward` is that of
  "graph", for whoever decides step by step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from course import gpu
from course.gpu.ops.append import BLOCK
from course.gpu.ops.generate import Generate
from course.gpu.ops.queue import Queue
from course.gpu.queues import queue
from course.gpu.transformer import Llama, Shape, Step, Weights
from course.lm.cache import Blocks
from course.lm.errors import LMError
from course.lm.sampling import GREEDY, Sampling
from course.lm.speaker import Conversation, LanguageModel

TOKENS, SEQUENCES = 512, 64  # of a step, until one is larger
FORMS = ("launches", "graph", "persistent")
SIZES = (1, 2, 4, 8, 16, 32)
"""Decodes of a captured step. Twice the last one, so that padding has a place of its own in one block of 16 tokens."""


class DeviceKV(Blocks):
    """Keys and values on a device, and the room for a step, which grows with the steps.

    llama: what a step is made for. ValueError for no blocks; LMError for blocks of other than 16 tokens, and if the
    memory is not there. In 16 bits there is one block more than asked for, which the padding of captured steps fills.
    """

    def __init__(self, queue: Queue, weights: Weights, context: int, num_blocks: int, block_size: int):
        super().__init__(num_blocks, block_size)
        if block_size != BLOCK:
            raise LMError(f"The kernels have {BLOCK} tokens in a block: on a device block_size cannot be {block_size}.")
        self._queue, self._context = queue, context
        self._fixed: dict[str, Any] = {"weights": weights, "max_positions": context}
        self._fixed["blocks"] = self.num_blocks + (weights.kind != "fp32")
        self._make(TOKENS, SEQUENCES)

    def grow(self, tokens: int, sequences: int) -> None:
        """Room for a step of this size, twice as much as it needs if it was too little."""
        if tokens > self.llama.max_tokens or sequences > self.llama.max_sequences:
            self._make(2 * tokens, 2 * sequences, before=self.llama)

    def decode(self, tokens: Any, tables: Any, lengths: Any) -> np.ndarray:
        """Logits (rows, vocabulary) after one token of each row, from the captured step of the next size.

        lengths: tokens of each row, the new one included. At most as many rows as the last of SIZES.
        """
        rows = len(tokens)
        size = next(size for size in SIZES if size >= rows)
        if size not in self._captured:
            # Attention is cut up for sequences of half the context; `write` brings other lengths.
            step = Step(
                self.llama, lengths=[-(-self._context // 2)] * size, max_blocks=-(-self._context // BLOCK), form="fused"
            )
            self._captured[size] = step, None
        step, replay = self._captured[size]
        padding = range(1, size - rows + 1)  # lengths, so that each padded row has a place of its own
        step.write(
            np.concatenate([tokens, np.zeros(len(padding), np.int64)]),
            [*tables, *([self.num_blocks] for _ in padding)],
            lengths=[*lengths, *padding],
        )
        if replay is None:
            step.run()  # loads every kernel
            self._captured[size] = step, step.captured()
        else:
            replay()
        return step.logits()[:rows]

    def _make(self, tokens: int, sequences: int, before: Llama | None = None) -> None:
        shape = self._fixed["weights"].shape
        self._captured: dict[int, tuple[Step, Any]] = {}
        with in_a_sentence():
            self.llama = Llama(
                self._queue, shape, max_tokens=tokens, max_sequences=sequences, before=before, **self._fixed
            )


class DeviceModel(LanguageModel):
    """A LanguageModel whose `forward` runs on a device.

    files: as of LanguageModel. device: one of `course.gpu`, or its name. form: one of FORMS. LMError for a device that
    is not there or cannot compute the model.
    """

    def __init__(self, *files: Any, device: str | gpu.Device, form: str = "launches"):
        super().__init__(*files)
        if form not in FORMS:
            raise LMError(f"A model on a device has the form {', '.join(FORMS)}, not {form!r}.")
        self.form, config = form, self.config
        arrays = {"embedding": self.embedding, "norm": self.norm}
        for i, layer in enumerate(self.layers):
            arrays |= {
                f"layers.{i}.attention_norm": layer.attention_norm,
                f"layers.{i}.qkv": layer.qkv.T,
                f"layers.{i}.o": layer.output.T,
                f"layers.{i}.mlp_norm": layer.mlp_norm,
                f"layers.{i}.gate_up": layer.gate_up.T,
                f"layers.{i}.down": layer.down.T,
            }
        with in_a_sentence():
            shape = Shape(
                layers=config.num_hidden_layers,
                hidden=config.hidden_size,
                inner=config.intermediate_size,
                heads=config.num_attention_heads,
                kv_heads=config.num_key_value_heads,
                width=config.head_dim,
                vocabulary=config.vocab_size,
                theta=config.rope_theta,
                epsilon=config.rms_norm_eps,
                tied=True,
            )
            self.device = gpu.device(device) if isinstance(device, str) else device
            self._queue = queue(self.device)
            kind = "fp32" if form == "launches" else "bf16"
            self._weights = Weights.given(self._queue, shape, arrays, kind=kind)
            if form == "persistent":
                self._generate = Generate(self._queue, shape, arrays, config.max_position_embeddings)
        # Compiles every kernel, and shows now what the device lacks: on AMD, for example, a library for products.
        self.forward([0, 0, 0], [2, 1], [0, 0], [[0], [1]], self.paged_kv(2))

    def paged_kv(self, num_blocks: int, block_size: int = BLOCK) -> DeviceKV:
        """An empty cache on the device. Errors as of DeviceKV."""
        return DeviceKV(self._queue, self._weights, self.config.max_position_embeddings, num_blocks, block_size)

    def forward(
        self, tokens: Any, counts: Any, computed: Any, block_tables: Any, cache: Blocks, *, every: bool = False
    ) -> np.ndarray:
        """See Model. LMError also if the device stops.

        With `every`, each token of a chunk is computed as a decode, since those before it are in the cache by then.
        """
        if not isinstance(cache, DeviceKV):
            raise LMError("This cache is not on the device: make one with the paged_kv of this model.")
        tokens, rows = self._checked(tokens, counts, computed, block_tables, cache)
        counts, lengths, tables = np.asarray(counts), rows.lengths, rows.tables
        if every:
            tables, lengths, counts = np.repeat(tables, counts, 0), rows.positions + 1, np.ones_like(tokens)
        if self.form != "launches" and counts.max() == 1 and len(counts) <= SIZES[-1]:
            with in_a_sentence():
                return cache.decode(tokens, tables, lengths)
        parts = np.split(tokens, counts.cumsum()[:-1])
        chunked, single = np.flatnonzero(counts > 1), np.flatnonzero(counts == 1)
        order = np.concatenate([chunked, single])  # a Step has its chunks first
        cache.grow(len(tokens), len(counts))
        with in_a_sentence():
            step = Step(
                cache.llama,
                chunks=[(counts[row], lengths[row] - counts[row]) for row in chunked],
                lengths=lengths[single].tolist(),
                max_blocks=tables.shape[1],
            )
            step.write(np.concatenate([parts[row] for row in order]), tables[order])
            step.run()
            in_order = step.logits()
        logits = np.empty_like(in_order)
        logits[order] = in_order
        return logits

    def answers(
        self, conversations: Iterable[Conversation], *, sampling: Sampling = GREEDY, block_size: int = BLOCK
    ) -> list[str]:
        """See LanguageModel. LMError also for a temperature where one kernel takes the tokens."""
        if self.form != "persistent":
            return super().answers(conversations, sampling=sampling, block_size=block_size)
        if sampling != GREEDY:
            raise LMError('The persistent kernel takes the most likely token: with a temperature use form="graph".')
        prompts = [self.prompt(conversation) for conversation in conversations]
        if not prompts:
            return []
        with in_a_sentence():
            found = self._generate.answers(prompts, self.config.max_position_embeddings, self.tokenizer.end)
        return [self.tokenizer.decode(tokens) for tokens in found]


@contextmanager
def in_a_sentence() -> Iterator[None]:
    """What a device does not have or cannot do, as this package's error."""
    try:
        yield
    except (gpu.KernelError, ValueError) as error:
        raise LMError(f"The model cannot run on this device: {error}. Without a device it runs in NumPy.") from None
