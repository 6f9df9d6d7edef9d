"""What both CPU back ends share: time is what passes, and memory is memory."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from course.gpu.device import Device, Stopwatch


class CPUStopwatch(Stopwatch):
    """A launch on a CPU has ended when it returns."""

    def __init__(self) -> None:
        self._ended = float("nan")

    def time(self, launch: Callable[[], Any]) -> tuple[float, float]:
        """See Stopwatch."""
        began = time.perf_counter()
        launch()
        ended = time.perf_counter()
        gap, self._ended = began - self._ended, ended
        return ended - began, gap


class CPUDevice(Device):
    """A device whose launches run in this process, at once."""

    def stopwatch(self) -> Stopwatch:
        """See Device."""
        return CPUStopwatch()

    def pace(self, launch: Callable[[], Any], launches: int) -> float:
        """See Device."""
        began = time.perf_counter()
        for _ in range(launches):
            launch()
        return (time.perf_counter() - began) / launches


@cache
def name() -> str:
    """The name of this machine's processor."""
    try:
        if sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            model_name = subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
        else:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
            model_name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except (OSError, subprocess.SubprocessError):
        model_name = ""
    return model_name or platform.processor() or platform.machine() or "unknown CPU"


@cache
def has_fma() -> bool:
    """Whether an x86-64 processor has fused multiply-add instructions and AVX2, as far as Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return "fma" in flags and "avx2" in flags
