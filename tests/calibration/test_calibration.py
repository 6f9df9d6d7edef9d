"""Fits to runs of the simulator itself, whose constants are known; replays; what an engine is made of."""

import json
from dataclasses import replace

import numpy as np
import pytest

from course import KVCache, Workload, calibration, policies, serve, steptime
from course.calibration import Fit
from course.calibration.fit import SAME
from course.models import gpus, model
from tests.helpers.measured_runs import SETUP, TRUTH, as_result, served, telling_load

LLAMA, CARD = model("llama-3.1-8b"), gpus.gpu("RTX PRO 6000")


@pytest.fixture(scope="module")
def fit() -> Fit:
    return calibration.fit_run(as_result(served(telling_load())), "llama-3.1-8b", "RTX PRO 6000")


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        # What a prompt costs shows in every TTFT of a long one, and nothing else does.
        ("per_prompt_token", 0.03),
        # A step's own time shows while few decode; the search stops where the metrics, good to a per cent, are met.
        ("per_step", 0.10),
        # These two trade against each other and against the step: 64 sequences x 1e-4 s are 30% of a full step.
        ("per_sequence", 0.40),
        ("per_context_token", 0.40),
    ],
)
def test_known_constants_are_recovered(fit, name, tolerance):
    found = fit.constants[name]
    assert found.seconds == pytest.approx(TRUTH[name], rel=tolerance)
    # The data sheet alone, where the search starts, is further off: by 32 to 65%.
    assert abs(found.seconds / TRUTH[name] - 1) < abs(found.sheet / TRUTH[name] - 1)


def test_the_fit_meets_the_metrics(fit):
    assert set(fit.errors) == {"ttft", "tpot", "e2e"}
    errors = [error for stats in fit.errors.values() for error in stats.values()]
    assert len(errors) == 12
    assert fit.misfit == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    assert fit.misfit < SAME  # metrics are taken to be good to a per cent, and so far they are followed
    assert fit.settled("per_step") and fit.settled("per_prompt_token")


def test_the_model_serves_and_says_where_it_is_from(fit):
    assert fit.step_time.source == "fitted: simulated, llama-3.1-8b on RTX-PRO-6000"
    assert type(fit.step_time) is steptime.PowerLaw  # so that the fast loops trust it
    run = serve(telling_load(), policies.Continuous(64, 2048), fit.step_time)
    assert run.ttft.mean() == pytest.approx(served(telling_load()).ttft.mean(), rel=2 * SAME)
    assert steptime.PowerLaw.source == "modelled"  # of all other models, still


def test_a_full_batch_tells_no_sequence_from_a_step():
    """16 requests, all at once and of one length: 16 sequences in every decode step. A fit is the same each time."""
    result = as_result(served(Workload(np.zeros(16), np.full(16, 200), np.full(16, 100))))
    found, again = (calibration.fit_run(result, LLAMA, CARD) for _ in range(2))
    assert not found.settled("per_sequence")
    assert any(sentence.startswith("per_sequence is not settled by this run") for sentence in found.unsettled)
    assert found.misfit < SAME
    assert json.dumps(found.as_dict()) == json.dumps(again.as_dict())


def test_what_cannot_be_fitted(tmp_path):
    run = served(telling_load().head(9))
    with pytest.raises(ValueError, match="has 9 answered requests, and a fit needs at least 10"):
        calibration.fit_run(as_result(run), LLAMA, CARD)
    run = served(telling_load().head(20))
    nothing = np.full(20, np.nan)
    with pytest.raises(ValueError, match="requests without latencies"):
        calibration.fit_run(as_result(run, ttft=nothing, tpot=nothing, e2e=nothing), LLAMA, CARD)
    with pytest.raises(ValueError, match="has a summary and no requests"):
        calibration.fit_run(replace(as_result(run), requests=None), LLAMA, CARD)
    with pytest.raises(ValueError, match="can never be served"):
        calibration.fit_run(as_result(run), LLAMA, CARD, kv_tokens=160)
    with pytest.raises(ValueError, match="no model is called"):
        calibration.fit_run(as_result(run), "llama-9", CARD)
    with pytest.raises(ValueError, match="an engine has no setting slots"):
        calibration.fit_run(as_result(run), LLAMA, CARD, slots=3)
    engine = calibration.engine_of(as_result(run), LLAMA, CARD)
    with pytest.raises(ValueError, match="an engine was given, so block_size has no effect"):
        calibration.fit_run(as_result(run), LLAMA, CARD, engine=engine, block_size=16)


# The engine


def test_an_engine_by_what_is_given_then_the_file_then_the_defaults():
    run = served(telling_load().head(20))
    engine = calibration.engine_of(as_result(run), LLAMA, CARD, engine="vllm", max_num_seqs=32, kv_tokens=4000)
    assert repr(engine.policy) == "Continuous(max_num_seqs=32, max_num_batched_tokens=2048)"
    assert engine.cache == KVCache(250, 16) and engine.notes == ()
    said = {"num_gpu_blocks": 99, "block_size": 32, "data_parallel_size": 1, "enable_chunked_prefill": False}
    engine = calibration.engine_of(as_result(run, SETUP | said), LLAMA, CARD)
    assert engine.cache == KVCache(99, 32) and not engine.policy.enable_chunked_prefill
    # Nothing said: vLLM 0.19 takes more on a card of 70 GiB or more, and the ledger estimates the pool.
    engine = calibration.engine_of(as_result(run, {}), LLAMA, CARD)
    assert (engine.policy.max_num_seqs, engine.policy.max_num_batched_tokens) == (1024, 8192)
    assert len(engine.notes) == 4 and "the file does not say which engine served" in engine.notes[0]
    assert "estimated from the memory of RTX-PRO-6000" in engine.notes[3]
    small = calibration.engine_of(as_result(run, {}), LLAMA, gpus.gpu("RTX 4090"), max_model_len=8192)
    assert (small.policy.max_num_seqs, small.policy.max_num_batched_tokens) == (256, 2048)
    few = calibration.engine_of(as_result(run, {}), LLAMA, CARD, max_num_batched_tokens=100)
    assert few.policy.max_num_seqs == 100  # vLLM lowers the slots that nobody asked for to the budget


def test_an_engine_that_cannot_be():
    result = as_result(served(telling_load().head(20)), {})
    with pytest.raises(ValueError, match="leaves no room for a KV pool on RTX-4090"):
        calibration.engine_of(result, LLAMA, gpus.gpu("RTX 4090"), gpu_memory_utilization=0.5)
    with pytest.raises(ValueError, match="both set the KV pool"):
        calibration.engine_of(result, LLAMA, CARD, kv_tokens=100, num_gpu_blocks=10)
    with pytest.raises(ValueError, match="kv_tokens must be a whole number"):
        calibration.engine_of(result, LLAMA, CARD, kv_tokens=3)
    with pytest.raises(ValueError, match="max_num_seqs must be"):
        calibration.engine_of(as_result(served(telling_load().head(20)), {"max_num_seqs": "many"}), LLAMA, CARD)


def test_replicas_share_the_requests_in_turn():
    load, timing = telling_load(), calibration.step_time(TRUTH, "known")
    engine = calibration.engine_of(as_result(served(load)), LLAMA, CARD, data_parallel_size=2, kv_tokens=160_000)
    both = calibration.replay(load, timing, engine)
    halves = [
        serve(replace(load, **{c: getattr(load, c)[k::2] for c in ("arrival", "prompt_tokens", "output_tokens")}),
              engine.policy, timing, engine.cache)
        for k in range(2)
    ]  # fmt: skip
    np.testing.assert_array_equal(both.e2e, np.concatenate([half.e2e for half in halves]))
    assert len(both) == 210 and both.statistics("itl")["max"] == max(half.itl.max() for half in halves)
    assert both.kv_peak == max(half.summary()["kv_peak"] for half in halves)
    loop = Workload.closed_loop(4, think_time=0, requests_per_user=3, prompt_tokens=10, output_tokens=5, seed=0)
    with pytest.raises(ValueError, match="cannot be dealt out to replicas"):
        calibration.replay(loop, timing, engine)


def test_a_replay_of_one_engine_is_serve():
    load, timing = telling_load(), calibration.step_time(TRUTH, "known")
    engine = calibration.engine_of(as_result(served(load)), LLAMA, CARD, kv_tokens=32_000)
    run, numbers = calibration.replay(load, timing, engine), served(load, cache=KVCache(2000)).summary()
    assert run.preemptions == numbers["preemptions"] and run.kv_peak == numbers["kv_peak"]
    for metric in ("ttft", "tpot", "itl", "e2e"):
        for statistic in ("mean", "p50", "p99"):
            assert run.statistics(metric)[statistic] == numbers[f"{metric}_{statistic}"]
