"""What a GPU does at best, as measured or as derived from a data sheet; each number says which."""

from dataclasses import dataclass

from . import settings


@dataclass(frozen=True)
class GPU:
    """Bandwidth in bytes/s, compute in FLOP/s (bf16, dense), and seconds of one kernel in a replayed graph.

    memory_bytes: what the CUDA or HIP runtime gives as the card's total, of which engines take their share.

    Raises ValueError for rates outside 1 to 1e30, seconds outside 0 to 1e10 and a memory below 1 byte.
    """

    name: str
    read_bandwidth: float
    matrix_flops: float
    seconds_per_kernel: float
    source: str
    memory_bytes: int | None = None

    def __post_init__(self):
        settings.real("read_bandwidth", self.read_bandwidth, low=1, high=1e30)
        settings.real("matrix_flops", self.matrix_flops, low=1, high=1e30)
        settings.real("seconds_per_kernel", self.seconds_per_kernel, low=0, high=settings.MAX_SECONDS)
        if self.memory_bytes is not None:
            object.__setattr__(self, "memory_bytes", settings.whole("memory_bytes", self.memory_bytes, high=10**15))


# Data-sheet peaks of the H100 SXM: 3.35 TB/s and 989 TFLOP/s (bf16, dense).
_H100 = GPU(
    name="H100",
    read_bandwidth=3.02e12,
    matrix_flops=778e12,
    seconds_per_kernel=0.78e-6,
    source="measured on one H100 80GB SXM (driver 580.159, CUDA 13.0, CuPy 14.2.0, November 2026): a 16-byte "
    "streaming-load kernel over 2 GiB, an 8192^3 bf16 matrix product, an empty kernel as a graph node",
    memory_bytes=int(79.18 * 2**30),  # the total that vLLM printed for one
)
_BANDWIDTH_SHARE = _H100.read_bandwidth / 3.35e12
_MATRIX_SHARE = _H100.matrix_flops / 989e12


def _from_data_sheet(name: str, bandwidth: float, flops: float, memory_gib: float) -> GPU:
    return GPU(
        name=name,
        read_bandwidth=bandwidth * _BANDWIDTH_SHARE,
        matrix_flops=flops * _MATRIX_SHARE,
        seconds_per_kernel=_H100.seconds_per_kernel,
        source=f"data sheet ({bandwidth / 1e12:.2f} TB/s, {flops / 1e12:.0f} TFLOP/s bf16 dense) times the share of "
        "its data sheet that the H100 reached; not measured",
        memory_bytes=int(memory_gib * 2**30),
    )


_GPUS = {
    gpu.name: gpu
    for gpu in (
        _H100,
        _from_data_sheet("A100", 2.039e12, 312e12, 79.15),
        _from_data_sheet("H200", 4.8e12, 989e12, 139.72),
        _from_data_sheet("L40S", 0.864e12, 362e12, 44.39),
    )
}


def gpu(name: str) -> GPU:
    """The GPU of that name. Raises ValueError with the known names otherwise."""
    try:
        return _GPUS[name]
    except (KeyError, TypeError):
        raise ValueError(f"no GPU is called {name!r}; known GPUs: {', '.join(sorted(_GPUS))}") from None
