"""What vLLM takes if an option is left out, by release: vllm/engine/arg_utils.py and vllm/config.

Read in 0.19.0, 0.19.1, 0.20.0, 0.21.0 and 0.33.0; between these and before, the nearest release that is older.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from course.base.settings import quote
from course.models.gpus import GPU

DEFAULT_ENGINE_VERSION = "0.19"
"""The release that a policy, a cache and a command line follow if none is named, and that all texts name."""
VERSION = f"vLLM {DEFAULT_ENGINE_VERSION}"
RECORDED = "2026-11-29"
"""When vLLM's own scheduler of that release was recorded: tests/data/vllm/."""
LARGE_MEMORY = 70 * 2**30  # bytes from which on a card that is no A100 gets the larger batch
GPU_MEMORY_UTILIZATION = 0.9
BLOCK_SIZE = 16
KV_CACHE_DTYPE = "auto"
LARGE, SMALL = (1024, 8192), (256, 2048)  # sequences and tokens of a step


@dataclass(frozen=True)
class Release:
    """What differs between releases of vLLM.

    gpu_memory_utilization: its default. counts_graphs: whether an estimate for CUDA graphs is taken off the pool
    (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS). tokens_by_concurrency: whether "GPU KV cache size" is the concurrency
    times max_model_len; before that it is blocks / groups x tokens of the smallest block. whole_prompts: whether a step
    of max_model_len tokens is profiled, as the engine before V1 did.

    threshold_alone: whether long_prefill_token_threshold also cuts the prompt of a request beside which no other runs
    or waits (v1/core/sched/scheduler.py: 409 of 0.19.1; 754 of 0.33.0). unhashed_first: whether freed blocks without a
    hash, which no prefix can hit, are reused before all others (v1/core/block_pool.py: 816 of 0.33.0); 0.19.1 puts all
    freed blocks behind the others (409). watermark: whether there is that setting (v1/core/kv_cache_manager.py: 210,
    518 of 0.33.0).
    """

    name: str
    gpu_memory_utilization: float = 0.9
    counts_graphs: bool = False
    tokens_by_concurrency: bool = False
    whole_prompts: bool = False
    threshold_alone: bool = True
    unhashed_first: bool = False
    watermark: bool = False


RELEASES = {
    (0, 0): Release("vLLM before 0.8", whole_prompts=True),
    (0, 8): Release("vLLM 0.8 to 0.18"),
    (0, 19): Release("vLLM 0.19"),
    (0, 20): Release("vLLM 0.20", 0.92, True),
    (0, 21): Release("vLLM 0.21 to 0.32", 0.92, True, True),
    (0, 33): Release("vLLM 0.33 and later", 0.92, True, True, False, False, True, True),
}


def release(version: str | None) -> Release:
    """The rules of a version such as "0.19" or "vLLM 0.21.1"; of DEFAULT_ENGINE_VERSION for None.

    Raises ValueError for what is no version.
    """
    return _release(DEFAULT_ENGINE_VERSION if version is None else str(version))


@lru_cache(maxsize=64)
def _release(version: str) -> Release:
    match = re.fullmatch(r"\s*(?:vllm)?\s*v?(\d{1,3})\.(\d{1,3})(?:\.\w{1,20})*\s*", version.lower())
    if not match:
        raise ValueError(f"an engine's version is written like 0.19 or 0.21, not {quote(version)}")
    wanted_version = int(match[1]), int(match[2])
    return RELEASES[max(one for one in RELEASES if one <= wanted_version)]


def is_large(gpu: GPU | None) -> bool:
    """Whether vLLM counts the card among the large ones: 70 GiB or more, and no A100."""
    if gpu is None or gpu.memory_bytes is None:
        return False
    return gpu.memory_bytes >= LARGE_MEMORY and "a100" not in gpu.name.lower()


def batch(gpu: GPU | None, *, throughput: bool = False) -> tuple[int, int]:
    """(max_num_seqs, max_num_batched_tokens) of `vllm serve` on this card; of one below 70 GiB if none is given.

    throughput: with --performance-mode throughput, which doubles both.
    """
    seqs, tokens = LARGE if is_large(gpu) else SMALL
    return (2 * seqs, 2 * tokens) if throughput else (seqs, tokens)


def batch_of_length(
    seqs: int | None, tokens: int | None, defaults: tuple[int, int], length: int, *, whole_prompts: bool = False
) -> tuple[int, int]:
    """max_num_seqs and max_num_batched_tokens as vLLM fills in the one that is None, in its order.

    defaults: those of the card, from `batch`. length: max_model_len. whole_prompts: with --no-enable-chunked-prefill a
    step holds the longest prompt. More than max_num_seqs x max_model_len tokens cannot come together.
    """
    slots = defaults[0] if seqs is None else seqs
    if tokens is None:
        tokens = max(defaults[1], length) if whole_prompts else defaults[1]
        tokens = min(tokens, slots * length)
    return (min(slots, tokens) if seqs is None else slots), tokens
