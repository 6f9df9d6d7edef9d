"""The weights of a Llama-shaped model on a device: as they come, for the library, and packed, for `skinny_gemm`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.gpu.errors import KernelError
from course.gpu.ops import fill, numbers, packing
from course.gpu.ops.queue import Queue, out_of_memory
from course.gpu.transformer.shape import Shape

MATRICES = ("qkv", "o", "gate_up", "down")
NORM_BEFORE = {"qkv": "attention_norm", "gate_up": "mlp_norm", "head": "norm"}
ORDERS = {"qkv": "heads", "o": "rows", "gate_up": "gate-up", "down": "rows", "head": "rows"}


def sizes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all weights; those of layer i are called "layers.i.name". Matrices are (outputs, inputs)."""
    table = (shape.vocabulary, shape.hidden)
    found: dict[str, tuple[int, ...]] = {"embedding": table, "norm": (shape.hidden,)}
    if not shape.tied:
        found["head"] = table
    for i in range(shape.layers):
        found |= {
            f"layers.{i}.attention_norm": (shape.hidden,),
            f"layers.{i}.qkv": (shape.qkv_rows, shape.hidden),
            f"layers.{i}.o": (shape.hidden, shape.heads * shape.width),
            f"layers.{i}.mlp_norm": (shape.hidden,),
            f"layers.{i}.gate_up": (2 * shape.inner, shape.hidden),
            f"layers.{i}.down": (shape.hidden, shape.inner),
        }
    return found


@dataclass
class Weights:
    """arrays: by the names of `sizes`. packed: the matrices, with the weight of the norm before them multiplied in.

    Where `folded`, those of the layers have it multiplied in as they come, too, and their norms are ones.
    """

    shape: Shape
    kind: str
    arrays: dict[str, Any]
    packed: dict[str, Any]

    @property
    def folded(self) -> bool:
        """Only of bf16: sums of rows that are not normed yet have no room in fp16, and fp32 is for exact comparison."""
        return self.kind == "bf16"

    @classmethod
    def random(cls, queue: Queue, shape: Shape, *, kind: str = "bf16", seed: int = 0, packed: bool = True) -> Weights:
        """Uniform weights with a spread of 0.02 (0.01 where they lead into the residual stream), norms of one.

        The same bits on every device. Raises KernelError where the memory does not suffice, with the amount.
        """
        found = cls(shape, kind, {}, {})
        device = queue.device
        wanted = sum(int(np.prod(size)) for size in sizes(shape).values()) * numbers.dtype(kind).itemsize
        wanted *= 2 if packed and kind != "fp32" else 1
        try:
            for number, (name, size) in enumerate(sizes(shape).items()):
                if len(size) == 1:
                    found.arrays[name] = device.to_device(numbers.encode(np.ones(size), kind))
                    continue
                spread = 0.01 if name.endswith((".o", ".down")) else 0.02  # what goes into the residual is smaller
                if name == "embedding":
                    spread = 1.0
                found.arrays[name] = device.empty(size, numbers.dtype(kind))
                stream = seed * 1_000_003 + number
                fill.prepare(queue, found.arrays[name], bound=spread * 3**0.5, seed=stream, kind=kind)()
            queue.wait()
            if packed and kind != "fp32":
                for name in found.matrices():
                    found.packed[name] = found._pack(name, found.arrays[found._stored(name)])
                queue.wait()
        except MemoryError as error:
            raise out_of_memory(error, wanted, f"the weights of {shape.layers} layers") from None
        except KernelError:
            raise
        except Exception as error:
            if type(error).__name__ != "OutOfMemoryError":  # CuPy's, which this module does not import
                raise
            raise out_of_memory(error, wanted, f"the weights of {shape.layers} layers") from None
        return found

    @classmethod
    def given(
        cls, queue: Queue, shape: Shape, arrays: Mapping[str, Any], *, kind: str = "bf16", packed: bool = True
    ) -> Weights:
        """Weights from NumPy arrays by the names of `sizes`, rounded to `kind`.

        Raises ValueError for a weight that is missing, unknown or of another shape.
        """
        wanted = sizes(shape)
        for name in wanted.keys() ^ arrays.keys():
            raise ValueError(f"the weight {name!r} is {'missing' if name in wanted else 'not one of this model'}")
        found = cls(shape, kind, {}, {})
        for name, size in wanted.items():
            if tuple(np.shape(arrays[name])) != size:
                raise ValueError(f"the weight {name!r} must have the shape {size}, not {np.shape(arrays[name])}")
            whole = arrays[name]
            if found.folded and name.startswith("layers."):
                whole = np.ones(size) if len(size) == 1 else found._normed(name, arrays)
            found.arrays[name] = queue.device.to_device(numbers.encode(whole, kind))
        if packed and kind != "fp32":
            for name in found.matrices():
                whole = numbers.encode(found._normed(name, arrays), kind)
                found.packed[name] = queue.device.to_device(found._pack(name, whole))
        return found

    def _normed(self, name: str, arrays: Mapping[str, Any]) -> np.ndarray:
        """A matrix with the weight of the norm before it, if there is one, multiplied in."""
        whole = np.asarray(arrays[self._stored(name)], dtype=np.float32)
        layer, _, last = name.rpartition(".")
        if last not in NORM_BEFORE:
            return whole
        return whole * np.asarray(arrays[f"{layer}.{NORM_BEFORE[last]}" if layer else NORM_BEFORE[last]], np.float32)

    def matrices(self) -> list[str]:
        """The names of what a step multiplies with."""
        return [f"layers.{i}.{name}" for i in range(self.shape.layers) for name in MATRICES] + ["head"]

    def layer(self, i: int, name: str) -> Any:
        """A weight of layer i as it comes."""
        return self.arrays[f"layers.{i}.{name}"]

    @property
    def head(self) -> Any:
        """The output head as it comes."""
        return self.arrays[self._stored("head")]

    def _stored(self, name: str) -> str:
        return "embedding" if name == "head" and self.shape.tied else name

    def _pack(self, name: str, whole: Any) -> Any:
        return packing.packed_weights(whole, ORDERS[name.rpartition(".")[2]], self.shape.width)
