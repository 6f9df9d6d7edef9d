"""Lab 08: what the tables beside the figures say, from the runs and the sizes themselves."""

import numpy as np
import pytest

from course.lessons.lab08 import card_memory, kv_pool

GIB = 2**30


def table(rows):
    return {name: cells for name, *cells in rows}


def test_an_hour():
    result = kv_pool.hour(kv_pool.GQA, 3.0, 256)
    run, rows = result.run, table(kv_pool.hour_rows(result))
    computed = run.steps.decodes.sum() + run.steps.prefill_tokens.sum()
    assert run.steps.dropped.sum() > 0
    assert rows["p95 TTFT"] == [kv_pool.seconds(np.percentile(run.ttft, 95))]
    assert rows["longest gap"] == [kv_pool.seconds(run.itl.max())]
    last, first = run.arrival.max(), run.arrival.min()
    tokens = sum((run.token_times(request) <= last).sum() for request in range(len(run)))
    assert rows["output, to the last arrival"] == [f"{tokens / (last - first):,.0f} tokens/s"]
    answered = sum(run.token_times(request)[-1] <= last for request in range(len(run)))
    assert rows["answers, to the last arrival"] == [f"{answered / (last - first):.2f} a second"]
    assert rows["pool in use, most"] == [f"{run.steps.blocks.max() / kv_pool.BLOCKS:.0%}"]
    assert rows["computed twice"] == [f"{run.steps.dropped.sum() / computed:.1%}"]


def test_a_token_and_a_sequence():
    rows = table(card_memory.shape_rows(card_memory.shape(32, 8, 128, 2, 8_192)))
    assert rows["bytes a token"] == ["524,288 B", "131,072 B", "16,384 B"]
    assert rows["a sequence of 8,192"] == [f"{size * 8_192 / GIB:.3f} GiB" for size in (524_288, 131_072, 16_384)]
    assert rows["in the RTX 4090's pool"][1] == f"{kv_pool.TOKENS / 8_192:.2f}x"


def test_the_ledger_in_gib():
    result = card_memory.fit("llama-3.1-8b", "H100", "bfloat16", 8_192)
    rows = table(card_memory.fit_rows(result))
    assert rows["weights"][0] == f"{result.ledger.weights_bytes / GIB:.2f} GiB"
    assert rows["of 8,192 tokens"][0] == f"{result.ledger.num_blocks / 512:.2f}x"


def test_the_short_ledger():
    result = card_memory.fit("llama-3.1-8b", "RTX 4090", "bfloat16", 8_192)
    rows, found = table(card_memory.short_rows(result)), result.ledger
    assert rows["a token keeps"] == ["131,072 B"] and rows["layers, KV heads"] == ["32, 8"]
    assert rows["concurrency"] == [f"{found.num_blocks / 512:.2f}x"]
    sizes = [float(rows[name][0].removesuffix(" GiB")) for name in ("usable", "weights and all else", "KV pool")]
    assert sizes[0] == pytest.approx(sizes[1] + sizes[2], abs=0.02)  # three roundings to two digits
    assert rows["KV cache size"] == [f"{16 * found.num_blocks:,} tokens"]


def test_one_sequence_of_a_model_with_windows():
    oss = card_memory.architecture("gpt-oss-120b", 10_000)
    rows = table(card_memory.architecture_rows(oss))
    assert rows["a sequence of 10,000"] == [f"{(10_000 + 128) * 36_864 / 2**20:,.1f} MiB"]
    assert rows["if every layer kept every token"] == [f"{10_000 * 73_728 / 2**20:,.1f} MiB"]


def test_what_a_batch_holds_is_met_as_often_as_an_answer_is_long():
    held = kv_pool.tokens_held() - kv_pool.PROMPT
    answers = kv_pool.requests(2.0).output_tokens.astype(float)
    assert held.min() >= 0 and held.max() < answers.max()
    # At a random moment of a random answer, met in proportion to its length: half of E[N^2] / E[N].
    assert held.mean() == pytest.approx((answers**2).mean() / (2 * answers.mean()), rel=0.01)
    # Early moments of short answers come first: what is held grows from 0 within each answer.
    assert held[0] == 0


def test_a_step_by_its_four_constants():
    step, spec = kv_pool.step_time(), kv_pool.SPEC
    assert step.prefill == pytest.approx(2 * spec.layer_parameters / (0.79 * 165e12))
    assert step.c == kv_pool.PER_SEQUENCE and step.alpha == 1
