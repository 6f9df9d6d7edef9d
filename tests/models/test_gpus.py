"""The catalogue of GPUs: every number with a source, names as people write them, and the old numbers to the bit."""

import csv
import re
from collections import defaultdict
from dataclasses import replace
from importlib.resources import files

import pytest

from course.models import gpus

ROWS = list(csv.DictReader((files("course") / "data" / "gpus.csv").read_text(encoding="utf-8").splitlines()))


def test_every_card_is_complete_and_says_from_where():
    assert gpus.names() == [row["name"] for row in ROWS]
    for name in gpus.names():
        card = gpus.gpu(name)
        assert card.name == name
        assert card.memory_bytes > 2**33 and card.memory_source and card.source
        assert re.search(r"\(20\d\d\)", card.peak_source) and re.search(r"20\d\d", card.memory_source)
        assert card.edition
        assert 0.2e12 <= card.peak_bandwidth <= 10e12 and 50e12 <= card.peak_flops <= 3e15
        # What a card reaches is below its data sheet.
        assert card.read_bandwidth < card.peak_bandwidth and card.matrix_flops < card.peak_flops
        if card.peak_fp8_flops:
            assert card.peak_fp8_flops == pytest.approx(2 * card.peak_flops, rel=0.02)
        if card.driver_memory_mib:
            # The runtime's total is the driver's less what the driver keeps, at most 3%.
            assert 0.97 <= card.memory_bytes / 2**20 / card.driver_memory_mib <= 1


def test_cards_of_one_size_have_one_total():
    """What nvidia-smi prints alike, a runtime gives alike: a total measured on one of them is that of all."""
    by_size = defaultdict(set)
    for name in gpus.names():
        card = gpus.gpu(name)
        if card.driver_memory_mib:
            by_size[card.driver_memory_mib].add(card.memory_bytes)
    assert len(by_size) > 20
    assert {size: totals for size, totals in by_size.items() if len(totals) > 1} == {}
    assert gpus.gpu("A10").memory_bytes == gpus.gpu("A10G").memory_bytes
    assert gpus.gpu("H100 PCIe").memory_bytes == gpus.gpu("H100").memory_bytes


def test_editions_of_a_card_have_rates_of_their_own():
    workstation, max_q, server = (gpus.gpu(f"RTX PRO 6000 {edition}") for edition in ("Workstation", "Max-Q", "Server"))
    assert workstation.peak_bandwidth == max_q.peak_bandwidth == 1.792e12 and server.peak_bandwidth == 1.597e12
    assert max_q.peak_flops < server.peak_flops < workstation.peak_flops
    assert gpus.gpu("A100").peak_bandwidth > gpus.gpu("A100 PCIe").peak_bandwidth
    assert len({card.edition for card in (workstation, max_q, server)}) == 3


def test_the_rate_of_8_bit_products():
    h100, a100 = gpus.gpu("H100"), gpus.gpu("A100")
    assert h100.fp8_flops == pytest.approx(1979e12 * 778 / 989)
    assert a100.fp8_flops == a100.matrix_flops  # no such units: weights are widened first
    assert replace(h100, peak_fp8_flops=None).fp8_flops == h100.matrix_flops


def test_totals_that_engines_printed():
    printed = {"H100": 79.18, "A100": 79.25, "RTX-3090": 23.58, "RTX-5090": 31.37, "V100-32GB": 31.74}
    for name, gib in printed.items():
        assert gpus.gpu(name).memory_bytes / 2**30 == pytest.approx(gib, abs=0.01)  # two digits were printed
    assert gpus.gpu("RTX-4090").memory_bytes == 25_250_627_584


def test_the_numbers_that_the_labs_stand_on():
    """Data sheet times what the H100 reached of its own, as before there was a catalogue."""
    bandwidth, matrix = 3.02e12 / 3.35e12, 778e12 / 989e12
    for name, per_second, flops in (("A100", 2.039e12, 312e12), ("H200", 4.8e12, 989e12), ("L40S", 0.864e12, 362e12)):
        card = gpus.gpu(name)
        assert (card.read_bandwidth, card.matrix_flops) == (per_second * bandwidth, flops * matrix)
        assert card.seconds_per_kernel == 0.78e-6
    h100 = gpus.gpu("H100")
    assert (h100.read_bandwidth, h100.matrix_flops, h100.seconds_per_kernel) == (3.02e12, 778e12, 0.78e-6)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("h100", "H100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("a100 80gb", "A100"),
        ("NVIDIA A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("4090", "RTX-4090"),
        ("RTX PRO 6000 Blackwell", "RTX-PRO-6000"),
        ("Tesla T4", "T4"),
        ("AMD Instinct MI300X", "MI300X"),
        ("H100 SXM5", "H100"),
        ("A100 SXM", "A100"),
        ("NVIDIA A100-PCIE-40GB", "A100-40GB"),
        ("A100 SXM4 40 GB", "A100-40GB"),
        ("H100 PCIe 80GB", "H100-PCIe"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("DGX Spark", "GB10"),
        ("GeForce RTX 4090 24GB", "RTX-4090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Server"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX-PRO-6000-Max-Q"),
        *((name, name.replace(" ", "-")) for name in ("GB200", "H800", "A800", "L20", "A30", "RTX 5080", "MI308X")),
    ],
)
def test_names_as_they_are_written(written, name):
    assert gpus.gpu(written).name == name


def test_an_unknown_name_is_answered_with_near_ones():
    with pytest.raises(ValueError, match=r"no GPU is called 'H10'; did you mean .*H100"):
        gpus.gpu("H10")
    with pytest.raises(ValueError, match="no GPU is called 'H100 40GB'; did you mean"):
        gpus.gpu("H100 40GB")  # there is none with so little
    for strange in ("", "zzzzzzzz", None, 5, "x" * 10_000):
        with pytest.raises(ValueError, match=r"no GPU is called .*; known GPUs: H100, "):
            gpus.gpu(strange)


def test_the_size_in_another_name_is_that_of_its_card():
    """An alias with a size holds only for a card of that size: H20-141GB is no H20 of 96 GB. None stands twice."""
    aliases = [(alias, row["name"]) for row in ROWS for alias in row["also"].split(";") if alias]
    assert len({alias.lower() for alias, _ in aliases}) == len(aliases)
    sizes = [(alias, name, int(found[1])) for alias, name in aliases if (found := re.search(r"(\d+)GB\b", alias))]
    of_the_host = {"GH200-480GB"}  # what nvidia-smi calls it, by the memory of its CPU
    assert len(sizes) > 20
    for alias, name, size in sizes:
        if alias not in of_the_host:
            # What a runtime has is up to 8.1% below the name (L4: error correction keeps a share).
            assert gpus.gpu(name).memory_bytes / 2**30 == pytest.approx(size, rel=0.1), alias
