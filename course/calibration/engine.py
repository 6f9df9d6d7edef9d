"""The engine behind a measured run, as far as its file and the caller say: policy, KV pool, replicas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from course import memory
from course.base import settings
from course.memory.kvcache import KVCache
from course.models import ModelSpec, engine_defaults
from course.models.gpus import GPU
from course.policies import Continuous
from course.results import Result

SCHEDULER = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "enable_chunked_prefill",
    "long_prefill_token_threshold",
    "scheduler_reserve_full_isl",
)


@dataclass(frozen=True)
class Engine:
    """What serves a replay.

    policy: the scheduler. cache: the KV pool of one replica, None for unlimited memory. replicas: engines that the
    requests are dealt out to in turn (data parallelism). ranks: cards of tensor parallelism in each. notes: where each
    setting comes from that the file did not say.
    """

    policy: Continuous
    cache: KVCache | None
    replicas: int = 1
    ranks: int = 1
    notes: tuple[str, ...] = ()


def engine_of(result: Result, spec: ModelSpec, gpu: GPU, **given: Any) -> Engine:
    """The engine of a run. What is given counts first, then what the file says, then the defaults of vLLM 0.19.

    given: max_num_seqs, max_num_batched_tokens, enable_chunked_prefill, long_prefill_token_threshold,
    scheduler_reserve_full_isl, num_gpu_blocks or kv_tokens, block_size, gpu_memory_utilization, max_model_len,
    tensor_parallel_size, data_parallel_size; None counts as not given. Without a pool in the file, the card's ledger
    estimates it.

    ValueError for settings out of range or unknown, and where the ledger leaves no room for a KV pool.
    """
    known = {
        *SCHEDULER,
        *("num_gpu_blocks", "kv_tokens", "block_size", "gpu_memory_utilization", "max_model_len"),
        *("tensor_parallel_size", "data_parallel_size"),
    }
    if set(given) - known:
        raise ValueError(
            f"an engine has no setting {sorted(set(given) - known)[0]}; there are {', '.join(sorted(known))}"
        )
    given = {name: value for name, value in given.items() if value is not None}
    said = {name: result.setup[name] for name in known if name in result.setup}
    notes: list[str] = []
    policy = _policy({**said, **given}, gpu, notes)
    ranks = settings.whole("tensor_parallel_size", {**said, **given}.get("tensor_parallel_size", 1), high=4096)
    replicas = settings.whole("data_parallel_size", {**said, **given}.get("data_parallel_size", 1), high=4096)
    cache = _cache(result, spec, gpu, policy, ranks, said, given, notes)
    if replicas > 1:
        notes.append(
            f"{replicas} replicas: requests are dealt out in turn and each replica runs on its own clock. Real ones "
            "wait for each other in every step where experts are shared"
        )
    return Engine(policy, cache, replicas, ranks, tuple(notes))


def _policy(found: Mapping[str, Any], gpu: GPU, notes: list[str]) -> Continuous:
    chosen = {name: found[name] for name in SCHEDULER if name in found}
    seqs, tokens = engine_defaults.batch(gpu)
    for name, value in (("max_num_batched_tokens", tokens), ("max_num_seqs", seqs)):
        if name not in chosen:
            other = chosen.get("max_num_batched_tokens")
            if name == "max_num_seqs" and isinstance(other, int):
                value = min(value, other)
            chosen[name] = value
            notes.append(f"{name} is not in the file: {value:,}, the default of {engine_defaults.VERSION} on this card")
    return Continuous(**chosen)


def _cache(
    result: Result,
    spec: ModelSpec,
    gpu: GPU,
    policy: Continuous,
    ranks: int,
    said: Mapping[str, Any],
    given: Mapping[str, Any],
    notes: list[str],
) -> KVCache | None:
    if "num_gpu_blocks" in given and "kv_tokens" in given:
        raise ValueError("num_gpu_blocks and kv_tokens say the same thing: give one of them")
    found = {**said, **given}
    size = settings.whole("block_size", found.get("block_size", engine_defaults.BLOCK_SIZE), high=2**20)
    if "kv_tokens" in given:
        tokens = settings.whole("kv_tokens", given["kv_tokens"], low=size)
        return KVCache(tokens // size, size)
    if "num_gpu_blocks" in found:
        return KVCache(found["num_gpu_blocks"], size)
    if "num_kv_tokens" in result.setup:
        return KVCache(settings.whole("num_kv_tokens", result.setup["num_kv_tokens"], low=size) // size, size)
    if gpu.memory_bytes is None:
        notes.append(f"the memory of {gpu.name} is not known and the file says no KV pool: memory is unlimited here")
        return None
    card = memory.ledger(
        spec,
        gpu,
        tp=ranks,
        max_model_len=found.get("max_model_len"),
        gpu_memory_utilization=found.get("gpu_memory_utilization", engine_defaults.GPU_MEMORY_UTILIZATION),
        max_num_batched_tokens=int(policy.max_num_batched_tokens),
        max_num_seqs=policy.max_num_seqs,
        block_size=size,
    )
    if card.num_blocks < 1:
        raise ValueError(
            f"{spec.name} leaves no room for a KV pool on {gpu.name}: "
            f"{'; '.join(card.problems) or 'the ledger is empty'}. Give the pool that your engine printed (kv_tokens)"
        )
    notes.append(
        f"the KV pool is not in the file: {card.num_blocks:,} blocks of {size} tokens, estimated from the memory of "
        f"{gpu.name}. Give what your engine printed (kv_tokens) instead"
    )
    return KVCache(card.num_blocks, size)
