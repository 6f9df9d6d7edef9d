"""Recorded steps for another card: what reads scales with bandwidth, what computes with FLOP/s."""

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve
from course.models.gpus import gpu
from course.steptime import Roofline, Scaled, Step, recorded

H100 = recorded("h100-llama3-8b")
PRO, RTX4090 = Scaled(H100, "RTX PRO 6000"), Scaled(H100, gpu("RTX 4090"))


def test_to_the_recorded_card_it_is_the_recording():
    same = Scaled(H100, "H100")
    for step in (Step(7, 9_000, ()), Step(0, 0, ((700, 100),)), Step(60, 50_000, ((1_000, 9_000),))):
        assert same(step) == pytest.approx(H100(step), rel=1e-12)


def test_reading_scales_with_bandwidth_and_computing_with_flops():
    # Data sheets: 3350, 1792 and 1008 GB/s; 989, 503.8 and 165.2 TFLOP/s.
    decodes, chunk = Step(32, 32_768, ()), Step(0, 0, ((2_048, 0),))
    for model, bandwidth, flops in ((PRO, 1792, 503.8), (RTX4090, 1008, 165.2)):
        assert model(decodes) / H100(decodes) == pytest.approx(3350 / bandwidth, rel=0.01)
        assert model(chunk) / H100(chunk) == pytest.approx(989 / flops, rel=0.01)


def test_a_small_chunk_takes_no_less_than_reading_the_weights():
    # An H20 computes at 15% of an H100's rate and reads faster; the RTX PRO 6000 keeps both in about the same ratio.
    for name in ("RTX PRO 6000", "H20", "A100"):
        model = Scaled(H100, name)
        for decodes, context in ((0, 0), (64, 64_000)):
            alone = model(Step(decodes, context, ()))
            sizes = [model(Step(decodes, context, ((chunk, 0),))) for chunk in (1, 64, 512, 4_096)]
            assert alone <= sizes[0] and sizes == sorted(sizes)


def test_the_line_of_decodes_is_the_step_time_to_the_last_bit():
    for decodes, context in ((1, 5), (100, 123_456), (256, 200_000)):
        base, slope = RTX4090.decode_line(decodes)
        assert base + slope * context == RTX4090(Step(decodes, context, ()))
    load = Workload.poisson(10, 100, 700, 60, seed=3)
    fast, plain = (
        serve(load, policies.Continuous(32, 2_048), one, KVCache(2_000)) for one in (PRO, lambda step: PRO(step))
    )
    assert np.array_equal(fast.e2e, plain.e2e)


def test_it_is_never_called_recorded_and_goes_on_where_the_recording_does():
    assert PRO.source == "modelled" == Roofline("llama-3.1-8b", "H100").source and H100.source == "recorded"
    assert PRO.badge == "modelled: NVIDIA H100 80GB HBM3 2026-11-28, scaled to RTX-PRO-6000"
    assert PRO.beyond(decodes=257) == H100.beyond(decodes=257) == "modelled beyond 256 decodes"
    for step in (Step(257, 257, ()), Step(256, 900_000, ()), Step(0, 0, ((70_000, 0),)), Step(900, 900, ((8, 0),))):
        assert PRO(step) > H100(step)  # it reads and computes slower than an H100
    with pytest.raises(ValueError, match="abacus"):
        Scaled(H100, "abacus")
