"""A ledger in words: its lines with their formulas, and what cannot be."""

from collections import Counter
from dataclasses import dataclass

from course.memory.layout import Pool

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


def pool_lines(pool: Pool, length: int, overridden: bool) -> tuple[Line, ...]:
    """Blocks, tokens, sequences of `length` and the longest sequence."""
    tokens, groups = pool.num_tokens(length), len(pool.groups)
    if tokens is None:
        said = "a recurrent state has no tokens"
    elif any(group.kind == "state" for group in pool.groups):
        said = f"{pool.num_blocks:,} blocks / {pool.blocks_for(length):,} a sequence x {length:,} tokens"
    else:
        several = f" / {groups} groups" if groups > 1 else ""
        said = f"{pool.num_blocks:,} blocks{several} x {pool.block_size} tokens"
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
        Line("tokens", tokens, "tokens", said),
        Line(
            f"sequences of {length:,}",
            pool.max_sequences(length),
            "sequences",
            f"{pool.num_blocks:,} / ({' + '.join(terms)}) blocks = {pool.concurrency(length):.2f}",
        ),
        Line(
            "longest sequence",
            longest,
            "tokens",
            "no layer keeps every token" if longest is None else "the longest whose blocks are there",
        ),
    )


def _block(pool: Pool) -> str:
    attention = {group.block_size: group.num_layers for group in pool.groups if group.kind != "state"}
    if not attention:
        return f"the states of {pool.groups[0].num_layers} layers"
    sizes = " or ".join(f"{size} tokens" for size in sorted(attention))
    return f"{sizes} in {next(iter(attention.values()))} layers"


def problems(total: int, usable: int, weights: int, kv: int, pool: Pool, length: int) -> tuple[str, ...]:
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
        left = f"impossible: {kv / GIB:.2f} GiB are left for the KV cache"
        return (f"{left}. Take more ranks, a larger card or smaller weights",)
    if pool.kv_bytes > kv:
        size = f"{pool.num_blocks:,} blocks are {pool.kv_bytes / GIB:.2f} GiB"
        return (f"impossible: {size}, and {kv / GIB:.2f} GiB are left for them",)
    if not pool.max_sequences(length):
        return (
            f"not one sequence of {length:,} tokens fits: the longest has {pool.longest_sequence:,}. Lower "
            "max_model_len or raise gpu_memory_utilization",
        )
    return ()
