"""Lab 14's decision: how many cards each engine gets, from a start-up log, a load and a promise; and its ticket."""

from __future__ import annotations

from functools import cache

import numpy as np

from course.engine.fleet import Fleet
from course.engine.serving import Engine
from course.lessons.lab14 import cards, four
from course.lessons.lab14.four import BUDGET, LAYOUTS, SLOTS
from course.memory.card import Ledger, ledger
from course.models import ModelSpec, engine_defaults
from course.policies import Continuous

MODEL, LONGEST = "llama-3.1-8b", 8_192  # and tokens of a sequence
LARGE = ModelSpec.from_config({
    "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "architectures": ["LlamaForCausalLM"],
})  # fmt: skip
"""Llama-3.1-70B."""
RATE, GOAL_MS = 30, 5.3  # requests/s; of the p95 of TPOT
RATE_TWIN, GOAL_TWIN_MS = 100, 36
REQUESTS = 3_000
GIB = 2**30


@cache
def memory(tp: int, model: str | ModelSpec = MODEL) -> Ledger:
    """Of one of `tp` H200s."""
    return ledger(model, cards.CARD, tp=tp, max_model_len=LONGEST)


def log() -> str:
    """What one of four engines would write as it starts, with vLLM's words; the numbers are those of our ledger."""
    found = memory(1)
    return "\n".join([
        f"vLLM {engine_defaults.DEFAULT_ENGINE_VERSION}, engine 0 of 4: tensor_parallel_size=1, "
        f"max_num_seqs={SLOTS}, enforce_eager=False",
        f"Model loading took {found.weights_bytes / GIB:.2f} GiB",
        f"Available KV cache memory: {found.kv_bytes / GIB:.2f} GiB",
        f"GPU KV cache size: {found.kv_tokens:,} tokens",
        f"Maximum concurrency for {LONGEST:,} tokens per request: {found.concurrency(LONGEST):.2f}x",
    ])  # fmt: skip


@cache
def p95_ms(layout: str, rate: float = RATE, seed: int = 0) -> float:
    """Of TPOT, over REQUESTS requests."""
    each = LAYOUTS[layout]
    engines = [Engine(Continuous(SLOTS, BUDGET), cards.model(each)) for _ in range(4 // each)]
    return 1e3 * float(np.nanpercentile(Fleet(engines).serve(four.load(rate, seed, REQUESTS)).tpot, 95))


def smallest(rate: float = RATE, goal_ms: float = GOAL_MS, seed: int = 0) -> int:
    """Cards of an engine, the fewest that keep the promise; 0 if none does."""
    return next((each for layout, each in LAYOUTS.items() if p95_ms(layout, rate, seed) <= goal_ms), 0)


# The ticket

USERS = (8, 16, 32, 16, 8, 16, 32, 16)
"""Sequences that decode together, by the hour."""
FIRST_HOUR, MOVED = 10, 14  # o'clock


def tpot_ms(users: int, moved: bool) -> float:
    """All layers, as recorded: one card with CUDA graphs; two without, NCCL."""
    us = cards.layer_us(2, users, "nccl", graphs=False) if moved else cards.layer_us(1, users, "none")
    return cards.LAYERS * us / 1e3


def mended_ms(users: int, kind: str = "nccl") -> float:
    """Two cards with CUDA graphs. kind: of the all-reduce, still NCCL's or, with "one_shot", the engine's own."""
    return cards.LAYERS * cards.layer_us(2, users, kind) / 1e3


def card_watts(users: int, moved: bool) -> float:
    """Of each card."""
    return cards.watts(2, users, "nccl", graphs=False) if moved else cards.watts(1, users, "none")
