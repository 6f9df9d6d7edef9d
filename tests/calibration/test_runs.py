"""Real vLLM 0.19 runs on three set-ups, published with LLMServingSim; skipped where the folder is not at hand."""

import pytest

from course import calibration, results, steptime
from course.models import ModelSpec, gpus, model
from tests.helpers.places import REAL

BENCH = REAL / "bench"
pytestmark = pytest.mark.skipif(not BENCH.is_dir(), reason="no folder ../shared/realinputs with measured runs")
GOALS = [(metric, statistic) for metric in ("ttft", "tpot", "e2e") for statistic in ("mean", "p50", "p99")]

QWEN3_30B_A3B = {
    "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "torch_dtype": "bfloat16",
    "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
    "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 262144,
    "tie_word_embeddings": False,
}  # fmt: skip


def run_of(card: str, kind: str) -> results.Result:
    return results.read(BENCH / f"llmservingsim_vllm_{card}_{kind}_requests.jsonl")


def errors(result: results.Result, timing: steptime.PowerLaw, spec: ModelSpec, card: str) -> dict:
    engine = calibration.engine_of(result, spec, gpus.gpu(card))
    compared = calibration.compare(result, timing, engine)
    return {goal: compared.row(*goal).error for goal in GOALS}


@pytest.fixture(scope="module")
def fit() -> calibration.Fit:
    return calibration.fit_run(run_of("rtxpro6000", "llama31_8b"), "llama-3.1-8b", "RTX PRO 6000")


def test_the_run_that_was_fitted(fit):
    found = errors(run_of("rtxpro6000", "llama31_8b"), fit.step_time, model("llama-3.1-8b"), "RTX PRO 6000")
    assert max(map(abs, found.values())) < 0.02  # the goal; 0.6% when this was written
    # A card cannot read faster than its data sheet says, and no engine needs twice as long for all of it.
    assert 1 < fit.constants["per_step"].seconds / fit.constants["per_step"].sheet < 2
    assert not fit.settled("per_sequence")  # 128 sequences nearly all the time


def test_another_card_by_the_data_sheets(fit):
    """TTFT of 65 s, decided by a KV pool of 2,588 blocks: the published simulator missed it by 87%."""
    found = errors(
        run_of("rtx4090", "llama31_8b"), fit.scaled_to("RTX 4090").step_time, model("llama-3.1-8b"), "RTX 4090"
    )
    assert max(map(abs, found.values())) < 0.06  # the goal; 4.8% when this was written
    # The ends of what is not known: with the ratio of FLOP/s everything is late, without it early.
    for compute, sign in ((1.0, -1), (3.05, +1)):
        there = fit.scaled_to("RTX 4090", compute=compute).step_time
        ends = errors(run_of("rtx4090", "llama31_8b"), there, model("llama-3.1-8b"), "RTX 4090")
        assert all(0 < sign * error < 0.25 for error in ends.values())


def test_a_mixture_of_experts_on_two_cards(fit):
    """What the model lacks shows: cards that wait for each other in every layer, and products of few tokens each."""
    spec = ModelSpec.from_config(QWEN3_30B_A3B, "qwen3-30b-a3b")
    experts = 48 * 128 * 3 * 2048 * 768 * 2  # bytes, half of them on each card
    there = fit.scaled_to(model=spec, weight_bytes=spec.step_weight_bytes - experts / 2)
    found = errors(run_of("rtxpro6000", "qwen3_30b_a3b_dp2ep"), there.step_time, spec, "RTX PRO 6000")
    assert -0.45 < found["tpot", "mean"] < -0.2  # a third faster than measured
    assert found["ttft", "mean"] < -0.8  # so no queue builds up where a real one did


@pytest.mark.parametrize(
    ("card", "kind", "roofline", "scaled"),
    [
        ("RTX PRO 6000", "rtxpro6000", (-0.60, -0.25, -0.34), (-0.29, -0.13, -0.17)),
        ("RTX 4090", "rtx4090", (-0.013, -0.029, -0.017), (0.19, 0.13, 0.18)),
    ],
)
def test_the_table_of_three_step_times(card, kind, roofline, scaled):
    """docs/calibration.md: the errors of the means, to the last digit that it shows."""
    result, spec = run_of(kind, "llama31_8b"), model("llama-3.1-8b")
    recording = steptime.recorded("h100-llama3-8b")
    for timing, told, digits in (
        (steptime.Roofline(spec, card), roofline, 5e-3 if kind == "rtxpro6000" else 5e-4),
        (steptime.Scaled(recording, card), scaled, 5e-3),
    ):
        found = errors(result, timing, spec, card)
        assert [found[metric, "mean"] for metric in ("ttft", "tpot", "e2e")] == pytest.approx(told, abs=digits)


def test_two_errors_that_cancel_on_the_rtx_4090():
    """The roofline's prompts are too slow there, and its decodes too fast."""
    roofline = steptime.Roofline("llama-3.1-8b", "RTX 4090")
    assert 1e3 * roofline(steptime.Step(0, 0, ((2_048, 0),))) == pytest.approx(229, abs=0.5)  # the run: 196 to 203
    spec = ModelSpec.from_config(QWEN3_30B_A3B, "qwen3-30b-a3b")
    found = errors(
        run_of("rtxpro6000", "qwen3_30b_a3b_dp2ep"), steptime.Roofline(spec, "RTX PRO 6000"), spec, "RTX PRO 6000"
    )
    assert [100 * found[metric, "mean"] for metric in ("ttft", "tpot", "e2e")] == pytest.approx(
        [-68, -7.5, -9.5], abs=0.5
    )


def test_the_clocks_are_not_mixed():
    """arrival_time is wall-clock time and the others are monotonic: only differences within each are used."""
    for card, kind, mean in (
        ("rtxpro6000", "llama31_8b", 7.097156739728914),
        ("rtx4090", "llama31_8b", 65.45657426016992),
    ):
        result = run_of(card, kind)
        assert result.requests.ttft.mean() == pytest.approx(mean, rel=1e-9)
        load = result.workload()
        assert load.arrival[0] == 0 and load.span == pytest.approx(299 / load.rate)
        assert 10.2 < load.rate < 10.3
