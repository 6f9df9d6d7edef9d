"""Weights in the safetensors format, with a checksum over the whole file.

The format (https://github.com/huggingface/safetensors): eight bytes with the length of the header, the header as JSON
with dtype, shape and place of every tensor, then the numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np

from course.lm.errors import LMError

DTYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64}


def checksum(path: str | Path) -> str:
    """The SHA-256 of a file as hex digits."""
    return sha256(Path(path).read_bytes()).hexdigest()


def read(path: str | Path, expected: str | None = None) -> dict[str, np.ndarray]:
    """All tensors of a file, by name, as they are stored.

    expected: the SHA-256 that the file must have. LMError if it has another, is missing or is no safetensors file.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LMError(
            f"The weights {path} cannot be read: {error.strerror or error}. Install the course again."
        ) from None
    if expected is not None and sha256(data).hexdigest() != expected:
        raise LMError(
            f"The weights {path} are damaged: their checksum is not the expected one. Install the course again."
        )
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        header.pop("__metadata__", None)
        numbers = memoryview(data)[8 + size :]
        return {
            name: np.frombuffer(numbers[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LMError(f"{path} is not a safetensors file of 16-, 32- or 64-bit floats.") from None


def write(path: str | Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Write the tensors in the order of their names; the same tensors give the same bytes."""
    codes = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place, parts = 0, []
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        header[name] = {
            "dtype": codes[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.nbytes],
        }
        place += tensor.nbytes
        parts.append(tensor.tobytes())
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)  # the numbers start at a multiple of eight
    Path(path).write_bytes(len(head).to_bytes(8, "little") + head + b"".join(parts))
