"""GB/s and TFLOP/s (bf16 or fp16, dense) as the makers' data sheets print them, typed in once more by hand."""

import pytest

from course.models import gpus

PRINTED = {
    "H100": (3350, 989),
    "H200": (4800, 989),
    "B200": (8000, 2250),
    "A100": (2039, 312),
    "A100-40GB": (1555, 312),
    "L4": (300, 121),
    "L40S": (864, 362),
    "A10": (600, 125),
    "A10G": (600, 70),
    "RTX-3090": (936, 71),
    "RTX-4090": (1008, 165.2),
    "RTX-5090": (1792, 209.5),
    "V100-32GB": (900, 125),
    "T4": (320, 65),
    "MI300X": (5300, 1307.4),
    "MI325X": (6000, 1307.4),
}


@pytest.mark.parametrize("name", PRINTED)
def test_peaks_are_those_of_the_data_sheet(name):
    card = gpus.gpu(name)
    assert (card.peak_bandwidth / 1e9, card.peak_flops / 1e12) == pytest.approx(PRINTED[name])
