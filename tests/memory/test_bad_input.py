"""What a cache, a swap, a prefix or a watermark cannot be gets a sentence, on every pool that it reaches."""

import math

import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.memory.swap_pool import copy_seconds

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
POOLS = {
    "plain": {},
    "prefixes": {"prefix_caching": True},
    "swap": {"host_blocks": 4},
    "contiguous": {"reserve": "longest", "max_model_len": 8},
}


def prefixed(prefix, size=4, **more):
    return Workload([0.0, 0.0], [8, 8], [2, 2], prefix=prefix, prefix_block_size=size, **more)


def watermark(share, version="0.33"):
    return policies.Continuous(4, 64, engine_version=version, watermark=share)


NO_COUNT = (-1, 1.5, math.nan, math.inf, None, True, "16")
BAD = {
    "swap bandwidth 0": (lambda: copy_seconds(100, 0), "a copy at 0 bytes/s never ends: give a bandwidth"),
    "swap bandwidth NaN": (lambda: copy_seconds(100, math.nan), "bandwidth of a copy must be a finite number"),
    "bytes NaN": (lambda: copy_seconds(math.nan, 1e9), "bytes of a copy must be a finite number"),
    "host seconds NaN": (lambda: KVCache(8, host_blocks=4, host_seconds=math.nan), "host_seconds must be a finite"),
    "compaction NaN": (
        lambda: KVCache(8, reserve="longest", max_model_len=8, compaction=math.nan),
        "compaction must be a finite number",
    ),
    "a prefix longer than its prompt": (
        lambda: prefixed([("a", "b", "c"), ()]),
        "request 0 has hashes of 3 blocks of 4 tokens, and its 8 tokens are at most 2: shorten its prefix, or say",
    ),
    "a prefix longer than prompt and answer": (
        lambda: prefixed([(), ("a", "b", "c", "d")], prefix_answers=True),
        "request 1 has hashes of 4 blocks of 4 tokens, and its 10 tokens are at most 3: shorten its prefix",
    ),
    "prefix blocks of 0": (lambda: prefixed([("a",), ()], 0), "prefix_block_size must be a whole number"),
    "prefix blocks of NaN": (lambda: prefixed([("a",), ()], math.nan), "prefix_block_size must be a whole number"),
    "prefix blocks that do not fit": (
        lambda: serve(prefixed([("a",), ()]), policies.Continuous(4, 64), SECOND, KVCache(8, 6, prefix_caching=True)),
        "a prefix hash stands for 4 tokens and a block of the cache has 6: choose a block_size that divides",
    ),
    "watermark 1": (lambda: watermark(1), "a watermark of 1 would leave all blocks free, and vLLM takes less"),
    "watermark 1.5": (lambda: watermark(1.5), "watermark must be a finite number from 0 to 1"),
    "watermark -0.1": (lambda: watermark(-0.1), "watermark must be a finite number from 0 to 1"),
    "watermark NaN": (lambda: watermark(math.nan), "watermark must be a finite number from 0 to 1"),
    "watermark of a release without": (lambda: watermark(0.1, "0.19"), "vLLM 0.19 has no watermark: set it to 0"),
} | {
    f"{name} {value!r}": (lambda name=name, value=value: KVCache(**{"num_blocks": 8, name: value}), f"{name} must be")
    for name, low in (("num_blocks", 1), ("block_size", 1), ("host_blocks", 0))
    for value in (*NO_COUNT, *([0] if low else []))
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_gets_a_sentence(what):
    make, sentence = BAD[what]
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("pool", POOLS)
def test_a_cache_that_cannot_hold_one_request_is_named(pool):
    """Its prompt would fit, and its whole answer would not."""
    cache = KVCache(2, 4, **POOLS[pool])
    with pytest.raises(ValueError, match="request 1 needs 9 tokens of KV cache, 3 blocks, and num_blocks is 2"):
        serve(Workload([0.0, 0.0], [4, 6], [2, 4]), policies.Continuous(4, 64), SECOND, cache)
