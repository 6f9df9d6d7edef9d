"""A policy as options of SGLang, release 0.5.9: sglang/srt/server_args.py and managers/schedule_policy.py there."""

from course.flags.export import Export, Setting, Wish, command
from course.policies import Continuous

VERSION = "SGLang 0.5.9"
MAX_PREFILL_TOKENS = 16_384
DTYPES = {"fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2", "bfloat16": "bfloat16"}


def export(wish: Wish) -> Export:
    """The options, and what SGLang cannot do."""
    kv, page = wish.kv, wish.kv.block_size
    options = [Setting("--max-running-requests", str(wish.slots), "slots: the most requests that run at once")]
    warnings: list[str] = []
    if wish.continuous is not None:
        more, warnings = _prompts(wish.continuous, page, wish.prefill_first)
        options += more
        options.append(Setting("--schedule-policy", "fcfs", "first come first served, as in the simulator"))
    else:
        warnings.append(
            f"SGLang has no {wish.request_level} batching: it decides the batch anew in every step. Only the slots "
            "carry over"
        )
    if wish.request_level == "dynamic":
        warnings.append("SGLang has no max_queue_delay: no request waits for others")
    options.append(Setting("--page-size", str(page), "tokens of a KV block (1 by default)"))
    if kv.num_gpu_blocks_override is not None:
        tokens = kv.num_gpu_blocks_override * page
        options.append(Setting("--max-total-tokens", str(tokens), "tokens of the KV pool: blocks x block size"))
    if kv.kv_cache_dtype in DTYPES:
        options.append(Setting("--kv-cache-dtype", DTYPES[kv.kv_cache_dtype], "bytes of a KV element"))
    elif kv.kv_cache_dtype != "auto":
        warnings.append(f"SGLang has no KV cache of type {kv.kv_cache_dtype}")
    if kv.max_model_len is not None:
        options.append(Setting("--context-length", str(kv.max_model_len), "tokens of the longest sequence"))
    if kv.tensor_parallel_size > 1:
        options.append(Setting("--tp-size", str(kv.tensor_parallel_size), "cards that share each layer"))
    if not kv.enable_prefix_caching:
        options.append(Setting("--disable-radix-cache", None, "no prefix caching, as in the simulator"))
    else:
        warnings.append("prefix caching (the radix cache) is on by default and not in the simulator")
    if kv.kv_cache_memory_bytes is not None:
        warnings.append("kv_cache_memory_bytes has no equivalent: --max-total-tokens counts tokens")
    elif kv.num_gpu_blocks_override is None:
        warnings.append(
            "gpu_memory_utilization has no equivalent: --mem-fraction-static is the share of weights and KV pool only, "
            "without activations and graphs, and is chosen by the card's memory if it is left out"
        )
    warnings.append(
        "out of memory SGLang retracts the request with the fewest answer tokens, vLLM and the simulator the one "
        "admitted last"
    )
    words = ["python", "-m", "sglang.launch_server", "--model-path", wish.model]
    return Export("SGLang", VERSION, tuple(options), command(words, options), "", tuple(warnings))


def _prompts(p: Continuous, page: int, alone: bool) -> tuple[list[Setting], list[str]]:
    """How prompts share a step, and what SGLang cannot do about it."""
    options: list[Setting] = []
    warnings: list[str] = []
    budget = p.max_num_batched_tokens
    if p.enable_chunked_prefill:
        whole = max(budget // page * page, page)
        options.append(Setting("--chunked-prefill-size", str(whole), "token budget of a step with a prompt in it"))
        if not alone:
            options.append(Setting("--enable-mixed-chunk", None, "decodes run beside the chunk and count against it"))
        if budget > MAX_PREFILL_TOKENS:
            options.append(Setting("--max-prefill-tokens", str(whole), f"the default, {MAX_PREFILL_TOKENS:,}, is less"))
        if whole != budget:
            warnings.append(f"the chunk must be a multiple of the page size: {whole:,} tokens instead of {budget:,}")
        warnings.append(
            "a step without a prompt has no token budget in SGLang: only max_num_seqs limits it, as it does here"
        )
    else:
        options.append(Setting("--chunked-prefill-size", "-1", "prompts are not split"))
        options.append(Setting("--max-prefill-tokens", str(budget), "prompt tokens that are computed at once"))
        if not alone:
            warnings.append("prompts then run in steps of their own, during which all other requests wait")
    if p.long_prefill_token_threshold:
        warnings.append("SGLang has no long_prefill_token_threshold: one prompt may take the whole chunk")
    warnings.append(
        "SGLang has no scheduler_reserve_full_isl: it admits by prompt and by a share of max_new_tokens that it "
        "adapts; --schedule-conservativeness moves that share"
    )
    return options, warnings
