"""The memory of one card, line by line, from its total to the sequences that fit."""

from dataclasses import dataclass, field, replace
from math import ceil

from course.base import settings
from course.memory import estimates, report
from course.memory.estimates import Amount
from course.memory.layout import MAX_BYTES, MAX_TOKENS, Pool, pool
from course.memory.report import Line
from course.models import ModelSpec, formula, gpus, model
from course.models.gpus import GPU


@dataclass(frozen=True)
class Ledger:
    """The memory of one of `tp` cards, in bytes. `kv_bytes` is negative where nothing is left; `problems` say so then.

    pool: the blocks that `kv_bytes` hold. lines: every figure with its formula. max_model_len: tokens.
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
        """Blocks of the KV pool on one card."""
        return self.pool.num_blocks

    @property
    def kv_tokens(self) -> int | None:
        """Tokens that vLLM prints as "GPU KV cache size"; None for a model that keeps a recurrent state only."""
        return self.pool.num_tokens(self.max_model_len)

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
    num_gpu_blocks_override: int | None = None,
    num_speculative_tokens: int = 0,
    mamba_cache_mode: str = "none",
    disable_hybrid_kv_cache_manager: bool = False,
    weights_bytes: float | None = None,
    activation_bytes: float | None = None,
    other_bytes: float | None = None,
) -> Ledger:
    """What is on each of `tp` cards that serve `spec` together, and what is left for the KV pool.

    KV = gpu_memory_utilization x total - weights - activation - other, as vLLM profiles it; blocks and sequences as in
    `memory.pool`, which explains the settings that are not named here.

    spec, gpu: names, or a ModelSpec and a GPU; memory_bytes: the card's total instead of a name. kv_dtype: "fp8", ...,
    "auto" for what the checkpoint asks for, by default 16 bits. max_model_len: tokens, the model's own by default.
    num_gpu_blocks_override: blocks that somebody claims, whatever is left. weights_bytes, activation_bytes,
    other_bytes: per card, as your engine prints them, instead of the estimates; the memory of CUDA graphs belongs to
    the last where an engine subtracts it, as vLLM does from 0.19 on.

    Raises ValueError for settings out of range, for heads that cannot be spread over `tp` ranks, and where a figure is
    missing: a card without a known memory, weights that could not be counted.
    """
    spec = (spec if isinstance(spec, ModelSpec) else model(spec)).with_kv_dtype(kv_dtype)
    tp = settings.whole("tp", tp, high=4096)
    share = settings.real("gpu_memory_utilization", gpu_memory_utilization, above=0, high=1)
    batched = settings.whole("max_num_batched_tokens", max_num_batched_tokens)
    seqs = settings.whole("max_num_seqs", max_num_seqs)
    length = _length(spec, max_model_len)
    total = _total(gpu, memory_bytes)
    weights = _as_given("weights", weights_bytes) or _weights(spec, tp)
    activation = _as_given("activation", activation_bytes) or estimates.activation(spec, tp, batched, seqs)
    other = _as_given("other", other_bytes) or estimates.other(tp)
    usable = int(share * total.bytes)
    kv = usable - weights.bytes - activation.bytes - other.bytes
    blocks = pool(
        spec,
        kv,
        tp=tp,
        block_size=block_size,
        max_num_batched_tokens=batched,
        num_speculative_tokens=num_speculative_tokens,
        mamba_cache_mode=mamba_cache_mode,
        disable_hybrid_kv_cache_manager=disable_hybrid_kv_cache_manager,
    )
    if num_gpu_blocks_override is not None:
        claimed = settings.whole("num_gpu_blocks_override", num_gpu_blocks_override)
        blocks = replace(blocks, num_blocks=claimed, kv_bytes=claimed * blocks.bytes_per_block)
    lines = (
        Line("total", total.bytes, "bytes", total.formula),
        Line("usable", usable, "bytes", f"gpu_memory_utilization {share:g} x total"),
        Line("weights", weights.bytes, "bytes", weights.formula),
        Line("activation", activation.bytes, "bytes", activation.formula),
        Line("other", other.bytes, "bytes", other.formula),
        Line("KV", kv, "bytes", "usable - weights - activation - other"),
        *report.pool_lines(blocks, length, overridden=num_gpu_blocks_override is not None),
    )
    problems = report.problems(total.bytes, usable, weights.bytes, kv, blocks, length)
    shares = weights.bytes, activation.bytes, other.bytes, kv
    return Ledger(spec, tp, length, total.bytes, usable, *shares, blocks, lines, problems)


def _length(spec: ModelSpec, asked: int | None) -> int:
    if asked is not None:
        return settings.whole("max_model_len", asked, high=MAX_TOKENS)
    if spec.max_position_embeddings is None:
        raise ValueError(f"{spec.name} does not say how long a sequence may be: give max_model_len")
    return spec.max_position_embeddings


def _total(gpu: GPU | str | None, memory_bytes: float | None) -> Amount:
    if memory_bytes is not None:
        return Amount(int(settings.real("memory_bytes", memory_bytes, low=1, high=MAX_BYTES)), "given")
    if gpu is None:
        raise ValueError("a ledger needs a GPU, or its memory_bytes")
    card = gpu if isinstance(gpu, GPU) else gpus.gpu(gpu)
    if card.memory_bytes is None:
        raise ValueError(f"the memory of {card.name} is not known: give memory_bytes")
    return Amount(card.memory_bytes, f"{card.name}: {card.memory_source}")


def _weights(spec: ModelSpec, tp: int) -> Amount:
    whole = spec.weights_bytes
    if whole is None:
        reasons = [note for note in spec.notes if note.startswith("the weights")]
        raise ValueError("; ".join([*reasons, f"give the weights_bytes of {spec.name}"]))
    share = f" / {tp} ranks" if tp > 1 else ""
    return Amount(ceil(whole / tp), f"{formula.weights_bytes(spec)}{share}")


def _as_given(name: str, number: float | None) -> Amount | None:
    if number is None:
        return None
    return Amount(int(settings.real(f"{name}_bytes", number, low=0, high=MAX_BYTES)), "given")
