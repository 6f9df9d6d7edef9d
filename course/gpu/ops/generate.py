"""A small model as one kernel that writes whole answers by itself: greedy decoding without a launch between tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from course.base.settings import whole
from course.gpu.ops import numbers, rope
from course.gpu.ops.queue import Launch, Queue

if TYPE_CHECKING:
    from course.gpu.transformer.shape import Shape

WIDTH = 32
"""Of a head: a dimension a lane."""
NORMS = {"qkv": "attention_norm", "gate_up": "mlp_norm"}
FEW = 4
"""Sequences that are best served by the largest clusters."""
CPU_THREADS = 128  # more only cost switches where threads take turns


@dataclass
class Written:
    """One launch, with what it reads and writes.

    launch: writes the answers; `reset` first if it has been called before. tokens: int32 (sequences, context).
    lengths: int32 (sequences,), tokens of each. tops: float32 (sequences, context), the largest logit after each token.
    """

    launch: Launch
    reset: Launch
    tokens: Any
    lengths: Any
    tops: Any


class Generate:
    """The model of these weights, which answers several prompts in one launch.

    arrays: float weights by the names of `course.gpu.transformer.weights.sizes`; matrices are (outputs, inputs).
    context: tokens of the longest sequence. cluster: blocks that work on a sequence, the most that the device joins by
    default. threads: of a block.

    Raises ValueError for heads of other than 32 numbers, an untied head, and float32, whose weights would not be read
    in time; KernelError as compiling does.
    """

    def __init__(
        self,
        queue: Queue,
        shape: Shape,
        arrays: Mapping[str, Any],
        context: int,
        *,
        kind: str = "bf16",
        cluster: int | None = None,
        threads: int | None = None,
    ) -> None:
        if shape.width != WIDTH or not shape.tied or kind == "fp32":
            raise ValueError(
                f"one kernel for the whole model needs heads of {WIDTH}, a tied head and 16-bit numbers, not heads of "
                f"{shape.width}, tied = {shape.tied} and {kind}"
            )
        self.queue, self.shape, self.kind, self.context = queue, shape, kind, whole("context", context)
        self._cluster, self._threads = cluster, threads
        if (threads or 32) % 32 or (cluster or 1) > queue.largest_cluster:
            raise ValueError(
                f"a cluster of {cluster} blocks of {threads} threads: this device joins at most "
                f"{queue.largest_cluster}, and threads come in groups of 32"
            )

        def stacked(name: str) -> np.ndarray:
            found = []
            for i in range(shape.layers):
                one = np.asarray(arrays[f"layers.{i}.{name}"], np.float32)
                found.append(one * np.asarray(arrays[f"layers.{i}.{NORMS[name]}"]) if name in NORMS else one)
            return np.stack(found)

        head = np.asarray(arrays["embedding"], np.float32) * np.asarray(arrays["norm"])
        given = [arrays["embedding"], *(stacked(name) for name in ("qkv", "o", "gate_up", "down")), head]
        self._weights = [queue.device.to_device(numbers.encode(one, kind)) for one in given]
        self._turns = queue.device.to_device(rope.turns(self.context, WIDTH, shape.theta))

    def prepare(self, prompts: Sequence[Sequence[int]], most: int, last: int) -> Written:
        """A launch that answers these prompts, each with at most `most` tokens, until one is `last`.

        Raises ValueError for an empty prompt, a token outside of the vocabulary, and a prompt that fills the context.
        """
        tokens = np.zeros((len(prompts), self.context), np.int32)
        for row, prompt in enumerate(prompts):
            if not 0 < len(prompt) < self.context:
                raise ValueError(f"prompt {row} has {len(prompt)} tokens: 1 to {self.context - 1} leave room to answer")
            tokens[row, : len(prompt)] = prompt
        if tokens.min() < 0 or tokens.max() >= self.shape.vocabulary:
            raise ValueError(f"a prompt has tokens outside of the vocabulary of {self.shape.vocabulary:,}")
        lengths = np.array([len(prompt) for prompt in prompts], np.int32)
        put = self.queue.device.to_device
        there, ends = put(tokens), put(lengths)
        tops = put(np.zeros(tokens.shape, np.float32))
        most, last = whole("most", most), whole("last", last, low=-1)

        def reset() -> None:
            self.queue.write(ends, lengths)

        if self.queue.plain:
            return Written(lambda: twin(self, there, ends, tops, most, last), reset, there, ends, tops)
        shape, best = self.shape, variant(self.queue, len(prompts))
        cluster, threads = self._cluster or best[0], self._threads or best[1]
        macros = {"LAYERS": shape.layers, "HIDDEN": shape.hidden, "INNER": shape.inner, "HEADS": shape.heads}
        macros |= {"KV_HEADS": shape.kv_heads, "VOCABULARY": shape.vocabulary, "CONTEXT": self.context}
        macros |= {"CLUSTER": cluster, "THREADS": threads}
        parts = max(1, cluster // shape.kv_heads)
        places = -(-self.context // parts)
        size = (len(prompts), shape.layers, shape.kv_heads * parts, 2, places, WIDTH)
        cache = self.queue.device.empty(size, numbers.dtype(self.kind))
        launch = self.queue.prepare(
            self.queue.kernel("generate", self.kind, **macros),
            (len(prompts) * cluster,),
            threads,
            (*self._weights, self._turns, cache, there, ends, tops, most, last, shape.epsilon),
        )
        return Written(launch, reset, there, ends, tops)

    def answers(self, prompts: Sequence[Sequence[int]], most: int, last: int) -> list[list[int]]:
        """The tokens that follow each prompt, `last` included where it came. Errors as of `prepare`."""
        written = self.prepare(prompts, most, last)
        written.launch()
        self.queue.wait()
        tokens, lengths = (self.queue.device.to_numpy(one) for one in (written.tokens, written.lengths))
        return [
            row[len(prompt) : end].tolist() for row, prompt, end in zip(tokens, prompts, lengths.tolist(), strict=True)
        ]


def variant(queue: Queue, sequences: int) -> tuple[int, int]:
    """(blocks of a cluster, threads of a block): the fastest on an H200; elsewhere one block.

    An H200 has room for few clusters of 16 at a time: 8 sequences take 105 us a token in them, and 73 in clusters of 8.
    """
    if queue.largest_cluster == 1:
        return 1, 512 if queue.device.is_gpu else CPU_THREADS
    return min(queue.largest_cluster, 16 if sequences <= FEW else 8), 512


def twin(model: Generate, tokens: np.ndarray, lengths: np.ndarray, tops: np.ndarray, most: int, last: int) -> None:
    """The kernel in NumPy: float32 inside, keys and values rounded as the kernel rounds them; writes all three."""
    shape, kind = model.shape, model.kind
    embedding, *layers, head = (numbers.decode(np.asarray(one), kind) for one in model._weights)
    turns, groups = np.asarray(model._turns), shape.heads // shape.kv_heads

    def normed(x: np.ndarray) -> np.ndarray:
        return x / np.sqrt(x @ x / shape.hidden + np.float32(shape.epsilon))

    for row, given in enumerate(lengths.tolist()):
        cache = np.zeros((shape.layers, 2, model.context, shape.kv_heads, WIDTH), np.float32)
        for pos in range(min(given + most, model.context)):
            x = embedding[tokens[row, pos]].copy()
            for layer, (qkv, o, gate_up, down) in enumerate(zip(*layers, strict=True)):
                vectors = (qkv @ normed(x)).reshape(1, -1, WIDTH)
                turned = rope.rotate(vectors[:, : -shape.kv_heads], turns[[pos]])[0]
                fresh = np.stack([turned[shape.heads :], vectors[0, -shape.kv_heads :]])
                cache[layer, :, pos] = numbers.decode(numbers.encode(fresh, kind), kind)
                keys, values = cache[layer, :, : pos + 1].repeat(groups, axis=2)
                scores = np.einsum("hd,phd->hp", turned[: shape.heads], keys) / np.float32(WIDTH**0.5)
                shares = np.exp(scores - scores.max(1, keepdims=True))
                shares /= shares.sum(1, keepdims=True)
                x += o @ np.einsum("hp,phd->hd", shares, values).reshape(-1)
                gate, up = np.split(gate_up @ normed(x), 2)
                x += down @ (gate / (1 + np.exp(-gate)) * up)
            logits = head @ normed(x)
            tops[row, pos] = logits.max()
            if given <= pos + 1 < min(given + most, model.context):
                tokens[row, pos + 1] = logits.argmax()
                lengths[row] = pos + 2
                if tokens[row, pos + 1] == last:
                    break
