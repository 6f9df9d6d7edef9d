"""What vLLM takes where an option is left out: vllm/engine/arg_utils.py and vllm/config of release 0.19.0."""

from course.models.gpus import GPU

VERSION = "vLLM 0.19"
LARGE_MEMORY = 70 * 2**30  # bytes from which on a card that is no A100 gets the larger batch
GPU_MEMORY_UTILIZATION = 0.9
BLOCK_SIZE = 16
KV_CACHE_DTYPE = "auto"


def is_large(gpu: GPU | None) -> bool:
    """Whether vLLM 0.19 counts the card among the large ones: 70 GiB or more, and no A100."""
    if gpu is None or gpu.memory_bytes is None:
        return False
    return gpu.memory_bytes >= LARGE_MEMORY and "a100" not in gpu.name.lower()


def batch(gpu: GPU | None, *, throughput: bool = False) -> tuple[int, int]:
    """(max_num_seqs, max_num_batched_tokens) of `vllm serve` on this card; of one below 70 GiB where none is given.

    throughput: with --performance-mode throughput, which doubles both.
    """
    seqs, tokens = (1024, 8192) if is_large(gpu) else (256, 2048)
    return (2 * seqs, 2 * tokens) if throughput else (seqs, tokens)
