"""A policy as options of `vllm serve`, release 0.19."""

from course.flags.export import Export, Setting, Wish, command
from course.models import engine_defaults

SLOTS = "slots: the most sequences in a step"
NAMES = {
    "gpu_memory_utilization": "share of the card that weights, activations and KV cache may take together",
    "kv_cache_dtype": "bytes of a KV element",
    "block_size": "tokens of a KV block",
    "max_model_len": "tokens of the longest sequence, which must fit the pool",
    "tensor_parallel_size": "cards that share each layer and its KV heads",
    "num_gpu_blocks_override": "KV blocks, instead of what fits in the memory",
    "kv_cache_memory_bytes": "bytes of KV cache per card, instead of a share of its memory",
}


def export(wish: Wish) -> Export:
    """The options, and what vLLM cannot do. A left-out option would take the default of the card, so none is."""
    options, warnings = [Setting("--max-num-seqs", str(wish.slots), SLOTS)], []
    if wish.continuous is not None:
        p = wish.continuous
        options += [
            Setting("--max-num-batched-tokens", str(p.max_num_batched_tokens), "token budget of a step"),
            _switch("enable-chunked-prefill", p.enable_chunked_prefill, "a prompt beyond the budget runs in chunks"
                    if p.enable_chunked_prefill else "a prompt waits until the budget holds all of it"),
        ]  # fmt: skip
        if p.long_prefill_token_threshold:
            options.append(
                Setting(
                    "--long-prefill-token-threshold", str(p.long_prefill_token_threshold),
                    "the most tokens of one prompt in a step",
                )
            )  # fmt: skip
        if not p.scheduler_reserve_full_isl:
            options.append(
                _switch("scheduler-reserve-full-isl", False, "admit when the first chunk fits the free blocks")
            )
        if p.watermark:
            options.append(
                Setting("--watermark", f"{p.watermark:g}", "share of the blocks that admission leaves free; since 0.33")
            )
        if wish.prefill_first:
            warnings.append(
                "vLLM cannot run prompts first: a step of its scheduler has all decodes and the chunks of prompts "
                "beside them"
            )
        if not p.enable_chunked_prefill:
            warnings.append(
                "vLLM then refuses to start unless max_model_len is at most the budget, and warns that it does not "
                "support this officially"
            )
    else:
        warnings.append(
            f"vLLM has no {wish.request_level} batching: it decides the batch anew in every step, and answers when a "
            "request is done. Only the slots carry over"
        )
    if wish.request_level == "dynamic":
        warnings.append("vLLM has no max_queue_delay: no request waits for others")
    for name, value in wish.kv.changed().items():
        if name == "enable_prefix_caching":
            options.append(_switch("enable-prefix-caching", False, "the simulator computes every prompt whole, too"))
        else:
            options.append(Setting("--" + name.replace("_", "-"), _plain(value), NAMES[name]))
    if wish.kv.enable_prefix_caching:
        warnings.append(
            "prefix caching is on by default and not in the simulator: prompts that share a start are faster"
        )
    return Export(
        "vLLM",
        engine_defaults.VERSION,
        tuple(options),
        command(["vllm", "serve", wish.model], options),
        "",
        tuple(warnings),
    )


def _switch(name: str, on: bool, why: str) -> Setting:
    return Setting(f"--{'' if on else 'no-'}{name}", None, why)


def _plain(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
