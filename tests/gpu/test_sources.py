"""Kernel sources are found in a wheel and beside the package, and say what arguments they take."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import course
from course import gpu
from course.gpu import sources

KERNELS = sources.kernels()


def test_they_are_found_beside_the_package() -> None:
    assert sources.folder() == Path(course.__file__).parent.parent / "kernels"
    assert "__global__ void decode_step" in sources.text("decode_step.cu")


def test_they_are_found_inside_of_an_installed_package(tmp_path: Path, root: Path) -> None:
    """As a wheel lays them out: course/_kernels, and no kernels/ anywhere."""
    ignored = shutil.ignore_patterns("__pycache__", "data", "exercises", "figures", "explore")
    shutil.copytree(root / "course", tmp_path / "course", ignore=ignored)
    shutil.copytree(root / "kernels", tmp_path / "course" / "_kernels")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from course import gpu; from course.gpu import sources; "
        "print(sources.folder()); print(gpu.DecodeStep(gpu.device('numpy'), 10).result(1)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    where, value = done.stdout.splitlines()
    assert where == str(tmp_path / "course" / "_kernels") and float(value) > 0


def test_a_missing_source_is_a_sentence() -> None:
    with pytest.raises(gpu.KernelError, match=r"the kernel source none\.cu is missing: install the course again"):
        sources.text("none.cu")


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_knows_no_vendor(name: str) -> None:
    """compat.h alone knows who made the card; and a kernel includes nothing and has no template."""
    code = re.sub(r"//[^\n]*", "", sources.text(f"{name}.cu"))
    assert 'extern "C" __global__' in code
    for word in (
        "#include",
        "template",
        "__shfl",
        "__CUDA",
        "__HIP",
        "cuda",
        "hip",
        "warpSize",
        "__launch_bounds__(THREADS,",
        "__syncwarp",
    ):
        assert word not in code


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_an_operation_of_its_name(name: str) -> None:
    """Its host side; what it is, and what it is compared with, stand in the same file."""
    assert importlib.import_module(f"course.gpu.ops.{name}").__doc__


def test_compat_is_short() -> None:
    assert len(sources.text("compat.h").splitlines()) <= 60


def test_parameters_are_read_from_the_source() -> None:
    source = """
    // __global__ void k(int wrong) {
    __device__ float helper(float x) { return x; }
    extern "C" __global__ void __launch_bounds__(256, 2) k(
        const float* __restrict__ a, /* many, */ unsigned char *b, uint4* c, int n, unsigned int m, double scale) {
    """
    found = sources.parameters(source, "k")
    assert [(p.name, p.type, p.pointer) for p in found] == [
        ("a", "float*", True),
        ("b", "unsigned char*", True),
        ("c", "uint4*", True),
        ("n", "int", False),
        ("m", "unsigned int", False),
        ("scale", "double", False),
    ]
    assert [p.dtype for p in found] == [np.float32, np.uint8, None, np.int32, np.uint32, np.float64]
    assert (
        sources.parameters("__global__ void k() {}", "k") == sources.parameters("__global__ void k(void) {}", "k") == ()
    )


def test_a_kernel_that_is_not_there_or_takes_a_struct() -> None:
    with pytest.raises(gpu.KernelError, match="there is no kernel other"):
        sources.parameters("__global__ void k(int n) {}", "other")
    with pytest.raises(gpu.KernelError, match="parameter s of k has type Box"):
        sources.parameters("__global__ void k(Box s) {}", "k")


def test_scalars_arrive_in_the_declared_type() -> None:
    """CuPy would pass a Python float as a double, which a kernel would read as garbage."""
    wanted = sources.parameters("__global__ void k(float x, int n, double y, long long m) {}", "k")
    found = sources.bind("k", wanted, (0.1, np.int64(7), 1, 2**40))
    assert [type(value) for value in found] == [np.float32, np.int32, np.float64, np.int64]
    assert found == (np.float32(0.1), 7, 1.0, 2**40)


def _launch(grid: object = 1, block: object = 1, args: tuple | None = None, shared: object = 0) -> None:
    args = (np.zeros(4, np.float32), 1) if args is None else args
    gpu.device("numpy").kernel("decode_step")(grid, block, args, shared)


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ({"grid": 0}, "grid must be a whole number"),
        ({"block": 2_048}, "block must be a whole number from 1 to 1,024"),
        ({"block": (64, 64)}, "is 4096 threads: at most 1024 fit into one"),
        ({"grid": (1, 1, 1, 1)}, "grid has one to three sizes"),
        ({"shared": 10**6}, "shared_bytes must be a whole number from 0 to 49,152"),
        ({"args": (np.zeros(4, np.float32),)}, r"decode_step takes 2 arguments \(float\* out, int work\), not 1"),
    ],
)
def test_a_launch_that_cannot_be(launch: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        _launch(**launch)


@pytest.mark.parametrize(
    ("out", "work", "said"),
    [
        (np.zeros(4), 1, "out of decode_step must be an array of float32, not of float64"),
        (np.zeros((4, 4), np.float32).T[1:], 1, "must be contiguous in memory"),
        (7, 1, "out of decode_step must be an array of the device, not 7"),
        (np.zeros(4, np.float32), 1.5, "work of decode_step must be a number of type int, not 1.5"),
        (np.zeros(4, np.float32), 2**31, "must be a number of type int"),
        (np.zeros(4, np.float32), "1", "must be a number of type int, not '1'"),
        (np.zeros(4, np.float32), True, "must be a number of type int, not True"),
    ],
)
def test_arguments_of_the_wrong_type(out: object, work: object, said: str) -> None:
    """A float64 array read as float*, or a number cut to fit, would be garbage without a word."""
    with pytest.raises(ValueError, match=said):
        _launch(args=(out, work))
