"""The numbers in the texts of lab 07, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from course import policies, traces
from course.engine.serving import serve
from course.lessons.lab07 import by_hand, decision, live_words, long_prompt, prompt_chunks, recorded_stops, rush, tasks
from course.lessons.lab07.long_prompt import DEFAULT, PROMPT, SLOTS, STEP, THEORY, WHOLE, served
from course.lessons.lab07.prompt_chunks import seconds_a_pair, seconds_of_steps, throughput
from course.models import engine_defaults
from course.models.gpus import gpu
from course.steptime import Step, StepTime

CUT, SHARED, STREAMING = 512, 2_048, 12  # budgets, and the chats that stream in the first explorer
STEPS, STEPS_TWIN = (10_000, 512, 32), (9_000, 256, 16)
"""Prompt, token budget, and decodes of exercise 1."""
GRID = 64  # exercise 2: chunks are multiples of it
LIMIT, LIMIT_TWIN = 0.025, 0.020  # seconds, of exercise 2
DECODES, CONTEXT = 32, 700  # beside its chunk, tokens of each

GIVEN = (SLOTS, PROMPT, WHOLE, DEFAULT, SHARED, rush.REPAIR, CUT, STEPS_TWIN[1], rush.NOW, STREAMING, long_prompt.EVERY,
         long_prompt.CHAT_ANSWER, long_prompt.CHAT_PROMPT, 1e3 * long_prompt.STALL)  # fmt: skip


def steps(prompt: int, budget: int, decodes: int) -> int:
    """Steps of a prompt in chunks, each beside so many decodes."""
    return ceil(prompt / (budget - decodes))


def step_with(chunk: int, cached: int) -> float:
    """Recorded seconds of a step with a chunk behind so many tokens, beside the decodes."""
    return STEP(Step(DECODES, DECODES * CONTEXT, ((chunk, cached),)))


def largest_chunk(limit: float, *, first: bool = False) -> int:
    """The largest multiple of 64 tokens whose last step keeps a limit [s]; first: whose first step does."""
    chunks = range(GRID, PROMPT, GRID)
    return max(chunk for chunk in chunks if step_with(chunk, 0 if first else PROMPT - chunk) <= limit)


def contract(budget: int) -> float:
    """TTFT of the long prompt in the first explorer, with this budget [s]."""
    found = long_prompt.moment(budget, 0)
    return float(found.run.ttft[found.long])


def longer(chunk: int, than: int = 8_192, step_time: StepTime = STEP) -> float:
    """By which share a prompt takes longer in chunks of this size."""
    return float(seconds_of_steps(chunk, step_time).sum() / seconds_of_steps(than, step_time).sum()) - 1


def alone(chunk: int) -> float:
    """Recorded seconds of a step with so many prompt tokens, and nothing else."""
    return STEP(Step(0, 0, ((chunk, 0),)))


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return _story() | _explain() | _exercises() | _ticket_and_quiz() | _deeper()


def _story() -> dict[str, Any]:
    """Those of the question, the predictions and the explorers."""
    whole, cut = served(WHOLE), served(CUT)
    model, kv = THEORY.model, THEORY.model.kv_bytes_per_token
    return {
        "kv_bytes": kv, "heads": model.num_heads, "kv_heads": model.num_kv_heads, "thousand": rush.PROMPT,
        "kv_gb": kv * PROMPT / 1e9, "kv_gb_thousand": kv * rush.PROMPT / 1e9,
        "kv_gb_heads": kv * PROMPT / 1e9 * model.num_heads / model.num_kv_heads,
        "chunks": len(long_prompt.moment(CUT, 0).chunk_steps[0]),
        "p99_ms": 1e3 * whole.itl["p99"], "p99_cut_ms": 1e3 * cut.itl["p99"],
        "gap_ms": 1e3 * whole.itl["max"], "gap_cut_ms": 1e3 * cut.itl["max"],
        "wait_s": whole.chat_ttft["p99"], "wait_capped_ms": 1e3 * served(SHARED, CUT).chat_ttft["p99"],
        "chats": whole.chats.sum(), "class": long_prompt.CLASS, "engines_slots": engine_defaults.LARGE[0],
        "meet_gap_ms": 1e3 * tasks.GAP, "meet_first_ms": 1e3 * tasks.FIRST, "short_ms": 1e3 * tasks.SHORT,
    }  # fmt: skip


def _explain() -> dict[str, Any]:
    """Those of what was measured, of the case by hand, and of Little's law."""
    by_whole, by_budget, _ = by_hand.cases().values()
    budget, _ = by_hand.SETTINGS["budget of 6, cap of 2"]
    whole, chunks = served(WHOLE), len(long_prompt.moment(CUT, 0).chunk_steps[0])
    rate = whole.chats.sum() / float(np.ptp(whole.run.arrival))
    streams = (whole.run.e2e - whole.run.ttft)[whole.chats].mean()
    caught, tokens = rate * streams, rate * long_prompt.EVERY * long_prompt.CHAT_ANSWER
    return {
        "on_the_card": live_words.ON_THE_CARD, "vllm_over": recorded_stops.LONG,
        "hand_prompt": by_hand.PROMPT, "hand_later": by_hand.LATER, "hand_new": by_hand.NEW_PROMPT,
        "hand_least": by_hand.LEAST, "hand_stop": by_whole.gap, "hand_gap": by_budget.gap,
        "hand_budget": budget, "hand_decodes": by_hand.CHATS,
        "hand_chunk": budget - by_hand.CHATS, "hand_steps": len(by_budget.chunk_steps[0]),
        "chunk_of_512": CUT - STREAMING,
        "longer_512": contract(CUT) / contract(WHOLE) - 1,
        "floor": 32 * round(next(n for n in range(1, 512) if alone(n) > 1.1 * alone(1)) / 32),
        "caught": caught, "chat_rate": rate, "gap_mean_ms": 1e3 * whole.itl["mean"], "tokens_between": tokens,
        "caught_share": caught / tokens, "caught_share_cut": caught * chunks / tokens,
    }  # fmt: skip


def _exercises() -> dict[str, Any]:
    """Those of the exercises and of the decision: solutions, and wrong answers."""
    (prompt, budget, decodes), (twin_prompt, twin_budget, twin_decodes) = STEPS, STEPS_TWIN
    chunk, twin = largest_chunk(LIMIT), largest_chunk(LIMIT_TWIN)
    return {
        "steps_prompt": prompt, "steps_decodes": decodes, "steps": steps(*STEPS),
        "steps_whole_budget": ceil(prompt / budget), "steps_not_whole": prompt / (budget - decodes),
        "steps_added": ceil(prompt / (budget + decodes)), "steps_by_chats": ceil(prompt / decodes),
        "twin_prompt": twin_prompt, "twin_decodes": twin_decodes, "steps_twin": steps(*STEPS_TWIN),
        "steps_twin_whole_budget": ceil(twin_prompt / twin_budget),
        "steps_twin_not_whole": twin_prompt / (twin_budget - twin_decodes),
        "beside": DECODES, "beside_tokens": CONTEXT, "limit_ms": 1e3 * LIMIT, "limit_twin_ms": 1e3 * LIMIT_TWIN,
        "chunk": chunk, "chunk_above": chunk + GRID, "chunk_below": chunk - GRID, "chunk_budget": chunk + DECODES,
        "chunk_first": largest_chunk(LIMIT, first=True), "chunk_shown_ms": 1e3 * step_with(CUT, PROMPT - CUT),
        "chunk_twin": twin, "chunk_twin_above": twin + GRID, "chunk_twin_first": largest_chunk(LIMIT_TWIN, first=True),
        "gap_promised_ms": 1e3 * decision.GAP, "gap_twin_ms": 1e3 * decision.GAP_TWIN,
        "first_ms": 1e3 * decision.FIRST, "budget_now": decision.START,
        "cost_512_s": served(decision.START, CUT).long_ttft, "cost_256_s": served(decision.START, 256).long_ttft,
    }  # fmt: skip


def _ticket_and_quiz() -> dict[str, Any]:
    now, before, repaired = (rush.graphs(budget) for budget in (rush.NOW, rush.BEFORE, rush.REPAIR))
    running, held = now.run.steps.running.mean(), rush.PROMPT + rush.ANSWER / 2
    gaps, weights = served(WHOLE).run.itl_weighted
    return {
        "rush_rate": rush.RATE, "rush_running": running, "rush_held": held, "rush_before": before.running.max(),
        "rush_gb": running * held * THEORY.model.kv_bytes_per_token / 1e9,
        "rush_tokens": (now.run.steps.decodes + now.run.steps.prefill_tokens).mean(),
        "rush_gap_ms": 1e3 * now.run.itl.max(), "rush_repaired_s": np.percentile(repaired.run.ttft, 95),
        "stall_tokens": weights[gaps > long_prompt.STALL].sum() / weights.sum(), "of_100": 99,
        "left_over": 100 * ((SHARED - CUT) // 100), "step_128": alone(128) / alone(512),
        "contract_s": contract(WHOLE), "contract_cut_s": contract(CUT),
    }  # fmt: skip


def _deeper() -> dict[str, Any]:
    """Those of the optional notebook."""
    few, many = (prompt_chunks.chunk_steps(PROMPT, chunk) for chunk in (DEFAULT, CUT))
    weights, kv = THEORY.model.step_weight_bytes / 1e9, THEORY.model.kv_bytes_per_token / 1e9
    uncapped, capped = served(SHARED), served(SHARED, CUT)
    plain = Step(32, 32 * 1_024, ())
    ratios = [STEP(plain) / THEORY(plain)]
    for chunk in prompt_chunks.CHUNKS:
        took, theory = (seconds_of_steps(chunk, step_time) for step_time in (STEP, THEORY))
        ratios += [took.max() / theory.max(), took.sum() / theory.sum()]
    return {
        "launch_ms": 1e3 * THEORY.launch, "weights_ms": 1e3 * THEORY.weights, "token_us": 1e6 * THEORY.per_token,
        "pair_ns": 1e9 * THEORY.per_pair, "knee_some": round(THEORY.weights / THEORY.per_token, -1),
        "ratio_low": min(ratios), "ratio_high": max(ratios), "gains_whole": -longer(PROMPT),
        "longer_256": longer(256), "longer_512_8192": longer(CUT),
        "theory_256": longer(256, step_time=THEORY), "theory_512": longer(CUT, step_time=THEORY),
        "small_256": served(256).long_ttft / served(DEFAULT).long_ttft - 1,
        "small_256_theory": served(256, step_time=THEORY).long_ttft / served(DEFAULT, step_time=THEORY).long_ttft - 1,
        "long_capped_ms": 1e3 * capped.long_ttft, "long_uncapped_ms": 1e3 * uncapped.long_ttft,
        "long_capped_1024_ms": 1e3 * served(SHARED, 1_024).long_ttft,
        "itl_uncapped_ms": 1e3 * uncapped.itl["p99"], "itl_capped_ms": 1e3 * capped.itl["p99"],
        "attention_rate": THEORY.model.attention_flops_per_pair / seconds_a_pair(SHARED) / THEORY.gpu.matrix_flops,
        "trace_longest": traces.read(traces.example()).prompt_tokens.max(),
        "read_gb_512": weights * len(many), "kv_gb_512": kv * sum(step.prefill_context for step in many),
        "read_gb_8192": weights * len(few), "kv_gb_8192": kv * sum(step.prefill_context for step in few),
        "spares": next(one.name for one in engine_defaults.RELEASES.values() if not one.threshold_alone),
        "vllm": engine_defaults.VERSION, "sglang_gb": 80,
    }  # fmt: skip


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    whole, cut, mended = served(WHOLE), served(CUT), served(SHARED)
    times = cut.itl["p99"] / whole.itl["p99"]
    size = THEORY.model.kv_bytes_per_token * PROMPT / 1e9
    now, before = rush.graphs(rush.NOW), rush.graphs(rush.BEFORE)
    run = now.run.steps
    full = float((run.decodes + run.prefill_tokens).mean()) / rush.NOW > 0.95
    slots = serve(now.run.workload, policies.Continuous(2 * SLOTS, rush.NOW), STEP)
    narrow = serve(now.run.workload, long_prompt.engine(rush.NOW, 64), STEP)
    # The p99 over tokens and the mean TPOT hardly tell the two apart, the longest gap of each request does.
    told = (
        whole.itl["p99"] / mended.itl["p99"],
        np.nanmean(whole.run.tpot) / np.nanmean(mended.run.tpot),
        np.percentile(whole.chat_gaps, 99) / np.percentile(mended.chat_gaps, 99),
    )
    base, late = mended.chat_ttft["p99"], contract(CUT) / contract(WHOLE)
    return {
        "share-a-step": "each of them",
        "long-kv": tuple(abs(size - value) < 0.05 for value in (4.3, 0.13, 17)),
        "p99": (1.8 < times < 2.6, 0.95 < times < 1.05, 0.4 < times < 0.6, times < 0.1),
        "cause": (False, run.running.max() == SLOTS, full),
        "measure": (full, False, now.run.itl.max() > before.run.itl.max()),
        "repair": tuple(np.percentile(one.ttft, 95) < 0.5 for one in (slots, rush.graphs(rush.REPAIR).run, narrow)),
        "slo": tuple(one > 2 for one in told),
        "short": (
            cut.chat_ttft["p99"] < base,
            served(SHARED, CUT).chat_ttft["p99"] < base / 2,
            mended.run.steps.running.max() >= SLOTS,
        ),
        "small": (throughput(128)[1] < 0.8 * throughput(SHARED)[1], False, False),
        "long": (late > 10, late < 1, 1 < late < 1.3),
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    today, cut = served(WHOLE), served(CUT)
    now, before = rush.graphs(rush.NOW), rush.graphs(rush.BEFORE)
    few = served(SHARED, CUT)
    wide, narrow = map(recorded_stops.answer, recorded_stops.LOADS)
    return {
        "the text stops for a second": 1 < long_prompt.moment(WHOLE, 0).gap < 1.5,
        "and for two where contracts meet": 2 < today.itl["max"] < 2.5,
        "vLLM takes 8,192 tokens and 1,024 slots": engine_defaults.batch(gpu("H200")) == (1_024, DEFAULT),
        "newcomers wait for all chunks": cut.chat_ttft["p99"] > today.chat_ttft["p99"],
        "slots are never all taken": all(
            served(*one).run.steps.running.max() < SLOTS for one in ((WHOLE,), (DEFAULT,), (CUT,), (SHARED, CUT))
        ),
        "the p99 is as before": abs(today.itl["p99"] / served(DEFAULT).itl["p99"] - 1) < 0.05,
        "the longest gap falls to a few per cent": cut.itl["max"] / today.itl["max"] < 0.05,
        "half of the slots are free, and nobody waited before": (
            0.4 < now.running.mean() / SLOTS < 0.6
            and now.waiting[-1] > 100 > before.waiting[-1] == 0
            and before.run.steps.running.max() <= SLOTS
        ),
        "no budget alone keeps both promises, and no cap": (
            min(served(one).chat_ttft["p99"] for one in long_prompt.BUDGETS) > decision.FIRST
            and min(served(DEFAULT, one).itl["max"] for one in (1_024, 512, 256)) > decision.GAP  # a class at once
        ),
        "both promises are broken today": (
            decision.now().itl["max"] > decision.GAP and decision.now().chat_ttft["p99"] > decision.FIRST
        ),
        "the engine of the course puts the same tokens into each of vLLM's steps": all(
            one.run.equal_steps(one.run.replay()).all() for one in (wide, narrow)
        ),
        "two prompts are read while that chat of vLLM streams": (wide.prompts, narrow.prompts) == (2, 2),
        "beside a chunk its gaps are several times the usual, and shorter with the lower budget": all(
            np.median(one.gaps[one.chunk > 0]) > 2 * np.median(one.gaps[one.chunk == 0]) for one in (wide, narrow)
        )
        and wide.longest > 3 * narrow.longest,
        # The optional notebook
        "at 64 and 128 both say one and a half to three and a half times": all(
            0.5 <= longer(chunk, step_time=one) <= 2.6 for chunk in (64, 128) for one in (STEP, THEORY)
        ),
        "beyond a few thousand tokens larger chunks gain nothing": abs(longer(2_048)) < 0.03 > abs(longer(PROMPT)),
        "with the cap nobody stalls": few.stalled() == 0,
        "the p99 over tokens is worst at 512 in both": all(
            max((8_192, 2_048, 512, 256, 128), key=lambda size: served(size, step_time=one).itl["p99"]) == CUT
            for one in (STEP, THEORY)
        ),
        "2,048 breaks a promise of 100 ms": served(SHARED).itl["max"] > 0.1,
        "which 1,024 keeps": served(1_024).itl["max"] <= 0.1,
    }
