"""Step times: the roofline by hand from published shapes and rates, and what must hold for any model of a step."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import Workload, policies, serve, steptime
from course.models import ModelSpec, model
from course.models.gpus import gpu
from course.steptime import PowerLaw, Roofline, Step
from tests.helpers.strategies import MODELS, examples

# Llama-3.1-8B, from its config.json
LAYERS, HIDDEN, MLP, HEADS, KV_HEADS, HEAD, VOCABULARY = 32, 4096, 14336, 32, 8, 128, 128256
# One H100 SXM, as measured: bytes/s read, FLOP/s of a bf16 matrix product, seconds a kernel
BANDWIDTH, FLOPS, KERNEL = 3.02e12, 778e12, 0.78e-6

H100 = Roofline("llama-3.1-8b", "H100")
# Hand computation and model multiply the same numbers in another order.
ROUNDING = {"rel": 1e-12}


def parameters():
    """Of the layers, and of the output head."""
    q_and_o, k_and_v = 2 * HIDDEN * HEADS * HEAD, 2 * HIDDEN * KV_HEADS * HEAD
    return LAYERS * (q_and_o + k_and_v + 3 * HIDDEN * MLP), VOCABULARY * HIDDEN


def test_sizes_of_the_model():
    layers, head = parameters()
    spec = model("llama-3.1-8b")
    assert (spec.layer_parameters, spec.head_parameters) == (layers, head)
    # With the embedding table, of the head's size, and the norms: the 8.03 billion parameters on the model's card.
    assert layers + 2 * head + (2 * LAYERS + 1) * HIDDEN == 8_030_261_248
    assert spec.step_weight_bytes == 2 * (layers + head)
    assert spec.step_weight_bytes / 1e9 == pytest.approx(15.0, abs=0.05)
    assert spec.kv_bytes_per_token == 2 * LAYERS * KV_HEADS * HEAD * 2 == 131_072
    assert spec.attention_flops_per_pair == 2 * 2 * LAYERS * HEADS * HEAD
    # No grouped heads in Llama 2: four times the KV of as many heads.
    assert model("llama-2-7b").kv_bytes_per_token == 524_288
    # 6.74 billion on its card, less the embedding table.
    assert model("llama-2-7b").step_weight_bytes / 2e9 == pytest.approx(6.738 - 32000 * 4096 / 1e9, abs=1e-3)


def test_rates_of_the_gpus():
    h100 = gpu("H100")
    assert (h100.read_bandwidth, h100.matrix_flops, h100.seconds_per_kernel) == (BANDWIDTH, FLOPS, KERNEL)
    assert h100.source.startswith("measured on one H100")
    for name, bandwidth, flops in (("A100", 2.039e12, 312e12), ("H200", 4.8e12, 989e12), ("L40S", 0.864e12, 362e12)):
        other = gpu(name)
        assert other.read_bandwidth == pytest.approx(bandwidth * 3.02 / 3.35)
        assert other.matrix_flops == pytest.approx(flops * 778 / 989)
        assert "not measured" in other.source


def test_a_decode_of_one():
    """Reading the weights, 15 GB at 3.02 TB/s, is nearly all of it."""
    layers, head = parameters()
    launch = (11 * LAYERS + 4) * KERNEL
    got = H100(Step(decodes=1, decode_context=1000, prefill_chunks=()))
    assert got == pytest.approx(launch + 2 * (layers + head) / BANDWIDTH + 1000 * 131_072 / BANDWIDTH, **ROUNDING)
    assert got == pytest.approx(5e-3, rel=0.1)


def test_decodes_beyond_the_knee_are_bound_by_compute():
    layers, head = parameters()
    knee = (layers + head) * 2 / BANDWIDTH / (2 * (layers + head) / FLOPS)
    assert H100.knee == pytest.approx(knee, **ROUNDING)
    assert knee == pytest.approx(257.6, abs=0.1)
    below, above = (H100(Step(batch, batch * 100, ())) for batch in (257, 258))
    launch = (11 * LAYERS + 4) * KERNEL
    assert below == pytest.approx(launch + (2 * (layers + head) + 257 * 100 * 131_072) / BANDWIDTH, **ROUNDING)
    products = 258 * 2 * (layers + head) / FLOPS
    assert above == pytest.approx(launch + products + 258 * 100 * 131_072 / BANDWIDTH, **ROUNDING)


def test_a_prompt():
    """4096 tokens at once: 2 FLOPs a parameter and token, 4 x 4096 x 32 a query-key pair. No logits but for decodes."""
    layers, _ = parameters()
    pairs = 4096 * 4097 // 2
    attention = pairs * 4 * LAYERS * HEADS * HEAD / FLOPS
    got = H100(Step(0, 0, ((4096, 0),)))
    assert got == pytest.approx((11 * LAYERS + 4) * KERNEL + 4096 * 2 * layers / FLOPS + attention, **ROUNDING)
    assert attention > 4096 * 131_072 / BANDWIDTH  # computing bounds it, not reading K and V


def test_a_short_chunk_of_a_long_prompt_is_bound_by_reading_its_cache():
    layers, head = parameters()
    got = H100(Step(0, 0, ((16, 100_000),)))
    pairs = 16 * 100_000 + 16 * 17 // 2
    assert pairs * 4 * LAYERS * HEADS * HEAD / FLOPS < 100_016 * 131_072 / BANDWIDTH
    reading = (2 * (layers + head) + 100_016 * 131_072) / BANDWIDTH
    assert got == pytest.approx((11 * LAYERS + 4) * KERNEL + reading, **ROUNDING)


def test_launches_can_be_counted_otherwise():
    step = Step(1, 100, ())
    assert H100(step) - Roofline("llama-3.1-8b", "H100", kernels=0)(step) == pytest.approx(356 * KERNEL, rel=1e-9)
    assert Roofline(model("llama-3.1-8b"), gpu("H100"))(step) == H100(step)
    assert repr(H100) == "Roofline('llama-3.1-8b', 'H100')"
    assert H100.source == "modelled"


def test_a_model_and_a_gpu_of_ones_own():
    tiny = ModelSpec("tiny", 2, 8, 16, 2, 1, 4, 10, source="invented")
    # q and o: 2 x 8 x 8; k and v: 2 x 8 x 4; three matrices of 8 x 16.
    assert tiny.layer_parameters == 2 * (128 + 64 + 384)
    assert tiny.head_parameters == 80
    assert tiny.kv_bytes_per_token == 2 * 2 * 1 * 4 * 2
    assert Roofline(tiny, "H100", kernels=0)(Step(1, 5, ())) == pytest.approx(
        (2 * 1232 + 5 * 32) / BANDWIDTH, **ROUNDING
    )
    with pytest.raises(ValueError, match="a step must take time, at least 1e-12 s: is GPU"):
        Roofline(tiny, replace(gpu("H100"), read_bandwidth=1e20), kernels=0)


# 4 layers of 16 experts, 2 a token; an expert has 3 x 64 x 32 parameters, attention 64 x 16 x (4 + 2) x 2
MIXED = {
    **{"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16},
    **{"vocab_size": 100, "num_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
}
EXPERT, ATTENTION, ROUTER = 3 * 64 * 32, 64 * 16 * (4 + 2) * 2, 64 * 16


@pytest.mark.parametrize("decodes", [1, 2, 7, 64])
def test_a_step_reads_the_experts_that_its_tokens_touch(decodes):
    """Bytes by hand: of 16 experts, each idle for a token with probability 14/16, counted over all choices for two."""
    spec = ModelSpec.from_config(MIXED)
    touched = 16 * (1 - (14 / 16) ** decodes)
    if decodes == 2:  # all 120 x 120 pairs of choices
        pairs = list(itertools.combinations(range(16), 2))
        touched = np.mean([len({*one, *other}) for one in pairs for other in pairs])
    size = 2 * (4 * (ATTENTION + ROUTER + touched * EXPERT) + 100 * 64)
    assert spec.step_weight_bytes_of(decodes) == pytest.approx(size, **ROUNDING)
    got = Roofline(spec, "H100", kernels=0)(Step(decodes, 0, ()))
    assert got == pytest.approx(size / BANDWIDTH, **ROUNDING)
    # Prompt tokens touch experts as well, and all experts are read by many.
    assert Roofline(spec, "H100", kernels=0)(Step(0, 0, ((decodes, 0),))) >= size / BANDWIDTH
    assert spec.step_weight_bytes_of(10_000) == pytest.approx(spec.step_weight_bytes, **ROUNDING)


def test_a_dense_model_reads_all_its_weights_for_one_token():
    spec = model("llama-3.1-8b")
    assert spec.step_weight_bytes_of(1) == spec.step_weight_bytes == spec.step_weight_bytes_of(500)


def test_products_of_8_bit_weights_run_at_their_own_rate():
    """1,979 of 989 TFLOP/s on the H100's data sheet; an A100 has no such units. The head stays in 16 bits."""
    dense = {**MIXED, "num_experts": None, "intermediate_size": 128}
    wide, narrow = (
        ModelSpec.from_config({**dense, **more}) for more in ({}, {"quantization_config": {"quant_method": "fp8"}})
    )
    assert narrow.fp8_parameters == narrow.layer_parameters == wide.layer_parameters
    assert narrow.step_weight_bytes == wide.layer_parameters + 2 * 6400
    for card, faster in (("H100", 1979 / 989), ("A100", 1)):
        slow, fast = Roofline(wide, card), Roofline(narrow, card)
        assert slow.per_token / fast.per_token == pytest.approx(faster, rel=1e-3)  # the sheet's numbers are rounded
        assert slow.per_logits == fast.per_logits
    # Four bits in memory, 16 in the products: compressed-tensors and GPTQ alike.
    four = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    assert ModelSpec.from_config({**dense, "quantization_config": four}).fp8_parameters == 0


def test_a_window_is_read_and_computed_and_no_more():
    """Two of four layers have a window of 100: 2 x 2 heads x 16 x 2 B a token and layer."""
    config = {**MIXED, "num_experts": None, "intermediate_size": 128, "sliding_window": 100}
    config["layer_types"] = ["sliding_attention", "full_attention"] * 2
    roof = Roofline(ModelSpec.from_config(config), "H100", kernels=0)
    layer = 2 * 2 * 16 * 2
    base = roof(Step(4, 0, ()))
    for context, read in ((40, 40), (100, 100), (5000, 100)):
        got = roof(Step(4, 4 * context, ())) - base
        assert got == pytest.approx(4 * 2 * layer * (context + read) / BANDWIDTH, rel=1e-9)
    # One query-key pair in four layers: 4 FLOPs x 4 heads x 16. A chunk of 50 behind 950: 50 x 950 + 50 x 51 / 2 pairs.
    pairs, seen = 50 * 950 + 50 * 51 // 2, 50 * 100
    chunk = roof(Step(0, 0, ((50, 950),))) - roof.weights
    computing = 2 * 4 * 4 * 16 * (pairs + seen) / FLOPS
    reading = 2 * layer * (1000 + 150) / BANDWIDTH
    assert chunk == pytest.approx(max(computing, reading), rel=1e-9)
    assert not roof.straight and H100.straight
    with pytest.raises(ValueError, match="do not follow a straight line"):
        roof.decode_line(4)


def test_a_model_with_windows_is_served():
    config = {**MIXED, "num_experts": None, "intermediate_size": 128, "sliding_window": 100}
    config["layer_types"] = ["sliding_attention", "full_attention"] * 2
    roof = Roofline(ModelSpec.from_config(config), "H100")
    run = serve(
        Workload.fixed(rate=10, num_requests=3, prompt_tokens=300, output_tokens=5), policies.Continuous(2, 512), roof
    )
    alone = roof(Step(0, 0, ((300, 0),)))
    assert run.ttft[0] == pytest.approx(alone, **ROUNDING)
    assert run.e2e[0] == pytest.approx(alone + sum(roof(Step(1, 300 + i, ())) for i in range(1, 5)), **ROUNDING)


def test_power_law_by_hand():
    law = PowerLaw(t0=5e-3, c=2e-4, alpha=0.5, prefill=2e-5, context=5e-8, pairs=1e-9)
    step = Step(decodes=16, decode_context=4000, prefill_chunks=((100, 0), (50, 200)))
    assert (step.prefill_tokens, step.prefill_context) == (150, 350)
    # Each token attends to itself and to all before it.
    assert step.prefill_pairs == sum(range(1, 101)) + sum(range(201, 251))
    want = 5e-3 + 2e-4 * 4 + 2e-5 * 150 + 5e-8 * 4000 + 1e-9 * (5050 + 11275)
    assert law(step) == pytest.approx(want, **ROUNDING)
    assert law(Step(0, 0, ((1, 0),))) == pytest.approx(5e-3 + 2e-5 + 1e-9, **ROUNDING)
    assert repr(law) == "PowerLaw(t0=0.005, c=0.0002, alpha=0.5, prefill=2e-05, context=5e-08, pairs=1e-09)"


# What must hold for any step

CHUNKS = st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 20_000)), min_size=1, max_size=4).map(tuple)


@st.composite
def decodes(draw):
    """(decodes, decode context): each attends to itself at least."""
    number = draw(st.integers(1, 600))
    return number, number * draw(st.integers(1, 5000)) + draw(st.integers(0, 1000))


@given(MODELS, decodes(), CHUNKS)
@examples(150)
def test_a_mixed_step_costs_less_than_its_parts_one_after_the_other(step_time, decoding, chunks):
    both = step_time(Step(*decoding, chunks))
    alone = step_time(Step(*decoding, ())) + step_time(Step(0, 0, chunks))
    if getattr(step_time, "t0", 1) > 0:
        assert both < alone
    else:  # nothing is shared, so nothing is saved
        assert both == pytest.approx(alone, **ROUNDING)
    # And more than each part: no work is free.
    assert both >= max(step_time(Step(*decoding, ())), step_time(Step(0, 0, chunks)))


@given(MODELS, decodes(), CHUNKS, st.integers(1, 500))
@examples(150)
def test_more_work_never_takes_less_time(step_time, decoding, chunks, more):
    number, context = decoding
    base = step_time(Step(number, context, chunks))
    (tokens, cached), rest = chunks[0], chunks[1:]
    assert base > 0
    assert step_time(Step(number, context + more, chunks)) >= base
    assert step_time(Step(number + more, context + more, chunks)) >= base
    assert step_time(Step(number, context, ((tokens + more, cached), *rest))) >= base
    assert step_time(Step(number, context, ((tokens, cached + more), *rest))) >= base
    assert step_time(Step(number, context, (*chunks, (more, 0)))) >= base


@given(MODELS, decodes())
@examples(200)
def test_the_line_of_decodes_is_the_step_time_to_the_last_bit(step_time, decoding):
    number, context = decoding
    base, slope = step_time.decode_line(number)
    plain = step_time(Step(number, context, ()))
    assert base + slope * context == plain == step_time.seconds(number, context, 0, 0, 0)
    assert (np.float64(context) * slope + base).item() == plain  # as the fast loops add it up


@given(MODELS, decodes(), st.integers(1, 10**6), st.integers(1, 10**9))
@examples(200)
def test_what_prompts_add_to_the_line_is_the_step_time_to_the_last_bit(step_time, decoding, tokens, pairs):
    line = step_time.prefill_line()
    assert (line is None) == isinstance(step_time, Roofline)  # the larger of two costs is no sum
    for number, context in (decoding, (0, 0)) if line else ():
        base, slope = step_time.decode_line(number)
        a_token, a_pair = line
        added = base + a_token * tokens + slope * context + a_pair * pairs
        assert added == step_time.seconds(number, context, tokens, pairs, tokens)


@pytest.mark.parametrize("step_time", [PowerLaw(5e-3, 2e-4, 0.5), H100])
def test_batching_pays(step_time):
    """A token gets cheaper with each one that shares the step."""
    each = [step_time(Step(batch, 500 * batch, ())) / batch for batch in range(1, 200)]
    assert (np.diff(each) < 0).all()


def test_any_callable_will_do():
    load = Workload([0.0, 0.0], [4, 6], [3, 1])
    asked = []

    def mine(step):
        asked.append(step)
        return np.float32(0.25)

    run = serve(load, policies.Continuous(2, 8), mine)
    assert asked == [Step(0, 0, ((4, 0), (4, 0))), Step(1, 5, ((2, 4),)), Step(1, 6, ())]
    assert run.response.tolist() == [0.75, 0.5]
    assert steptime.seconds_of(mine, asked[0]) == 0.25
