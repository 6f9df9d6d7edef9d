"""Compiles a kernel for the CPU, once: the library stays in the user's cache, named after all that went into it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course.gpu import cpu, sources
from course.gpu.diagnosis import compile_error
from course.gpu.errors import KernelError

FOLDER = "COURSE_CACHE_DIR"
KEEP = 200  # libraries of about 20 kB; older ones go when a new one is built
SECONDS = 120
NAMES = ("c++", "g++", "clang++")


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: the command, the first line of its --version, and the flags for this machine."""

    command: str
    version: str
    flags: tuple[str, ...]


def compiler() -> Compiler:
    """The compiler that CXX names, or the first on the PATH. Raises KernelError if there is none that works."""
    return _compiler_of(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@cache
def _compiler_of(chosen: str, path: str) -> Compiler:
    if sys.platform == "win32":
        raise KernelError("on Windows kernels run as NumPy: compiled kernels need Linux, macOS or WSL")
    program = next(filter(None, (shutil.which(name, path=path) for name in (chosen, *NAMES) if name)), None)
    if program is None:
        raise KernelError("there is no C++ compiler on the PATH (c++, g++ or clang++): install one to run kernels here")
    try:
        if sys.platform == "darwin":  # if the tools are missing, calling c++ opens a window that asks to install them
            subprocess.run(["xcode-select", "-p"], check=True, capture_output=True, timeout=20)
        process = subprocess.run([program, "--version"], check=True, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        raise KernelError(f"the C++ compiler {program} does not work: `{program} --version` fails") from None
    version = process.stdout.strip().splitlines()[0] if process.stdout.strip() else "unknown version"
    # Clang's -fsanitize=bounds holds more than the check of array indices, and that part cannot be caught.
    bounds = "array-bounds" if "clang" in process.stdout.lower() else "bounds"
    flags = ["-std=c++17", "-O2", "-fPIC", "-w", "-U_FORTIFY_SOURCE", f"-fsanitize={bounds}"]
    if platform.machine().lower() in ("x86_64", "amd64") and cpu.has_fma():
        flags += ["-mavx2", "-mfma"]  # without them a fused multiply-add is a call into the maths library
    return Compiler(program, version, tuple(flags))


def load(source: str, kernel: str, file: str, macros: Mapping[str, Any]) -> ctypes.CDLL:
    """The kernel, compiled together with the shim, as a loaded library.

    Raises KernelError: no compiler, a source that does not compile (with the line), nowhere to put the library.
    """
    tool = compiler()
    whole = sources.join(
        [(name, sources.text(name)) for name in ("cpu_shim.h", "cpu_guard.h", "cpu_tensor.h")]
        + [*sources.headers(), (file, source), ("cpu_launch.h", sources.text("cpu_launch.h"))]
    )
    defined = tuple(f"-D{name}={value}" for name, value in {**macros, "KERNEL": kernel}.items())
    key = "\0".join((whole, tool.command, tool.version, *tool.flags, *defined, platform.machine(), sys.platform))
    name = hashlib.sha256(key.encode()).hexdigest()[:32] + ".so"
    reasons: list[str] = []
    for folder in _folders():
        path = folder / name
        for fresh in (False, True):  # a library that does not load, perhaps cut off by a full disk, is built again
            try:
                if fresh or not path.is_file():
                    _build(tool, defined, whole, file, source, path)
                return ctypes.CDLL(str(path))
            except OSError as error:
                reasons.append(f"{folder}: {error.strerror or error}")
    raise KernelError(f"the compiled kernel {kernel} cannot be stored anywhere: {'; '.join(dict.fromkeys(reasons))}")


def _folders() -> Iterator[Path]:
    """The folders in which libraries may be kept, best first."""
    chosen = os.environ.get(FOLDER)
    if not chosen:
        from platformdirs import user_cache_dir

        chosen = user_cache_dir("llm-batching-course", appauthor=False)
    yield Path(chosen).expanduser() / "kernels"
    # A home that is read-only, or that forbids running what lies in it. A folder of our own: no other user may leave
    # a library there for us to run.
    yield Path(_private_folder())


@cache
def _private_folder() -> str:
    return tempfile.mkdtemp(prefix="course-kernels-")


def _build(tool: Compiler, defined: tuple[str, ...], whole: str, file: str, source: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        text, thing, built = (str(Path(scratch) / name) for name in ("kernel.cpp", "kernel.o", "kernel.so"))
        Path(text).write_text(whole, encoding="utf-8")
        # In two steps, so that no sanitizer library is linked: cpu_guard.h has what the checks call.
        _call([tool.command, *tool.flags, *defined, "-c", text, "-o", thing], file, source)
        _call([tool.command, "-shared", thing, "-o", built], file, source)
        os.replace(built, path)  # at once: another process may be building the same
    with suppress(OSError):
        old = sorted(path.parent.glob("*.so"), key=lambda one: one.stat().st_mtime)[:-KEEP]
        for one in old:
            one.unlink()


def _call(command: list[str], file: str, source: str) -> None:
    try:
        process = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise KernelError(f"{file} was still being compiled after {SECONDS} s") from None
    if process.returncode:
        raise KernelError(compile_error(file, source, process.stderr or process.stdout))
