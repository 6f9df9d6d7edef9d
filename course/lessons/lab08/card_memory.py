"""What fits on a card: the models and cards of lab 08, the ledger behind its sliders, and the bytes of one sequence.

The configs in course/data/configs hold the keys that decide memory, and no others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from course import memory
from course.memory import Ledger
from course.models import ModelSpec, gpus

GIB = 2**30
CONFIGS = Path(__file__).parents[2] / "data" / "configs"
CARDS: Mapping[str, int] = {
    name: gpus.gpu(name).memory_bytes or 0 for name in ("RTX 4090", "L40S", "A100", "H100", "H200")
}
"""Bytes of memory of each card, as its runtime reports them."""
ENGINES_OWN = 0
"""Of max_num_seqs: what vLLM takes on the card where nobody says."""
DENSE = ("llama-3.1-8b", "llama-2-7b", "qwen2-7b", "qwen3-32b")
"""Models of plain attention, which every card's ledger can take."""
ARCHITECTURES: Mapping[str, str] = {
    "llama-2-7b": "full attention, MHA",
    "llama-3.1-8b": "full attention, GQA",
    "falcon-7b": "full attention, MQA",
    "gpt-oss-120b": "half the layers windowed",
    "deepseek-v3": "latent rows (MLA)",
    "nemotron-h-56b": "recurrent hybrid",
}


@lru_cache(maxsize=32)
def spec(name: str) -> ModelSpec:
    """The model of that config; ValueError with the names otherwise."""
    names = sorted(path.stem for path in CONFIGS.glob("*.json"))
    if name not in names:
        raise ValueError(f"there is no config called {name!r}: choose one of {', '.join(names)}")
    return ModelSpec.from_config(CONFIGS / f"{name}.json")


@lru_cache(maxsize=4_000)
def ledger(
    model_name: str,
    card: str,
    gpu_memory_utilization: float = 0.9,
    max_num_seqs: int = ENGINES_OWN,
    kv_dtype: str = "bfloat16",
    max_model_len: int = 4_096,
    weights_bytes: float | None = None,
) -> Ledger:
    """`memory.ledger` by the names that sliders have."""
    return memory.ledger(
        spec(model_name),
        card,
        kv_dtype=kv_dtype,
        max_model_len=max_model_len,
        gpu_memory_utilization=gpu_memory_utilization,
        max_num_seqs=None if max_num_seqs == ENGINES_OWN else max_num_seqs,
        weights_bytes=weights_bytes,
    )


@dataclass(frozen=True)
class Fit:
    """The ledger of a model on the card of that name."""

    card: str
    ledger: Ledger

    @property
    def warnings(self) -> tuple[str, ...]:
        """What cannot be on this card."""
        return self.ledger.problems


def fit(model_name: str, card: str, **settings: float | str) -> Fit:
    """The ledger at these settings."""
    return Fit(card, ledger(model_name, card, **settings))


def gib(size: float) -> str:
    """Bytes in GiB."""
    return f"{size / GIB:.2f} GiB"


def short_rows(result: Fit) -> list[tuple[str, str]]:
    """Bytes a token, what the pool has, and the two lines that the engine's log prints."""
    found = result.ledger
    fixed = found.weights_bytes + found.activation_bytes + found.other_bytes
    return [
        ("a token keeps", f"{found.spec.kv_bytes_per_token:,} B"),
        ("layers, KV heads", f"{found.spec.num_layers}, {found.spec.num_kv_heads}"),
        ("usable", gib(found.usable_bytes)),
        ("weights and all else", gib(fixed)),
        ("KV pool", gib(found.kv_bytes)),
        ("KV cache size", f"{found.kv_tokens:,} tokens"),
        ("concurrency", f"{found.concurrency(found.max_model_len):.2f}x"),
    ]


def ledger_rows(card: Ledger) -> list[tuple[str, str, str]]:
    """(name, value, formula) of each line of the ledger of a model of plain attention; bytes as GiB."""
    length, share, pool = card.max_model_len, card.usable_bytes / card.total_bytes, card.pool
    return [
        ("total", gib(card.total_bytes), "the card, as its runtime reports it"),
        ("a step", f"{card.max_num_seqs:,} seqs", f"and {card.max_num_batched_tokens:,} tokens at most"),
        ("usable", gib(card.usable_bytes), f"gpu_memory_utilization {share:.2f} x total"),
        ("weights", gib(card.weights_bytes), f"{card.weights_bytes:,} B, from the config"),
        ("activation", gib(card.activation_bytes), "estimate: sampler or widest layer"),
        ("other", gib(card.other_bytes), "estimate: CUDA context, libraries"),
        ("KV", gib(card.kv_bytes), "usable - weights - activation - other"),
        ("blocks", f"{card.num_blocks:,}", f"KV / {pool.bytes_per_block:,} B a block"),
        ("tokens", f"{card.kv_tokens:,}", f"blocks x {pool.block_size} tokens"),
        (f"of {length:,} tokens", f"{card.concurrency(length):.2f}x", f"blocks / {pool.blocks_for(length):,} of each"),
        ("for requests", f"{pool.free_blocks:,}", "blocks but one, which vLLM keeps for itself"),
    ]


def sequence_bytes(model_spec: ModelSpec, length: int) -> int:
    """Bytes that one sequence of `length` tokens keeps: every layer's, up to its window, and recurrent state.

    The keys of an indexer are left out, and so is the rounding to blocks.
    """
    kept = model_spec.state_bytes + model_spec.kv_bytes_after_window * length
    for layer in model_spec.layer_caches:
        if layer.attention and layer.attention.window is not None:
            each = layer.attention.elements() * model_spec.kv_bytes_per_element
            kept += each * min(length, layer.attention.window)
    return kept
