"""e4m3: numbers of 8 bits, a sign, 4 bits of exponent and 3 of mantissa (OCP 8-bit Floating Point Specification)."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST = 448.0
"""The largest number. What is larger becomes this one, as vLLM's and NVIDIA's saturating conversions do."""
_CODES = np.arange(128)
_POSITIVE = np.where(_CODES < 8, _CODES / 8 * 2.0**-6, (1 + _CODES % 8 / 8) * 2.0 ** (_CODES // 8 - 7.0))
_VALUES = np.concatenate([_POSITIVE, -_POSITIVE]).astype(np.float32)
_VALUES[[127, 255]] = np.nan
_BETWEEN = (_POSITIVE[:126] + _POSITIVE[1:127]) / 2


def encode(values: Any) -> np.ndarray:
    """Numbers rounded to e4m3, to nearest, ties to even, as uint8."""
    values = np.asarray(values, np.float32)
    size = np.abs(values.astype(np.float64))
    low, high = np.searchsorted(_BETWEEN, size, "left"), np.searchsorted(_BETWEEN, size, "right")
    code = np.where((low != high) & (low % 2 == 1), high, low)
    code = np.where(np.isnan(values), 127, code)
    return (code | np.where(np.signbit(values), 128, 0)).astype(np.uint8)


def decode(stored: np.ndarray) -> np.ndarray:
    """The numbers that an array holds, as float32."""
    return _VALUES[np.asarray(stored)]


def scales_of(keys: Any, values: Any) -> np.ndarray:
    """Scales (2, KV heads) with which the largest number of each head becomes the largest of e4m3.

    keys, values: float (..., KV heads, width). A head of zeros has the scale 1.
    """
    most = [np.abs(np.asarray(part, np.float32)).max((*range(np.ndim(part) - 2), -1)) for part in (keys, values)]
    return np.where(np.array(most) > 0, np.array(most) / MOST, 1.0).astype(np.float32)
