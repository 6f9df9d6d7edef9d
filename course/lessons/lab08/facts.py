"""The numbers in the texts of lab 08, from the runs and sizes that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from course.calibration import vllm_live
from course.lessons.lab08 import card_memory, decision, kv_pool, live_words, small_pool, tables, tasks
from course.lessons.lab08.card_memory import GIB
from course.lessons.lab08.engine_prints import PRINTS
from course.lessons.lab08.kv_pool import ANSWER, BLOCK_SIZE, BLOCKS, GQA, MHA, PROMPT, SPEC, TOKENS
from course.lessons.lab08.slots import slots
from course.models import engine_defaults

LENGTH = 8_192  # of the log's line
FEW, MANY, ALL = 24, 48, tasks.POOL["slots"]
ROOM = slots(BLOCKS, BLOCK_SIZE, kv_pool.tokens_held())
QWEN, OTHER = card_memory.spec("qwen2-7b"), card_memory.spec("qwen3-32b")
"""Of exercise 1 (Qwen2.5-7B has the sizes of Qwen2-7B) and its twin."""
FP8_POOL = 2 * TOKENS
AT_ONCE, AT_ONCE_TWIN = (3_000, 800), (6_000, 3_000)
"""Prompt and answer of exercise 2, whose answers have a CV of 1, and of its twin, whose answers are all as long."""
BLAME = {"blame_ttft": 500, "blame_outside": 60, "blame_window": 100, "blame_prefill": 40}  # ms
QUIZ: dict[str, Any] = {"quiz_printed": 1.26, "quiz_length": 32_768, "quiz_held": 1_500}
SHARED = 512  # tokens of a system prompt, of the 1,024 of a prompt
STAYS = 11  # seconds, of the question from lab 03
PUBLISHED: dict[str, Any] = {
    "h100_gb": 80, "large_gib": 70, "sampler_bytes": 38, "version": engine_defaults.VERSION.split()[-1], "v1": "0.8",
    "graphs": "0.20", "share_now": 0.92, "share_sglang": 0.93, "share_last": 0.98, "graphs_gib": 0.5,
    "tokens_vllm": 178_880, "tokens_sglang": 367_404, "page_kib": 16, "page_kib_most": 32, "a_token_mb": 1.53,
    "tool_tokens": "0.21",
}  # fmt: skip
"""What engines, their tools and their users have said, in the optional notebook."""

GIVEN = (TOKENS, LENGTH, PROMPT, ANSWER, BLOCK_SIZE, ALL, FEW, MANY, kv_pool.BUDGET, len(kv_pool.requests(2.0)),
         tasks.BUSY, SPEC.num_kv_heads, SPEC.num_layers, SPEC.head_dim, QWEN.num_kv_heads)  # fmt: skip


@cache
def held() -> float:
    """Tokens that a sequence of the batch holds at a random moment: the formula of the lab."""
    return PROMPT + ANSWER * (1 + kv_pool.ANSWER_CV**2) / 2


def held_by_d() -> tuple[int, int]:
    """By hand: in which step D loses its blocks, and when it has some again, counted from 0."""
    blocks = small_pool.small().held[:, 3]
    gone = int(np.flatnonzero((blocks[:-1] > 0) & (blocks[1:] == 0))[0] + 1)
    return gone, int(np.flatnonzero(blocks[gone:])[0] + gone)


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    few, many = (kv_pool.under_load(slots=n) for n in (FEW, MANY))
    today, before = (kv_pool.hour(GQA, tasks.BUSY, n) for n in (ALL, ROOM))
    small = vllm_live.read("preempted")
    ledger = card_memory.ledger("llama-3.1-8b", "RTX 4090", max_model_len=LENGTH).kv_tokens or 0
    prompt, answer = AT_ONCE
    long_prompt, long_answer = AT_ONCE_TWIN
    return {
        # Earlier labs, predictions, tasks
        **BLAME, "blame_all": BLAME["blame_ttft"] - BLAME["blame_outside"],
        "blame_half": round(_queue() + BLAME["blame_window"] / 2), "blame_queue": _queue(), "stays_s": STAYS,
        "printed": TOKENS / LENGTH, "residents": TOKENS / held(), "held": held(),
        "with_prefixes": (TOKENS - SHARED) / (held() - SHARED), "vllm": engine_defaults.VERSION,
        "speed_24": few.tokens_per_second, "speed_48": many.tokens_per_second, "lost_24": few.preemptions,
        "lost_48": many.preemptions, "ten_times": tasks.TEN,
        "default_share": tasks.CARD["gpu_memory_utilization"], "nearly": tasks.NEARLY, "room_slots": ROOM,
        # The text
        "ledger_less": 1 - ledger / TOKENS, "story_block": live_words.BLOCK_SIZE, "hand_blocks": small_pool.BLOCKS,
        "hand_block": small_pool.BLOCK_SIZE, "hand_prompt": small_pool.PROMPT, "hand_answer": small_pool.ANSWER,
        "in_batch": kv_pool.under_load(rate=2.0).in_batch, "a_token": SPEC.kv_bytes_per_token,
        "by_limit": TOKENS // LENGTH, 
        "blocks": BLOCKS, "log_of": PRINTS[0].engine, "live": decision.LIVE.label,
        "live_slots": decision.LIVE.engine["max_num_seqs"], "live_blocks": small.engine["num_gpu_blocks"],
        "live_block": small.engine["block_size"],
        "live_tokens": small.engine["num_gpu_blocks"] * small.engine["block_size"],
        "live_usable": small.engine["free_blocks"] * small.engine["block_size"], "live_requests": len(small),
        "decide_prompt": decision.PROMPT, "decide_limit": 512, "decide_answer": decision.ANSWER,
        "decide_blocks": decision.BLOCKS,
        "decide_average": decision.ON_AVERAGE, "decide_prompts": decision.TOKENS // decision.PROMPT,
        "decide_all": decision.BLOCKS // decision.AT_ITS_END,
        # Exercises
        "token": QWEN.kv_bytes_per_token, "token_width": 2 * QWEN.num_layers * QWEN.num_heads * QWEN.head_dim * 2,
        "token_half": QWEN.kv_bytes_per_token // 2, "token_layer": 2 * QWEN.num_kv_heads * QWEN.head_dim * 2,
        "token_bits": 8 * QWEN.kv_bytes_per_token, "token_kib": QWEN.kv_bytes_per_token / 1024,
        "qwen_layers": QWEN.num_layers, "qwen_heads": QWEN.num_heads, "head_dim": QWEN.head_dim,
        "token_other": OTHER.kv_bytes_per_token,
        "token_other_width": 2 * OTHER.num_layers * OTHER.num_heads * OTHER.head_dim * 2,
        "token_other_half": OTHER.kv_bytes_per_token // 2, "other_layers": OTHER.num_layers,
        "other_heads": OTHER.num_heads, "other_kv_heads": OTHER.num_kv_heads, "at_once": FP8_POOL / (prompt + answer),
        "at_once_16_bits": TOKENS / (prompt + answer), "at_once_prompts": FP8_POOL / prompt,
        "at_once_half": FP8_POOL / (prompt + answer / 2), "at_once_twice": FP8_POOL / (prompt + 2 * answer),
        "once_prompt": prompt, "once_answer": answer, "at_once_twin": FP8_POOL / (long_prompt + long_answer / 2),
        "at_once_twin_whole": FP8_POOL / (long_prompt + long_answer), "twin_prompt": long_prompt,
        "twin_answer": long_answer, "decide": decision.SLOTS,
        # The ticket and the quiz
        "ticket_gap_s": today.longest_gap, "ticket_lost": today.preemptions,
        "ticket_more": round(today.arriving_tokens_per_second) - round(before.arriving_tokens_per_second), "busy": 1,
        **QUIZ, "quiz_fit": int(QUIZ["quiz_printed"] * QUIZ["quiz_length"] / QUIZ["quiz_held"]),
        "kv_heads": SPEC.num_kv_heads, **_deeper(),
    }  # fmt: skip


def _queue() -> int:
    return BLAME["blame_ttft"] - BLAME["blame_outside"] - BLAME["blame_window"] - BLAME["blame_prefill"]


def _deeper() -> dict[str, Any]:
    """Those of the optional notebook."""
    hybrid, a100 = card_memory.spec("nemotron-h-56b"), PRINTS[-1]
    narrow, wide = (card_memory.ledger("llama-3.1-8b", "H100", max_num_seqs=n) for n in (256, 1_024))
    tight, last = (card_memory.ledger("llama-3.1-8b", "RTX 4090", gpu_memory_utilization=u)
                   for u in (tasks.CARD["gpu_memory_utilization"], PUBLISHED["share_last"]))  # fmt: skip
    h100, once = card_memory.ledger("llama-3.1-8b", "H100"), 4_096
    page = BLOCK_SIZE * SPEC.num_kv_heads * SPEC.head_dim * 2  # bytes of K or V of one layer
    storm = {n: kv_pool.under_load(slots=n) for n in (FEW, MANY)}
    return {
        **PUBLISHED, "h100_gib": card_memory.CARDS["H100"] / GIB, "big_params": 32, "small_params": 7,
        "slots_gib": (narrow.kv_bytes - wide.kv_bytes) / GIB,
        "a100_off": 1 - a100.ledger.kv_bytes / GIB / a100.kv_gib,
        "wide_names": "Llama-3.1-8B, Qwen2-7B and Falcon-7B",
        "wide_heads": listed([_by_width(name) for name in ("llama-3.1-8b", "qwen2-7b", "falcon-7b")]),
        "once_each": int(h100.kv_bytes / (once * SPEC.kv_bytes_per_token)), "once_length": once,
        "copies": int(h100.usable_bytes / (h100.weights_bytes + once * SPEC.kv_bytes_per_token)),
        "speed_pieces": kv_pool.under_load(slots=TOKENS // LENGTH).tokens_per_second, "pages": 2 * SPEC.num_layers,
        "page_is_kib": page / 1024, "block_mib": 2 * SPEC.num_layers * page / 2**20,
        "lost_share": (BLOCK_SIZE - 1) / 2 / (PROMPT + ANSWER), "fits_length": 16_000, "refused_length": 32_000,
        "hybrid_layers": hybrid.num_layers,
        "hybrid_attention": hybrid.kv_bytes_per_token // (4 * hybrid.num_kv_heads * hybrid.head_dim),
        "tpot_24_ms": 1e3 * np.nanmean(storm[FEW].run.tpot), "tpot_48_ms": 1e3 * np.nanmean(storm[MANY].run.tpot),
        "most_running": storm[MANY].run.steps.running.max(), "last_grows": last.kv_bytes / tight.kv_bytes - 1,
        "last_left_gib": (last.total_bytes - last.usable_bytes) / GIB,
    }  # fmt: skip


def _by_width(name: str) -> int:
    """How many times too many bytes the width of the model gives."""
    spec = card_memory.spec(name)
    return round(2 * spec.num_layers * spec.hidden_size * 2 / spec.kv_bytes_per_token)


def listed(values: list[int]) -> str:
    """Numbers as in a sentence: "1, 4, 7 and 71"."""
    *first, last = (f"{value:,}" for value in values)
    return f"{', '.join(first)} and {last}"


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    times = kv_pool.under_load(slots=MANY).tokens_per_second / kv_pool.under_load(slots=FEW).tokens_per_second
    today, before = (kv_pool.hour(GQA, tasks.BUSY, n) for n in (ALL, ROOM))
    fit = TOKENS / QUIZ["quiz_held"]  # the same pool
    plain, small = (
        card_memory.ledger("llama-3.1-8b", "H100", max_model_len=LENGTH, weights_bytes=(SPEC.weights_bytes or 0) / part)
        for part in (1, 2)
    )
    a_token = small.spec.kv_bytes_per_token / plain.spec.kv_bytes_per_token
    grows = (small.kv_tokens or 0) > (plain.kv_tokens or 0)
    return {
        "blame": tuple(said == _queue() for said in (440, 350, 300)),
        "little": (STAYS == 1 * STAYS, False, False),  # L = λ W, whatever the arrivals
        "slots": (0.95 < times < 1.05, 1.15 < times < 1.25, times > 1.8),
        "cause": (
            np.nanmedian(today.run.tpot) > 2 * np.nanmedian(before.run.tpot),
            today.pool_used.max() > 0.99 and today.preemptions > 0,
            today.longest_gap < 2 * before.longest_gap,  # nothing in the middle of an answer
        ),
        "next": "num_preemptions_total",
        "repair": "--max-num-seqs",
        "limit": (fit < 2, fit >= ALL, 26 < fit < 28),
        "full": "preempts the last one admitted",
        "gqa": "another checkpoint",
        "weights": (a_token == 1 / 2, a_token == 1 and grows, a_token == 1 and not grows),
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    few, many, full = (kv_pool.under_load(slots=n) for n in (FEW, MANY, ALL))
    today, before = (kv_pool.hour(GQA, tasks.BUSY, n) for n in (ALL, ROOM))
    recorded = [tables.on_recorded_steps(n)[0] for n in tables.SLOTS]
    case, (gone, back) = small_pool.small(), held_by_d()
    fp8 = kv_pool.under_load(kv_pool.FP8)
    mha = [kv_pool.under_load(MHA, rate).in_batch for rate in (1.0, 2.0)]
    a100 = PRINTS[-1]
    too_much = a100.rest_gib - a100.engine_rest_gib
    small = vllm_live.read("preempted")
    bytes_16, bytes_8 = (card_memory.ledger("llama-3.1-8b", "H100", kv_dtype=d).kv_tokens or 0
                         for d in ("bfloat16", "fp8"))  # fmt: skip
    return {
        "none of yours has 8,192 tokens": (kv_pool.requests(2.0).output_tokens + PROMPT).max() < LENGTH,
        "256 need nine such pools": round(ALL * held() / TOKENS) == 9,
        "a quarter of all tokens is computed twice": abs(4 * many.recomputed - 1) < 0.07,
        "all 24 slots are taken": few.run.steps.running.max() == FEW,
        "2 requests/s are more than the card can do": full.arriving_answers_per_second < tasks.BUSY,
        "nobody fails": bool(np.isfinite(many.run.e2e).all()) and many.preemptions > 0,
        "by hand the pool is full in the second step, and in the sixth each needs a fourth": (
            case.held[1].sum() == small_pool.BLOCKS and gone == 5 and case.held[5, 0] == 4
        ),
        "C and D are preempted, and nobody twice": list(np.flatnonzero(case.run.preempted)) == [2, 3],
        "D gets no token for seven steps": back - gone == 7,
        "blocks of the drawn answers are fewer": (
            np.ceil(kv_pool.tokens_held() / BLOCK_SIZE).mean() < held() / BLOCK_SIZE
        ),
        "tokens/s as before": abs(today.arriving_tokens_per_second / before.arriving_tokens_per_second - 1) < 0.03,
        "nobody was preempted before, and no text stopped": before.preemptions == 0 and before.longest_gap < 0.3,
        "the slots of the exercise leave nearly all of the storm away": (
            kv_pool.under_load(slots=ROOM).preemptions < 30 < many.preemptions
        ),
        "they hardly change on recorded steps either": abs(recorded[1] / recorded[0] - 1) < 0.02,
        "three quarters of the pool were free in the decision's log, and requests waited": (
            decision.LIVE.blocks.max() < 0.25 * decision.FREE and decision.LIVE.waiting.max() > 0
        ),
        "one more than that is what the log's tokens say": decision.BLOCKS // decision.AT_ITS_END == decision.SLOTS + 1,
        "the simulator preempts the same requests in the same steps as vLLM": bool(
            small.equal_steps(small.replay()).all()
        ),
        "it allows no whole sequence of the refused length and one of the other": [
            bool(card_memory.ledger("qwen3-32b", "H100", max_model_len=n).max_sequences(n)) for n in (16_000, 32_000)
        ]
        == [True, False],
        # The optional notebook
        "a beginning that all share is whole blocks": SHARED % BLOCK_SIZE == 0 < SHARED < PROMPT,
        "six or seven sequences at a time with 32 heads": all(6 <= found <= 7 for found in mha),
        "with 8 heads the limit is between 1 and 2 requests/s, in fp8 it is not": (
            kv_pool.under_load(rate=1.0).preemptions == fp8.preemptions == 0 < full.preemptions
        ),
        "1 GiB too much for activation": abs(too_much - 1) < 0.05,
        "fp8 K and V double the tokens": abs(bytes_8 / bytes_16 - 2) < 1e-3,
        "a model of 32 billion can store half as much as one of 7": (
            2 * OTHER.kv_bytes_per_token == card_memory.spec("llama-2-7b").kv_bytes_per_token
        ),
        "somebody counted 1.5 MB with eight bits for eight bytes": (
            abs(2 * QWEN.hidden_size * QWEN.num_layers * 8 / 2**20 - PUBLISHED["a_token_mb"]) < 5e-3
        ),
    }
