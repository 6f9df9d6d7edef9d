"""NVIDIA's run-time compiler without CuPy."""

import ctypes
import importlib.util
from contextlib import suppress
from pathlib import Path


def nvrtc() -> ctypes.CDLL | None:
    """NVIDIA's run-time compiler, of the pip package nvidia-cuda-nvrtc or of a toolkit; it needs no GPU."""
    names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations or () if found else ():
        names += [str(path) for path in Path(folder).glob("*/lib/libnvrtc.so.*") if "alt" not in path.name]
    for name in names:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None
