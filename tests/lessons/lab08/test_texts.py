"""Lab 08: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache

import numpy as np
import pytest

from course.exercises import load
from course.lessons.lab08 import card_memory, kv_pool
from tests.helpers.texts import About, agree, right_option, right_words, with_numbers

LAB = load("08")
LENGTH = 8_192


@cache
def held() -> float:
    """Tokens that a sequence of the batch holds at a random moment."""
    return kv_pool.PROMPT + kv_pool.ANSWER * (1 + kv_pool.ANSWER_CV**2) / 2


@cache
def facts() -> dict[str, tuple]:
    calm = kv_pool.under_load(rate=1.0)
    few, many = (kv_pool.under_load(slots=n) for n in (24, 48))
    bf16, fp8 = kv_pool.under_load(kv_pool.GQA), kv_pool.under_load(kv_pool.FP8)
    residents, printed = kv_pool.TOKENS / held(), kv_pool.TOKENS / LENGTH
    hybrid = card_memory.spec("nemotron-h-56b")
    chat = 1_000 * hybrid.kv_bytes_per_token
    heads = card_memory.spec("llama-2-7b").kv_bytes_per_token / card_memory.spec("llama-3.1-8b").kv_bytes_per_token
    return {
        "five": (LENGTH, printed, kv_pool.PROMPT, kv_pool.ANSWER),
        "five a": (int(printed),),
        "five b": (10,),
        "five c": (residents,),
        "five d": (256,),
        "five why": (
            *(printed, LENGTH, held(), kv_pool.TOKENS, held(), residents),
            *(1, calm.run.steps.running.max()),
        ),
        "slots": (2, 24, 2, 24 * 2),
        "slots b": (1 / 5,),
        "slots c": (2,),
        "slots why": (
            *(few.tokens_per_second, many.tokens_per_second, few.preemptions, many.preemptions),
            About(many.recomputed, 0.07),
        ),
        "fp8": (2, kv_pool.BYTES[kv_pool.FP8] / kv_pool.BYTES[kv_pool.GQA], 95, bf16.p95_ttft, len(bf16.run)),
        "fp8 b": (1 / 2,),
        "fp8 why": (
            *(fp8.p95_ttft, 8 * kv_pool.SPEC.kv_bytes_per_element, residents, 2),
            kv_pool.cache(kv_pool.FP8).num_blocks / kv_pool.BLOCKS,
        ),
        "token hint": (2,),
        "token 1": (2, 2),
        "fits 2": (2,),
        "fits 5": (16,),
        "residents 0": (LENGTH,),
        "residents 1": (LENGTH,),
        "residents 5": (1 / 2, 1),
        "slots 0": (1 / 2, 2),
        "slots 1": (2,),
        "quiz limit": (32_768, kv_pool.TOKENS / 32_768, 1_500),
        "quiz limit c": (
            About(kv_pool.TOKENS / 1_500, 0.03),
            *(kv_pool.TOKENS / 32_768, 32_768, About(kv_pool.TOKENS, 0.012), 1_500),
        ),
        "quiz gqa": (heads,),
        "quiz gqa b": (8,),
        "quiz utilization": (0.98,),
        "quiz state": (hybrid.kv_bytes_per_token, hybrid.state_bytes / 2**20, 1_000),
        "quiz state a": (1_000, chat / 2**20),
        "quiz state c": (About(hybrid.state_bytes / chat, 0.05),),
    }


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_keys_of_the_predictions():
    five, slots, fp8 = LAB.predictions
    fits = kv_pool.under_load(slots=256).in_batch  # as many as the pool lets in
    right_option(five, fits < 6, 8 < fits < 12, 25 < fits < 29, fits > 200)
    times = kv_pool.under_load(slots=48).tokens_per_second / kv_pool.under_load(slots=24).tokens_per_second
    right_option(slots, 0.95 < times < 1, 1.15 < times < 1.25, times > 1.8)
    before, after = (kv_pool.under_load(kind).p95_ttft for kind in (kv_pool.GQA, kv_pool.FP8))
    right_option(fp8, 0.9 < after / before < 1.1, 0.4 < after / before < 0.6, after < 1)


def test_the_keys_of_the_quiz():
    limit, full, gqa, weights, utilization, state = LAB.quiz
    shorter = kv_pool.TOKENS / 1_500  # sequences of the question that the pool holds
    right_option(limit, shorter < 2, shorter >= 256, 2 <= shorter < 256)
    run = kv_pool.under_load(slots=48).run
    # Everybody is answered, some after a preemption, and what they lost is computed again.
    assert np.isfinite(run.e2e).all() and run.preempted.sum() and run.steps.dropped.sum()
    right_words(full, "takes the blocks of the request admitted last")
    right_words(gqa, "another checkpoint")
    small = card_memory.spec("llama-3.1-8b")
    plain, quantised = (
        card_memory.memory.ledger(small, "H100", max_model_len=LENGTH, weights_bytes=small.weights_bytes / part)
        for part in (1, 2)
    )
    a_token = quantised.spec.kv_bytes_per_token / plain.spec.kv_bytes_per_token
    grows = quantised.kv_tokens > plain.kv_tokens
    right_option(weights, a_token == 1 / 2, a_token == 1 and grows, a_token == 1 and not grows)
    right_words(utilization, "memory that nobody counted")
    hybrid = card_memory.spec("nemotron-h-56b")
    tokens, fixed = 1_000 * hybrid.kv_bytes_per_token, hybrid.state_bytes
    right_option(state, tokens > fixed, tokens == 0 or fixed == 0, fixed > tokens > 0)
