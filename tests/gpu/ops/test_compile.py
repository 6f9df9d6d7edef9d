"""The operations' kernels compile for every GPU that a compiler of this machine knows, and spill nothing on sm_90."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from course.gpu import sources
from tests.helpers.nvrtc import nvrtc
from tests.helpers.sizes import size


def _by_name(table: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    return [[form for form in table if form[0] == name] for name in dict.fromkeys(name for name, _ in table)]


CUDA = size(("80", "120"), whole=("80", "86", "89", "90", "100", "120"))
HIP = ("gfx90a", "gfx1030")
ROWS = ("rms_norm", "rope", "append", "rope_append", "silu", "gather", "fill", "most_likely")
PLAIN = [
    ("read_probe", "WALK=0"),
    ("read_probe", "WALK=1"),
    *((name, f"ELEMENT={e}") for name in ROWS for e in (1, 2)),
    ("gather", "GROUPS=2 SQUARES=1"),
    ("rope_append", "E4M3=1 NORM=1 THREADS=128"),
    ("silu", "NORM=1"),
    ("decode_attention", "G=4 RESIDENT=3"),
    ("decode_attention", "G=8 RESIDENT=2"),
    ("decode_attention", "ELEMENT=2 HEAD_DIM=32 G=1 RESIDENT=3"),
    ("decode_attention", "ELEMENT=2 HEAD_DIM=32 G=4 KV_HEADS=2 RESIDENT=3"),  # of course/lm, and of its draft
    ("decode_attention", "ELEMENT=2 HEAD_DIM=32 G=3 KV_HEADS=1 RESIDENT=3"),
    ("decode_attention", "ELEMENT=1 HEAD_DIM=64 G=4 RESIDENT=3 OUT_GROUPS=1"),
    ("decode_attention", "ELEMENT=2 HEAD_DIM=32 G=4 KV_HEADS=2 RESIDENT=2 NEWEST=4"),
    ("decode_attention", "G=4 RESIDENT=2 NEWEST=8"),
    ("prefill_attention", "G=4"),
    ("prefill_attention", "ELEMENT=2 HEAD_DIM=32 G=4 KV_HEADS=2"),
    ("prefill_attention", "ELEMENT=2 HEAD_DIM=32 G=3 KV_HEADS=1"),
    ("prefill_attention", "ELEMENT=2 HEAD_DIM=32 G=1"),
    ("mixed_attention", "MIXED=1 RESIDENT=2"),
    *(("skinny_gemm", f"FINISH={finish} NORM={int(finish > 1)}") for finish in range(4)),
    ("skinny_gemm", "ELEMENT=1 FINISH=0 NORM=1"),
    *(("sampling", f"ELEMENT={e}") for e in (0, 1, 2)),
    *(("fp8_append", f"ELEMENT={e}") for e in (0, 2)),
    ("decode_attention", "E4M3=1 G=4 RESIDENT=2"),
    ("decode_attention", "E4M3=1 ELEMENT=2 HEAD_DIM=32 G=4 KV_HEADS=2 RESIDENT=2"),
    *(("split_gemm", f"GROUPS={groups} PIECES=2 FINISH=2 NORM=1 RESIDENT=1") for groups in (1, 4)),
]  # fmt: skip
TENSOR = [
    *(("decode_attention", f"TENSOR=1 G={g} ELEMENT={e} RESIDENT=3") for g, e in ((4, 0), (8, 1))),
    *(("decode_attention", f"TENSOR=1 G={g} ELEMENT={e} WARPS=8") for g, e in ((4, 1), (8, 0))),
    ("decode_attention", "TENSOR=1 G=4 HEAD_DIM=64 RESIDENT=3 OUT_GROUPS=4"),
    ("decode_attention", "TENSOR=1 G=4 RESIDENT=3 NEWEST=2"),
    *(("decode_attention", f"TENSOR=1 G=4 RESIDENT=2 NEWEST={n}") for n in (3, 4, 6, 8)),
    *(("decode_attention", f"TENSOR=1 G=4 NEWEST={n} WARPS=8 OUT_GROUPS=1") for n in (1, 2, 4)),
    *(("prefill_attention", f"TENSOR=1 HEAD_DIM={d} SLABS=2 RESIDENT=2") for d in (64, 128)),
    ("prefill_attention", "TENSOR=1 SLABS=2 RESIDENT=2 ELEMENT=1"),
    *(("prefill_attention", f"TENSOR=1 HEAD_DIM={d} RESIDENT=3 SPLIT={s}") for d, s in ((64, 0), (128, 1))),
    ("mixed_attention", "MIXED=1 TENSOR=1 SLABS=2 RESIDENT=2"),
    ("mixed_attention", "MIXED=1 TENSOR=1 SPLIT=1 RESIDENT=3"),
    *(("skinny_gemm", f"TENSOR=1 GROUPS={n} FINISH=1 SQUARES=1") for n in (1, 3)),
    *(("skinny_gemm", f"TENSOR=1 GROUPS={n} FINISH={f} NORM=1") for n, f in ((1, 3), (2, 0), (3, 2))),
    *(("skinny_gemm", f"TENSOR=1 GROUPS={n} DEPTH=2 RESIDENT=3 FINISH=3 NORM=1 SQUARES=1 E4M3=1") for n in (1, 4)),
    ("skinny_gemm", "TENSOR=1 GROUPS=3 DEPTH=2 TILES=2 FINISH=2 NORM=1 SQUARES=1"),
    *(("skinny_gemm", f"TENSOR=1 GROUPS={n} DEPTH=2 RESIDENT=3 FINISH=3 NORM=1") for n in (2, 3, 4)),
    *(("skinny_gemm", f"TENSOR=1 GROUPS=4 DEPTH=2 FINISH={f} NORM={int(f != 1)}") for f in (0, 1, 2)),
    ("skinny_gemm", "TENSOR=1 GROUPS=4 RESIDENT=1 TILES=2 FINISH=1"),
    *(("decode_attention", f"E4M3=1 TENSOR=1 G={g} WARPS={w} RESIDENT={16 // w}") for g, w in ((4, 4), (8, 8))),
    ("decode_attention", "E4M3=1 TENSOR=1 G=4 WARPS=8 NEWEST=4 CLUSTER=8 SHARERS=2"),
    ("sampling", "CLUSTER=8 THREADS=256 RESIDENT=2 HELD=1"),
    ("sampling", "CLUSTER=2 THREADS=512 RESIDENT=2 HELD=1"),
    ("sampling", "CLUSTER=4 THREADS=512 HELD=1 ELEMENT=2"),
    *(("split_gemm", f"TENSOR=1 GROUPS={g} FINISH={f} NORM={int(f != 1)}") for g, f in ((3, 3), (4, 2), (4, 1))),
    ("split_gemm", "TENSOR=1 GROUPS=8 PIECES=2 FINISH=1"),
    ("split_gemm", "TENSOR=1 GROUPS=4 CLUSTER=8 FINISH=2 NORM=1 SQUARES=1"),
    ("split_gemm", "TENSOR=1 GROUPS=8 PIECES=2 CLUSTER=5 FINISH=3 NORM=1"),
]  # fmt: skip


# One plain form and one with tensor cores of each kernel; `make test-all` compiles them all, some minutes.
EACH = [forms[0] for table in (PLAIN, TENSOR) for forms in _by_name(table)]
FORMS = size(EACH, PLAIN + TENSOR)


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name}.cu"
    path.write_text(sources.join([*sources.headers(), (f"{name}.cu", sources.kernel_text(name))]))
    return path


def macros(said: str) -> list[str]:
    return [f"-D{one}" for one in said.split()]


@pytest.mark.parametrize(("name", "said"), FORMS)
def test_nothing_spills_on_sm_90(name: str, said: str, tmp_path: Path) -> None:
    """And there is no warning."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc on the PATH: CUDA is not compiled here")
    command = [nvcc, "-arch=sm_90", "-cubin", "-std=c++17", "-Xptxas=-v", "-Werror=all-warnings", *macros(said)]
    done = subprocess.run(
        [*command, str(written(tmp_path, name)), "-o", str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"(\d+) bytes spill stores", done.stderr)) == {"0"}, done.stderr


@pytest.mark.parametrize(
    "name", ["decode_attention", "prefill_attention", "mixed_attention", "skinny_gemm", "split_gemm"]
)
def test_tensor_cores_from_ampere_to_blackwell(name: str, tmp_path: Path) -> None:
    """One form of each for all architectures; the plain forms are compiled in test_kernels_compile."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc on the PATH: CUDA is not compiled here")
    said = next(said for one, said in TENSOR if one == name)
    targets = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in CUDA]
    command = [nvcc, "-fatbin", "-std=c++17", "--threads=0", "-Werror=all-warnings", *macros(said), *targets]
    done = subprocess.run(
        [*command, str(written(tmp_path, name)), "-o", str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name", ["decode_attention", "prefill_attention", "mixed_attention", "skinny_gemm", "split_gemm"]
)
def test_tensor_cores_are_refused_where_there_are_none(name: str, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc on the PATH: CUDA is not compiled here")
    command = [nvcc, "-arch=sm_75", "-cubin", "-std=c++17", "-DTENSOR=1", str(written(tmp_path, name))]
    done = subprocess.run([*command, "-o", str(tmp_path / "out")], capture_output=True, text=True)
    assert "tensor cores as used here need compute capability 8.0 or later" in done.stderr


@pytest.mark.parametrize(("name", "said"), [PLAIN[0], PLAIN[2], *TENSOR[:1], *TENSOR[-1:], *PLAIN[-6:-5]])
def test_as_cupy_compiles_it(name: str, said: str, tmp_path: Path) -> None:
    """By NVRTC, which knows no headers unless it is given some."""
    library = nvrtc()
    if library is None:
        pytest.skip("there is no NVRTC (`pip install nvidia-cuda-nvrtc` brings it)")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = written(tmp_path, name).read_bytes()
    library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
    options = [b"--gpu-architecture=sm_90", b"-std=c++17", *(one.encode() for one in macros(said))]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    assert (status, log.value.decode().strip()) == (0, "")


@pytest.mark.parametrize(("name", "said"), PLAIN)
def test_hip_for_cdna_and_rdna(name: str, said: str, tmp_path: Path) -> None:
    hipcc = shutil.which("hipcc")
    if hipcc is None:
        pytest.skip("there is no hipcc on the PATH: HIP is not compiled here")
    command = [hipcc, *(f"--offload-arch={target}" for target in HIP), "-std=c++17", "-O3", "--cuda-device-only"]
    command += [*macros(said), "-include", "hip/hip_runtime.h", "-x", "hip", "-c", str(written(tmp_path, name))]
    environment = {**os.environ, "HIP_PLATFORM": "amd"}
    done = subprocess.run([*command, "-o", str(tmp_path / "out")], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
