"""Four cards with prompts on some and answers on the others, beside the same four in chunks; and how many for which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from course.engine.disaggregated import Disaggregated
from course.engine.fleet import Fleet
from course.engine.run import Run
from course.engine.serving import Engine
from course.explore.table import Rows
from course.lessons.lab14.four import BUDGET, SLOTS, kept
from course.memory.card import ledger
from course.memory.kvcache import KVCache
from course.models import model as known
from course.policies import Continuous
from course.steptime import Recorded, recorded
from course.workload import Workload, lengths

CARDS_THERE = 4
RECORDINGS = {"H100": "h100-llama3-8b", "H200": "h200-llama3-8b-flash"}
H100, H200 = RECORDINGS
CHUNK, CHUNK_BUDGET = 512, 2_048  # tokens: of one prompt in a step, and of a step, where prompts and answers mix
MODEL, LONGEST = "llama-3.1-8b", 16_384  # and tokens of a sequence
KV_BYTES = known(MODEL).kv_bytes_per_token
REQUESTS = 1_000
MIXED = "4 mixed"
LAYOUTS = {MIXED: 0, "1P3D": 1, "2P2D": 2, "3P1D": 3}
"""Cards for prompts; the others are for answers."""
GB = 1e9
LINKS_GB = (1, 5, 12.5, 50, 300)
LINK_GB = 50.0
RATE, TPOT_MS = 20, 8.0
SEEDS = range(5)


@dataclass(frozen=True)
class Load:
    """Means of prompts and answers [tokens], spreads of their logarithms, and the longest prompt."""

    prompt: int
    answer: int
    prompt_spread: float
    answer_spread: float
    longest: int


LOADS = {
    "documents": Load(3_000, 150, 0.6, 1.0, 12_000),
    "chat": Load(512, 192, 1.0, 1.0, 4_096),
    "essays": Load(300, 600, 1.0, 0.7, 2_048),
}
DOCUMENTS = "documents"


@cache
def load(name: str, rate: float, seed: int = 0) -> Workload:
    """REQUESTS of them, `rate` a second."""
    of = LOADS[name]
    prompts = lengths.lognormal(of.prompt, of.prompt_spread, 16, of.longest)
    answers = lengths.lognormal(of.answer, of.answer_spread, 4, 1_024)
    return Workload.poisson(rate, REQUESTS, prompts, answers, seed=seed)


@cache
def step_time(card: str) -> Recorded:
    """The recorded steps of this card."""
    return recorded(RECORDINGS[card])


@cache
def blocks(card: str) -> int:
    """KV blocks of 16 tokens that fit beside the weights."""
    return int(ledger(MODEL, card, max_model_len=LONGEST).kv_tokens or 0) // 16


def _engines(card: str, number: int, chunked: bool, slots: int) -> list[Engine]:
    cache_of_card = KVCache(blocks(card))
    policy = Continuous(slots, CHUNK_BUDGET if chunked else BUDGET, long_prefill_token_threshold=CHUNK * chunked)
    return [Engine(policy, step_time(card), cache_of_card) for _ in range(number)]


@cache
def served(
    card: str, layout: str, rate: float, link_gb: float = LINK_GB, name: str = DOCUMENTS, seed: int = 0,
    slots: int = SLOTS,
) -> Run:  # fmt: skip
    """The load on four such cards."""
    prompts, work = LAYOUTS[layout], load(name, rate, seed)
    if not prompts:
        return Fleet(_engines(card, CARDS_THERE, True, slots)).serve(work)
    sides = (_engines(card, number, False, slots) for number in (prompts, CARDS_THERE - prompts))
    return Disaggregated(*sides, transfer=link_gb * GB, token_bytes=KV_BYTES).serve(work)


@dataclass(frozen=True)
class Apart:
    """The layouts under one load. rate: requests/s of all cards. tpot_ms: the promise."""

    card: str
    rate: float
    tpot_ms: float
    link_gb: float
    runs: dict[str, Run]

    def share(self, layout: str) -> float:
        """Of requests that hold both promises."""
        return kept(self.runs[layout], self.tpot_ms / 1e3)

    def best(self) -> str:
        """The layout with the most of them."""
        return max(LAYOUTS, key=self.share)


def apart(
    card: str = H200, rate: float = RATE, tpot_ms: float = TPOT_MS, link_gb: float = LINK_GB, name: str = DOCUMENTS,
    seed: int = 0, slots: int = SLOTS,
) -> Apart:  # fmt: skip
    """All layouts."""
    runs = {layout: served(card, layout, rate, link_gb, name, seed, slots) for layout in LAYOUTS}
    return Apart(card, rate, tpot_ms, link_gb, runs)


def rows(found: Apart) -> list[tuple[str, ...]]:
    """The table beside the figure."""
    runs = found.runs.values()
    return [
        ("", *LAYOUTS),
        ("within both promises", *(f"{found.share(layout):.0%}" for layout in LAYOUTS)),
        ("p95 TTFT", *(f"{1e3 * np.percentile(run.ttft, 95):,.0f} ms" for run in runs)),
        ("p95 TPOT", *(f"{1e3 * np.nanpercentile(run.tpot, 95):.1f} ms" for run in runs)),
    ]


CASES = ((H100, 16, 8.0), (H100, 24, 20.0), (H200, 24, 8.0), (H200, 24, 20.0))
"""(card, requests/s, ms of TPOT) of the table over several draws."""


@cache
def shares(card: str, rate: float, tpot_ms: float, slots: int = SLOTS) -> dict[str, tuple[float, float]]:
    """By layout, the least and the most within both promises, over SEEDS."""
    every = [apart(card, rate, tpot_ms, seed=seed, slots=slots) for seed in SEEDS]
    found = {layout: [one.share(layout) for one in every] for layout in LAYOUTS}
    return {layout: (min(one), max(one)) for layout, one in found.items()}


def five_draws() -> Rows:
    """The shares of CASES."""
    return (
        ("", *LAYOUTS),
        *((f"{card}, {rate / CARDS_THERE:g}/s a card, TPOT {tpot:g} ms",
           *(f"{low:.0%} to {high:.0%}" for low, high in shares(card, rate, tpot).values()))
          for card, rate, tpot in CASES),
    )  # fmt: skip


LINK_RATE = 8


def links() -> Rows:
    """What a link does to 2P2D of H100s: the transfer of a mean prompt, TPOT and the share within both promises."""
    found = {link: served(H100, "2P2D", LINK_RATE, link) for link in LINKS_GB}
    return (
        ("link", *(f"{link:g} GB/s" for link in LINKS_GB)),
        ("K and V of 3,000 tokens", *(f"{1e3 * transfer(link):.0f} ms" for link in LINKS_GB)),
        ("p95 TPOT", *(f"{1e3 * np.nanpercentile(run.tpot, 95):.1f} ms" for run in found.values())),
        ("within both promises", *(f"{kept(run, TPOT_MS / 1e3):.0%}" for run in found.values())),
    )


def transfer(link_gb: float) -> float:
    """Seconds to send K and V of a mean prompt."""
    return LOADS[DOCUMENTS].prompt * KV_BYTES / (link_gb * GB)


# How many cards for prompts

Split = Callable[[float, float, int], int]
BUSY = {DOCUMENTS: 24, "chat": 96, "essays": 72}
"""Requests/s of four H200s at which a wrong ratio shows."""


def prompts_a_second(name: str, card: str = H200) -> float:
    """Mean prompts that a card computes, one after the other."""
    tokens = LOADS[name].prompt
    return 1 / step_time(card).seconds(0, 0, tokens, tokens * (tokens + 1) // 2, tokens)


def answers_a_second(name: str, tpot_ms: float = TPOT_MS, card: str = H200) -> float:
    """Mean answers that a card completes with the largest batch whose step takes no longer than promised."""
    of = LOADS[name]
    context = of.prompt + of.answer / 2
    steps = {batch: step_time(card).decode_line(batch) for batch in range(1, SLOTS + 1)}
    fits = [batch for batch, (base, slope) in steps.items() if base + slope * batch * context <= tpot_ms / 1e3]
    return max(fits, default=0) / (tpot_ms / 1e3) / of.answer


def split(prompts: float, answers: float, cards: int) -> int:
    """Cards for prompts, so that both sides together keep up with the most requests; of equals the fewest."""
    return max(range(1, cards), key=lambda many: min(many * prompts, (cards - many) * answers))


def split_at_work(function: Split) -> Rows:
    """What a function says of three loads on four H200s, and what a simulation of each ratio says."""
    table: list[tuple[str, ...]] = [("", "prompts/s", "answers/s", "yours", *list(LAYOUTS)[1:])]
    for name in LOADS:
        rates = prompts_a_second(name), answers_a_second(name)
        found = apart(rate=BUSY[name], name=name)
        yours = f"{function(*rates, CARDS_THERE)}P"
        table.append((f"{name}, {BUSY[name]}/s", *(f"{rate:.1f}" for rate in rates), yours,
                      *(f"{found.share(layout):.0%}" for layout in list(LAYOUTS)[1:])))  # fmt: skip
    return tuple(table)
