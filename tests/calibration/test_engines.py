"""The file's own engine decides the order of work, and max_model_len cuts what it would have refused."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from course import calibration, policies
from course.calibration import compare, engine_of
from course.cli import app
from course.models import gpus, model
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION
from tests.helpers.measured_runs import TRUTH, as_log, as_result, served, telling_load

LLAMA, CARD = model("llama-3.1-8b"), gpus.gpu("H100")


def of(tool, **setup):
    return replace(as_result(served(telling_load().head(20)), setup), tool=tool)


def test_sglang_files_are_served_prompts_first():
    engine = engine_of(of("SGLang bench_serving", backend="sglang-oai"), LLAMA, CARD)
    assert repr(engine.policy) == "PrefillFirst(max_num_seqs=2048, max_num_batched_tokens=8192)"
    assert any("SGLang served, so the policy is PrefillFirst" in note for note in engine.notes)
    assert any("SGLang divides the card otherwise" in note for note in engine.notes)
    small = engine_of(of("SGLang bench_serving", backend="sglang-oai"), LLAMA, CARD, max_num_batched_tokens=512)
    assert small.policy.max_num_seqs == 512, "its own slots are not above the chunk"
    other = engine_of(of("SGLang bench_serving", backend="vllm"), LLAMA, CARD)
    assert isinstance(other.policy, policies.Continuous) and not any("not in the file: vLLM" in n for n in other.notes)
    given = engine_of(of("aiperf"), LLAMA, CARD, engine="SGLang", max_num_seqs=4, max_num_batched_tokens=512)
    assert repr(given.policy) == "PrefillFirst(max_num_seqs=4, max_num_batched_tokens=512)"


def test_tensorrt_llm_files_have_its_settings():
    engine = engine_of(of("trtllm-bench", max_batch_size=32.0, max_num_tokens=1024.0), LLAMA, CARD)
    assert (
        repr(engine.policy) == "Continuous(max_num_seqs=32, max_num_batched_tokens=1024, enable_chunked_prefill=False)"
    )


def test_an_engine_that_no_file_names_is_said():
    engine = engine_of(of("guidellm"), LLAMA, CARD)
    assert isinstance(engine.policy, policies.Continuous)
    assert engine.notes[0].startswith("the file does not say which engine served: vLLM's order of work is ASSUMED")
    assert not any("ASSUMED" in n for n in engine_of(of("x", vllm_version="0.19.0"), LLAMA, CARD).notes)
    with pytest.raises(ValueError, match="engine must be one of vllm, sglang, tensorrt-llm, not 'tgi'"):
        engine_of(of("guidellm"), LLAMA, CARD, engine="tgi")


def test_the_release_that_served_is_followed():
    for version, followed in (("0.33.0", "0.33.0"), ("0.19.1", "0.19.1"), ("a nightly", DEFAULT_ENGINE_VERSION)):
        engine = engine_of(of("x", vllm_version=version, max_num_seqs=8), LLAMA, CARD)
        assert engine.policy.engine_version == followed


def test_the_order_of_work_changes_what_is_modelled():
    run = as_result(served(telling_load()), {})
    timing = calibration.step_time(TRUTH, "known")
    chosen = {"max_num_seqs": 64, "max_num_batched_tokens": 2048, "kv_tokens": 400_000}
    vllm, sglang = (
        compare(run, timing, engine_of(run, LLAMA, CARD, engine=name, **chosen)) for name in ("vllm", "sglang")
    )
    assert vllm.row("e2e", "mean").error == pytest.approx(0, abs=0.01)  # the load was served in vLLM's order
    assert abs(sglang.row("tpot", "p50").error) > 0.1 > abs(vllm.row("tpot", "p50").error)


def test_max_model_len_cuts_both_sides():
    run = served(telling_load().head(40))
    long = run.workload.prompt_tokens + run.workload.output_tokens
    limit = int(np.sort(long)[-4])  # three are longer
    engine = engine_of(as_result(run), LLAMA, CARD, engine="vllm", max_model_len=limit)
    found = compare(as_result(run), calibration.step_time(TRUTH, "known"), engine)
    assert len(found.replay) == 37 and len(found.measured["e2e"]) == 37
    kept = run.e2e[long <= limit]
    assert found.row("e2e", "mean").measured == pytest.approx(kept.mean())
    assert any(f"3 of 40 requests have more than {limit:,} tokens (max_model_len)" in note for note in found.notes)
    with pytest.raises(ValueError, match="all requests are longer than max_model_len, 1 tokens"):
        compare(as_result(run), calibration.step_time(TRUTH, "known"), replace(engine, max_model_len=1))
    summary = replace(
        as_result(run), requests=None, totals={"requests": 4.0, "prompt_tokens": 400.0, "output_tokens": 40.0}
    )
    with pytest.raises(ValueError, match="a request has 110 tokens on average, and max_model_len is 100"):
        replace(engine, max_model_len=100).served(summary)


def test_the_command_takes_the_engine(tmp_path):
    log = as_log(served(telling_load().head(20)), tmp_path)
    command = ["compare", str(log), "--model", "llama-3.1-8b", "--gpu", "H100"]
    knobs = ["--num-gpu-blocks-override", "9000", "--tp", "1", "--kv-dtype", "fp8"]
    ran = CliRunner().invoke(app, [*command, "--engine", "sglang", *knobs])
    assert ran.exit_code == 0 and "Engine: PrefillFirst(" in ran.stdout and "9,000 KV blocks" in ran.stdout
    assert "SGLang served" in ran.stderr
    ran = CliRunner().invoke(app, [*command, "--engine", "x"])
    assert ran.exit_code == 2 and "--engine must be one of" in ran.stderr
