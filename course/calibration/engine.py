"""The engine behind a measured run, as far as its file and the caller say: policy, KV pool, replicas."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course import memory
from course.base import settings
from course.memory.kvcache import KVCache
from course.models import ModelSpec, engine_defaults, other_engines
from course.models.gpus import GPU
from course.policies import Continuous, PrefillFirst
from course.results import Result

ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}
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
    setting comes from that the file did not say. max_model_len: the engine refuses a request that may get longer; None
    if it is not known.
    """

    policy: Continuous | PrefillFirst
    cache: KVCache | None
    replicas: int = 1
    ranks: int = 1
    notes: tuple[str, ...] = ()
    max_model_len: int | None = None

    def served(self, result: Result) -> Result:
        """The run without the requests that this engine would have refused, on both sides of a comparison.

        ValueError if it would have refused all of them, or if a file without requests has longer ones on average.
        """
        longest, table = self.max_model_len, result.requests
        if longest is None:
            return result
        if table is None:
            totals = result.totals
            n = totals.get("requests") or np.nan
            each = [
                totals.get(f"mean_{side}", totals.get(side, np.nan) / n) for side in ("prompt_tokens", "output_tokens")
            ]
            if sum(each) > longest:
                raise ValueError(
                    f"{result.name}: a request has {sum(each):,.0f} tokens on average, and max_model_len is {longest:,}"
                    ": the engine would have refused them"
                )
            return result
        with np.errstate(invalid="ignore"):
            refused = ~table.failed & (table.prompt_tokens + table.output_tokens > longest)
        if not refused.any():
            return result
        accepted = ~refused
        if not (accepted & ~table.failed).any():
            raise ValueError(f"{result.name}: all requests are longer than max_model_len, {longest:,} tokens")
        columns = {name: values[accepted] for name, values in vars(table).items() if isinstance(values, np.ndarray)}
        gaps = None if table.itl is None else [gap for gap, keep in zip(table.itl, accepted, strict=True) if keep]
        note = (
            f"{int(refused.sum()):,} of {len(table):,} requests have more than {longest:,} tokens (max_model_len): the "
            "engine would have refused them, so they are left out, measured and modelled"
        )
        return replace(result, requests=replace(table, itl=gaps, **columns), notes=(*result.notes, note))


def engine_of(result: Result, spec: ModelSpec, gpu: GPU, **given: Any) -> Engine:
    """The engine of a run. What is given counts first, then what the file says, then the defaults of the engine.

    given: engine (vllm, sglang or tensorrt-llm), max_num_seqs, max_num_batched_tokens, enable_chunked_prefill,
    long_prefill_token_threshold, scheduler_reserve_full_isl, num_gpu_blocks or kv_tokens, block_size,
    gpu_memory_utilization, max_model_len, tensor_parallel_size, data_parallel_size; None counts as not given. Without a
    pool in the file, the card's ledger estimates it.

    ValueError for settings out of range or unknown, and if the ledger leaves no room for a KV pool.
    """
    engine = given.pop("engine", None)
    names = {
        *SCHEDULER,
        *("num_gpu_blocks", "kv_tokens", "block_size", "gpu_memory_utilization", "max_model_len"),
        *("tensor_parallel_size", "data_parallel_size"),
    }
    if set(given) - names:
        raise ValueError(
            f"an engine has no setting {sorted(set(given) - names)[0]}; there are engine, {', '.join(sorted(names))}"
        )
    given = {name: value for name, value in given.items() if value is not None}
    in_file = {name: result.setup[name] for name in names if name in result.setup}
    notes: list[str] = []
    served_by = _served_by(result, engine, notes)
    policy = _policy(served_by, {**in_file, **_said_otherwise(result), **_version(result), **given}, gpu, notes)
    ranks = settings.whole("tensor_parallel_size", {**in_file, **given}.get("tensor_parallel_size", 1), high=4096)
    replicas = settings.whole("data_parallel_size", {**in_file, **given}.get("data_parallel_size", 1), high=4096)
    cache = _cache(result, spec, gpu, policy, ranks, in_file, given, served_by, notes)
    longest = {**in_file, **given}.get("max_model_len")
    longest = None if longest is None else settings.whole("max_model_len", longest)
    if replicas > 1:
        notes.append(
            f"{replicas} replicas: requests are dealt out in turn and each replica runs on its own clock. Real ones "
            "wait for each other in every step where experts are shared"
        )
    return Engine(policy, cache, replicas, ranks, tuple(notes), longest)


def _served_by(result: Result, name: str | None, notes: list[str]) -> str:
    """The key in ENGINES of the engine that served: as given, else as the file says, else vLLM with a note."""
    if name is not None:
        if not isinstance(name, str) or name.lower() not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {settings.quote(name)}")
        return name.lower()
    backend = str(result.setup.get("backend", "")).lower()
    if result.tool == "trtllm-bench" or "trt" in backend:
        return "tensorrt-llm"
    if backend.startswith("sglang"):
        return "sglang"
    if not (backend == "vllm" or "vllm_version" in result.setup or result.tool == "LLMServingSim request log"):
        notes.append(
            "the file does not say which engine served: vLLM's order of work is ASSUMED. SGLang computes new "
            "prompts in "
            "steps of their own while decodes wait, which gives other TTFTs and gaps: name the engine with --engine"
        )
    return "vllm"


def _said_otherwise(result: Result) -> dict[str, Any]:
    """Settings under the names of TensorRT-LLM."""
    names = {
        "max_batch_size": "max_num_seqs",
        "max_num_tokens": "max_num_batched_tokens",
        "tp_size": "tensor_parallel_size",
    }
    return {ours: int(result.setup[theirs]) for theirs, ours in names.items()
            if isinstance(result.setup.get(theirs), int | float) and result.tool == "trtllm-bench"}  # fmt: skip


def _version(result: Result) -> dict[str, str]:
    """The release of vLLM that the file names, as a setting; nothing if it names none that can be read."""
    version = str(result.setup.get("vllm_version"))
    try:
        engine_defaults.release(version)
    except ValueError:
        return {}
    return {"engine_version": version}


def _policy(engine: str, knobs: Mapping[str, Any], gpu: GPU, notes: list[str]) -> Continuous | PrefillFirst:
    if engine == "sglang":
        return _sglang(knobs, gpu, notes)
    if engine == "tensorrt-llm":
        notes.append(
            f"{other_engines.TENSORRT_LLM}: decodes and prompts share a step, as in vLLM; its default capacity "
            "scheduler, which admits only what fits to its end, is not modelled"
        )
        defaults = {"enable_chunked_prefill": False, "scheduler_reserve_full_isl": True,
                    "max_num_batched_tokens": other_engines.TENSORRT_LLM_TOKENS}  # fmt: skip
        for name, value in defaults.items():
            if name not in knobs:
                notes.append(f"{name} is not in the file: {value}, the default of {other_engines.TENSORRT_LLM}")
        knobs = {**defaults, **knobs}
        if "max_num_seqs" not in knobs:
            knobs["max_num_seqs"] = min(other_engines.TENSORRT_LLM_SLOTS, knobs["max_num_batched_tokens"])
        return Continuous(**{name: knobs[name] for name in SCHEDULER if name in knobs})
    return _vllm(knobs, gpu, notes)


def _sglang(knobs: Mapping[str, Any], gpu: GPU, notes: list[str]) -> PrefillFirst:
    """SGLang's order: prompts in steps of their own, before decodes."""
    notes.append(
        f"SGLang served, so the policy is PrefillFirst, {other_engines.SGLANG}'s order: a step is prompts alone or "
        "decodes alone, prompts first (without --enable-mixed-chunk)"
    )
    for name in ("long_prefill_token_threshold", "scheduler_reserve_full_isl"):
        if knobs.get(name):
            notes.append(f"{name} has no effect: SGLang has no such setting")
    budget = knobs.get("max_num_batched_tokens")
    if budget is None:
        budget = other_engines.sglang_chunk(gpu)
        notes.append(
            f"max_num_batched_tokens is not in the file: {budget:,}, --chunked-prefill-size of {other_engines.SGLANG}"
            " on this card"
        )
    slots = knobs.get("max_num_seqs")
    if slots is None:
        slots = min(other_engines.SGLANG_SLOTS, budget) if isinstance(budget, int) else other_engines.SGLANG_SLOTS
        notes.append(
            f"max_num_seqs is not in the file: {slots:,}, the --max-running-requests of {other_engines.SGLANG}"
        )
    return PrefillFirst(slots, budget, knobs.get("enable_chunked_prefill", True))


def _vllm(knobs: Mapping[str, Any], gpu: GPU, notes: list[str]) -> Continuous:
    scheduler = {name: knobs[name] for name in (*SCHEDULER, "engine_version") if name in knobs}
    seqs, tokens = engine_defaults.batch(gpu)
    for name, value in (("max_num_batched_tokens", tokens), ("max_num_seqs", seqs)):
        if name not in scheduler:
            other = scheduler.get("max_num_batched_tokens")
            if name == "max_num_seqs" and isinstance(other, int):
                value = min(value, other)
            scheduler[name] = value
            notes.append(f"{name} is not in the file: {value:,}, the default of {engine_defaults.VERSION} on this card")
    return Continuous(**scheduler)


def _cache(
    result: Result,
    spec: ModelSpec,
    gpu: GPU,
    policy: Continuous | PrefillFirst,
    ranks: int,
    in_file: Mapping[str, Any],
    given: Mapping[str, Any],
    served_by: str,
    notes: list[str],
) -> KVCache | None:
    if "num_gpu_blocks" in given and "kv_tokens" in given:
        raise ValueError("num_gpu_blocks and kv_tokens both set the KV pool: give one of them")
    knobs = {**in_file, **given}
    size = settings.whole("block_size", knobs.get("block_size", engine_defaults.BLOCK_SIZE), high=2**20)
    if "kv_tokens" in given:
        tokens = settings.whole("kv_tokens", given["kv_tokens"], low=size)
        return KVCache(tokens // size, size)
    if "num_gpu_blocks" in knobs:
        return KVCache(knobs["num_gpu_blocks"], size)
    if "num_kv_tokens" in result.setup:
        return KVCache(settings.whole("num_kv_tokens", result.setup["num_kv_tokens"], low=size) // size, size)
    if gpu.memory_bytes is None:
        notes.append(f"the memory of {gpu.name} is not known and the file gives no KV pool: memory is unlimited here")
        return None
    card = memory.ledger(
        spec,
        gpu,
        tp=ranks,
        max_model_len=knobs.get("max_model_len"),
        gpu_memory_utilization=knobs.get("gpu_memory_utilization", engine_defaults.GPU_MEMORY_UTILIZATION),
        max_num_batched_tokens=int(policy.max_num_batched_tokens),
        max_num_seqs=policy.max_num_seqs,
        block_size=size,
    )
    if card.num_blocks < 1:
        raise ValueError(
            f"{spec.name} leaves no room for a KV pool on {gpu.name}: "
            f"{'; '.join(card.problems) or 'the ledger is empty'}. Give the pool as your engine printed it (kv_tokens)"
        )
    how = "" if served_by == "vllm" else f" by vLLM's share, though {ENGINES[served_by]} divides the card otherwise"
    notes.append(
        f"the KV pool is not in the file: {card.num_blocks:,} blocks of {size} tokens, estimated from the memory of "
        f"{gpu.name}{how}. Give the pool as your engine printed it (kv_tokens) instead"
    )
    return KVCache(card.num_blocks, size)
