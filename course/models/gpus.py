"""What a GPU has and does at best, as measured or as derived from a data sheet; each number says which."""

import csv
import difflib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

from course.base import settings

MIB = 2**20
VENDORS = re.compile(r"nvidia|amd|geforce|instinct|tesla|[^a-z0-9]")
FORM = re.compile(
    r"sxm\d?|oam|hbm\d?e?|gddr\d?x?|tensor core|gpus?|generation|blackwell|workstation|edition|\b(nvlink)\b"
)
SIZE = re.compile(r"(\d+)\s*-?gi?b(?![a-z0-9])")
NEAR = 0.08  # a size in a name is that of the data sheet, up to 7% more than what a runtime has


@dataclass(frozen=True)
class GPU:
    """Bandwidth in bytes/s, compute in FLOP/s (bf16, dense), and seconds of one kernel in a replayed graph.

    memory_bytes: what the CUDA or HIP runtime gives as the card's total, of which engines take their share;
    memory_source says from where and of when, and whether it is an estimate. edition: which of several cards of that
    name it is. driver_memory_mib: what nvidia-smi or rocm-smi prints. peak_bandwidth, peak_flops, peak_fp8_flops: of
    the data sheet, dense, with sums in 32 bits; None if there is none. peak_source: the data sheet and its year.

    Raises ValueError for rates outside 1 to 1e30, seconds outside 0 to 1e10 and a memory below 1 byte.
    """

    name: str
    read_bandwidth: float
    matrix_flops: float
    seconds_per_kernel: float
    source: str
    memory_bytes: int | None = None
    memory_source: str = "as given"
    driver_memory_mib: int | None = None
    peak_bandwidth: float | None = None
    peak_flops: float | None = None
    peak_fp8_flops: float | None = None
    peak_source: str = ""
    edition: str = ""

    def __post_init__(self):
        settings.real("read_bandwidth", self.read_bandwidth, low=1, high=1e30)
        settings.real("matrix_flops", self.matrix_flops, low=1, high=1e30)
        settings.real("seconds_per_kernel", self.seconds_per_kernel, low=0, high=settings.MAX_SECONDS)
        if self.memory_bytes is not None:
            object.__setattr__(self, "memory_bytes", settings.whole("memory_bytes", self.memory_bytes, high=10**15))

    @property
    def fp8_flops(self) -> float:
        """FLOP/s of matrix products in 8-bit floats: the data sheet's, times the share that bf16 reaches of its own.

        If the card has no such units, the rate of bf16: engines then widen the weights first.
        """
        if self.peak_fp8_flops is None or not self.peak_flops:
            return self.matrix_flops
        return self.peak_fp8_flops * self.matrix_flops / self.peak_flops


_H100 = GPU(
    name="H100",
    read_bandwidth=3.02e12,
    matrix_flops=778e12,
    seconds_per_kernel=0.78e-6,
    source="measured on one H100 80GB SXM (driver 580.159, CUDA 13.0, CuPy 14.2.0, November 2026): a 16-byte "
    "streaming-load kernel over 2 GiB, an 8192^3 bf16 matrix product, an empty kernel as a graph node",
)
# Data-sheet peaks of the H100 SXM: 3.35 TB/s and 989 TFLOP/s (bf16, dense).
_BANDWIDTH_SHARE = _H100.read_bandwidth / 3.35e12
_MATRIX_SHARE = _H100.matrix_flops / 989e12


def _from_data_sheet(name: str, bandwidth: float, flops: float) -> GPU:
    return GPU(
        name=name,
        read_bandwidth=bandwidth * _BANDWIDTH_SHARE,
        matrix_flops=flops * _MATRIX_SHARE,
        seconds_per_kernel=_H100.seconds_per_kernel,
        source=f"data sheet ({bandwidth / 1e12:.2f} TB/s, {flops / 1e12:.0f} TFLOP/s bf16 dense) times the share of "
        "its data sheet that the H100 reached; not measured",
    )


def _from_row(row: dict[str, str]) -> GPU:
    """One line of data/gpus.csv."""
    bandwidth, flops = float(row["bandwidth_gbs"]) * 1e9, float(row["bf16_tflops"]) * 1e12
    card = _H100 if row["name"] == _H100.name else _from_data_sheet(row["name"], bandwidth, flops)
    return replace(
        card,
        memory_bytes=round(float(row["runtime_mib"]) * MIB),
        memory_source=row["memory_from"],
        driver_memory_mib=int(row["driver_mib"]) if row["driver_mib"] else None,
        peak_bandwidth=bandwidth,
        peak_flops=flops,
        peak_fp8_flops=float(row["fp8_tflops"]) * 1e12 if row["fp8_tflops"] else None,
        peak_source=row["rates_from"],
        edition=row["edition"],
    )


@lru_cache
def _catalogue() -> tuple[dict[str, GPU], dict[str, str]]:
    """The GPUs by name, and their names by every way of writing them that is understood."""
    text = (files("course") / "data" / "gpus.csv").read_text(encoding="utf-8")
    cards, spellings = {}, {}
    for row in csv.DictReader(text.splitlines()):
        cards[row["name"]] = _from_row(row)
        for name in (row["name"], *filter(None, row["also"].split(";"))):
            spellings[_plain(name)] = row["name"]
    return cards, spellings


def _plain(name: str) -> str:
    return VENDORS.sub("", name.lower())


def names() -> list[str]:
    """The names of all GPUs in the catalogue."""
    return list(_catalogue()[0])


def gpu(name: str) -> GPU:
    """The GPU of that name, however it is written: "RTX 4090", "NVIDIA H100 80GB HBM3", "A100 SXM", "a100-80gb".

    Raises ValueError otherwise, with names that are near or else all of them.
    """
    cards, spellings = _catalogue()
    is_name = isinstance(name, str) and len(name) < 100
    card = _lookup(name, cards, spellings) if is_name else None
    if card:
        return card
    near = []
    if is_name:
        near = [spellings[one] for one in difflib.get_close_matches(_plain(name), spellings, n=5, cutoff=0.6)]
    else_ = "for another card, give its memory in GiB (--memory-gib of `course kv`)"
    if near:
        names_ = " or ".join(dict.fromkeys(near))
        raise ValueError(f"no GPU is called {settings.quote(name)}; did you mean {names_}? {else_.capitalize()}")
    raise ValueError(f"no GPU is called {settings.quote(name)}; {else_}; known GPUs: {', '.join(cards)}")


def _lookup(name: str, cards: dict[str, GPU], spellings: dict[str, str]) -> GPU | None:
    """The GPU of that name; else without socket and kind of memory; else without the size of its memory."""
    plain_name = name.lower()
    shorter = FORM.sub(" ", plain_name)
    size = SIZE.search(shorter)
    for text in (plain_name, shorter):
        if _plain(text) in spellings:
            return cards[spellings[_plain(text)]]
    if size:
        card = cards.get(spellings.get(_plain(SIZE.sub(" ", shorter)), ""))
        if card and card.memory_bytes and abs(card.memory_bytes / 2**30 / int(size[1]) - 1) <= NEAR:
            return card
    return None
