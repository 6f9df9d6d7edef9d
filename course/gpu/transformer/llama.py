"""A model on a device: weights, the paged cache, and the memory that its steps share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.ops import append, numbers, rope, skinny_gemm
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.mixed_attention import MixedAttention
from course.gpu.ops.prefill_attention import PrefillAttention
from course.gpu.ops.queue import Queue, out_of_memory
from course.gpu.transformer.shape import Shape
from course.gpu.transformer.weights import Weights


class Llama:
    """Everything that is allocated once.

    weights: random ones by default. blocks: of 16 tokens in the cache of each layer. max_tokens: most tokens of a
    step. max_sequences: most sequences of a step. max_positions: length of the longest sequence. before: a Llama of the
    same shape, blocks and kind whose cache this one goes on with, for larger steps. kv_cache_dtype: "auto", or
    "fp8_e4m3" for a cache of 8-bit numbers in units of kv_scales, a number or one for each of (layers, 2, KV heads), of
    keys and of values: its steps have decodes only.

    Raises ValueError for sizes of no use, KernelError where the memory does not suffice, with the amount.
    """

    def __init__(
        self,
        queue: Queue,
        shape: Shape,
        *,
        blocks: int,
        weights: Weights | None = None,
        kind: str = "bf16",
        max_tokens: int = 512,
        max_sequences: int = 256,
        max_positions: int = 8_192,
        before: Llama | None = None,
        kv_cache_dtype: str = "auto",
        kv_scales: Any = 1.0,
    ) -> None:
        self.queue, self.shape = queue, shape
        self.kind = weights.kind if weights else numbers.checked_kind(kind)
        self.max_tokens = max(32, whole("max_tokens", max_tokens))
        self.max_sequences = whole("max_sequences", max_sequences)
        self.max_positions = whole("max_positions", max_positions)
        self.blocks = whole("blocks", blocks)
        self.weights = weights or Weights.random(queue, shape, kind=self.kind)
        device, dtype = queue.device, numbers.dtype(self.kind)
        self.scaled = kv_cache_dtype != "auto"
        cached = np.dtype(np.uint8) if self.scaled else dtype
        cache = (self.blocks, shape.kv_heads, append.BLOCK, shape.width)
        wanted = 2 * shape.layers * math.prod(cache) * cached.itemsize
        try:
            self.k: list[Any] = before.k if before else [device.empty(cache, cached) for _ in range(shape.layers)]
            self.v: list[Any] = before.v if before else [device.empty(cache, cached) for _ in range(shape.layers)]
            scales = np.broadcast_to(np.float32(kv_scales), (shape.layers, 2, shape.kv_heads))
            self.scales = [device.to_device(np.ascontiguousarray(one)) if self.scaled else None for one in scales]
            self.turns = device.to_device(rope.turns(self.max_positions, shape.width, shape.theta))
            columns = {
                "x": shape.hidden,
                "normed": shape.hidden,
                "qkv": shape.qkv_rows,
                "q": shape.heads * shape.width,
                "attended": shape.heads * shape.width,
                "gate_up": 2 * shape.inner,
                "inner": shape.inner,
            }
            self._room = {name: device.empty(self.max_tokens * many, dtype) for name, many in columns.items()}
            # Padded decodes attend to the first token of the cache, and no attention is computed of padded prompt
            # tokens: what new memory holds there may be too large to multiply.
            for one in (self._room["attended"], *(() if before else (part[:1] for part in (*self.k, *self.v)))):
                queue.write(one, np.zeros(one.shape, one.dtype))
            self.squares = device.empty(skinny_gemm.MOST_ROWS * shape.hidden // 16, np.float32)
            rows = max(32, self.max_sequences)
            self._room |= {name: device.empty(rows * shape.hidden, dtype) for name in ("ends", "normed_ends")}
            self._room["logits"] = device.empty(rows * shape.vocabulary, dtype)
            heads: dict[str, Any] = {
                "heads": shape.heads,
                "kv_heads": shape.kv_heads,
                "width": shape.width,
                "kind": self.kind,
            }
            self.decode_attention = DecodeAttention(
                queue, max_sequences=self.max_sequences, max_items=4 * self.max_sequences + 1_024,
                kv_cache_dtype=kv_cache_dtype, **heads,
            )  # fmt: skip
            self.prefill_attention = PrefillAttention(queue, max_parts=128, **heads)
            if not self.scaled:
                self.mixed_attention = MixedAttention(self.decode_attention, self.prefill_attention)
        except Exception as error:
            if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError":  # CuPy's
                raise
            raise out_of_memory(error, wanted, f"a cache of {self.blocks} blocks and the room for a step") from None

    def fill_cache(self, seed: int = 0, bound: float = 3**0.5) -> None:
        """Random keys and values in every block, for steps that are timed and not believed."""
        from course.gpu.ops import fill, fp8_append

        queue, shape = self.queue, self.shape
        if not self.scaled:
            for i, cache in enumerate((*self.k, *self.v)):
                fill.prepare(queue, cache, bound=bound, seed=seed + i, kind=self.kind)()
        else:
            places = self.blocks * append.BLOCK
            tokens = queue.device.empty((min(8_192, places), 2 * shape.kv_heads + 1, shape.width), np.uint16)
            for i, caches in enumerate(zip(self.k, self.v, self.scales, strict=True)):
                fill.prepare(queue, tokens, bound=bound, seed=seed + i)()
                for first in range(0, places, len(tokens)):
                    slots = queue.device.to_device(np.arange(first, first + len(tokens), dtype=np.int32) % places)
                    fp8_append.prepare(queue, tokens, *caches, slots)()
                    queue.wait()
        queue.wait()

    def room(self, name: str, *shape: int) -> Any:
        """Memory that all steps share, since one runs at a time, as an array of this shape."""
        return self._room[name][: math.prod(shape)].reshape(shape)

    def ints(self, *shape: int) -> Any:
        """A new int32 array of the device."""
        return self.queue.device.to_device(np.zeros(shape, np.int32))
