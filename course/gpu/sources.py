"""Where the kernel sources are, and what the parameters of a kernel are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from course.base.settings import quote
from course.gpu.errors import KernelError

SCALARS: Mapping[str, type[np.generic]] = {
    "float": np.float32,
    "double": np.float64,
    "int": np.int32,
    "unsigned": np.uint32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "unsigned char": np.uint8,
}


HEADERS = ("compat.h", "numbers.h", "tensor.h")
"""What precedes every kernel, in this order."""


def headers() -> list[tuple[str, str]]:
    """(name, text) of each of HEADERS. Raises KernelError if the installation lacks one."""
    return [(name, text(name)) for name in HEADERS]


def folder() -> Traversable:
    """The folder of the kernel sources: inside the package in a wheel, beside it in an editable install."""
    packed = resources.files("course") / "_kernels"
    return packed if packed.is_dir() else Path(__file__).resolve().parents[2] / "kernels"


@cache
def text(name: str) -> str:
    """The text of one source file. Raises KernelError if the installation lacks it."""
    path = folder() / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise KernelError(f"the kernel source {name} is missing: install the course again") from None


ATTENTION = ("attention_parts.h", "attention_walk.h", "attention_tensor.h")
BUILT_ON = {
    "decode_bell": ("decode_step.cu",),
    "decode_loop": ("decode_step.cu",),
    "decode_attention": ATTENTION,
    **dict.fromkeys(("skinny_gemm", "split_gemm"), ("finish.h", "packed_product.h")),
    "sampling": ("row_share.h",),
    **dict.fromkeys(("rms_norm", "rope_append", "silu"), ("row_norm.h",)),
    "mixed_attention": (*ATTENTION, "decode_attention.cu", "prefill_attention.cu"),
}
"""Kernels that call what other files define, and these files in their order."""


@cache
def kernel_text(name: str) -> str:
    """The source of a kernel, behind the files that it is built on. Raises KernelError where one is missing."""
    files = [*BUILT_ON.get(name, ()), f"{name}.cu"]
    return text(files[0]) if len(files) == 1 else join([(file, text(file)) for file in files])


def kernels() -> tuple[str, ...]:
    """The names of all kernels there are: one a .cu file."""
    return tuple(sorted(path.name.removesuffix(".cu") for path in folder().iterdir() if path.name.endswith(".cu")))


def join(parts: Sequence[tuple[str, str]]) -> str:
    """One source of several (file name, text), in which every compiler counts lines as the files do."""
    return "".join(f'#line 1 "{name}"\n{source.rstrip()}\n' for name, source in parts)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel; dtype None: an array of anything."""

    name: str
    type: str
    dtype: np.dtype | None
    pointer: bool


def parameters(source: str, kernel: str) -> tuple[Parameter, ...]:
    """The parameters of `kernel` as its source declares them. Raises KernelError if it is not found."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    match = re.search(rf"__global__[^;{{}}]*?\b{re.escape(kernel)}\s*\(([^)]*)\)\s*\{{", code)
    if not match:
        raise KernelError(f'there is no kernel {kernel}: the source needs extern "C" __global__ void {kernel}(...)')
    return tuple(_parameter(kernel, part) for part in match[1].split(",") if part.strip() not in ("", "void"))


def _parameter(kernel: str, declared: str) -> Parameter:
    words = re.findall(r"\w+|\*", declared)
    words = [word for word in words if word not in ("const", "__restrict__", "volatile")]
    *kind, name = words
    pointer = "*" in kind
    base = " ".join(word for word in kind if word != "*")
    if pointer:
        return Parameter(name, f"{base}*", np.dtype(SCALARS[base]) if base in SCALARS else None, True)
    if base not in SCALARS:
        raise KernelError(
            f"parameter {name} of {kernel} has type {base}: use one of {', '.join(SCALARS)}, or a pointer"
        )
    return Parameter(name, base, np.dtype(SCALARS[base]), False)


def bind(kernel: str, parameters: Sequence[Parameter], given: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments as the kernel takes them: scalars as NumPy scalars of the declared type, arrays as they are.

    A Python float would arrive as a double, and a float64 array read as float* is garbage: neither gets through.

    Raises ValueError: too few or too many arguments, a number that does not fit, an array of another type or with gaps.
    """
    if len(parameters) != len(given):
        names = ", ".join(f"{p.type} {p.name}" for p in parameters)
        raise ValueError(f"{kernel} takes {len(parameters)} arguments ({names}), not {len(given)}")
    return tuple(
        _array(kernel, p, v) if p.pointer else _scalar(kernel, p, v) for p, v in zip(parameters, given, strict=True)
    )


def _array(kernel: str, parameter: Parameter, value: Any) -> Any:
    dtype, flags = getattr(value, "dtype", None), getattr(value, "flags", None)
    if dtype is None or flags is None:
        raise ValueError(f"{parameter.name} of {kernel} must be an array of the device, not {quote(value)}")
    if parameter.dtype is not None and dtype != parameter.dtype:
        raise ValueError(f"{parameter.name} of {kernel} must be an array of {parameter.dtype}, not of {dtype}")
    if not flags.c_contiguous:
        raise ValueError(f"{parameter.name} of {kernel} must be contiguous in memory: pass a copy")
    return value


def _scalar(kernel: str, parameter: Parameter, value: Any) -> np.generic:
    assert parameter.dtype is not None
    kind = parameter.dtype.type
    try:
        number = kind(value)
        exact = np.issubdtype(kind, np.floating) or number == value
    except (OverflowError, TypeError, ValueError):
        exact = False
    if isinstance(value, bool | str) or not exact:
        raise ValueError(f"{parameter.name} of {kernel} must be a number of type {parameter.type}, not {quote(value)}")
    return number
