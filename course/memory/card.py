"""The memory of one card, line by line, from its total to the sequences that fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from course.base import settings
from course.memory import estimates, layout, ranks, report
from course.memory.drafts import drafts
from course.memory.estimates import Amount
from course.memory.layout import MAX_TOKENS, Pool
from course.memory.ranks import MAX_BYTES
from course.memory.report import Line
from course.models import ModelSpec, engine_defaults, gpus, model
from course.models.engine_defaults import Release
from course.models.gpus import GPU

Memory = float | Sequence[float]


@dataclass(frozen=True)
class Ledger:
    """The memory of one card, in bytes. `kv_bytes` is negative if nothing is left; `problems` say so then.

    Of several ranks it is the card that decides: the one with the fewest blocks. pool: the blocks that `kv_bytes` hold.
    lines: every figure with its formula. max_model_len: tokens. max_num_seqs, max_num_batched_tokens: of a step. tp,
    pp, dp: ranks of tensor, pipeline and data parallelism. release: of the engine, if one was asked for. defaults: a
    sentence on the settings that were not given. remarks: what a reader should know beside `problems`, what cannot be.
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
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    pp: int = 1
    dp: int = 1
    release: Release | None = None
    defaults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def num_blocks(self) -> int:
        """Blocks of the KV pool on one card."""
        return self.pool.num_blocks

    @property
    def kv_tokens(self) -> int | None:
        """Tokens that vLLM prints as "GPU KV cache size"; None for a model that keeps a recurrent state only."""
        return self.pool.num_tokens(self.max_model_len, self.release)

    @property
    def kv_tokens_by_version(self) -> dict[str, int | None]:
        """The same as vLLM 0.19 and 0.21 print it."""
        return {
            version: self.pool.num_tokens(self.max_model_len, engine_defaults.release(version))
            for version in ("0.19", "0.21")
        }

    @property
    def longest_sequence(self) -> int | None:
        """Tokens of the longest sequence that fits alone, whatever the model was trained for; None: no limit."""
        return self.pool.longest_sequence

    def max_sequences(self, length: int) -> int:
        """Sequences of `length` tokens that fit at once, on one rank of data parallelism."""
        return self.pool.max_sequences(length)

    def concurrency(self, length: int) -> float:
        """A real number that vLLM prints as "Maximum concurrency", from all blocks, its own one too."""
        return self.pool.concurrency(length)


@dataclass(frozen=True)
class _Card:
    """One card's figures, each with its formula."""

    total: Amount
    usable: int
    weights: Amount
    activation: Amount
    other: Amount

    @classmethod
    def of_a_pool(cls, pool: Pool) -> "_Card":
        """A card of which only the size of the KV pool is known, as an engine printed it."""
        nothing = Amount(0, "")
        return cls(Amount(pool.kv_bytes, ""), pool.kv_bytes, nothing, nothing, nothing)

    @property
    def kv(self) -> int:
        return self.usable - self.weights.bytes - self.activation.bytes - self.other.bytes

    def lines(self, share: float) -> tuple[Line, ...]:
        """The lines from the card's total down to what is left for the KV pool. share: gpu_memory_utilization."""
        return (
            Line("total", self.total.bytes, "bytes", self.total.formula),
            Line("usable", self.usable, "bytes", f"gpu_memory_utilization {share:g} x total"),
            Line("weights", self.weights.bytes, "bytes", self.weights.formula),
            Line("activation", self.activation.bytes, "bytes", self.activation.formula),
            Line("other", self.other.bytes, "bytes", self.other.formula),
        )


@dataclass(frozen=True)
class _Profile:
    """What vLLM finds on the cards as it starts. totals: of the smallest card of each stage.

    expert_ranks: over which experts are spread besides the `tp` of a layer. world: ranks in all. as_printed: weights,
    activation and other in bytes, None if they are estimated.
    """

    spec: ModelSpec
    stages: list[range]
    totals: list[Amount]
    share: float
    max_num_seqs: int
    draft_weights_bytes: int
    tp: int
    expert_ranks: int
    world: int
    as_printed: Mapping[str, float | None]

    def cards(self, tokens: int) -> list[_Card]:
        """A card for each stage of the pipeline, for a profiled step of so many tokens."""
        cards_of_stages = []
        for stage, total in zip(self.stages, self.totals, strict=True):
            last = stage is self.stages[-1]
            weights = self._printed_amount("weights") or estimates.weights(
                self.spec, stage, last, self.tp, self.expert_ranks, self.draft_weights_bytes
            )
            activation = self._printed_amount("activation") or estimates.activation(
                self.spec, self.tp, tokens, self.max_num_seqs, samples=last
            )
            other = self._printed_amount("other") or estimates.other(self.world)
            cards_of_stages.append(_Card(total, int(self.share * total.bytes), weights, activation, other))
        return cards_of_stages

    def _printed_amount(self, name: str) -> Amount | None:
        number = self.as_printed[name]
        if number is None:
            return None
        return Amount(int(settings.real(f"{name}_bytes", number, low=0, high=MAX_BYTES)), "given")


def ledger(
    spec: ModelSpec | str,
    gpu: GPU | str | Sequence[GPU | str] | None = None,
    *,
    memory_bytes: Memory | None = None,
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    pcp: int = 1,
    kv_dtype: str | None = None,
    max_model_len: int | None = None,
    gpu_memory_utilization: float | None = None,
    max_num_batched_tokens: int | None = None,
    max_num_seqs: int | None = None,
    enable_chunked_prefill: bool = True,
    block_size: int = 16,
    num_gpu_blocks_override: int | None = None,
    num_speculative_tokens: int = 0,
    speculative_method: str | None = None,
    draft_model: ModelSpec | None = None,
    draft_layers: int | None = None,
    mamba_cache_mode: str | None = None,
    enable_prefix_caching: bool | None = None,
    disable_hybrid_kv_cache_manager: bool = False,
    weights_bytes: float | None = None,
    activation_bytes: float | None = None,
    other_bytes: float | None = None,
    kv_bytes: Memory | None = None,
    version: str | None = None,
) -> Ledger:
    """What is on each of the cards that serve `spec` together, and what is left for the KV pool.

    KV = gpu_memory_utilization x total - weights - activation - other, as vLLM profiles it; blocks and sequences as in
    `memory.pool`, which explains the settings that are not named here.

    spec, gpu: names, or a ModelSpec and a GPU; memory_bytes: the card's total instead of a name. If the ranks
    differ, one for each of them, stage by stage: the smallest decides. dp: replicas, over which experts are spread.
    kv_dtype: "fp8", ..., "auto" for what the checkpoint asks for, by default 16 bits. max_model_len: tokens, the
    model's own by default.

    version: of vLLM, 0.19 by default. max_num_seqs, max_num_batched_tokens, gpu_memory_utilization: by default what
    that version takes on this card (`Ledger.defaults` says what). enable_chunked_prefill: if prompts are not split,
    the step that is profiled holds max_model_len tokens at least. num_gpu_blocks_override: blocks that an engine
    reports, whatever is left.

    enable_prefix_caching: with it a model with recurrent states keeps more of them (`layout.cache_mode`); by default
    off for such a model, as vLLM 0.19 has it.

    weights_bytes, activation_bytes, other_bytes: per card, as your engine prints them, instead of the estimates; the
    memory of CUDA graphs belongs to the last if an engine subtracts it, as vLLM does from 0.20 on. kv_bytes:
    "Available KV cache memory" as printed, of every card or of each, whatever the rest comes to.

    Raises ValueError for settings out of range, for heads that cannot be spread over `tp` ranks, and if a figure is
    missing: a card without a known memory, weights that could not be counted.
    """
    spec = (spec if isinstance(spec, ModelSpec) else model(spec)).with_kv_dtype(kv_dtype)
    tp, dp = settings.whole("tp", tp, high=4096), settings.whole("dp", dp, high=4096)
    pcp = settings.whole("pcp", pcp, high=4096)
    release = engine_defaults.release(version)
    stages = ranks.stages_of(spec.num_layers, pp)
    drafting = drafts(spec, num_speculative_tokens, speculative_method, draft_model, draft_layers)
    length = _length(spec, max_model_len)
    alone = kv_bytes is not None and gpu is None and memory_bytes is None  # a pool without a card
    totals = [Amount(0, "")] * len(stages) if alone else _totals(gpu, memory_bytes, len(stages))
    share, seqs, batched, defaults_note = _batch(
        release, totals[0].bytes, gpu, gpu_memory_utilization, max_num_seqs, max_num_batched_tokens, length,
        whole_prompts=release.whole_prompts or not settings.flag("enable_chunked_prefill", enable_chunked_prefill),
    )  # fmt: skip

    as_printed = {"weights": weights_bytes, "activation": activation_bytes, "other": other_bytes}
    profile = _Profile(
        spec, stages, totals, share, seqs, drafting.weights_bytes, tp, dp * pcp, tp * pp * pcp * dp, as_printed
    )
    pool_of = partial(
        layout.pool, spec, tp=tp, pp=pp, dcp=dcp, pcp=pcp, block_size=block_size, max_num_batched_tokens=batched,
        num_speculative_tokens=num_speculative_tokens, speculative_method=speculative_method, draft_model=draft_model,
        draft_layers=draft_layers, mamba_cache_mode=layout.cache_mode(spec, enable_prefix_caching, mamba_cache_mode),
        disable_hybrid_kv_cache_manager=disable_hybrid_kv_cache_manager,
    )  # fmt: skip

    cards = [] if alone else profile.cards(batched)
    pool = pool_of([card.kv for card in cards] if kv_bytes is None else kv_bytes)
    card = next((one for one in cards if one.kv == pool.kv_bytes), cards[0] if cards else _Card.of_a_pool(pool))
    kv = card.kv if kv_bytes is None else pool.kv_bytes
    if num_gpu_blocks_override is not None:
        claim = settings.whole("num_gpu_blocks_override", num_gpu_blocks_override)
        pool = replace(pool, num_blocks=claim, kv_bytes=claim * pool.bytes_per_block)
    printed = None if version is None else release
    lines = (
        *(() if alone else card.lines(share)),
        Line("KV", kv, "bytes", "usable - weights - activation - other" if kv_bytes is None else "as printed"),
        *report.pool_lines(pool, length, overridden=num_gpu_blocks_override is not None, release=printed),
        *report.replica_lines(pool, length, dp),
    )
    problems = report.problems(card.total.bytes, card.usable, card.weights.bytes, kv, pool, length, max_num_seqs or 0)
    remarks = [drafting.note] if drafting.note else []
    if not problems and length > batched and activation_bytes is None and kv_bytes is None:
        remarks += report.whole_prompts(profile.cards(length), card.activation.bytes, pool_of, length, batched)
    if release.counts_graphs and other_bytes is None:
        remarks.append(
            f"{release.name} also takes its estimate for CUDA graphs off the pool, which is not estimated here: give "
            "other_bytes as your engine prints it"
        )
    return Ledger(
        spec, tp, length, card.total.bytes, card.usable, card.weights.bytes, card.activation.bytes, card.other.bytes,
        kv, pool, lines, problems, max_num_seqs=seqs, max_num_batched_tokens=batched, pp=len(stages), dp=dp,
        release=printed, defaults=defaults_note, remarks=tuple(remarks),
    )  # fmt: skip


def _length(spec: ModelSpec, length: int | None) -> int:
    if length is not None:
        return settings.whole("max_model_len", length, high=MAX_TOKENS)
    if spec.max_position_embeddings is None:
        raise ValueError(f"{spec.name} does not say how long a sequence may be: give max_model_len")
    return spec.max_position_embeddings


def _totals(gpu: GPU | str | Sequence[GPU | str] | None, memory_bytes: Memory | None, stages: int) -> list[Amount]:
    """(total, where it is from) of the smallest card of each stage."""
    name = "gpu" if memory_bytes is None else "memory_bytes"
    if memory_bytes is None:
        cards = [gpu] if gpu is None or isinstance(gpu, str | GPU) else gpu
        totals = [_total(one, None) for one in cards]
    else:
        totals = [_total(None, one) for one in (memory_bytes if isinstance(memory_bytes, Sequence) else [memory_bytes])]
    if not totals:
        raise ValueError(f"{name} is an empty list: give one of every rank")
    if len(totals) == 1:
        return totals * stages
    if len(totals) % stages:
        raise ValueError(f"{name} has {len(totals)} ranks, which {stages} stages cannot share evenly")
    size = len(totals) // stages
    smallest = [min(totals[i * size : (i + 1) * size]) for i in range(stages)]
    return [
        Amount(one.bytes, f"{one.formula}: the smallest of {size} ranks" if size > 1 else one.formula)
        for one in smallest
    ]


def _total(gpu: GPU | str | None, memory_bytes: float | None) -> Amount:
    if memory_bytes is not None:
        return Amount(int(settings.real("memory_bytes", memory_bytes, low=1, high=MAX_BYTES)), "given")
    if gpu is None:
        raise ValueError("a ledger needs a GPU, or its memory_bytes")
    card = gpu if isinstance(gpu, GPU) else gpus.gpu(gpu)
    if card.memory_bytes is None:
        raise ValueError(f"the memory of {card.name} is not known: give memory_bytes")
    return Amount(card.memory_bytes, f"{card.name}: {card.memory_source}")


def _batch(
    release: Release,
    total: int,
    gpu: GPU | str | Sequence | None,
    share: float | None,
    seqs: int | None,
    tokens: int | None,
    length: int,
    *,
    whole_prompts: bool,
) -> tuple[float, int, int, tuple[str, ...]]:
    """gpu_memory_utilization, max_num_seqs, max_num_batched_tokens, and a sentence for those that were not given."""
    first = gpu[0] if isinstance(gpu, Sequence) and not isinstance(gpu, str) else gpu
    card = first if isinstance(first, GPU) or first is None else gpus.gpu(first)
    if card is None:  # by its memory alone, no A100
        large = total >= engine_defaults.LARGE_MEMORY
        where = f"a card of {total / 2**30:.2f} GiB" if total else "a card below 70 GiB"
        where += " that is no A100" if large else ""
        defaults = engine_defaults.LARGE if large else engine_defaults.SMALL
    else:
        where, defaults = card.name, engine_defaults.batch(card)
    seqs = None if seqs is None else settings.whole("max_num_seqs", seqs)
    tokens = None if tokens is None else settings.whole("max_num_batched_tokens", tokens)
    batch = engine_defaults.batch_of_length(seqs, tokens, defaults, length, whole_prompts=whole_prompts)
    words = [] if seqs is not None else [f"max_num_seqs {batch[0]:,}"]
    words += [] if tokens is not None else [f"max_num_batched_tokens {batch[1]:,}"]
    if share is None:
        share = release.gpu_memory_utilization
        if total:
            words.append(f"gpu_memory_utilization {share:g}")
    else:
        share = settings.real("gpu_memory_utilization", share, above=0, high=1)
    sentence = (f"not given, so what {release.name} takes on {where}: {', '.join(words)}",) if words else ()
    return share, *batch, sentence
