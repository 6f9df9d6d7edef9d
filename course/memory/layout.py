"""A KV pool as vLLM V1 lays it out: layers in groups, blocks of one size for all groups, a block table for each.

Layers that keep the same tokens form a group. With several kinds (full attention, a window, a recurrent state) every
block must have one size in bytes, so that any group can take any block:

- a layer with fewer bytes a token gets more tokens a block (gemma-4), and a recurrent state makes the blocks of the
  attention layers so long that one holds it;
- each kind is cut into groups of equally many layers, padded if that does not come out even.

Several ranks: tensor parallelism spreads KV heads, pipeline parallelism layers, context parallelism tokens. All ranks
have equally many blocks, as many as the one with the fewest.

Source: vllm/v1/core/kv_cache_utils.py and kv_cache_interface.py of 0.19.0.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from course.base import settings
from course.memory.drafts import Drafts, drafts
from course.memory.ranks import context_ranks, smallest_of_stages, stages_of
from course.models import ModelSpec
from course.models.engine_defaults import Release
from course.models.layers import Layer, on_rank

MAX_TOKENS = 10**12
CACHE_MODES = ("none", "align")
ALIGNMENT = 16  # tokens; kernels want blocks in multiples of it
Kinds = Counter[tuple[str, int, int]]  # (kind, window, bytes) of a cache: the number of layers that have it
PADDED_UP_TO = 1.5  # times the layers of the rarer kind: fewer layers more than that are padded, not split


@dataclass(frozen=True)
class Group:
    """Layers with one block table between them.

    kind: "full", "window", "chunk" or "state". block_size: tokens of a block. window: tokens that stay, for the middle
    two. reserve: tokens of a step that come on top of the window, or blocks of a state. ranks: of context parallelism,
    each of which holds its share of a sequence's tokens.
    """

    kind: str
    num_layers: int
    block_size: int
    window: int = 0
    reserve: int = 0
    ranks: int = 1

    def blocks(self, length: int) -> int:
        """Blocks that a sequence of `length` tokens may need at most.

        A window may begin inside of a block, hence one more.
        """
        if self.kind == "state":
            return self.reserve
        if self.kind == "window":
            return -(-min(self.window - 1 + self.reserve, length) // self.block_size) + 1
        tokens = -(-length // self.ranks) if self.kind == "full" else min(self.window + self.reserve, length)
        return -(-tokens // self.block_size)


@dataclass(frozen=True)
class Pool:
    """Blocks of one rank, as vLLM counts and logs them.

    bytes_per_block: of all its layers of one group. block_size: tokens of the smallest block.
    """

    kv_bytes: int
    num_blocks: int
    bytes_per_block: int
    block_size: int
    groups: tuple[Group, ...]

    @property
    def free_blocks(self) -> int:
        """Blocks that requests can have: vLLM keeps one for itself, the null block (v1/core/block_pool.py)."""
        return max(0, self.num_blocks - 1)

    def blocks_for(self, length: int) -> int:
        """Blocks, over all groups, that a sequence of `length` tokens needs."""
        length = settings.whole("length", length, high=MAX_TOKENS)
        return sum(group.blocks(length) for group in self.groups)

    def concurrency(self, length: int) -> float:
        """What vLLM prints as "Maximum concurrency" of `length` tokens, from all blocks: a real number."""
        return self.num_blocks / self.blocks_for(length)

    def max_sequences(self, length: int) -> int:
        """Whole sequences of `length` tokens that fit at once."""
        return self.free_blocks // self.blocks_for(length)

    def num_tokens(self, length: int, release: Release | None = None) -> int | None:
        """Tokens that vLLM prints as "GPU KV cache size", for an engine with this max_model_len.

        Up to vLLM 0.20: blocks / groups x tokens of the smallest block (x ranks of context parallelism): with windows
        that charges every layer for every token, so that a long sequence needs less than it says, and with recurrent
        states it is no capacity at all. From 0.21 on: the concurrency x `length`. Without a release the former, and the
        latter with recurrent states. None if there is nothing but states.
        """
        if all(group.kind == "state" for group in self.groups):
            return None
        if self.counts_by_concurrency(release):
            return self.num_blocks * length // self.blocks_for(length)
        return self.num_blocks // len(self.groups) * self.block_size * max(group.ranks for group in self.groups)

    def counts_by_concurrency(self, release: Release | None = None) -> bool:
        """Whether `num_tokens` is the concurrency x the length."""
        if release is not None:
            return release.tokens_by_concurrency
        return any(group.kind == "state" for group in self.groups)

    @property
    def longest_sequence(self) -> int | None:
        """Tokens of the longest sequence that fits alone, 0 if none does; None if any length fits."""
        if not any(group.kind == "full" for group in self.groups):
            return None if self.max_sequences(MAX_TOKENS) else self._longest(MAX_TOKENS)
        return self._longest(self.free_blocks * max(group.block_size * group.ranks for group in self.groups))

    def _longest(self, high: int) -> int:
        low = 0
        while low < high:
            middle = (low + high + 1) // 2
            if self.blocks_for(middle) <= self.free_blocks:
                low = middle
            else:
                high = middle - 1
        return low


def cache_mode(spec: ModelSpec, enable_prefix_caching: bool | None, mamba_cache_mode: str | None) -> str:
    """The mode in which vLLM keeps recurrent states, which follows prefix caching (model_executor/models/config.py).

    None: not given. Prefix caching is then off for a model with recurrent states, as in vLLM 0.19, and a mode that is
    given counts. ValueError for Mamba and short convolutions with prefix caching and no mode: vLLM takes "all" for
    them, a state of every block, which is not counted here.
    """
    if enable_prefix_caching is None:
        return mamba_cache_mode or "none"
    if not settings.flag("enable_prefix_caching", enable_prefix_caching):
        if mamba_cache_mode not in (None, "none"):
            raise ValueError(
                f"mamba_cache_mode {mamba_cache_mode} needs prefix caching: vLLM takes none without it; leave one out"
            )
        return "none"
    parts = [part for layer in spec.layer_caches for part in layer.state]
    if not parts or mamba_cache_mode not in (None, "none"):
        return mamba_cache_mode or "none"
    if all("linear" in part.what for part in parts):
        return "align"
    raise ValueError(
        f"with prefix caching vLLM keeps a state of every block for {spec.name} (mode all), which is not counted here: "
        "give mamba_cache_mode align, which keeps two of a sequence"
    )


class _Cache(NamedTuple):
    """What one layer keeps on one rank. bytes: of a token, or of a whole state. stage: of the pipeline."""

    kind: str
    window: int
    bytes: int
    stage: int


def pool(
    spec: ModelSpec,
    kv_bytes: float | Sequence[float],
    *,
    tp: int = 1,
    pp: int = 1,
    dcp: int = 1,
    pcp: int = 1,
    block_size: int = 16,
    max_num_batched_tokens: int = 2048,
    num_speculative_tokens: int = 0,
    speculative_method: str | None = None,
    draft_model: ModelSpec | None = None,
    draft_layers: int | None = None,
    mamba_cache_mode: str = "none",
    disable_hybrid_kv_cache_manager: bool = False,
) -> Pool:
    """The blocks that `kv_bytes` of memory on each rank hold; of several ranks the smallest decides for all.

    kv_bytes: of every rank, or one for each: with pp > 1, one for each stage or as many for each.
    tp, pp, dcp, pcp: ranks of tensor, pipeline, decode and prefill context parallelism.
    max_num_batched_tokens: what a step adds to a window before it slides on; twice that with asynchronous scheduling.
    num_speculative_tokens: above 0, a recurrent state is kept once more a token, and what drafts may hold KV too:
    `memory.drafts` explains it and the next three.
    mamba_cache_mode: "align" keeps a second state for prefix caching. disable_hybrid_kv_cache_manager: layers with a
    window keep every token. Raises ValueError for settings out of range, and for heads, layers or tokens that cannot be
    spread over the ranks.
    """
    drafting = drafts(spec, num_speculative_tokens, speculative_method, draft_model, draft_layers)
    tp = settings.whole("tp", tp, high=4096)
    block_size = settings.whole("block_size", block_size, high=2**20)
    batched = settings.whole("max_num_batched_tokens", max_num_batched_tokens)
    if mamba_cache_mode not in CACHE_MODES:
        raise ValueError(f"mamba_cache_mode must be none or align, not {settings.quote(mamba_cache_mode)}")
    stages = stages_of(spec.num_layers, pp)
    memory = smallest_of_stages(kv_bytes, len(stages))
    caches = _caches(spec, drafting, tp, stages)
    if settings.flag("disable_hybrid_kv_cache_manager", disable_hybrid_kv_cache_manager):
        caches = [one if one.kind == "state" else one._replace(kind="full", window=0) for one in caches]
    if not caches:
        raise ValueError(f"{spec.name} keeps nothing of a sequence: there is no pool to size")
    ranks = context_ranks(spec, all(one.kind == "full" for one in caches), tp, dcp, pcp)
    layers_in_group, shapes, sizes = _shapes(caches, block_size, len(stages))
    reserve = {"window": batched, "chunk": batched}
    reserve["state"] = (2 if mamba_cache_mode == "align" else 1) + drafting.tokens
    groups = tuple(
        Group(kind, layers_in_group, tokens, window, reserve.get(kind, 0), ranks if kind == "full" else 1)
        for kind, window, tokens, number in shapes
        for _ in range(number)
    )
    tokens = min((group.block_size for group in groups if group.kind != "state"), default=block_size)
    # A stage without caches has no say.
    number, least, size = min((max(has // size, 0), has, size) for has, size in zip(memory, sizes, strict=True) if size)
    return Pool(least, number, size, tokens, groups)


def _shapes(
    caches: list[_Cache], block_size: int, stages: int
) -> tuple[int, list[tuple[str, int, int, int]], list[int]]:
    """Layers of a group; (kind, window, tokens of a block, groups) of each kind; bytes of a block in each stage."""
    kinds = Counter((one.kind, one.window, one.bytes) for one in caches)
    if len({(kind, window) for kind, window, _ in kinds}) == 1:
        # Layers that hold the same tokens share one group, whatever their size.
        kind, window = caches[0].kind, caches[0].window
        tokens = 1 if kind == "state" else block_size
        sizes = [tokens * sum(one.bytes for one in caches if one.stage == stage) for stage in range(stages)]
        return len(caches), [(kind, window, block_size, 1)], sizes
    page, tokens_by_kind = _page(kinds, block_size)
    layers = _layers_in_group(kinds.values())
    shapes = [
        (kind, window, tokens_by_kind[kind, window, each], ceil(count / layers))
        for (kind, window, each), count in kinds.items()
    ]
    return layers, shapes, [page * most for most in _most_of_a_group(caches, kinds, layers, stages)]


def _caches(spec: ModelSpec, drafting: Drafts, tp: int, stages: list[range]) -> list[_Cache]:
    """The caches of all layers on one rank, those of drafts in the last stage."""
    stage_of = {layer: stage for stage, layers in enumerate(stages) for layer in layers}
    numbered = [(layer, stage_of[i]) for i, layer in enumerate(spec.layer_caches)]
    numbered += [(layer, len(stages) - 1) for layer in drafting.layers]
    caches = []
    for layer, stage in numbered:
        caches += _of_a_layer(layer, spec.kv_bytes_per_element, tp, drafting.tokens, stage)
    return caches


def _of_a_layer(layer: Layer, element_bytes: int, tp: int, drafted: int, stage: int) -> list[_Cache]:
    caches, cache = [], layer.attention
    if cache:
        on_rank("query heads", cache.query_heads, tp, copied=False)
        kind = "full"
        if cache.window is not None:
            kind = "chunk" if cache.chunked else "window"
        caches.append(_Cache(kind, cache.window or 0, cache.elements(tp) * element_bytes + cache.extra_bytes, stage))
    if layer.state:
        caches.append(_Cache("state", 0, layer.state_bytes(tp, drafted), stage))
    return caches


def _page(kinds: Kinds, block_size: int) -> tuple[int, dict[tuple[str, int, int], int]]:
    """Bytes of one layer's block, the same for all kinds, and the tokens that it holds for each kind."""
    attention = [each for kind, _, each in kinds if kind != "state"]
    state = max((each for kind, _, each in kinds if kind == "state"), default=0)
    if state > block_size * max(attention):
        block_size = ALIGNMENT * ceil(state / (ALIGNMENT * max(attention)))
    page = block_size * max(attention)
    tokens = {key: block_size * max(attention) // key[2] // block_size * block_size for key in kinds}
    return page, {key: block_size if key[0] == "state" else number for key, number in tokens.items()}


def _layers_in_group(counts: Collection[int]) -> int:
    fewest, most = min(counts), max(counts)
    return most if most < PADDED_UP_TO * fewest else fewest


def _most_of_a_group(caches: list[_Cache], kinds: Counter, layers_in_group: int, stages: int) -> list[int]:
    """The most layers that a group has in each stage; group i of n has every n-th layer of its kind, from the i-th."""
    if stages == 1:
        return [layers_in_group]
    most = [0] * stages
    for key, count in kinds.items():
        alike = [one.stage for one in caches if (one.kind, one.window, one.bytes) == key]
        number = ceil(count / layers_in_group)
        for i in range(number):
            for stage, layers in Counter(alike[i::number]).items():
                most[stage] = max(most[stage], layers)
    return most
