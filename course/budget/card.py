"""The memory of one card, line by line, from its total to the sequences that fit."""

from dataclasses import dataclass, field
from math import ceil

from course import gpus, settings
from course.gpus import GPU
from course.models import ModelSpec, model

from . import estimates
from .pool import MAX_BYTES, MAX_TOKENS, Pool, pool

GIB = 2**30


@dataclass(frozen=True)
class Line:
    """One line of a ledger: value in `unit` ("bytes", "tokens", "blocks", "sequences") and where it comes from."""

    name: str
    value: int | None
    unit: str
    formula: str


@dataclass(frozen=True)
class Ledger:
    """The memory of one card, in bytes. `kv_bytes` is negative where the weights leave nothing, and `problems` say so.

    pool: the blocks that `kv_bytes` hold. lines: every figure with its formula.
    """

    spec: ModelSpec
    tp: int
    max_model_len: int
    total_bytes: int
    usable_bytes: int
    weights_bytes: int
    activation_bytes: int
    other_bytes: int
    kv_bytes: int
    pool: Pool
    lines: tuple[Line, ...] = field(repr=False)
    problems: tuple[str, ...] = ()

    @property
    def num_blocks(self) -> int:
        return self.pool.num_blocks

    @property
    def kv_tokens(self) -> int:
        return self.pool.num_tokens

    @property
    def longest_sequence(self) -> int | None:
        """Tokens of the longest sequence that fits alone, whatever the model was trained for; None: no limit."""
        return self.pool.longest_sequence

    def max_sequences(self, length: int) -> int:
        """Sequences of `length` tokens that fit at once."""
        return self.pool.max_sequences(length)

    def concurrency(self, length: int) -> float:
        """The same as a real number, as vLLM prints it."""
        return self.pool.concurrency(length)


def ledger(
    spec: ModelSpec | str,
    gpu: GPU | str | None = None,
    *,
    memory_bytes: float | None = None,
    tp: int = 1,
    kv_dtype: str | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float = 0.9,
    max_num_batched_tokens: int = 2048,
    max_num_seqs: int = 256,
    block_size: int = 16,
    num_speculative_tokens: int = 0,
    mamba_cache_mode: str = "none",
    weights_bytes: float | None = None,
    activation_bytes: float | None = None,
    other_bytes: float | None = None,
) -> Ledger:
    """What is on each of `tp` cards that serve `spec` together, and what is left for the KV pool.

    KV = gpu_memory_utilization x total - weights - activation - other, as vLLM profiles it; blocks and sequences as in
    `budget.pool`.

    spec, gpu: names, or a ModelSpec and a GPU; memory_bytes: the card's total instead of a name. kv_dtype: "fp8", ...,
    "auto" for what the checkpoint asks for. max_model_len: tokens, the model's own by default. weights_bytes,
    activation_bytes, other_bytes: per card, as your engine prints them, instead of the estimates; the memory of CUDA
    graphs belongs to the last where an engine subtracts it.

    Raises ValueError for settings out of range, for heads that cannot be spread over `tp` ranks, and where a figure is
    missing: a card without a known memory, weights that could not be counted.
    """
    spec = spec if isinstance(spec, ModelSpec) else model(spec)
    spec = spec.with_kv_dtype(kv_dtype)
    tp = settings.whole("tp", tp, high=4096)
    share = settings.real("gpu_memory_utilization", gpu_memory_utilization, above=0, high=1)
    batched = settings.whole("max_num_batched_tokens", max_num_batched_tokens)
    seqs = settings.whole("max_num_seqs", max_num_seqs)
    length = _length(spec, max_model_len)
    total, total_formula = _total(gpu, memory_bytes)

    weights, weights_formula = _weights(spec, tp) if weights_bytes is None else _given("weights", weights_bytes)
    if activation_bytes is None:
        activation, activation_formula = estimates.activation(spec, tp, batched, seqs)
    else:
        activation, activation_formula = _given("activation", activation_bytes)
    other, other_formula = estimates.other(tp) if other_bytes is None else _given("other", other_bytes)
    usable = int(share * total)
    kv = usable - weights - activation - other
    blocks = pool(
        spec,
        kv,
        tp=tp,
        block_size=block_size,
        max_num_batched_tokens=batched,
        num_speculative_tokens=num_speculative_tokens,
        mamba_cache_mode=mamba_cache_mode,
    )
    lines = (
        Line("total", total, "bytes", total_formula),
        Line("usable", usable, "bytes", f"gpu_memory_utilization {share:g} x total"),
        Line("weights", weights, "bytes", weights_formula),
        Line("activation", activation, "bytes", activation_formula),
        Line("other", other, "bytes", other_formula),
        Line("KV", kv, "bytes", "usable - weights - activation - other"),
        *_pool_lines(blocks, length),
    )
    problems = _problems(usable, weights, kv, blocks, length)
    return Ledger(spec, tp, length, total, usable, weights, activation, other, kv, blocks, lines, problems)


def _length(spec: ModelSpec, asked: int | None) -> int:
    if asked is not None:
        return settings.whole("max_model_len", asked, high=MAX_TOKENS)
    if spec.max_position_embeddings is None:
        raise ValueError(f"{spec.name} does not say how long a sequence may be: give max_model_len")
    return spec.max_position_embeddings


def _total(gpu: GPU | str | None, memory_bytes: float | None) -> tuple[int, str]:
    if memory_bytes is not None:
        return int(settings.real("memory_bytes", memory_bytes, low=1, high=MAX_BYTES)), "given"
    if gpu is None:
        raise ValueError("a ledger needs a GPU, or its memory_bytes")
    card = gpu if isinstance(gpu, GPU) else gpus.gpu(gpu)
    if card.memory_bytes is None:
        raise ValueError(f"the memory of {card.name} is not known: give memory_bytes")
    return card.memory_bytes, f"{card.name}, as the runtime reports it"


def _weights(spec: ModelSpec, tp: int) -> tuple[int, str]:
    whole = spec.weights_bytes
    share = f" / {tp} ranks" if tp > 1 else ""
    return ceil(whole / tp), f"{whole:,} B{share}"


def _given(name: str, number: float) -> tuple[int, str]:
    return int(settings.real(f"{name}_bytes", number, low=0, high=MAX_BYTES)), "given"


def _pool_lines(blocks: Pool, length: int) -> tuple[Line, ...]:
    groups, size = len(blocks.groups), blocks.block_size
    several = f" / {groups} groups" if groups > 1 else ""
    needs = " + ".join(f"{group.blocks(length):,}" for group in blocks.groups)
    return (
        Line("blocks", blocks.num_blocks, "blocks", f"KV / {blocks.bytes_per_block:,} B a block"),
        Line("tokens", blocks.num_tokens, "tokens", f"{blocks.num_blocks:,} blocks{several} x {size} tokens"),
        Line(
            f"sequences of {length:,}",
            blocks.max_sequences(length),
            "sequences",
            f"{blocks.num_blocks:,} / ({needs}) blocks = {blocks.concurrency(length):.2f}",
        ),
        Line("longest sequence", blocks.longest_sequence, "tokens", "the longest that fits alone"),
    )


def _problems(usable: int, weights: int, kv: int, blocks: Pool, length: int) -> tuple[str, ...]:
    if weights > usable:
        return (
            f"the weights, {weights / GIB:.2f} GiB a card, do not fit into the usable {usable / GIB:.2f} GiB: "
            "take more ranks, a larger card or smaller weights",
        )
    if kv <= 0:
        return (f"nothing is left for the KV cache ({kv / GIB:.2f} GiB): take more ranks or a larger card",)
    if not blocks.max_sequences(length):
        return (
            f"not one sequence of {length:,} tokens fits: the longest has {blocks.longest_sequence:,}. Lower "
            "max_model_len or raise gpu_memory_utilization",
        )
    return ()
