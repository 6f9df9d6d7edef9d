"""The numbers that kernels work on: bf16 as bits in uint16, fp16 and fp32 as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.base.settings import quote

KINDS = ("bf16", "fp16", "fp32")
"""In the order of ELEMENT in kernels/compat.h."""
_DTYPES: dict[str, np.dtype] = {"bf16": np.dtype(np.uint16), "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32)}
_DIGITS = {"bf16": 8, "fp16": 11, "fp32": 24}


def checked_kind(kind: Any) -> str:
    """`kind` itself; ValueError unless it is one of KINDS."""
    if kind not in KINDS:
        raise ValueError(f"numbers are of kind {', '.join(KINDS)}, not {quote(kind)}")
    return kind


def dtype(kind: str) -> np.dtype:
    """How an array holds numbers of this kind."""
    return _DTYPES[checked_kind(kind)]


def wide(kind: str) -> int:
    """Numbers in the 16 bytes that a lane loads at once."""
    return 16 // dtype(kind).itemsize


def roundoff(kind: str) -> float:
    """The largest relative error of rounding to this kind: 2^-8, 2^-11 or 2^-24."""
    return 2.0 ** -_DIGITS[checked_kind(kind)]


def encode(values: Any, kind: str) -> np.ndarray:
    """Numbers rounded to this kind, to nearest, ties to even."""
    single = np.ascontiguousarray(values, dtype=np.float32)
    if checked_kind(kind) == "fp32":
        return single.copy()
    if kind == "fp16":
        with np.errstate(over="ignore"):
            return single.astype(np.float16)
    bits = single.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(single), np.uint16(0x7FFF), rounded)


def decode(stored: np.ndarray, kind: str) -> np.ndarray:
    """The numbers that an array holds, as float32."""
    if checked_kind(kind) == "bf16":
        return (np.asarray(stored).astype(np.uint32) << 16).view(np.float32)
    return np.asarray(stored, dtype=np.float32)
