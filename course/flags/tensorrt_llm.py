"""A policy as settings of TensorRT-LLM, release 1.2: options of trtllm-serve, and a YAML file for the rest of them."""

from course.flags.export import Export, Setting, Wish, command
from course.policies import Dynamic

VERSION = "TensorRT-LLM 1.2 (PyTorch backend)"
FILE = "config.yaml"
DTYPES = {"fp8": "fp8", "fp8_e4m3": "fp8"}


def export(wish: Wish) -> Export:
    """The options and the file, and what TensorRT-LLM cannot do."""
    kv, warnings = wish.kv, []
    options = [Setting("--max_batch_size", str(wish.slots), "slots: the most requests in a step")]
    scheduler = Setting(
        "scheduler_config.capacity_scheduler_policy", "MAX_UTILIZATION",
        "admit what fits now and pause requests when the pool is full, as vLLM does; the default, GUARANTEED_NO_EVICT, "
        "admits only what fits to its end",
    )  # fmt: skip
    keys = [scheduler]
    if wish.continuous is not None:
        p = wish.continuous
        options.append(Setting("--max_num_tokens", str(p.max_num_batched_tokens), "token budget of a step"))
        if p.enable_chunked_prefill:
            options.append(Setting("--enable_chunked_prefill", None, "split prompts; off by default"))
        if wish.prefill_first:
            warnings.append("TensorRT-LLM cannot run prompts first: decodes and prompts share a step")
        if p.long_prefill_token_threshold:
            warnings.append("TensorRT-LLM has no long_prefill_token_threshold: one prompt may take the whole budget")
        if not p.scheduler_reserve_full_isl:
            warnings.append("TensorRT-LLM has no scheduler_reserve_full_isl: its capacity scheduler decides")
    elif not isinstance(wish.policy, Dynamic):
        keys = [Setting("scheduler_config.capacity_scheduler_policy", "STATIC_BATCH", "batches run to their end")]
        warnings.append("STATIC_BATCH is a legacy option of the C++ runtime and not recommended for production")
        warnings.append(
            "TensorRT-LLM starts a static batch with the requests that are there: it does not wait until the "
            "batch is full"
        )
    else:
        delay = 1e3 * wish.policy.max_queue_delay
        keys.append(Setting("batch_wait_timeout_ms", f"{delay:g}", "how long requests wait for a full batch"))
        warnings.append("only the wait is that of dynamic batching: the batch is formed anew in every step")
    keys.append(Setting("kv_cache_config.tokens_per_block", str(kv.block_size), "tokens of a KV block (32 by default)"))
    if kv.num_gpu_blocks_override is not None:
        tokens = kv.num_gpu_blocks_override * kv.block_size
        keys.append(Setting("kv_cache_config.max_tokens", str(tokens), "tokens of the KV pool: blocks x block size"))
    elif kv.kv_cache_memory_bytes is not None:
        size = str(kv.kv_cache_memory_bytes)
        keys.append(Setting("kv_cache_config.max_gpu_total_bytes", size, "bytes of KV cache per card"))
    else:
        warnings.append(
            "gpu_memory_utilization has no equivalent: kv_cache_config.free_gpu_memory_fraction is the share of "
            "what is free once the weights are loaded, 0.9 by default"
        )
    if kv.kv_cache_dtype in DTYPES:
        keys.append(Setting("kv_cache_config.dtype", DTYPES[kv.kv_cache_dtype], "bytes of a KV element"))
    elif kv.kv_cache_dtype != "auto":
        warnings.append(f"a KV cache of type {kv.kv_cache_dtype} is not set here: auto takes the checkpoint's")
    if kv.max_model_len is not None:
        options.append(Setting("--max_seq_len", str(kv.max_model_len), "tokens of the longest sequence"))
    if kv.tensor_parallel_size > 1:
        options.append(Setting("--tp_size", str(kv.tensor_parallel_size), "cards that share each layer"))
    if not kv.enable_prefix_caching:
        keys.append(Setting("kv_cache_config.enable_block_reuse", "false", "no prefix caching, as in the simulator"))
    else:
        warnings.append("prefix caching (block reuse) is on by default and not in the simulator")
    options.append(Setting("--config", FILE, "the file with the settings below"))
    return Export(
        "TensorRT-LLM", VERSION, (*options, *keys), command(["trtllm-serve", wish.model], options), _yaml(keys),
        tuple(warnings),
    )  # fmt: skip


def _yaml(keys: list[Setting]) -> str:
    """Two levels of keys, in the order given, as YAML."""
    lines: list[str] = []
    for section in dict.fromkeys(key.name.partition(".")[0] for key in keys):
        inside = [key for key in keys if key.name.partition(".")[0] == section]
        if inside[0].name == section:
            lines.append(f"{section}: {inside[0].value}")
        else:
            lines += [f"{section}:", *(f"  {key.name.partition('.')[2]}: {key.value}" for key in inside)]
    return "\n".join(lines) + "\n"
