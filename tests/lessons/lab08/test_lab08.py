"""Lab 08: its scenario and ledger against formulas, published logs and vLLM's own recording; its exercises."""

from math import ceil

import numpy as np
import pytest

from course.calibration import vllm_live
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab08, load
from course.lessons.lab08 import card_memory, decision, kv_pool, tables
from course.lessons.lab08.engine_prints import PRINTS
from course.steptime import Step, recorded

GIB = 2**30
LLAMA_TOKEN = 2 * 32 * 8 * 128 * 2


def exercise(name):
    return next(e for e in load("08").exercises if e.id == name)


# The pool under load


@pytest.mark.parametrize("seed", range(1, 5))
def test_more_slots_do_not_help_in_other_draws_either(seed):
    few, many = (kv_pool.under_load(slots=n, seed=seed) for n in (24, 48))
    assert many.tokens_per_second < few.tokens_per_second and many.preemptions > 5 * few.preemptions


def test_where_the_pool_alone_limits_the_batch_it_holds_what_the_formula_says():
    full = kv_pool.under_load(rate=2.0)
    # The drawn answers spread a little less than a CV of 1, and each sequence loses half a block.
    lengths = full.run.workload.output_tokens.astype(float)
    expected = kv_pool.PROMPT + (lengths**2).mean() / (2 * lengths.mean())
    assert kv_pool.tokens_held().mean() == pytest.approx(expected, rel=0.01)
    assert full.in_batch == pytest.approx(kv_pool.TOKENS / (expected + 7.5), rel=0.05)
    held = kv_pool.tokens_held() - kv_pool.PROMPT
    assert held[0] == 0 <= held.min() and held.max() < lengths.max()  # it grows from 0 within each answer


def test_the_storm():
    runs = {one.slots: one for one in kv_pool.sweep()}
    assert max(runs) == 48  # beyond, nobody ever asks for the last slot
    assert np.array_equal(kv_pool.under_load(slots=256).run.e2e, runs[48].run.e2e)
    assert runs[20].preemptions == 0 and runs[28].tokens_per_second > runs[48].tokens_per_second
    assert runs[20].longest_gap < 0.3 and runs[48].longest_gap > 5 > runs[24].longest_gap
    assert runs[48].pool_used.max() == 1


@pytest.mark.parametrize("kind", kv_pool.BYTES)
def test_the_pool_of_each_kind_has_the_same_bytes_but_for_one_block(kind):
    """vLLM keeps one for itself: its recorded servers had one block less for requests than they logged."""
    logged = {vllm_live.read(name).engine["num_gpu_blocks"] - vllm_live.read(name).engine["free_blocks"]
              for name in vllm_live.names()}  # fmt: skip
    assert logged == {1}
    assert kv_pool.cache(kind).num_blocks == 41_408 * LLAMA_TOKEN // (16 * kv_pool.BYTES[kind]) - 1
    assert np.isfinite(kv_pool.under_load(kind, 2.0).run.e2e).all()


def test_the_step_time_is_what_it_says():
    step = kv_pool.step_time(kv_pool.FP8)
    assert step.context == pytest.approx(65_536 / (0.9 * 1.008e12)) and step.t0 == pytest.approx(16.5e-3, abs=5e-5)
    assert step.prefill == pytest.approx(2 * kv_pool.SPEC.layer_parameters / (0.79 * 165e12))
    assert step.c == kv_pool.PER_SEQUENCE and step.alpha == 1
    read = kv_pool.SPEC.step_weight_bytes + 32 * 1_024 * LLAMA_TOKEN
    rate = read / recorded("h100-llama3-8b")(Step(32, 32 * 1_024, ()))
    assert 0.5 < rate / 3.35e12 < 0.9  # a real step of the other card in the text, not the peak


def test_an_hour_in_words():
    result = kv_pool.hour(kv_pool.GQA, 3.0, 256)
    run, rows = result.run, dict(kv_pool.hour_rows(result))
    computed = run.steps.decodes.sum() + run.steps.prefill_tokens.sum()
    last, first = run.arrival.max(), run.arrival.min()
    tokens = sum((run.token_times(request) <= last).sum() for request in range(len(run)))
    answered = sum(run.token_times(request)[-1] <= last for request in range(len(run)))
    assert run.steps.dropped.sum() > 0
    assert rows == {
        "p95 TTFT": kv_pool.seconds(np.percentile(run.ttft, 95)),
        "longest gap": kv_pool.seconds(run.itl.max()),
        "output, to the last arrival": f"{tokens / (last - first):,.0f} tokens/s",
        "answers, to the last arrival": f"{answered / (last - first):.2f} a second",
        "blocks for requests": "2,587",
        "pool in use, most": f"{run.steps.blocks.max() / 2_587:.0%}",
        "preemptions": f"{run.preempted.sum():,}",
        "computed twice": f"{run.steps.dropped.sum() / computed:.1%}",
    }


# The ledger


def test_what_engines_printed():
    off = {(log.card, log.model_name): log.ledger.kv_bytes / GIB / log.kv_gib - 1 for log in PRINTS}
    assert off["H100", "llama-3.1-8b"] == pytest.approx(0, abs=1e-3)
    assert off["H100", "qwen3-32b"] == pytest.approx(0, abs=2e-3)
    assert off["RTX 4090", "llama-3.1-8b"] == pytest.approx(-0.034, abs=5e-4)
    assert off["RTX 3090", "llama-3.1-8b"] == pytest.approx(0.07, abs=1e-3)
    for log in PRINTS:
        if log.tokens:  # a printed GiB has two digits, and blocks are whole
            token = card_memory.spec(log.model_name).kv_bytes_per_token
            assert log.tokens * token / GIB == pytest.approx(log.kv_gib, abs=0.006)


@pytest.mark.parametrize(
    ("name", "token", "keeps"),
    [("llama-2-7b", 2 * 32 * 32 * 128 * 2, 10_000 * 524_288), ("falcon-7b", 2 * 32 * 1 * 64 * 2, 10_000 * 8_192),
     ("deepseek-v3", 61 * (512 + 64) * 2, 10_000 * 70_272),
     ("gpt-oss-120b", 2 * 36 * 8 * 64 * 2, (10_000 + 128) * 36_864),
     ("nemotron-h-56b", 2 * 10 * 8 * 128 * 2, 10_000 * 40_960 + card_memory.spec("nemotron-h-56b").state_bytes)],
)  # fmt: skip
def test_what_a_token_and_a_sequence_keep(name, token, keeps):
    spec = card_memory.spec(name)
    assert spec.kv_bytes_per_token == token and card_memory.sequence_bytes(spec, 10_000) == keeps
    assert f"{token:,} B" in str(tables.what_a_sequence_keeps())


def test_an_unknown_config_is_named():
    with pytest.raises(ValueError, match=r"gpt-5.*choose one of"):
        card_memory.spec("gpt-5")


# The recordings


def test_the_pages_are_vllms_own():
    run, page = vllm_live.read("preempted"), dict((row[0], row[1:]) for row in lab08.preempted_page().rows)
    lost = sum(len(row) - 1 for row in run.preempted)
    assert page["vllm:num_preemptions_total"] == ("0", "2", f"{lost}") and lost == 7
    assert "vLLM 0.32.0, small model, two cores, 2026-11-29" in lab08.preempted_page().caption
    size, busy = decision.log().splitlines()
    assert size.startswith("CPU KV cache size: 5,440 tokens")
    assert busy == "... Running: 4 reqs, Waiting: 14 reqs, CPU KV cache usage: 6.5%"


# Exercises


def test_the_answers_by_hand():
    assert exercise("token").solution == 2 * 28 * 4 * 128 * 2 == 57_344
    assert exercise("token").twin.solution == 2 * 64 * 8 * 128 * 2
    assert exercise("residents").solution == pytest.approx(2 * 41_408 / (3_000 + 800 * (1 + 1**2) / 2))
    assert exercise("residents").twin.solution == pytest.approx(2 * 41_408 / (6_000 + 3_000 * (1 + 0**2) / 2))
    assert exercise("decide").solution == {"--max-num-seqs": 169 // ceil(160 / 32)} == {"--max-num-seqs": 33}


@pytest.mark.parametrize("flag", ["--max-num-seqs", "max_num_seqs", "--max_num_seqs", " max-num-seqs "])
def test_the_decision_may_be_written_in_other_ways(flag):
    decide = exercise("decide")
    assert judge(decide, {flag: 33}).status == judge(decide, {flag: "33"}).status == RIGHT
    assert judge(decide, {flag: 35}).status == judge(decide, {flag: None, "other": 33}).status == WRONG


def test_a_wrong_decision_gets_its_hint():
    decide = exercise("decide")
    assert judge(decide, {"--flag": None}).status == NOT_ATTEMPTED
    assert "one block" in judge(decide, {"max_num_seqs": 5_440 // 160}).hint
    assert "average" in judge(decide, {"max_num_seqs": 5_440 // 125}).hint
    assert "limits nobody" in judge(decide, {"max_model_len": 4_096}).hint
    assert judge(decide, "--max-num-seqs").status == WRONG


@pytest.mark.parametrize(
    ("given", "status"), [(22, RIGHT), (21.79, RIGHT), (21.8, RIGHT), (21, RIGHT), (10.9, WRONG), (24.4, WRONG)]
)
def test_the_residents_may_be_rounded_to_a_whole_request_up_or_down(given, status):
    assert judge(exercise("residents"), given).status == status


def test_the_slots_exercise_takes_other_ways_of_writing_it():
    def by_the_quadratic_formula(num_blocks, block_size, tokens):
        blocks = [-(-t // block_size) for t in tokens]
        mean = sum(blocks) / len(blocks)
        spread = (sum((b - mean) ** 2 for b in blocks) / len(blocks)) ** 0.5
        root = (-2 * spread + (4 * spread**2 + 4 * mean * num_blocks) ** 0.5) / (2 * mean)
        return max(1, int(root**2 + 1e-9))  # a root may fall short of a whole number

    assert judge(exercise("slots"), by_the_quadratic_formula).status == RIGHT
    assert judge(exercise("slots"), lambda *_: 27).status == WRONG
