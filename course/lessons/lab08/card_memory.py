"""What fits on a card: the models and cards of lab 08, the ledger behind its sliders, and the bytes of one sequence.

The configs in course/data/configs hold the keys that decide memory, and no others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from course import memory
from course.lessons.lab08.kv_pool import POOL_BYTES
from course.memory import Ledger
from course.models import ModelSpec, gpus, model

GIB = 2**30
CONFIGS = Path(__file__).parents[2] / "data" / "configs"
CARDS: Mapping[str, int] = {
    name: gpus.gpu(name).memory_bytes or 0 for name in ("RTX 4090", "L40S", "A100", "H100", "H200")
}
"""Bytes of memory of each card, as its runtime reports them."""
ENGINES_OWN = 0
"""Of max_num_seqs and max_num_batched_tokens: what vLLM 0.19 takes on the card where nobody says."""
DENSE = ("llama-3.1-8b", "llama-2-7b", "qwen2-7b", "qwen3-32b")
"""Models of plain attention, which every card's ledger can take."""
LENGTHS = tuple(2**k for k in range(9, 18))
CONTEXTS = tuple(2**k for k in range(7, 21))


@lru_cache(maxsize=32)
def spec(name: str) -> ModelSpec:
    """The model of that config; ValueError with the names otherwise."""
    if name not in names():
        raise ValueError(f"there is no config called {name!r}: choose one of {', '.join(names())}")
    return ModelSpec.from_config(CONFIGS / f"{name}.json")


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """The configs that come with the course."""
    return tuple(sorted(path.stem for path in CONFIGS.glob("*.json")))


@lru_cache(maxsize=4_000)
def ledger(
    model_name: str,
    card: str,
    gpu_memory_utilization: float = 0.9,
    max_num_seqs: int = ENGINES_OWN,
    max_num_batched_tokens: int = ENGINES_OWN,
    kv_dtype: str = "bfloat16",
    max_model_len: int = 4_096,
    weights_bytes: float | None = None,
) -> Ledger:
    """`memory.ledger` by the names that sliders have."""
    seqs = None if max_num_seqs == ENGINES_OWN else max_num_seqs
    tokens = None if max_num_batched_tokens == ENGINES_OWN else max(max_num_batched_tokens, seqs or 0)
    return memory.ledger(
        spec(model_name),
        card,
        kv_dtype=kv_dtype,
        max_model_len=max_model_len,
        gpu_memory_utilization=gpu_memory_utilization,
        max_num_batched_tokens=tokens,
        max_num_seqs=seqs,
        weights_bytes=weights_bytes,
    )


@dataclass(frozen=True)
class Fit:
    """A ledger, and how many sequences of each of LENGTHS fit into its pool, with 16-bit and with fp8 KV."""

    model_name: str
    card: str
    kv_dtype: str
    ledger: Ledger
    lines: Mapping[str, Sequence[int]]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What cannot be on this card."""
        return self.ledger.problems


def fit(model_name: str, card: str, kv_dtype: str, max_model_len: int, **settings: float) -> Fit:
    """The ledger at these settings, and the lines of its figure."""
    by_dtype = {
        dtype: ledger(model_name, card, kv_dtype=dtype, max_model_len=max_model_len, **settings)
        for dtype in ("bfloat16", "fp8")
    }
    lines = {dtype: [one.max_sequences(length) for length in LENGTHS] for dtype, one in by_dtype.items()}
    return Fit(model_name, card, kv_dtype, by_dtype[kv_dtype], lines)


def short_rows(result: Fit) -> list[tuple[str, str]]:
    """Bytes a token, what the pool has, and the two lines that the engine's log prints."""
    found = result.ledger
    length = found.max_model_len
    fixed = found.weights_bytes + found.activation_bytes + found.other_bytes
    return [
        ("a token keeps", f"{found.spec.kv_bytes_per_token:,} B"),
        ("layers, KV heads", f"{found.spec.num_layers}, {found.spec.num_kv_heads}"),
        ("usable", f"{found.usable_bytes / GIB:.2f} GiB"),
        ("weights and all else", f"{fixed / GIB:.2f} GiB"),
        ("KV pool", f"{found.kv_bytes / GIB:.2f} GiB"),
        ("KV cache size", f"{found.kv_tokens:,} tokens" if found.kv_tokens is not None else "no limit"),
        ("concurrency", f"{found.concurrency(length):.2f}x"),
    ]


def fit_rows(result: Fit) -> list[tuple[str, str, str]]:
    """Bytes a token, and the lines of the ledger, each with its formula."""
    model_spec = result.ledger.spec
    element = model_spec.kv_bytes_per_element
    formula = (
        f"2 x {model_spec.num_layers} layers x {model_spec.num_kv_heads} KV heads x {model_spec.head_dim} x {element:g}"
    )
    return [
        ("", "value", "from"),
        ("a token keeps", f"{model_spec.kv_bytes_per_token:,} B", formula),
        *ledger_rows(result.ledger),
    ]


def ledger_rows(card: Ledger) -> list[tuple[str, str, str]]:
    """(name, value, formula) of each line of the ledger; bytes as GiB."""

    def gib(size: int) -> str:
        return f"{size / GIB:.2f} GiB"

    def count(number: int | None) -> str:
        return "no limit" if number is None else f"{number:,}"

    length, share = card.max_model_len, card.usable_bytes / card.total_bytes
    each = card.pool.bytes_per_block
    return [
        ("total", gib(card.total_bytes), "the card, as its runtime reports it"),
        ("a step", f"{card.max_num_seqs:,} seqs", f"and {card.max_num_batched_tokens:,} tokens at most"),
        ("usable", gib(card.usable_bytes), f"gpu_memory_utilization {share:.2f} x total"),
        ("weights", gib(card.weights_bytes), f"{card.weights_bytes:,} B, from the config"),
        ("activation", gib(card.activation_bytes), "estimate: sampler or widest layer"),
        ("other", gib(card.other_bytes), "estimate: CUDA context, libraries"),
        ("KV", gib(card.kv_bytes), "usable - weights - activation - other"),
        ("blocks", count(card.num_blocks), f"KV / {each:,} B a block"),
        ("tokens", count(card.kv_tokens), _tokens_from(card)),
        (
            f"of {length:,} tokens",
            f"{card.concurrency(length):.2f}x",
            f"blocks / {card.pool.blocks_for(length):,} of a sequence",
        ),
        ("longest sequence", count(card.longest_sequence), "fits alone"),
    ]


def _tokens_from(card: Ledger) -> str:
    """How the engine counts tokens: with several kinds of layers that depends on its version."""
    groups = len(card.pool.groups)
    if groups == 1:
        return f"blocks x {card.pool.block_size} tokens"
    if any(group.kind == "state" for group in card.pool.groups):
        return f"times {card.max_model_len:,} (vLLM 0.21 on)"
    return f"blocks x {card.pool.block_size} / {groups} groups (up to 0.20)"


@dataclass(frozen=True)
class Shape:
    """A model of plain attention by its five numbers, and one sequence of it."""

    num_layers: int
    kv_heads: int
    head_dim: int
    element_bytes: int
    length: int
    query_heads: int = 32

    def token_bytes(self, kv_heads: int | None = None) -> int:
        """KV bytes a token: 2 x layers x KV heads x head dimension x bytes an element."""
        return 2 * self.num_layers * (kv_heads or self.kv_heads) * self.head_dim * self.element_bytes

    @cached_property
    def spec(self) -> ModelSpec:
        """The same as a ModelSpec, with Llama-3.1-8B's other sizes."""
        return replace(
            model("llama-3.1-8b"), num_layers=self.num_layers, num_kv_heads=self.kv_heads, head_dim=self.head_dim,
            kv_bytes_per_element=self.element_bytes,
        )  # fmt: skip


def shape(num_layers: int, kv_heads: int, head_dim: int, element_bytes: int, length: int) -> Shape:
    """What the sliders of the first explorer set."""
    return Shape(num_layers, kv_heads, head_dim, element_bytes, length)


def shape_rows(result: Shape) -> list[tuple[str, ...]]:
    """A token and a sequence: with a KV head for each query head, as set, and with one KV head."""
    by_heads = {
        f"MHA, {result.query_heads} KV heads": result.query_heads,
        f"as set, {result.kv_heads}": result.kv_heads,
        "MQA, 1 KV head": 1,
    }
    tokens = [result.token_bytes(heads) for heads in by_heads.values()]
    return [
        ("", *by_heads),
        ("bytes a token", *(f"{size:,} B" for size in tokens)),
        (f"a sequence of {result.length:,}", *(f"{size * result.length / GIB:.3f} GiB" for size in tokens)),
        ("in the RTX 4090's pool", *(f"{POOL_BYTES / (size * result.length):.2f}x" for size in tokens)),
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


ARCHITECTURES: Mapping[str, str] = {
    "full attention, MHA: llama-2-7b": "llama-2-7b",
    "full attention, GQA: llama-3.1-8b": "llama-3.1-8b",
    "full attention, MQA: falcon-7b": "falcon-7b",
    "half the layers windowed: gpt-oss-120b": "gpt-oss-120b",
    "latent rows (MLA): deepseek-v3": "deepseek-v3",
    "recurrent hybrid: nemotron-h-56b": "nemotron-h-56b",
}


@dataclass(frozen=True)
class OneSequence:
    """One architecture at one length, beside all the others over CONTEXTS."""

    name: str
    length: int
    spec: ModelSpec
    curves: Mapping[str, Sequence[int]]

    @property
    def bytes(self) -> int:
        """What the model keeps of the sequence."""
        return sequence_bytes(self.spec, self.length)


@lru_cache(maxsize=1)
def _curves() -> Mapping[str, Sequence[int]]:
    return {name: [sequence_bytes(spec(name), length) for length in CONTEXTS] for name in ARCHITECTURES.values()}


def architecture(name: str, length: int) -> OneSequence:
    """What the sliders of the optional part set."""
    return OneSequence(name, length, spec(name), _curves())


def architecture_rows(result: OneSequence) -> list[tuple[str, str]]:
    """The three numbers that describe a model, and what they come to at this length."""
    model_spec = result.spec
    flat = model_spec.kv_bytes_per_token * result.length + model_spec.state_bytes
    return [
        ("bytes a token, every layer", f"{model_spec.kv_bytes_per_token:,} B"),
        ("bytes a further token, windows full", f"{model_spec.kv_bytes_after_window:,} B"),
        ("state a sequence, whatever its length", f"{model_spec.state_bytes / 2**20:,.1f} MiB"),
        (f"a sequence of {result.length:,}", f"{result.bytes / 2**20:,.1f} MiB"),
        ("if every layer kept every token", f"{flat / 2**20:,.1f} MiB"),
    ]
