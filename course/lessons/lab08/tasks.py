"""Lab 08: what its explorers ask. Each answer has its numbers from the result."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from course.explore.tasks import Find, Read, Settings, Why
from course.figures.words import seconds
from course.lessons.lab08 import card_memory, kv_pool
from course.lessons.lab08.card_memory import ENGINES_OWN, GIB, Fit
from course.lessons.lab08.kv_pool import FP8, GQA, UnderLoad

# What fits on a card

CARD: dict[str, Any] = {
    "model_name": "llama-3.1-8b", "card": "RTX 4090", "gpu_memory_utilization": 0.9, "max_num_seqs": ENGINES_OWN,
    "kv_dtype": "bfloat16", "max_model_len": 8_192,
}  # fmt: skip
BIG = {"model_name": "qwen3-32b", "card": "H100"}


def _only(settings: Settings, start: Settings, *free: str) -> bool:
    """Whether all controls but those named are where they were at the start."""
    return all(settings[name] == value for name, value in start.items() if name not in free)


def _at(settings: Settings, **moved: Any) -> Fit:
    return card_memory.fit(**{**settings, **moved})


def _printed(result: Fit) -> float:
    """The concurrency that the engine's log prints."""
    return result.ledger.concurrency(result.ledger.max_model_len)


def _grown(settings: Settings, result: Fit) -> float:
    """Tokens of the pool, over those at the start's share of the card."""
    before = _at(settings, gpu_memory_utilization=CARD["gpu_memory_utilization"]).ledger.kv_tokens
    return (result.ledger.kv_tokens or 0) / before if before else 0.0


def _card_facts(settings: Settings, result: Fit) -> Mapping[str, Any]:
    card, spec, llama = result.ledger, result.ledger.spec, card_memory.spec("llama-3.1-8b")
    share = settings["gpu_memory_utilization"]
    return {
        "length": f"{settings['max_model_len']:,}",
        "printed": f"{_printed(result):.1f}x",
        "printed_before": f"{_printed(_at(settings, max_model_len=CARD['max_model_len'])):.1f}x",
        "tokens": f"{card.kv_tokens:,}",
        "bytes": f"{spec.kv_bytes_per_token:,} B",
        "times": f"{spec.kv_bytes_per_token / llama.kv_bytes_per_token:g}",
        "heads": spec.num_kv_heads,
        "few": llama.num_kv_heads,
        "other": llama.name,
        "share": f"{share:.2f}",
        "share_before": f"{CARD['gpu_memory_utilization']:.2f}",
        "grown": f"{_grown(settings, result):.2f}",
        "fixed": f"{(card.weights_bytes + card.activation_bytes + card.other_bytes) / GIB:.0f} GiB",
        "usable": f"{card.usable_bytes / GIB:.0f} GiB",
        "pool": f"{card.kv_bytes / GIB:.1f} GiB",
    }


LEDGER = (
    Find(
        id="printed",
        text="Lower max_model_len, and nothing else, until the log would print at least 10x.",
        show={"max_model_len": 2_048},
        reached=lambda settings, result: _only(settings, CARD, "max_model_len") and _printed(result) >= 10,
        miss="The log would print {printed}.",
        answer="With {length} tokens it prints {printed} instead of {printed_before}. The pool still has {tokens} "
        "tokens; the log divides them by less.",
        facts=_card_facts,
        claim=lambda settings, result: result.ledger.kv_tokens == _at(CARD).ledger.kv_tokens,
    ),
    Read(
        id="heads",
        text="Press Reset and choose llama-2-7b. How many KV bytes does a token take?",
        show={"model_name": "llama-2-7b"},
        value=lambda settings, result: result.ledger.spec.kv_bytes_per_token,
        unit="bytes",
        rtol=0.01,
        where=lambda settings, result: settings["model_name"] == "llama-2-7b" and settings["kv_dtype"] == "bfloat16",
        slips=((1 / 1024, "That is in KiB: give bytes."), (1 / 2**20, "That is in MiB: give bytes.")),
        answer="{bytes}, {times} times as many as {other}: it has {heads} KV heads instead of {few}, and as many "
        "layers.",
        facts=_card_facts,
        claim=lambda settings, result: (
            result.ledger.spec.num_layers == _at(CARD).ledger.spec.num_layers
            and result.ledger.spec.num_heads == _at(CARD).ledger.spec.num_heads
        ),
    ),
    Find(
        id="small",
        text="Press Reset. Put qwen3-32b on the H100, then raise only gpu_memory_utilization until its pool has 1.5 "
        "times as many tokens as at 0.90.",
        show=BIG | {"gpu_memory_utilization": 0.94},
        reached=lambda settings, result: (
            _only(settings, CARD | BIG, "gpu_memory_utilization") and _grown(settings, result) >= 1.5
        ),
        miss="The pool has {grown} times as many tokens as this model and card have at {share_before}.",
        answer="At {share} the pool has {grown} times as many tokens as at {share_before}.",
        facts=_card_facts,
        claim=lambda settings, result: _grown(settings, result) > settings["gpu_memory_utilization"] / 0.9,
    ),
    Why(
        id="left",
        text="Why does so small a share of the card add so much to this pool?",
        show=BIG | {"gpu_memory_utilization": 0.94},
        options=(
            ("The pool is what the weights leave.", ""),
            ("A larger share makes the weights smaller.", "The weights take the same bytes at any share."),
            ("A larger share makes a token smaller.", "Bytes a token come from the config alone."),
        ),
        right="a",
        answer="Weights, activation and other take {fixed} of {usable}; {pool} are left.",
        facts=_card_facts,
        claim=lambda settings, result: result.ledger.kv_bytes < 0.15 * result.ledger.usable_bytes,
    ),
)


# A full pool

POOL: dict[str, Any] = {"rate": 1.0, "slots": 256, "kind": GQA}
SLOTS = (4, 8, 12, 16, 20, 23, 24, 28, 32, 48, 64, 128, 256)  # what exercise 2 gives, and those of the texts
BUSY = 2.0  # requests/s
NEARLY = 0.95  # of the tokens/s that all slots give
SOON = 1.0  # seconds: a first token that nobody complains of


def _all_slots(settings: Settings) -> UnderLoad:
    return kv_pool.hour(settings["kind"], settings["rate"], POOL["slots"])


def _pool_facts(settings: Settings, result: UnderLoad) -> Mapping[str, Any]:
    most, gqa = _all_slots(settings), kv_pool.cache(GQA).num_blocks
    return {
        "rate": f"{settings['rate']:g}",
        "slots": settings["slots"],
        "all_slots": POOL["slots"],
        "used": f"{result.pool_used.max():.0%}",
        "lost": f"{result.preemptions:,}",
        "requests": f"{len(result.run):,}",
        "gap": seconds(result.longest_gap),
        "speed": f"{result.arriving_tokens_per_second:.0f}",
        "speed_all": f"{most.arriving_tokens_per_second:.0f}",
        "lost_all": f"{most.preemptions:,}",
        "twice_all": f"{most.recomputed:.0%}",
        "p95": seconds(result.p95_ttft),
        "most": result.run.steps.running.max(),
        "blocks": f"{kv_pool.cache(settings['kind']).num_blocks:,}",
        "blocks_gqa": f"{gqa:,}",
        "out": f"{result.arriving_answers_per_second:.2f}",
    }


def _room_facts(settings: Settings, result: UnderLoad) -> Mapping[str, Any]:
    fit, fewer = 23, 21
    longer, calm = (kv_pool.under_load(slots=slots) for slots in (fit, fewer))
    words = {"many": f"{len(longer.run):,}", "fit": fit, "fit_lost": longer.preemptions}
    return {**_pool_facts(settings, result), **words, "fewer": fewer if not calm.preemptions else "fewer"}


def _room(settings: Settings, result: UnderLoad) -> bool:
    """Nobody is preempted, and hardly any output is lost to fewer slots."""
    here = settings["rate"] == BUSY and settings["kind"] == GQA
    enough = NEARLY * _all_slots(settings).arriving_tokens_per_second
    return here and not result.preemptions and result.arriving_tokens_per_second >= enough


FULL = (
    Find(
        id="full",
        text="Raise the arrival rate, and nothing else, until a request is preempted.",
        show={"rate": 1.75},
        reached=lambda settings, result: _only(settings, POOL, "rate") and result.preemptions > 0,
        miss="No preemption, and at most {used} of the pool is in use.",
        answer="At {rate} requests/s the pool is {used} full, with {lost} preemptions. All {requests} requests are "
        "answered, but one reader waited {gap} for a token.",
        facts=_pool_facts,
        claim=lambda settings, result: bool(np.isfinite(result.run.e2e).all()),
    ),
    Find(
        id="room",
        text="Set 2 requests/s. Lower the slots until nobody is preempted and at least 95% of the tokens/s remain.",
        show={"rate": BUSY, "slots": 23},
        reached=_room,
        miss="{slots} slots: {lost} preemptions and {speed} tokens/s; with {all_slots} slots it is {speed_all}.",
        answer="{slots} slots give {speed} tokens/s. {all_slots} slots give {speed_all}, with {lost_all} preemptions "
        "and {twice_all} of all tokens computed twice. Over {many} requests, {fit} slots bring {fit_lost} "
        "preemptions, and {fewer} none.",
        facts=_room_facts,
        claim=lambda settings, result: _all_slots(settings).preemptions > 0,
    ),
    Find(
        id="bytes",
        text="Stay at 2 requests/s, and bring the p95 of TTFT below 1 s. You may move two controls.",
        show={"rate": BUSY, "slots": 48, "kind": FP8},
        reached=lambda settings, result: settings["rate"] == BUSY and result.p95_ttft < SOON,
        miss="The p95 of TTFT is {p95}.",
        answer="With fp8 K and V the pool has {blocks} blocks instead of {blocks_gqa}. Up to {most} requests run at "
        "once; the p95 of TTFT is {p95}.",
        facts=_pool_facts,
        claim=lambda settings, result: settings["kind"] == FP8,
    ),
    Why(
        id="queue",
        text="With 23 slots and 16-bit K and V nobody was preempted, yet the queue grew. Why?",
        show={"rate": BUSY, "slots": 23},
        options=(
            ("With fewer slots a step takes longer.", "A step takes less time with fewer sequences in it."),
            ("Preempted requests fill the queue.", "Nobody was preempted."),
            ("More arrive than 23 slots answer.", ""),
        ),
        right="c",
        answer="{rate} requests/s arrive, and {slots} slots answer {out}. Only room for more sequences ends the queue.",
        facts=_pool_facts,
        claim=lambda settings, result: result.arriving_answers_per_second < settings["rate"],
    ),
)
