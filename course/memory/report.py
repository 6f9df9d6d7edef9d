"""A ledger in words: its lines with their formulas, and what cannot be."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course.memory.layout import Pool
from course.models import engine_defaults
from course.models.engine_defaults import Release

GIB = 2**30


@dataclass(frozen=True)
class Line:
    """One line of a ledger: value in `unit` ("bytes", "tokens", "blocks", "sequences") and where it comes from."""

    name: str
    value: int | None
    unit: str
    formula: str

    @property
    def bytes(self) -> int | None:
        """The value of a line in bytes, None for the others."""
        return self.value if self.unit == "bytes" else None


def pool_lines(pool: Pool, length: int, overridden: bool, release: Release | None = None) -> tuple[Line, ...]:
    """Blocks, tokens as `release` prints them, sequences of `length` and the longest sequence."""
    tokens, formula = pool.num_tokens(length, release), _tokens_from(pool, length, release)
    needs = Counter((group.kind, group.blocks(length)) for group in pool.groups)
    terms = [
        f"{number} x {blocks:,} ({kind})" if len(needs) > 1 or number > 1 else f"{blocks:,}"
        for (kind, blocks), number in needs.items()
    ]
    longest = pool.longest_sequence
    return (
        Line(
            "blocks",
            pool.num_blocks,
            "blocks",
            "as claimed" if overridden else f"KV / {pool.bytes_per_block:,} B: {_block(pool)}",
        ),
        Line("tokens", tokens, "tokens", formula),
        Line(
            f"sequences of {length:,}",
            pool.max_sequences(length),
            "sequences",
            f"{pool.free_blocks:,} free / ({' + '.join(terms)}) blocks; vLLM prints {pool.concurrency(length):.2f}x; "
            f"one needs {pool.blocks_for(length) * pool.bytes_per_block / GIB:.2f} GiB",
        ),
        Line(
            "longest sequence",
            longest,
            "tokens",
            "no layer keeps every token" if longest is None else "the longest whose blocks are there",
        ),
    )


def _tokens_from(pool: Pool, length: int, release: Release | None) -> str:
    """The formula of the tokens, and whose they are if versions print different ones."""
    groups, ranks = len(pool.groups), max(group.ranks for group in pool.groups)
    if pool.num_tokens(length, release) is None:
        return "a recurrent state has no tokens"
    older, newer = (pool.num_tokens(length, engine_defaults.release(version)) for version in ("0.19", "0.21"))
    if pool.counts_by_concurrency(release):
        own = "" if groups == 1 else f"; vLLM from 0.21 on (before: {older:,})"
        return f"{pool.num_blocks:,} blocks / {pool.blocks_for(length):,} a sequence x {length:,} tokens{own}"
    several = f" / {groups} groups" if groups > 1 else ""
    shared = f" x {ranks} ranks" if ranks > 1 else ""
    own = "" if groups == 1 else f"; vLLM up to 0.20 (from 0.21 on: {newer:,})"
    return f"{pool.num_blocks:,} blocks{several} x {pool.block_size} tokens{shared}{own}"


def replica_lines(pool: Pool, length: int, dp: int) -> tuple[Line, ...]:
    """What data parallel ranks hold together."""
    if dp == 1:
        return ()
    sequences = dp * pool.max_sequences(length)
    return (Line(f"over {dp} replicas", sequences, "sequences", f"{dp} x {pool.max_sequences(length):,}"),)


def whole_prompts(
    cards: Sequence, activation: int, blocks: Callable[[list[int]], Pool], length: int, batched: int
) -> list[str]:
    """A sentence if sequences of `length` fit only because prompts are split into steps of `batched` tokens.

    cards: of each stage, with the activation of a step of `length` tokens.
    """
    whole = blocks([card.kv for card in cards])
    more = max(card.activation.bytes for card in cards) - activation
    if more <= 0 or whole.max_sequences(length):
        return []
    return [
        f"{length:,} tokens fit because prompts are split into steps of {batched:,}. An engine that profiles whole "
        f"prompts (--no-enable-chunked-prefill, vLLM before 0.8) needs {more / GIB:.2f} GiB more for activations, "
        "and then not one fits"
    ]


def _block(pool: Pool) -> str:
    attention = {group.block_size: group.num_layers for group in pool.groups if group.kind != "state"}
    if not attention:
        return f"the states of {pool.groups[0].num_layers} layers"
    sizes = " or ".join(f"{size} tokens" for size in sorted(attention))
    return f"{sizes} in {next(iter(attention.values()))} layers"


def problems(total: int, usable: int, weights: int, kv: int, pool: Pool, length: int, seqs: int = 0) -> tuple[str, ...]:
    """Sentences on what cannot be: a pool larger than the card or than what is left, weights that do not fit, ..."""
    if pool.kv_bytes > total:
        return (
            f"impossible: {pool.num_blocks:,} blocks are {pool.kv_bytes / GIB:.2f} GiB, more than the whole card's "
            f"{total / GIB:.2f} GiB",
        )
    if weights > usable:
        return (
            f"impossible: the weights, {weights / GIB:.2f} GiB a card, do not fit into the usable "
            f"{usable / GIB:.2f} GiB. Take more ranks, a larger card or smaller weights",
        )
    if kv <= 0:
        sentence = f"impossible: {kv / GIB:.2f} GiB are left for the KV cache"
        return (f"{sentence}. Take more ranks, a larger card or smaller weights",)
    if pool.kv_bytes > kv:
        size = f"{pool.num_blocks:,} blocks are {pool.kv_bytes / GIB:.2f} GiB"
        return (f"impossible: {size}, and {kv / GIB:.2f} GiB are left for them",)
    if not pool.max_sequences(length):
        return (
            f"not one sequence of {length:,} tokens fits: the longest has {pool.longest_sequence:,}. Lower "
            "max_model_len or raise gpu_memory_utilization",
        )
    states = any(group.kind == "state" for group in pool.groups)
    if states and seqs > pool.num_blocks:
        return (
            f"vLLM refuses max_num_seqs {seqs:,}: each sequence keeps a recurrent state in a block of its own, and "
            f"there are {pool.num_blocks:,} blocks. Lower max_num_seqs to {pool.num_blocks:,} at most",
        )
    return ()
