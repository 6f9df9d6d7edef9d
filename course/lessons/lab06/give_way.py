"""The third scenario of lab 06, deeper: prompts in every k-th step, long prompts that yield, answers that give way."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab06 import two_orders
from course.lessons.lab06.two_orders import BADGE, BUDGET, RATE, SLOTS, STEP, Served
from course.policies import Policy
from course.workload import Workload, lengths

EVERY = (1, 4, 8, 16)  # prompts run in every k-th step
CHAT_RATE, CHAT_PROMPT, CHAT_ANSWER = 20, 200, 150  # requests/s, tokens
LONG, LONG_ANSWER, BETWEEN, LASTS, SMALL = 24_000, 200, 4.0, 60, 2_048  # tokens, tokens, s, s, tokens a step
DEPTH, CAP = 8, 1_024  # short prompts that may wait; tokens of one prompt in a step
FEW, BUSY, QUANTUM = 64, 18, 256  # slots that bind, requests/s, tokens of an answer at the first level
SEEDS = range(5)

IN_ORDER, YIELDS, CAPPED = "in order", "long ones yield", f"in order, {CAP:,} tokens of a prompt at most"
SHORTEST, SHORTEST_LEFT, LEVELS = "shortest answer first", "shortest remaining first", "multi-level feedback"


@lru_cache(maxsize=8)
def every(k: int, seed: int = 0) -> Served:
    """The service with prompts in every k-th step."""
    run = serve(two_orders.requests(seed=seed), policies.PrefillEvery(SLOTS, BUDGET, k), STEP)
    return Served(f"every {k}", BUDGET, SLOTS, RATE, run)


def gap_at(run: Run, percent: float) -> float:
    """A percentile over all gaps between two tokens [s]."""
    gaps, weights = run.itl_weighted
    order = np.argsort(gaps)
    upto = np.cumsum(weights[order])
    return float(gaps[order][np.searchsorted(upto, percent / 100 * upto[-1])])


def every_kth_step() -> Table:
    """What waiting costs prompts, and what it buys for answers."""
    rows: list[tuple[str, ...]] = [("prompts in", "steps with prompts", "TTFT, mean", "ITL, p90", "p99", "longest gap")]
    for k in EVERY:
        one = every(k)
        share = float((one.run.steps.prefill_tokens > 0).mean())
        times = (one.ttft, gap_at(one.run, 90), one.itl_p99, one.gap)
        rows.append((f"every {k}th step" if k > 1 else "each step", f"{share:.0%}", *map(seconds, times)))
    return table(rows, f"{RATE} requests/s, {SLOTS} slots, one draw [{BADGE}]")


@lru_cache(maxsize=8)
def with_documents(seed: int = 0) -> Workload:
    """Short questions, and every BETWEEN seconds a long document."""
    chats = Workload.poisson(CHAT_RATE, CHAT_RATE * LASTS, CHAT_PROMPT, lengths.lognormal(CHAT_ANSWER, cv=1.0), seed)
    times = np.arange(BETWEEN / 2, LASTS, BETWEEN)
    documents = Workload(times, np.full(len(times), LONG), np.full(len(times), LONG_ANSWER))
    return Workload.mix({"short": chats, "long": documents})


@lru_cache(maxsize=32)
def yielding(name: str, seed: int = 0) -> Run:
    """Short questions and long documents, under a policy by its name."""
    made: dict[str, Policy] = {
        IN_ORDER: policies.Continuous(SLOTS, SMALL),
        YIELDS: policies.LongPromptsYield(SLOTS, SMALL, depth=DEPTH),
        CAPPED: policies.Continuous(SLOTS, SMALL, long_prefill_token_threshold=CAP),
    }
    return serve(with_documents(seed), made[name], STEP)


YIELDING = (IN_ORDER, YIELDS, CAPPED)


def ttft(run: Run, kind: str) -> float:
    """Mean TTFT of one class [s]."""
    return float(run.ttft[run.workload.class_ == kind].mean())


def short_p99(run: Run) -> float:
    """p99 of the TTFT of short questions [s]."""
    return float(np.percentile(run.ttft[run.workload.class_ == "short"], 99))


def long_prompts_yield() -> Table:
    """Who waits for whom."""
    rows: list[tuple[str, ...]] = [("", "short: mean TTFT", "p99", "long: mean TTFT", "tokens computed again")]
    for name in YIELDING:
        run = yielding(name)
        times = (ttft(run, "short"), short_p99(run), ttft(run, "long"))
        rows.append((name, *map(seconds, times), f"{run.steps.dropped.sum():,}"))
    return table(rows, f"{CHAT_RATE} short questions/s and a long document every {BETWEEN:g} s, one draw [{BADGE}]")


@lru_cache(maxsize=32)
def giving_way(name: str, seed: int = 0) -> Run:
    """The service with few slots on a busy day; guesses are the true lengths."""
    made: dict[str, Policy] = {
        IN_ORDER: policies.Continuous(FEW, BUDGET),
        SHORTEST: policies.ShortestFirst(FEW, BUDGET, by="guess"),
        SHORTEST_LEFT: policies.ShortestRemaining(FEW, BUDGET),
        LEVELS: policies.MultiLevelFeedback(FEW, BUDGET, quantum=QUANTUM),
    }
    return serve(two_orders.requests(BUSY, seed).with_guesses("exact"), made[name], STEP)


GIVING_WAY = (IN_ORDER, SHORTEST, SHORTEST_LEFT, LEVELS)


def computed_again(run: Run) -> float:
    """Tokens computed again, as a share of those needed."""
    load = run.workload
    return float(run.steps.dropped.sum()) / float((load.prompt_tokens + load.output_tokens - 1).sum())


def answers_give_way() -> Table:
    """Four orders where slots bind."""
    rows: list[tuple[str, ...]] = [("", "TTFT, mean", "E2E, mean", "longest E2E", "computed again")]
    for name in GIVING_WAY:
        run = giving_way(name)
        times = (float(run.ttft.mean()), float(run.e2e.mean()), float(run.e2e.max()))
        rows.append((name, *map(seconds, times), f"{computed_again(run):.0%}"))
    return table(rows, f"{BUSY} requests/s, {FEW} slots, one draw [{BADGE}]")
