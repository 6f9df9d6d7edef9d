"""A KV pool as vLLM V1 lays it out: layers in groups, blocks of one size for all groups, a block table for each.

Layers that keep the same tokens form a group. With several kinds (full attention, a window, a recurrent state) every
block must have one size in bytes, so that any group can take any block:

- a layer with fewer bytes a token gets more tokens a block (gemma-4), and a recurrent state makes the blocks of the
  attention layers so long that one holds it;
- each kind is cut into groups of equally many layers, padded where that does not come out even.

Source: vllm/v1/core/kv_cache_utils.py and kv_cache_interface.py.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from course.base import settings
from course.models import ModelSpec
from course.models.layers import on_rank

MAX_BYTES = 10**15
MAX_TOKENS = 10**12
CACHE_MODES = ("none", "align")
ALIGNMENT = 16  # tokens; kernels want blocks in multiples of it
Kinds = Counter[tuple[str, int, int]]  # (kind, window, bytes) of a cache: the number of layers that have it
PADDED_UP_TO = 1.5  # times the layers of the rarer kind: fewer layers more than that are padded, not split


@dataclass(frozen=True)
class Group:
    """Layers with one block table between them.

    kind: "full", "window", "chunk" or "state". block_size: tokens of a block. window: tokens that stay, for the middle
    two. reserve: tokens of a step that come on top of the window, or blocks of a state.
    """

    kind: str
    num_layers: int
    block_size: int
    window: int = 0
    reserve: int = 0

    def blocks(self, length: int) -> int:
        """Blocks that a sequence of `length` tokens may need at most.

        A window may begin inside of a block, hence one more.
        """
        if self.kind == "state":
            return self.reserve
        if self.kind == "window":
            return -(-min(self.window - 1 + self.reserve, length) // self.block_size) + 1
        tokens = length if self.kind == "full" else min(self.window + self.reserve, length)
        return -(-tokens // self.block_size)


@dataclass(frozen=True)
class Pool:
    """Blocks of one rank. bytes_per_block: of all layers of one group. block_size: tokens of the smallest block."""

    kv_bytes: int
    num_blocks: int
    bytes_per_block: int
    block_size: int
    groups: tuple[Group, ...]

    def blocks_for(self, length: int) -> int:
        """Blocks, over all groups, that a sequence of `length` tokens needs."""
        length = settings.whole("length", length, high=MAX_TOKENS)
        return sum(group.blocks(length) for group in self.groups)

    def concurrency(self, length: int) -> float:
        """Sequences of `length` tokens that fit, as a real number: what vLLM prints as "Maximum concurrency"."""
        return self.num_blocks / self.blocks_for(length)

    def max_sequences(self, length: int) -> int:
        """Whole sequences of `length` tokens that fit at once."""
        return self.num_blocks // self.blocks_for(length)

    def num_tokens(self, length: int) -> int | None:
        """Tokens that vLLM prints as "GPU KV cache size", for an engine with this max_model_len.

        Blocks / groups x tokens of the smallest block: with windows that charges every layer for every token, so that a
        long sequence needs less than it says. With recurrent states sequences of `length` x `length`, and None where
        there is nothing else.
        """
        kinds = {group.kind for group in self.groups}
        if kinds == {"state"}:
            return None
        if "state" in kinds:
            return self.num_blocks * length // self.blocks_for(length)
        return self.num_blocks // len(self.groups) * self.block_size

    @property
    def longest_sequence(self) -> int | None:
        """Tokens of the longest sequence that fits alone, 0 where none does; None where any length fits."""
        if not any(group.kind == "full" for group in self.groups):
            return None if self.max_sequences(MAX_TOKENS) else self._longest(MAX_TOKENS)
        return self._longest(self.num_blocks * max(group.block_size for group in self.groups))

    def _longest(self, high: int) -> int:
        low = 0
        while low < high:
            middle = (low + high + 1) // 2
            if self.blocks_for(middle) <= self.num_blocks:
                low = middle
            else:
                high = middle - 1
        return low


def pool(
    spec: ModelSpec,
    kv_bytes: float | Sequence[float],
    *,
    tp: int = 1,
    block_size: int = 16,
    max_num_batched_tokens: int = 2048,
    num_speculative_tokens: int = 0,
    mamba_cache_mode: str = "none",
    disable_hybrid_kv_cache_manager: bool = False,
) -> Pool:
    """The blocks that `kv_bytes` of memory on each rank hold; of several ranks the smallest decides for all.

    max_num_batched_tokens: what a step adds to a window before it slides on; twice that with asynchronous scheduling.
    num_speculative_tokens: above 0, draft layers hold KV too, and a recurrent state is kept once more a token.
    mamba_cache_mode: "align" keeps a second state for prefix caching. disable_hybrid_kv_cache_manager: layers with a
    window keep every token. Raises ValueError for settings out of range, and for heads that cannot be spread over `tp`
    ranks.
    """
    tp = settings.whole("tp", tp, high=4096)
    block_size = settings.whole("block_size", block_size, high=2**20)
    batched = settings.whole("max_num_batched_tokens", max_num_batched_tokens)
    drafts = settings.whole("num_speculative_tokens", num_speculative_tokens, low=0, high=1000)
    if mamba_cache_mode not in CACHE_MODES:
        raise ValueError(f"mamba_cache_mode must be none or align, not {settings.quote(mamba_cache_mode)}")
    ranks = kv_bytes if isinstance(kv_bytes, Sequence) and not isinstance(kv_bytes, str) else [kv_bytes]
    if not ranks:
        raise ValueError("kv_bytes must be a number of bytes, or one a rank, not an empty list")
    memory = min(int(settings.real("kv_bytes", one, low=-MAX_BYTES, high=MAX_BYTES)) for one in ranks)

    layers = spec.layer_caches + (spec.draft_layers if drafts else ())
    kinds: Kinds = Counter(_kinds(layers, spec.kv_bytes_per_element, tp))
    if settings.flag("disable_hybrid_kv_cache_manager", disable_hybrid_kv_cache_manager):
        kinds = _without_windows(kinds)
    if not kinds:
        raise ValueError(f"{spec.name} keeps nothing of a sequence: there is no pool to size")
    size, layers_in_group, shapes = _shapes(kinds, block_size)
    reserve = {"window": batched, "chunk": batched, "state": (2 if mamba_cache_mode == "align" else 1) + drafts}
    groups = tuple(
        Group(kind, layers_in_group, tokens, window, reserve.get(kind, 0))
        for kind, window, tokens, number in shapes
        for _ in range(number)
    )
    tokens = min((group.block_size for group in groups if group.kind != "state"), default=block_size)
    return Pool(memory, max(memory // size, 0), size, tokens, groups)


def _shapes(kinds: Kinds, block_size: int) -> tuple[int, int, list[tuple[str, int, int, int]]]:
    """Bytes of a block, layers of a group, and (kind, window, tokens of a block, groups) of each kind."""
    held = {(kind, window) for kind, window, _ in kinds}
    if len(held) == 1:
        # Layers that hold the same tokens share one group, whatever their size.
        ((kind, window),) = held
        size = sum(count * each for (*_, each), count in kinds.items()) * (1 if kind == "state" else block_size)
        return size, sum(kinds.values()), [(kind, window, block_size, 1)]
    page, tokens = _page(kinds, block_size)
    layers = _layers_in_group(kinds.values())
    shapes = [
        (kind, window, tokens[kind, window, each], ceil(count / layers))
        for (kind, window, each), count in kinds.items()
    ]
    return page * layers, layers, shapes


def _without_windows(kinds: Kinds) -> Kinds:
    """The same caches where every layer with attention keeps every token."""
    alike: Kinds = Counter()
    for (kind, _, each), count in kinds.items():
        alike["state" if kind == "state" else "full", 0, each] += count
    return alike


def _kinds(layers: Iterable, element_bytes: int, tp: int) -> Iterable[tuple[str, int, int]]:
    """(kind, window, bytes) of each cache on one rank; bytes a token, or of a whole state."""
    for layer in layers:
        cache = layer.attention
        if cache:
            on_rank("query heads", cache.query_heads, tp, copied=False)
            kind = "full"
            if cache.window is not None:
                kind = "chunk" if cache.chunked else "window"
            yield kind, cache.window or 0, cache.elements(tp) * element_bytes + cache.extra_bytes
        if layer.state:
            yield "state", 0, layer.state_bytes(tp)


def _page(kinds: Kinds, block_size: int) -> tuple[int, dict[tuple[str, int, int], int]]:
    """Bytes of one layer's block, the same for all kinds, and the tokens that it holds for each kind."""
    attention = [each for kind, _, each in kinds if kind != "state"]
    state = max((each for kind, _, each in kinds if kind == "state"), default=0)
    if state > block_size * max(attention):
        block_size = ALIGNMENT * ceil(state / (ALIGNMENT * max(attention)))
    page = block_size * max(attention)
    tokens = {key: block_size * max(attention) // key[2] // block_size * block_size for key in kinds}
    return page, {key: block_size if key[0] == "state" else held for key, held in tokens.items()}


def _layers_in_group(counts: Collection[int]) -> int:
    fewest, most = min(counts), max(counts)
    return most if most < PADDED_UP_TO * fewest else fewest
