"""Lab 18: what its two explorers ask of a result. Both show the day before the one that is scored."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab18 import service
from course.lessons.lab18.design import CACHE_AWARE, ROUND_ROBIN, Design
from course.lessons.lab18.scoring import Score, score
from course.lessons.lab18.service import CHAT, DOCS

FLEET: dict[str, Any] = {"card": "H100", "replicas": 2, "drafts": 0, "kv": "auto"}
FLAGS: dict[str, Any] = {"cap": 0, "slots": 1_024, "routing": ROUND_ROBIN, "cached": True}
DRAFTS = 4  # of the second explorer, with fp8 KV on two H100
PACE = 0.040  # seconds: the chat's TPOT, p95, that a task asks for


@lru_cache(maxsize=256)
def fleet(card: str = "H100", replicas: int = 2, drafts: int = 0, kv: str = "auto") -> Score:
    """The defaults of vLLM on so many cards, with drafts and another KV type."""
    design = Design(card=card, replicas=replicas, num_speculative_tokens=drafts, kv_cache_dtype=kv)
    return score(design, service.day(service.BEFORE))


@lru_cache(maxsize=256)
def flags(cap: int = 0, slots: int = 1_024, routing: str = ROUND_ROBIN, cached: bool = True) -> Score:
    """Two H100 with drafts and fp8 KV under other flags."""
    design = Design(
        replicas=2, num_speculative_tokens=DRAFTS, kv_cache_dtype="fp8", long_prefill_token_threshold=cap,
        max_num_seqs=slots, routing=routing, enable_prefix_caching=cached,
    )  # fmt: skip
    return score(design, service.day(service.BEFORE))


# The fleet


def fewest(settings: Settings, result: Score) -> bool:
    """Whether the defaults pass, and with a card less they would not."""
    card, replicas = settings["card"], settings["replicas"]
    return result.passed and card == "H100" and replicas > 1 and not fleet(card, replicas - 1).passed


def twice_would_not_do(settings: Settings, result: Score) -> bool:
    """Whether a fleet of half the price fails."""
    return not fleet("H100", settings["replicas"] // 2).passed


def pace(settings: Settings, result: Score) -> float:
    """The chat's TPOT, p95, as a multiple of its promise."""
    return result.p95(CHAT)[1] / service.PROMISES[CHAT].tpot


def streams(settings: Settings, result: Score) -> bool:
    """Whether two H100 stream at PACE."""
    here = settings["card"] == "H100" and settings["replicas"] == FLEET["replicas"]
    return here and result.p95(CHAT)[1] <= PACE


def neither_alone(settings: Settings, result: Score) -> bool:
    """Whether fp8 alone, or so many drafts alone, do not reach it."""
    return all(found.p95(CHAT)[1] > PACE for found in (fleet(kv="fp8"), fleet(drafts=settings["drafts"])))


def first_tokens_wait(settings: Settings, result: Score) -> bool:
    """Whether the stream is twice as fast, and the first token comes at most a fifth sooner."""
    (ttft, tpot), before = result.p95(CHAT), fleet().p95(CHAT)
    return tpot < before[1] / 2 and ttft > 0.8 * before[0]


def of_fleet(settings: Settings, result: Score) -> Mapping[str, Any]:
    """What the answers name."""
    fewer = fleet(settings["card"], max(1, settings["replicas"] - 1))
    (ttft, tpot), start = result.p95(CHAT), fleet().p95(CHAT)
    return {
        "replicas": settings["replicas"], "chat": f"{result.share[CHAT]:.1%}", "docs": f"{result.share[DOCS]:.0%}",
        "fewer": f"{fewer.share[CHAT]:.1%}", "dollars": f"{result.design.dollars_an_hour:.2f}",
        "promised": seconds(service.PROMISES[CHAT].tpot),
        "ttft": seconds(ttft), "tpot": seconds(tpot), "drafts": settings["drafts"],
        "start_ttft": seconds(start[0]), "start_tpot": seconds(start[1]),
        "half_tpot": seconds(fleet(kv="fp8").p95(CHAT)[1]),
    }  # fmt: skip


# Flags


def by_cap(settings: Settings, result: Score) -> bool:
    """Whether a cap alone makes both classes pass."""
    return result.passed and settings["cap"] > 0 and settings["routing"] == ROUND_ROBIN


def cap_costs_documents(settings: Settings, result: Score) -> bool:
    """Whether documents wait longer for it."""
    return result.p95(DOCS)[0] > 1.2 * flags().p95(DOCS)[0]


def by_routing(settings: Settings, result: Score) -> bool:
    """Whether routing alone does."""
    return result.passed and settings["cap"] == 0 and settings["routing"] != ROUND_ROBIN


def more_is_found(settings: Settings, result: Score) -> bool:
    """Whether more prompt tokens are found in a cache than in turns."""
    return result.hit_rate > flags().hit_rate + 0.02


def fewest_slots(settings: Settings, result: Score) -> bool:
    """Whether both classes pass with cap and cache-aware routing, and with half the slots they would not."""
    here = settings["cap"] > 0 and settings["routing"] == CACHE_AWARE and settings["slots"] < FLAGS["slots"]
    if not (here and result.passed):
        return False
    return not flags(settings["cap"], max(1, settings["slots"] // 2), CACHE_AWARE, settings["cached"]).passed


def many_slots_do_not_hurt(settings: Settings, result: Score) -> bool:
    """Whether with all slots the same share passes, within a percent."""
    most = flags(settings["cap"], FLAGS["slots"], settings["routing"])
    return abs(most.share[CHAT] - result.share[CHAT]) < 0.01


def computed_again(settings: Settings, result: Score) -> bool:
    """Whether first tokens come more than ten times later than with the cache, at a stream within its promise."""
    cached = flags(settings["cap"], settings["slots"], settings["routing"])
    return result.p95(CHAT)[0] > 10 * cached.p95(CHAT)[0]


def of_flags(settings: Settings, result: Score) -> Mapping[str, Any]:
    """What the answers name."""
    half = flags(settings["cap"], max(1, settings["slots"] // 2), settings["routing"], settings["cached"])
    start, cached = flags(), flags(settings["cap"], settings["slots"], settings["routing"])
    return {
        "chat": f"{result.share[CHAT]:.1%}", "ttft": seconds(result.p95(CHAT)[0]), "slots": settings["slots"],
        "docs_ttft": seconds(result.p95(DOCS)[0]), "start_docs": seconds(start.p95(DOCS)[0]),
        "start_ttft": seconds(start.p95(CHAT)[0]), "hits": f"{result.hit_rate:.0%}",
        "start_hits": f"{start.hit_rate:.0%}", "half": f"{half.share[CHAT]:.0%}",
        "cached_hits": f"{cached.hit_rate:.0%}",
        "cached_ttft": seconds(cached.p95(CHAT)[0]),
    }  # fmt: skip
