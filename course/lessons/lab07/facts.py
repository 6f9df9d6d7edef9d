"""The numbers in the texts of lab 07, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import cache
from math import ceil
from typing import Any

import numpy as np

from course import policies, traces
from course.engine.serving import serve
from course.lessons.lab07 import by_hand, decision, live_words, long_prompt, prompt_chunks, rush, tasks
from course.lessons.lab07.long_prompt import (
    CHAT_ANSWER,
    CHAT_PROMPT,
    DEFAULT,
    EVERY,
    PROMPT,
    SLOTS,
    STALL,
    STEP,
    THEORY,
    WHOLE,
    Moment,
    Outcome,
)
from course.lessons.lab07.prompt_chunks import seconds_a_pair, seconds_of_steps
from course.models import engine_defaults
from course.models.gpus import gpu
from course.steptime import Step, StepTime

CUT, SHARED, STREAMING = 512, 2_048, 12  # budgets, and the chats that stream in the first explorer
STEPS, STEPS_TWIN = (10_000, 512, 32), (9_000, 256, 16)
"""Prompt, token budget, and decodes of exercise 1."""
GRID = 64  # exercise 2: chunks are multiples of it
LIMIT, LIMIT_TWIN = 0.025, 0.020  # seconds, of exercise 2
DECODES, CONTEXT = 32, 700  # beside its chunk, tokens of each
TINY = 16  # a cap that is too small

GIVEN = (SLOTS, PROMPT, WHOLE, DEFAULT, SHARED, rush.REPAIR, CUT, STEPS_TWIN[1], rush.NOW, EVERY, CHAT_ANSWER,
         CHAT_PROMPT, 1e3 * STALL, STREAMING)  # fmt: skip


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


@cache
def served(budget: int, cap: int = 0, *, theory: bool = False) -> Outcome:
    """The chats and the contracts with this budget and cap."""
    if not theory:
        return decision.served(budget, cap)
    step_time = THEORY
    return long_prompt.outcome(long_prompt.requests(), long_prompt.engine(budget, cap), step_time)


def moment(budget: int) -> Moment:
    """The first explorer with this budget."""
    return long_prompt.moment(budget, 0)


def contract(budget: int) -> float:
    """TTFT of its long prompt [s]."""
    found = moment(budget)
    return float(found.run.ttft[found.long])


def longer(chunk: int, than: int = 8_192, step_time: StepTime = STEP) -> float:
    """By which share a prompt takes longer in chunks of this size."""
    return float(seconds_of_steps(PROMPT, chunk, step_time).sum() / seconds_of_steps(PROMPT, than, step_time).sum()) - 1


def alone(chunk: int) -> float:
    """Recorded seconds of a step with so many prompt tokens, and nothing else."""
    return STEP(Step(0, 0, ((chunk, 0),)))


def first_above(limit: float, step: Step, sizes: range) -> int:
    """The first chunk with which a step takes longer than the limit [s], beside the decodes of `step`."""
    return next(n for n in sizes if STEP(Step(step.decodes, step.decode_context, ((n, 0),))) > limit)


def streaming() -> float:
    """Seconds that a chat streams."""
    today = served(WHOLE)
    return float((today.run.e2e - today.run.ttft)[today.chats].mean())


def share_of_stalls() -> float:
    """Of all tokens, those after a gap that a reader notices."""
    gaps, weights = served(WHOLE).run.itl_weighted
    return float(weights[gaps > STALL].sum() / weights.sum())


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    whole, cut, capped = served(WHOLE), served(CUT), served(SHARED, CUT)
    chunks = len(moment(CUT).chunk_steps[0])
    rate = whole.chats.sum() / float(np.ptp(whole.run.arrival))
    model, caught, tokens = THEORY.model, rate * streaming(), rate * EVERY * CHAT_ANSWER
    kv = model.kv_bytes_per_token
    return {
        # The question and the predictions
        "kv_bytes": kv,
        "kv_gb": kv * PROMPT / 1e9,
        "kv_gb_thousand": kv * rush.PROMPT / 1e9,
        "kv_gb_heads": kv * PROMPT / 1e9 * model.num_heads / model.num_kv_heads,
        "heads": model.num_heads,
        "kv_heads": model.num_kv_heads,
        "thousand": rush.PROMPT,
        "chunks": chunks,
        "p99_ms": 1e3 * whole.itl["p99"],
        "p99_cut_ms": 1e3 * cut.itl["p99"],
        "gap_ms": 1e3 * whole.itl["max"],
        "gap_cut_ms": 1e3 * cut.itl["max"],
        "wait_s": whole.chat_ttft["p99"],
        "wait_half_s": whole.chat_ttft["p99"] / 2,
        "wait_cut_s": cut.chat_ttft["p99"],
        "wait_capped_ms": 1e3 * capped.chat_ttft["p99"],
        "slip_in_ms": 20,
        "chats": whole.chats.sum(),
        "class": long_prompt.CLASS,
        "engines_slots": engine_defaults.LARGE[0],
        "meet_gap_ms": 1e3 * tasks.GAP,
        "meet_first_ms": 1e3 * tasks.FIRST,
        # Explain
        "newcomers_ms": "{:.0f}, {:.0f} and {:.0f}".format(*(1e3 * later for later in long_prompt.NEWCOMERS)),
        "short_ms": 1e3 * tasks.SHORT,
        **_by_hand(),
        "chunk_of_512": CUT - STREAMING,
        "longer_1024": contract(1_024) / contract(WHOLE) - 1,
        "longer_512": contract(CUT) / contract(WHOLE) - 1,
        "floor": 32 * round(next(n for n in range(1, 512) if alone(n) > 1.1 * alone(1)) / 32),
        "knee": THEORY.weights / THEORY.per_token,
        "caught": caught,
        "chat_rate": rate,
        "gap_mean_ms": 1e3 * whole.itl["mean"],
        "tokens_between": tokens,
        "caught_share": caught / tokens,
        "caught_share_cut": caught * chunks / tokens,
        "stall_tokens": share_of_stalls(),
        "on_the_card": live_words.ON_THE_CARD,
        # Exercises and the decision
        "steps": steps(*STEPS),
        "steps_prompt": STEPS[0],
        "steps_decodes": STEPS[2],
        "steps_whole_budget": ceil(STEPS[0] / STEPS[1]),
        "steps_not_whole": STEPS[0] / (STEPS[1] - STEPS[2]),
        "steps_added": ceil(STEPS[0] / (STEPS[1] + STEPS[2])),
        "steps_by_chats": ceil(STEPS[0] / STEPS[2]),
        "steps_twin": steps(*STEPS_TWIN),
        "steps_twin_whole_budget": ceil(STEPS_TWIN[0] / STEPS_TWIN[1]),
        "steps_twin_not_whole": STEPS_TWIN[0] / (STEPS_TWIN[1] - STEPS_TWIN[2]),
        "twin_prompt": STEPS_TWIN[0],
        "twin_decodes": STEPS_TWIN[2],
        "beside": DECODES,
        "beside_tokens": CONTEXT,
        "limit_ms": 1e3 * LIMIT,
        "limit_twin_ms": 1e3 * LIMIT_TWIN,
        "chunk": largest_chunk(LIMIT),
        "chunk_first": largest_chunk(LIMIT, first=True),
        "chunk_above": largest_chunk(LIMIT) + GRID,
        "chunk_below": largest_chunk(LIMIT) - GRID,
        "chunk_budget": largest_chunk(LIMIT) + DECODES,
        "chunk_shown_ms": 1e3 * step_with(CUT, PROMPT - CUT),
        "chunk_twin": largest_chunk(LIMIT_TWIN),
        "chunk_twin_above": largest_chunk(LIMIT_TWIN) + GRID,
        "chunk_twin_first": largest_chunk(LIMIT_TWIN, first=True),
        "gap_promised_ms": 1e3 * decision.GAP,
        "gap_twin_ms": 1e3 * decision.GAP_TWIN,
        "first_ms": 1e3 * decision.FIRST,
        "budget_now": decision.START,
        "cost_512_s": served(decision.START, CUT).long_ttft,
        "cost_256_s": served(decision.START, 256).long_ttft,
        **_ticket_and_quiz(),
        **_deeper(),
    }


def _by_hand() -> dict[str, Any]:
    whole, budget, _ = by_hand.cases().values()
    tokens, cap = by_hand.SETTINGS["budget of 6, cap of 2"]
    return {
        "hand_prompt": by_hand.PROMPT,
        "hand_later": by_hand.LATER,
        "hand_new": by_hand.NEW_PROMPT,
        "hand_least": by_hand.LEAST,
        "hand_stop": whole.longest_gap,
        "hand_budget": tokens,
        "hand_cap": cap,
        "hand_decodes": len(by_hand.CHATS),
        "hand_chunk": tokens - len(by_hand.CHATS),
        "hand_gap": budget.longest_gap,
        "hand_steps": len(budget.steps),
    }


def _ticket_and_quiz() -> dict[str, Any]:
    now, before, repaired = (rush.graphs(budget) for budget in (rush.NOW, rush.BEFORE, rush.REPAIR))
    running, held = now.run.steps.running.mean(), rush.PROMPT + rush.ANSWER / 2
    return {
        "rush_rate": rush.RATE,
        "rush_running": running,
        "rush_held": held,
        "rush_gb": running * held * THEORY.model.kv_bytes_per_token / 1e9,
        "rush_before": before.running.max(),
        "rush_tokens": (now.run.steps.decodes + now.run.steps.prefill_tokens).mean(),
        "rush_gap_ms": 1e3 * now.run.itl.max(),
        "rush_repaired_s": np.percentile(repaired.run.ttft, 95),
        "of_100": 99,
        "left_over": 100 * ((SHARED - CUT) // 100),
        "step_128": alone(128) / alone(512),
        "contract_s": contract(WHOLE),
        "contract_cut_s": contract(CUT),
    }


def _deeper() -> dict[str, Any]:
    """Those of the optional notebook."""
    trace = traces.read(traces.example())
    long = trace.prompt_tokens > SHARED
    busy = long_prompt.outcome(trace.scaled(8), long_prompt.engine(DEFAULT))
    over = (busy.run.steps.seconds > 0.05).sum() / busy.run.makespan
    streams = float((busy.run.e2e - busy.run.ttft).mean())
    slow, starved = served(SHARED, CUT), served(SHARED, TINY)
    plain = Step(32, 32 * 1_024, ())
    ratios = [STEP(plain) / THEORY(plain)]
    for chunk in prompt_chunks.CHUNKS:
        took, theory = (seconds_of_steps(PROMPT, chunk, step_time) for step_time in (STEP, THEORY))
        ratios += [took.max() / theory.max(), took.sum() / theory.sum()]
    return {
        "launch_ms": 1e3 * THEORY.launch,
        "weights_ms": 1e3 * THEORY.weights,
        "token_us": 1e6 * THEORY.per_token,
        "pair_ns": 1e9 * THEORY.per_pair,
        "knee_some": round(THEORY.weights / THEORY.per_token, -1),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "longer_256": longer(256),
        "longer_512_8192": longer(CUT),
        "theory_256": longer(256, step_time=THEORY),
        "theory_512": longer(CUT, step_time=THEORY),
        "gains_whole": -longer(PROMPT),
        "small_256": served(256).long_ttft / served(DEFAULT).long_ttft - 1,
        "small_256_theory": served(256, theory=True).long_ttft / served(DEFAULT, theory=True).long_ttft - 1,
        "long_capped_ms": 1e3 * slow.long_ttft,
        "long_uncapped_ms": 1e3 * served(SHARED).long_ttft,
        "long_capped_1024_ms": 1e3 * served(SHARED, 1_024).long_ttft,
        "itl_uncapped_ms": 1e3 * served(SHARED).itl["p99"],
        "itl_capped_ms": 1e3 * slow.itl["p99"],
        "trace_longest": trace.prompt_tokens.max(),
        "trace_long_tokens": trace.prompt_tokens[long].sum() / trace.prompt_tokens.sum(),
        "trace_rate": 8,
        "trace_over": 100 * (first_above(0.05, Step(20, 26_000, ()), range(1_000, 6_000, 10)) // 100),
        "trace_ms": 50,
        "trace_heavy": over,
        "trace_streams_s": streams,
        "trace_met": over * streams,
        "attention_rate": THEORY.model.attention_flops_per_pair / seconds_a_pair(SHARED) / THEORY.gpu.matrix_flops,
        "share_prefill": 0.2,
        "share_chunk": int(SLOTS * 0.2 / 0.8),
        "scores_tokens": 10_000,
        "scores_mb": 10_000**2 * 4 / 1e6,
        "tiny": TINY,
        "tiny_steps": ceil(CHAT_PROMPT / TINY),
        "starved_s": starved.long_ttft,
        "vllm": engine_defaults.VERSION,
        "spares": next(one.name for one in engine_defaults.RELEASES.values() if not one.threshold_alone),
        "sglang_gb": 80,
    }


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    whole, cut, mended = served(WHOLE), served(CUT), served(SHARED)
    times, wait = cut.itl["p99"] / whole.itl["p99"], cut.chat_ttft["p99"]
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
        "newcomers": (wait < 0.03, wait < 0.6 * whole.chat_ttft["p99"], wait > whole.chat_ttft["p99"]),
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


@cache
def throughput(budget: int) -> tuple[float, float]:
    """Tokens/s of the trace, in theory and recorded."""
    trace, engine = traces.read(traces.example()), long_prompt.engine(budget)
    theory, recorded = (prompt_chunks.saturated_tokens_per_second(trace, engine, t) for t in (THEORY, STEP))
    return theory, recorded


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    whole, budget, cap = by_hand.cases().values()
    today, cut = served(WHOLE), served(CUT)
    now, before = rush.graphs(rush.NOW), rush.graphs(rush.BEFORE)
    trace = traces.read(traces.example())
    few = served(SHARED, CUT)
    stops = {setting: long_prompt.outcome(trace.scaled(8), long_prompt.engine(*setting)).gaps > 0.05
             for setting in ((DEFAULT, 0), (1_024, 0), (SHARED, CUT))}  # fmt: skip
    return {
        "the text stops for a second, and for two where contracts meet": (
            1 < moment(WHOLE).longest_gap[1] - moment(WHOLE).longest_gap[0] < 1.5 and 2 < today.itl["max"] < 2.5
        ),
        "vLLM takes 8,192 tokens and 1,024 slots on this card": (
            engine_defaults.is_large(gpu("H200")) and engine_defaults.LARGE == (1_024, DEFAULT)
        ),
        "slots are never all taken": all(
            served(*one).run.steps.running.max() < SLOTS for one in ((WHOLE,), (DEFAULT,), (CUT,), (SHARED, CUT))
        ),
        "the p99 is as before": abs(today.itl["p99"] / served(DEFAULT).itl["p99"] - 1) < 0.05,
        "the longest gap falls to a few per cent": cut.itl["max"] / today.itl["max"] < 0.05,
        "by hand the new chat waits for the last chunk, and the cap leaves room": (
            budget.new_ttft > whole.new_ttft > cap.new_ttft
        ),
        "the long prompt pays": whole.long_ttft < budget.long_ttft < cap.long_ttft,
        "budget and cap shorten the gap, the cap no more than the budget": (
            whole.longest_gap > budget.longest_gap == cap.longest_gap
        ),
        "half of the slots are free, and nobody waited before": (
            0.4 < now.running.mean() / SLOTS < 0.6
            and now.waiting[-1] > 100 > before.waiting[-1] == 0
            and before.run.steps.running.max() <= SLOTS
        ),
        "no budget alone keeps both promises, and no cap": (
            min(served(one).chat_ttft["p99"] for one in long_prompt.BUDGETS) > decision.FIRST
            and min(served(DEFAULT, one).itl["max"] for one in (1_024, 512, 256)) > decision.GAP  # a class at once
        ),
        "the smaller cap costs the contract more": served(SHARED, 256).long_ttft > 1.2 * few.long_ttft,
        "both promises are broken today": (
            decision.now().itl["max"] > decision.GAP and decision.now().chat_ttft["p99"] > decision.FIRST
        ),
        # The optional notebook
        "at 64 and 128 both say one and a half to three and a half times": all(
            0.5 <= longer(chunk, step_time=one) <= 2.6 for chunk in (64, 128) for one in (STEP, THEORY)
        ),
        "a pair takes longer in chunks of 256 and below": (
            min(map(seconds_a_pair, (64, 128, 256))) > 1.2 * max(map(seconds_a_pair, (512, 1_024, 2_048)))
        ),
        "beyond a few thousand tokens larger chunks gain nothing": abs(longer(2_048)) < 0.03 > abs(longer(PROMPT)),
        "with the cap nobody stalls": few.stalled() == 0,
        "the p99 over tokens is worst at 512 in both": all(
            max((8_192, 2_048, 512, 256, 128), key=lambda size: served(size, theory=theory).itl["p99"]) == CUT
            for theory in (False, True)
        ),
        "2,048 breaks a promise of 100 ms, which 1,024 keeps": served(SHARED).itl["max"]
        > 0.1
        > served(1_024).itl["max"],
        "one request in seven is long": abs(7 * (trace.prompt_tokens > SHARED).mean() - 1) < 0.07,
        "a budget of 1,024 ends this, and the cap does not": (
            stops[DEFAULT, 0].mean() > 0.5 and not stops[1_024, 0].any() and stops[SHARED, CUT].any()
        ),
    }
