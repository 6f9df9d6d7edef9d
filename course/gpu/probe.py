"""Is there a GPU, and can CuPy use it? CuPy is imported only once a driver has answered; every "no" is a sentence."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from course.gpu.diagnosis import first_line
from course.gpu.errors import KernelError

NVIDIA = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1")
AMD = tuple(
    f"{folder}libamdhip64.so{version}" for folder in ("", "/opt/rocm/lib/") for version in (".7", ".6", ".5", "")
)
NO_DEVICE, STUB, MISMATCH = 100, 34, 803
OLDEST = 12_000  # CUDA 12.0, in the driver's way of counting; CuPy 14 has nothing for older ones
INSUFFICIENT_DRIVER = "cudaErrorInsufficientDriver"


def open_library(names: Sequence[str]) -> Any | None:
    """The first of these libraries that can be opened, or None."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def nvidia() -> int | None:
    """The newest CUDA version that the NVIDIA driver supports (13000 for 13.0), or None if there is no driver.

    Raises KernelError for a driver without a usable GPU.
    """
    library = open_library(NVIDIA)
    if library is None:
        return None
    status = library.cuInit(0)
    if status == STUB:
        return None
    count, version = ctypes.c_int(0), ctypes.c_int(0)
    if status == 0:
        status = library.cuDeviceGetCount(ctypes.byref(count))
    if status == NO_DEVICE or (status == 0 and count.value == 0):
        raise KernelError(f"there is an NVIDIA driver, but it shows no GPU{_hidden('CUDA_VISIBLE_DEVICES')}")
    if status == MISMATCH:
        raise KernelError("the NVIDIA driver and its library have different versions: restart the machine")
    if status:
        raise KernelError(f"the NVIDIA driver fails with error {status}: see what `nvidia-smi` says")
    library.cuDriverGetVersion(ctypes.byref(version))
    if version.value < OLDEST:
        raise KernelError(
            f"the NVIDIA driver is too old: it supports CUDA {dotted_version(version.value)}, "
            "and CuPy needs 12.0 or newer"
        )
    return version.value


def amd() -> bool:
    """Whether ROCm shows a GPU. Raises KernelError if ROCm is there and a GPU is not."""
    library = open_library(AMD)
    if library is None:
        return False
    count = ctypes.c_int(0)
    status = library.hipGetDeviceCount(ctypes.byref(count))
    if status == NO_DEVICE or (status == 0 and count.value == 0):
        raise KernelError(f"ROCm is installed, but it shows no GPU{_hidden('HIP_VISIBLE_DEVICES')}")
    if status:
        raise KernelError(f"ROCm fails with error {status}: see what `rocminfo` says")
    return True


def _hidden(variable: str) -> str:
    return f" ({variable} is set to {os.environ[variable]!r})" if variable in os.environ else ""


def dotted_version(version: int) -> str:
    """A version in the driver's way of counting as people write it: 13020 is 13.2."""
    return f"{version // 1000}.{version % 1000 // 10}"


def package(kind: str, driver: int | None) -> str:
    """The CuPy package for this driver."""
    if kind == "hip":
        return "cupy-rocm-7-0"
    return "cupy-cuda13x[ctk]" if driver is not None and driver >= 13_000 else "cupy-cuda12x[ctk]"


def cupy(kind: str, driver: int | None) -> ModuleType:
    """CuPy, if it is there and built for this kind of GPU. Raises KernelError with what to install otherwise."""
    vendor = "an AMD" if kind == "hip" else "an NVIDIA"
    install = f"`pip install '{package(kind, driver)}'`"
    try:
        module = importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise KernelError(f"there is {vendor} GPU, but CuPy lacks the module {error.name}: {install}") from None
        raise KernelError(f"there is {vendor} GPU, but CuPy is not installed: {install}") from None
    except Exception as error:  # a library that is missing, a driver too old, a broken installation: anything
        raise KernelError(f"there is {vendor} GPU, but CuPy cannot be imported: {first_line(error)}") from None
    if bool(module.cuda.runtime.is_hip) != (kind == "hip"):
        built = "AMD" if kind == "cuda" else "NVIDIA"
        raise KernelError(f"there is {vendor} GPU, but this CuPy is built for {built}: replace it by {install}")
    return module


def why_cupy_fails(error: Exception, kind: str, driver: int | None, module: ModuleType) -> str:
    """A sentence for a CuPy that is installed and cannot run a kernel."""
    message = first_line(error)
    if kind == "cuda" and INSUFFICIENT_DRIVER in message and driver is not None:
        try:
            built = f" is built for CUDA {dotted_version(module.cuda.runtime.runtimeGetVersion())}"
        except Exception:
            built = " is built for a newer CUDA"
        return (
            f"the NVIDIA driver supports CUDA {dotted_version(driver)}, and this CuPy{built}: "
            f"install a newer driver, or replace CuPy by `pip install '{package(kind, driver)}'`"
        )
    return f"there is a GPU and CuPy is installed, but a kernel does not run: {message}"
