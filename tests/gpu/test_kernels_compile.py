"""The kernels compile for every GPU architecture that a compiler of this machine knows, without any GPU."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from course.gpu import build, sources
from course.gpu.errors import KernelError
from course.gpu.shim import ShimDevice
from tests.helpers.nvrtc import nvrtc
from tests.helpers.sizes import size

CUDA = size(("75", "90"), whole=("75", "80", "86", "89", "90", "100", "120"))
HIP = ("gfx90a", "gfx1030")
HIP_NEWER = ("gfx942", "gfx1100")
"""Of clang 17 and later; Debian's hipcc is older."""
EVERYTHING = """
extern "C" __global__ void everything(float* out, int n) {
    SHARED(float, box);
    box[threadIdx.x] = n;
    SYNC_LANES();
    __syncthreads();
    out[threadIdx.x] = SHUFFLE_DOWN(box[threadIdx.x], LANES / 2) + SHUFFLE_XOR(n, 1) + SHUFFLE_XOR(box[0], 2);
}
"""


@pytest.fixture(scope="module", params=["everything", *sources.kernels()])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Each kernel behind compat.h, as its macros are by default; and one that uses all of compat.h."""
    name = request.param
    code = EVERYTHING if name == "everything" else sources.kernel_text(name)
    path = tmp_path_factory.mktemp("kernels") / f"{name}.cu"
    path.write_text(sources.join([*sources.headers(), (path.name, code)]))
    return str(path)


def test_cuda_from_turing_to_blackwell(source: str, tmp_path: Path) -> None:
    """sm_75 to sm_120, to machine code; no warning either."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc on the PATH: CUDA is not compiled here")
    targets = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in CUDA]
    command = [nvcc, "-fatbin", "-std=c++17", "--threads=0", "-Werror=all-warnings", *targets]
    done = subprocess.run([*command, source, "-o", str(tmp_path / "out")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", CUDA)
def test_cuda_as_cupy_compiles_it(source: str, number: str) -> None:
    """By NVRTC, which knows no headers unless it is given some."""
    library = nvrtc()
    if library is None:
        pytest.skip("there is no NVRTC (`pip install nvidia-cuda-nvrtc` brings it)")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), Path(source).read_bytes(), b"kernels.cu", 0, None, None)
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture=sm_{number}".encode(), b"-std=c++17")
    status = library.nvrtcCompileProgram(program, 2, options)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    assert (status, log.value.decode().strip()) == (0, "")


def test_hip_for_cdna_and_rdna(source: str, tmp_path: Path) -> None:
    hipcc = shutil.which("hipcc")
    if hipcc is None:
        pytest.skip("there is no hipcc on the PATH: HIP is not compiled here")
    command = [hipcc, *(f"--offload-arch={target}" for target in HIP), "-std=c++17", "-O3", "--cuda-device-only"]
    command += ["-include", "hip/hip_runtime.h", "-x", "hip", "-c", source, "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HIP_PLATFORM": "amd"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", HIP_NEWER)
def test_hip_for_newer_cards(source: str, target: str, tmp_path: Path) -> None:
    """To assembly, with HIP's headers and without its device library: Debian's does not know these cards."""
    clang = next(filter(None, (shutil.which(f"clang-{version}") for version in range(22, 16, -1))), None)
    if clang is None or shutil.which("hipcc") is None:
        pytest.skip(
            "there is no clang-17 or later beside a hipcc on the PATH: HIP is not compiled for newer cards here"
        )
    command = [clang, f"--offload-arch={target}", "-std=c++17", "-O3", "--offload-device-only", "-nogpulib", "-S"]
    command += ["-include", "hip/hip_runtime.h", "-x", "hip", source, "-o", str(tmp_path / "out.s")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_shim_compiles_without_a_warning(compiler: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By each compiler that there is, and what it made runs."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} on the PATH")
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.setenv(build.FOLDER, str(tmp_path))
    try:
        tool = build.compiler()
    except KernelError as error:
        pytest.skip(str(error))
    # The empty kernel calls nothing of the shim.
    flags = (*(flag for flag in tool.flags if flag != "-w"), "-Wall", "-Wextra", "-Werror", "-Wno-unused-function")
    monkeypatch.setattr(build, "compiler", lambda: build.Compiler(tool.command, tool.version, flags))
    device = ShimDevice()
    assert device.versions["compiler"] == tool.version
