"""Lab 08: what its explorers ask of a result."""

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab08 import card_memory, kv_pool
from course.lessons.lab08.card_memory import ENGINES_OWN, GIB, Fit
from course.lessons.lab08.kv_pool import FP8, GQA, UnderLoad

# What fits on a card

CARD: dict[str, Any] = {
    "model_name": "llama-3.1-8b", "card": "RTX 4090", "gpu_memory_utilization": 0.9, "max_num_seqs": ENGINES_OWN,
    "kv_dtype": "bfloat16", "max_model_len": 8_192,
}  # fmt: skip
TEN = 10  # what a task asks for: the printed concurrency


def _at(settings: Settings, **moved: Any) -> Fit:
    return card_memory.fit(**{**settings, **moved})


def _printed(result: Fit) -> float:
    """The concurrency that the engine's log prints."""
    return result.ledger.concurrency(result.ledger.max_model_len)


def printed_ten_times(settings: Settings, result: Fit) -> bool:
    """Whether the log would print TEN at least."""
    return _printed(result) >= TEN


def same_pool(settings: Settings, result: Fit) -> bool:
    """Whether the pool has as many tokens as at the start."""
    return result.ledger.kv_tokens == _at(CARD).ledger.kv_tokens


def token_bytes(settings: Settings, result: Fit) -> float:
    """KV bytes of a token."""
    return result.ledger.spec.kv_bytes_per_token


def at_llama_2(settings: Settings, result: Fit) -> bool:
    """Whether it is that model with 16-bit K and V."""
    return settings["model_name"] == "llama-2-7b" and settings["kv_dtype"] == "bfloat16"


def same_shape(settings: Settings, result: Fit) -> bool:
    """Whether the model has the layers and query heads of that at the start."""
    mine, before = result.ledger.spec, _at(CARD).ledger.spec
    return mine.num_layers == before.num_layers and mine.num_heads == before.num_heads


def little_is_left(settings: Settings, result: Fit) -> bool:
    """Whether the pool is a small part of what may be used."""
    return result.ledger.kv_bytes < 0.15 * result.ledger.usable_bytes


def card(settings: Settings, result: Fit) -> Mapping[str, Any]:
    """What the answers name."""
    ledger, spec, llama = result.ledger, result.ledger.spec, card_memory.spec("llama-3.1-8b")
    return {
        "printed": f"{_printed(result):.1f}x",
        "printed_before": f"{_printed(_at(settings, max_model_len=CARD['max_model_len'])):.1f}x",
        "tokens": f"{ledger.kv_tokens:,}",
        "bytes": f"{spec.kv_bytes_per_token:,} B",
        "times": f"{spec.kv_bytes_per_token / llama.kv_bytes_per_token:g}",
        "heads": spec.num_kv_heads,
        "few": llama.num_kv_heads,
        "other": llama.name,
        "fixed": f"{(ledger.weights_bytes + ledger.activation_bytes + ledger.other_bytes) / GIB:.0f} GiB",
        "usable": f"{ledger.usable_bytes / GIB:.0f} GiB",
        "pool": f"{ledger.kv_bytes / GIB:.1f} GiB",
    }


# A full pool

POOL: dict[str, Any] = {"rate": 1.0, "slots": 256, "kind": GQA}
SLOTS = (4, 8, 12, 16, 20, 23, 24, 28, 32, 48, 64, 128, 256)  # what exercise 2 gives, and those of the texts
BUSY = 2.0  # requests/s
NEARLY = 0.95  # of the tokens/s that all slots give
SOON = 1.0  # seconds: a first token that nobody complains of


def _all_slots(settings: Settings) -> UnderLoad:
    return kv_pool.hour(settings["kind"], settings["rate"], POOL["slots"])


def pool(settings: Settings, result: UnderLoad) -> Mapping[str, Any]:
    """What the answers name."""
    most, gqa = _all_slots(settings), kv_pool.cache(GQA).num_blocks
    return {
        "rate": f"{settings['rate']:g}",
        "slots": settings["slots"],
        "all_slots": POOL["slots"],
        "lost": f"{result.preemptions:,}",
        "speed": f"{result.arriving_tokens_per_second:.0f}",
        "speed_all": f"{most.arriving_tokens_per_second:.0f}",
        "lost_all": f"{most.preemptions:,}",
        "twice_all": f"{most.recomputed:.0%}",
        "p95": seconds(result.p95_ttft),
        "blocks": f"{kv_pool.cache(settings['kind']).num_blocks:,}",
        "blocks_gqa": f"{gqa:,}",
        "out": f"{result.arriving_answers_per_second:.2f}",
    }


def room_facts(settings: Settings, result: UnderLoad) -> Mapping[str, Any]:
    """The same, with a longer run beside."""
    fit, fewer = 23, 21
    longer, calm = (kv_pool.under_load(slots=slots) for slots in (fit, fewer))
    words = {"many": f"{len(longer.run):,}", "fit": fit, "fit_lost": longer.preemptions}
    return {**pool(settings, result), **words, "fewer": fewer if not calm.preemptions else "fewer"}


def room(settings: Settings, result: UnderLoad) -> bool:
    """Nobody is preempted, and hardly any output is lost to fewer slots."""
    here = settings["rate"] == BUSY and settings["kind"] == GQA
    enough = NEARLY * _all_slots(settings).arriving_tokens_per_second
    return here and not result.preemptions and result.arriving_tokens_per_second >= enough


def all_slots_preempt(settings: Settings, result: UnderLoad) -> bool:
    """Whether somebody is preempted with all slots."""
    return _all_slots(settings).preemptions > 0


def soon(settings: Settings, result: UnderLoad) -> bool:
    """Whether first tokens come soon at the busy rate."""
    return settings["rate"] == BUSY and result.p95_ttft < SOON


def in_fp8(settings: Settings, result: UnderLoad) -> bool:
    """Whether K and V are in fp8."""
    return settings["kind"] == FP8


def more_arrive(settings: Settings, result: UnderLoad) -> bool:
    """Whether more arrive than are answered."""
    return result.arriving_answers_per_second < settings["rate"]
