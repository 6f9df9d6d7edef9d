"""Compiling for the CPU: once, into a cache that may be lost, broken or read-only; and errors that show the line."""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from course import gpu
from course.gpu import build, sources
from course.gpu.diagnosis import compile_error
from course.gpu.shim import ShimDevice

try:
    build.compiler()
    MISSING = ""
except gpu.KernelError as error:
    MISSING = str(error)
needs_compiler = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(build.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the compiler was called with."""
    found: list[list[str]] = []
    plain = build._call

    def call(command: list[str], file: str, source: str) -> None:
        found.append(command)
        plain(command, file, source)

    monkeypatch.setattr(build, "_call", call)
    return found


def empty() -> ctypes.CDLL:
    return build.load(sources.text("empty.cu"), "empty", "empty.cu", {})


@needs_compiler
def test_a_kernel_is_compiled_once_and_again_after_damage(
    cache: Path, calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty()
    assert len(calls) == 2  # compiled, linked
    empty()
    assert len(calls) == 2
    (library,) = cache.iterdir()  # and nothing else was left there
    # Another folder with a file of that name, as a full disk leaves it. (Of one path the system loads no second file.)
    monkeypatch.setenv(build.FOLDER, str(cache / "other"))
    damaged = cache / "other" / "kernels" / library.name
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"\x7fELF cut off")
    ShimDevice()
    assert len(calls) == 4 and damaged.stat().st_size > 1_000


@needs_compiler
def test_the_key_holds_all_that_goes_in(cache: Path, calls: list[list[str]]) -> None:
    source = 'extern "C" __global__ void k(float* out) { out[0] = SIZE; }'
    device = ShimDevice()
    for size in (3, 4, 3):
        out = device.empty(1, np.float32)
        device.compile(source, "k", macros={"SIZE": size})(1, 1, (out,))
        assert out[0] == size
    assert len(list(cache.iterdir())) == 3 and len(calls) == 6  # with the empty kernel


@needs_compiler
def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(build.FOLDER, str(tmp_path / "file"))
    assert ShimDevice().kind == "cpu-shim"
    folder = Path(build._private_folder())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and any(folder.iterdir())
    monkeypatch.setattr(build, "_private_folder", lambda: str(tmp_path / "file"))
    with pytest.raises(gpu.KernelError, match=r"the compiled kernel empty cannot be stored anywhere: .*file"):
        ShimDevice()


@needs_compiler
def test_old_libraries_are_dropped(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "KEEP", 2)
    cache.mkdir(parents=True)
    for i in range(5):
        (cache / f"{i}.so").write_text("")
        os.utime(cache / f"{i}.so", (i, i))
    empty()
    assert len(list(cache.iterdir())) == 2 and (cache / "4.so").exists()


@needs_compiler
def test_a_kernel_that_does_not_compile_shows_its_line(cache: Path) -> None:
    source = 'extern "C" __global__ void k(float* out) {\n    out[0] = 1;\n    out[1] = two;\n}\n'
    with pytest.raises(gpu.KernelError, match=r"^k\.cu does not compile, line 3: .*two.*: out\[1\] = two;$"):
        ShimDevice().compile(source, "k", file="k.cu")


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            'k.cu(2): error: identifier "x" is undefined\n\n1 error detected',
            'line 2: identifier "x" is undefined: b = x;',
        ),
        ('/tmp/a/k.cu(2): catastrophic error: cannot open "y"', 'line 2: cannot open "y": b = x;'),
        ("k.cu: In function f:\nk.cu:2:5: error: x was not declared", "line 2: x was not declared: b = x;"),
        ("k.cu:1: warning: unused\nk.cu:2:5: fatal error: no such file", "line 2: no such file: b = x;"),
        ("k.cu(9): error: expected a }", "line 9: expected a }"),
        ("nvrtc: error: invalid value for --gpu-architecture", ": nvrtc: error: invalid value for --gpu-architecture"),
        ("", ": the compiler said nothing"),
    ],
)
def test_logs_of_all_compilers(log: str, said: str) -> None:
    found = compile_error("k.cu", "a = 1;\n  b = x;\n", log)
    assert found.startswith("k.cu does not compile") and found.endswith(said)


def test_no_compiler_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(gpu.KernelError, match=r"there is no C\+\+ compiler on the PATH"):
        ShimDevice()


@pytest.mark.skipif(os.name == "nt", reason="on Windows there is no CPU shim")
def test_a_compiler_that_does_not_work_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(gpu.KernelError, match=r"the C\+\+ compiler .*c\+\+ does not work"):
        ShimDevice()


@needs_compiler
def test_cxx_chooses_the_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    real = build.compiler().command
    mine = tmp_path / "mine"
    mine.write_text(f'#!/bin/sh\nexec "{real}" "$@"\n')
    mine.chmod(0o755)
    monkeypatch.setenv("CXX", str(mine))
    assert build.compiler().command == str(mine)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert build.compiler().command == real
