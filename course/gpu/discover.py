"""Which device runs the kernels: a GPU if there is one that works, else the CPU, and why."""

from __future__ import annotations

from functools import cache

from course.base.settings import quote
from course.gpu import probe
from course.gpu.cupy_device import CupyDevice
from course.gpu.device import Device
from course.gpu.errors import KernelError
from course.gpu.plain import PlainDevice
from course.gpu.shim import ShimDevice

KINDS = ("auto", "cuda", "hip", "cpu", "numpy")


def device(kind: str = "auto") -> Device:
    """The device of this kind, made once: "cuda", "hip", "cpu" (kernels compiled for it), "numpy", or "auto".

    "auto" takes the first of them that works and never fails; `notes` says why a better one was not taken.

    Raises ValueError: no such kind. Raises KernelError: that kind was asked for and is not there, or does not work; the
    message says why.
    """
    if kind not in KINDS:
        raise ValueError(f"no device is called {quote(kind)}: choose one of {', '.join(KINDS)}")
    return _open(kind)


@cache
def _open(kind: str) -> Device:
    if kind in ("cuda", "hip"):
        return _gpu(kind)
    if kind == "cpu":
        return ShimDevice()
    if kind == "numpy":
        return PlainDevice()
    notes: list[str] = []
    for choice in ("cuda", "hip"):
        try:
            return _gpu(choice)
        except _NoDriver:
            continue
        except KernelError as error:
            notes.append(str(error))
    notes = notes or ["no driver for an NVIDIA or AMD GPU is installed"]
    try:
        return ShimDevice((*notes,))
    except KernelError as error:
        return PlainDevice((*notes, str(error)))


class _NoDriver(KernelError):
    """No driver of that vendor is installed; no note says so."""


def _gpu(kind: str) -> Device:
    driver = probe.nvidia() if kind == "cuda" else None
    if driver is None and not (kind == "hip" and probe.amd()):
        raise _NoDriver(f"no driver for an {'NVIDIA' if kind == 'cuda' else 'AMD'} GPU is installed")
    cupy = probe.cupy(kind, driver)
    try:
        return CupyDevice(cupy, kind, driver)
    except Exception as error:
        raise KernelError(probe.why_cupy_fails(error, kind, driver, cupy)) from error
