"""Which device runs the kernels, and the sentence for each reason why a better one does not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from course import gpu
from course.gpu import discover, probe
from tests.helpers import fake_cupy
from tests.helpers.fake_cupy import Library

PROBED = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No driver, no CuPy, and nothing remembered; what a test finds is forgotten after it."""
    for name in PROBED:
        monkeypatch.delenv(name, raising=False)
    libraries(monkeypatch)
    monkeypatch.setitem(sys.modules, "cupy", None)
    discover._open.cache_clear()
    yield
    discover._open.cache_clear()


def libraries(monkeypatch: pytest.MonkeyPatch, *, nvidia: Library | None = None, amd: Library | None = None) -> None:
    """Let exactly these driver libraries be found."""
    monkeypatch.setattr(probe, "open_library", {probe.NVIDIA: nvidia, probe.AMD: amd}.get)


def cupy(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module)


def refusal(kind: str) -> str:
    """The sentence when this kind is asked for; "auto" must then take a CPU and say the same."""
    with pytest.raises(gpu.KernelError) as found:
        gpu.device(kind)
    chosen = gpu.device()
    assert not chosen.is_gpu and str(found.value) in chosen.notes
    return str(found.value)


def test_without_a_driver_the_cpu_runs_them() -> None:
    chosen = gpu.device()
    assert chosen.kind in ("cpu-shim", "numpy") and chosen.notes[0] == "no driver for an NVIDIA or AMD GPU is installed"
    assert gpu.device() is chosen
    with pytest.raises(gpu.KernelError, match="no driver for an NVIDIA GPU is installed"):
        gpu.device("cuda")
    with pytest.raises(gpu.KernelError, match="no driver for an AMD GPU is installed"):
        gpu.device("hip")
    with pytest.raises(ValueError, match="no device is called 'tpu': choose one of auto, cuda, hip, cpu, numpy"):
        gpu.device("tpu")


def test_cupy_is_not_imported_where_no_driver_answers() -> None:
    """It takes half a second and up to 2 GB of libraries; a machine without a GPU never needs it."""
    code = "from course import gpu; from course.gpu import probe; probe.open_library = lambda names: None; gpu.device()"
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    assert "cupy_device" in done.stderr and " cupy\n" not in done.stderr


@pytest.mark.parametrize("hip", [False, True])
def test_a_gpu_that_works(monkeypatch: pytest.MonkeyPatch, hip: bool) -> None:
    libraries(monkeypatch, nvidia=None if hip else Library(version=13_010), amd=Library() if hip else None)
    cupy(monkeypatch, fake_cupy.module(hip=hip))
    chosen = gpu.device()
    kind, name = ("hip", "AMD Pretend") if hip else ("cuda", "NVIDIA Pretend")
    assert (chosen.kind, chosen.name, chosen.notes, chosen.is_gpu) == (kind, name, (), True)
    assert chosen.badge == f"measured: just now on this machine, {name} ({kind.upper()})"
    assert chosen.versions["cupy"] == "14.2.0"
    assert chosen.versions.get("architecture") == ("gfx90a:sramecc+" if hip else None)
    assert chosen.versions.get("driver supports") == (None if hip else "CUDA 13.1")
    step = gpu.DecodeStep(chosen, 1_000, 64)
    np.testing.assert_allclose(step.result(5), gpu.reference(5, 1_000), rtol=gpu.tolerance(1_000, 64))
    timing = step.time(5, launches=4)
    assert timing.launches == 4 and 0 < timing.low <= timing.seconds <= timing.high and timing.gap <= timing.longest_gap
    assert chosen.pace(step.prepare_empty(1), 3) > 0
    if hip:
        with pytest.raises(gpu.KernelError, match="graphs are replayed on CUDA only"):
            chosen.replayed(step.prepare(1))


def test_a_gpu_that_is_lost_in_the_middle_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries(monkeypatch, nvidia=Library(version=13_010))
    pretend = fake_cupy.module()
    cupy(monkeypatch, pretend)
    step = gpu.DecodeStep(gpu.device("cuda"), 1_000, 64)
    step.time(5, launches=2)

    def lost(*args: object, **settings: object) -> None:
        raise fake_cupy.CUDARuntimeError("cudaErrorLaunchFailure: unspecified launch failure")

    sentence = r"stopped in the middle \(cudaErrorLaunchFailure: unspecified launch failure\): restart .* need no GPU"
    monkeypatch.setattr(fake_cupy.Event, "synchronize", lost)
    with pytest.raises(gpu.KernelError, match=f"^NVIDIA Pretend {sentence}"):
        step.time(5, launches=2)
    with pytest.raises(gpu.KernelError, match=sentence):
        gpu.device("cuda").pace(step.prepare_empty(1), 3)
    pretend.asnumpy = lost
    with pytest.raises(gpu.KernelError, match=sentence):
        gpu.device("cuda").to_numpy(0)


def test_what_cupy_gets_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """compat.h first, then the source; lines counted as in the file; macros as options; no name expressions."""
    libraries(monkeypatch, nvidia=Library())
    cupy(monkeypatch, fake_cupy.module())
    device = gpu.device("cuda")
    with pytest.raises(gpu.KernelError) as found:
        device.compile('extern "C" __global__ void k(int n) {\nint a = does_not_compile;\n}', "k", macros={"SIZE": 4})
    code, options, backend = fake_cupy.RawModule.seen
    assert code.startswith('#line 1 "compat.h"\n') and '\n#line 1 "kernel.cu"\nextern "C"' in code
    assert options == ("-std=c++17", "-DSIZE=4") and backend == "nvrtc"
    assert str(found.value) == (
        'kernel.cu does not compile, line 2: identifier "does_not_compile" is undefined: int a = does_not_compile;'
    )


@pytest.mark.parametrize(
    ("library", "said"),
    [
        (Library(status=100), "there is an NVIDIA driver, but it shows no GPU"),
        (Library(count=0), "there is an NVIDIA driver, but it shows no GPU"),
        (Library(status=803), "the NVIDIA driver and its library have different versions: restart the machine"),
        (Library(status=999), "the NVIDIA driver fails with error 999: see what `nvidia-smi` says"),
        (Library(version=11_080), "the NVIDIA driver is too old: it supports CUDA 11.8, and CuPy needs 12.0 or newer"),
        (Library(version=12_040), "CuPy is not installed: `pip install 'cupy-cuda12x[ctk]'`"),
        (Library(version=13_000), "CuPy is not installed: `pip install 'cupy-cuda13x[ctk]'`"),
    ],
)
def test_an_nvidia_driver_without_a_usable_gpu(monkeypatch, library, said) -> None:
    libraries(monkeypatch, nvidia=library)
    if "CuPy is not installed" in said:
        monkeypatch.delitem(sys.modules, "cupy")
        monkeypatch.setattr(probe.importlib, "import_module", _not_installed)
    assert said in refusal("cuda")


def _not_installed(name: str) -> None:
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_a_hidden_gpu_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries(monkeypatch, nvidia=Library(status=100))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert refusal("cuda").endswith("it shows no GPU (CUDA_VISIBLE_DEVICES is set to '')")


def test_the_stub_library_of_a_toolkit_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries(monkeypatch, nvidia=Library(status=34))
    assert gpu.device().notes[0] == "no driver for an NVIDIA or AMD GPU is installed"


@pytest.mark.parametrize(
    ("library", "said"),
    [
        (Library(status=100), "ROCm is installed, but it shows no GPU"),
        (Library(count=0), "ROCm is installed, but it shows no GPU"),
        (Library(status=3), "ROCm fails with error 3: see what `rocminfo` says"),
    ],
)
def test_rocm_without_a_usable_gpu(monkeypatch, library, said) -> None:
    libraries(monkeypatch, amd=library)
    assert refusal("hip") == said


@pytest.mark.parametrize(
    ("hip", "said"),
    [
        (False, "there is an AMD GPU, but this CuPy is built for NVIDIA: replace it by `pip install 'cupy-rocm-7-0'`"),
        (
            True,
            "there is an NVIDIA GPU, but this CuPy is built for AMD: replace it by `pip install 'cupy-cuda13x[ctk]'`",
        ),
    ],
)
def test_a_cupy_for_the_other_vendor(monkeypatch, hip, said) -> None:
    libraries(monkeypatch, nvidia=Library() if hip else None, amd=None if hip else Library())
    cupy(monkeypatch, fake_cupy.module(hip=hip))
    assert refusal("cuda" if hip else "hip") == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            fake_cupy.CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient"),
            "the NVIDIA driver supports CUDA 12.4, and this CuPy is built for CUDA 13.0: install a newer driver, "
            "or replace CuPy by `pip install 'cupy-cuda12x[ctk]'`",
        ),
        (
            fake_cupy.CUDARuntimeError("cudaErrorDevicesUnavailable: busy or unavailable\nmore"),
            "there is a GPU and CuPy is installed, but a kernel does not run: cudaErrorDevicesUnavailable: "
            "busy or unavailable",
        ),
        (OSError(), "there is a GPU and CuPy is installed, but a kernel does not run: OSError"),
    ],
)
def test_a_gpu_that_is_there_but_broken(monkeypatch, error, said) -> None:
    libraries(monkeypatch, nvidia=Library(version=12_040))
    cupy(monkeypatch, fake_cupy.module(broken=error))
    assert refusal("cuda") == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ImportError("libcudart.so.13: cannot open shared object file\nmore"), "cannot be imported: libcudart.so.13:"),
        (RuntimeError("broken"), "cannot be imported: broken"),
        (ModuleNotFoundError("No module named 'fastrlock'", name="fastrlock"), "CuPy lacks the module fastrlock"),
    ],
)
def test_a_cupy_that_cannot_be_imported(monkeypatch, error, said) -> None:
    libraries(monkeypatch, nvidia=Library())

    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(probe.importlib, "import_module", fail)
    assert said in refusal("cuda")
