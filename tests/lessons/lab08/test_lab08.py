"""Lab 08: what the text says in numbers."""

from math import ceil

import numpy as np
import pytest

from course import KVCache, Workload, memory, policies, serve
from course.lessons import load
from course.lessons.lab08 import card_memory, kv_pool
from course.lessons.lab08.engine_prints import PRINTS
from course.models import engine_defaults
from course.steptime import Step, recorded

LAB = load("08")
GIB = 2**30
LLAMA_TOKEN = 2 * 32 * 8 * 128 * 2


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


# What the text says in numbers. The tolerance of each is the last digit that the text shows.


def test_the_question():
    assert kv_pool.TOKENS == 41_408 and pytest.approx(5.05, abs=5e-3) == kv_pool.TOKENS / 8192
    calm = kv_pool.under_load(rate=1.0)
    assert calm.preemptions == 0 and calm.run.steps.running.max() == 26


@pytest.mark.parametrize("seed", range(1, 5))
def test_more_slots_do_not_help_in_other_draws_either(seed):
    few, many = (kv_pool.under_load(slots=n, seed=seed) for n in (24, 48))
    assert many.tokens_per_second < few.tokens_per_second and many.preemptions > 5 * few.preemptions


def test_where_the_pool_alone_limits_the_batch_it_holds_what_the_formula_says():
    full = kv_pool.under_load(rate=2.0)
    held = full.run.steps.decode_context.sum() / full.run.steps.decodes.sum()
    assert held == pytest.approx(1_497, abs=0.5) and full.in_batch == pytest.approx(26.5, abs=0.05)
    # The drawn answers spread a little less than a CV of 1, and each sequence loses half a block.
    lengths = full.run.workload.output_tokens
    expected = kv_pool.PROMPT + (lengths.astype(float) ** 2).mean() / (2 * lengths.mean())
    assert kv_pool.tokens_held().mean() == pytest.approx(expected, rel=0.01)
    assert full.in_batch == pytest.approx(kv_pool.TOKENS / (expected + 7.5), rel=0.05)


def test_the_storm():
    runs = {one.slots: one for one in kv_pool.sweep()}
    assert max(runs) == 48  # beyond, nobody ever asks for the last slot
    assert np.array_equal(kv_pool.under_load(slots=256).run.e2e, runs[48].run.e2e)
    assert runs[20].preemptions == 0 and runs[28].tokens_per_second > runs[48].tokens_per_second
    assert runs[20].longest_gap < 0.3 and runs[48].longest_gap > 5 and runs[48].pool_used.max() > 0.99


@pytest.mark.parametrize("kind", [kv_pool.MHA, kv_pool.GQA, kv_pool.FP8])
def test_the_pool_of_each_kind_has_the_same_bytes_and_nobody_fails(kind):
    found = kv_pool.under_load(kind, 2.0)
    assert found.run.cache.num_blocks == 41_408 * LLAMA_TOKEN // (16 * kv_pool.BYTES[kind])
    assert np.isfinite(found.run.e2e).all()


def test_the_step_time_is_what_it_says():
    step = kv_pool.step_time(kv_pool.FP8)
    assert step.context == pytest.approx(65_536 / (0.9 * 1.008e12)) and step.t0 == pytest.approx(16.5e-3, abs=5e-5)
    read = 1e3 * kv_pool.POOL_BYTES / kv_pool.BANDWIDTH
    assert read == pytest.approx(6.0, abs=0.05) and pytest.approx(5.4e9, abs=5e7) == kv_pool.POOL_BYTES
    assert read / (1e3 * step.t0) == pytest.approx(1 / 3, abs=0.04)


def test_the_recorded_step():
    recording = recorded("h100-llama3-8b")
    assert recording.model == "llama-3.1-8b" and "H100" in recording.badge
    read = kv_pool.SPEC.step_weight_bytes + 32 * 1_024 * LLAMA_TOKEN
    rate = read / recording(Step(32, 32 * 1_024, ()))
    assert 0.5 < rate / 3.35e12 < 0.9  # a real step, not the peak


def test_a_request_that_never_fits_is_refused():
    huge = Workload.fixed(rate=1, num_requests=1, prompt_tokens=41_000, output_tokens=2_000)
    with pytest.raises(ValueError, match="can never be served"):
        serve(huge, policies.Continuous(256, 2_048), kv_pool.step_time(), KVCache(kv_pool.BLOCKS))


# The ledger


def test_the_batch_is_the_engines_own_unless_said():
    """The ledger of the text is the second row of what engines printed: 51.38 GiB."""
    h100 = card_memory.ledger("llama-3.1-8b", "H100")
    assert (h100.max_num_seqs, h100.max_num_batched_tokens) == (1_024, 8_192)
    assert h100.kv_bytes / GIB == pytest.approx(51.38, abs=0.03)
    a100 = card_memory.ledger("llama-3.1-8b", "A100")
    assert (a100.max_num_seqs, a100.max_num_batched_tokens) == (256, 2_048)
    asked = card_memory.ledger("llama-3.1-8b", "H100", max_num_seqs=64)
    assert (asked.max_num_seqs, asked.max_num_batched_tokens) == (64, 8_192)


def test_what_max_model_len_moves():
    short, long = (card_memory.ledger("llama-3.1-8b", "H100", max_model_len=n) for n in (4_096, 32_768))
    assert (short.kv_bytes, short.num_blocks, short.longest_sequence) == (
        long.kv_bytes, long.num_blocks, long.longest_sequence,
    )  # fmt: skip
    assert short.concurrency(4_096) == pytest.approx(8 * long.concurrency(32_768))


def test_what_engines_printed():
    off = {(log.card, log.model_name): log.ledger.kv_bytes / GIB / log.kv_gib - 1 for log in PRINTS}
    assert off["H100", "llama-3.1-8b"] == pytest.approx(0, abs=1e-3)
    assert off["H100", "qwen3-32b"] == pytest.approx(0, abs=2e-3)
    assert off["RTX 4090", "llama-3.1-8b"] == pytest.approx(-0.034, abs=5e-4)
    assert off["RTX 3090", "llama-3.1-8b"] == pytest.approx(0.07, abs=1e-3)
    assert off["A100", "qwen2-7b"] == pytest.approx(-0.188, abs=1e-3)
    for log in PRINTS:
        if log.tokens:  # a printed GiB has two digits, and blocks are whole
            token = card_memory.spec(log.model_name).kv_bytes_per_token
            assert log.tokens * token / GIB == pytest.approx(log.kv_gib, abs=0.006)


def test_why_blocks_once_depended_on_max_model_len():
    found = {
        n: memory.ledger("llama-3.1-8b", memory_bytes=23.58 * GIB, max_model_len=4_096, max_num_batched_tokens=n)
        for n in (2_048, 20_000)
    }
    assert found[20_000].activation_bytes / GIB == pytest.approx(2.07, abs=0.02)  # the log: 17.06 - 14.99
    assert found[20_000].num_blocks < found[2_048].num_blocks


def test_284_times():
    oss = card_memory.spec("gpt-oss-120b")
    pool = memory.pool(oss, 45.32 * GIB, tp=4, max_num_batched_tokens=2_048)
    charged = pool.num_blocks // len(pool.groups) * pool.block_size
    assert charged == pytest.approx(2_640_144, rel=1e-4) and 2_640_144 - charged == 64
    assert charged / 16_384 == pytest.approx(161, abs=0.5)
    assert pool.concurrency(16_384) == pytest.approx(284, abs=0.5)
    older, newer = (pool.num_tokens(16_384, engine_defaults.release(version)) for version in ("0.20", "0.21"))
    assert (older, newer) == (charged, int(pool.concurrency(16_384) * 16_384))
    assert sorted(group.blocks(16_384) for group in pool.groups) == [ceil((127 + 2_048) / 16) + 1, 16_384 // 16]
    assert (oss.kv_bytes_per_token, oss.kv_bytes_after_window) == (73_728, 36_864)


def test_the_hybrid():
    spec = card_memory.spec("nemotron-h-56b")
    assert spec.num_layers == 118 and spec.kv_bytes_per_token == 2 * 10 * 8 * 128 * 2 == 40_960
    assert 118 * 2 * 8 * 128 * 2 / spec.kv_bytes_per_token > 10  # "an order of magnitude"
    assert spec.state_bytes / 2**20 == pytest.approx(438, abs=0.5)
    assert spec.state_bytes // spec.kv_bytes_per_token == 11_221


@pytest.mark.parametrize(
    ("name", "token"),
    [("llama-2-7b", 2 * 32 * 32 * 128 * 2), ("llama-3.1-8b", LLAMA_TOKEN), ("qwen2-7b", 2 * 28 * 4 * 128 * 2),
     ("qwen3-32b", 2 * 64 * 8 * 128 * 2), ("falcon-7b", 2 * 32 * 1 * 64 * 2), ("deepseek-v3", 61 * (512 + 64) * 2),
     ("gpt-oss-120b", 2 * 36 * 8 * 64 * 2), ("nemotron-h-56b", 2 * 10 * 8 * 128 * 2)],
)  # fmt: skip
def test_the_configs(name, token):
    assert card_memory.spec(name).kv_bytes_per_token == token
    assert name in card_memory.names()


def test_an_unknown_config_is_named():
    with pytest.raises(ValueError, match=r"gpt-5.*choose one of"):
        card_memory.spec("gpt-5")


def test_a_length_that_does_not_fit():
    for length, fits in ((16_000, True), (32_000, False)):
        card = card_memory.ledger("qwen3-32b", "H100", max_model_len=length)
        assert bool(card.max_sequences(length)) == fits


def test_fp8_and_weights():
    def tokens(card, weights, dtype):
        size = card_memory.spec("llama-3.1-8b").weights_bytes / weights
        return card_memory.ledger("llama-3.1-8b", card, kv_dtype=dtype, weights_bytes=size).kv_tokens

    for card, by_weights in (("H100", 1.145), ("RTX 4090", 2.53)):  # "a seventh", "two and a half times"
        plain = tokens(card, 1, "bfloat16")
        assert tokens(card, 1, "fp8") / plain == pytest.approx(2, abs=1e-3)
        assert tokens(card, 2, "bfloat16") / plain == pytest.approx(by_weights, abs=0.01)
