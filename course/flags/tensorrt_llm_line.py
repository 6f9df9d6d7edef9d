"""A command line of TensorRT-LLM as a policy: `trtllm-serve MODEL` with its YAML file, release 1.2, PyTorch backend."""

from collections.abc import Sequence

from course.flags import config_file
from course.flags.kv import KVSettings
from course.flags.parsed import ParsedCommand, flag, present, real, whole
from course.flags.tensorrt_llm import VERSION
from course.flags.words import options_of
from course.models import other_engines
from course.models.gpus import GPU
from course.policies import Continuous

EXAMPLE = "enable_chunked_prefill: true"
ALONE = frozenset({"--enable_chunked_prefill", "--trust_remote_code", "--fail_fast_on_attention_window_too_large"})
SHORT = {
    "--extra_llm_api_options": "--config", "--tensor_parallel_size": "--tp_size",
    "--pipeline_parallel_size": "--pp_size",
    "--expert_parallel_size": "--ep_size", "--free_gpu_memory_fraction": "--kv_cache_free_gpu_memory_fraction",
}  # fmt: skip
FILE = {"max_batch_size", "max_num_tokens", "max_seq_len", "tensor_parallel_size", "enable_chunked_prefill"}
NOT_MODELLED = {
    "speculative_config": "drafted tokens: a step of the simulator emits one token per sequence",
    "enable_attention_dp": "attention of whole requests a rank",
    "attention_dp_config": "attention of whole requests a rank",
    "pipeline_parallel_size": "pipeline stages: a policy is for one engine",
    "batch_wait_timeout_ms": "requests that wait for a full batch",
    "batch_wait_timeout_iters": "requests that wait for a full batch",
    "stream_interval": "tokens that are sent together",
    "lora_config": "adapters",
}


def arguments(words: Sequence[str]) -> list[str] | None:
    """What follows trtllm-serve (and its `serve`), or None if the words do not start it."""
    for place, word in enumerate(words):
        if word.rsplit("/", 1)[-1] == "trtllm-serve":
            rest = list(words[place + 1 :])
            return rest[1:] if rest[:1] == ["serve"] else rest
    return None


def parse(words: Sequence[str], notes: Sequence[str], card: GPU | None) -> ParsedCommand:
    """The policy of a command line and the file that it names. ValueError, in a sentence, for values that cannot be."""
    model, rest, remarks = options_of(words, ALONE, SHORT, dash="_")
    notes, reasons = [*notes, *remarks], dict[str, str]()
    file = config_file.settings_of(str(rest.pop("--config")), EXAMPLE, notes) if "--config" in rest else {}
    cache, scheduler = (
        block if isinstance(block := file.get(key), dict) else {} for key in ("kv_cache_config", "scheduler_config")
    )

    def number(option: str, key: str) -> int | None:
        if option in rest:
            return whole(option, present(option, rest.pop(option)))
        return whole(key, str(file[key])) if file.get(key) is not None else None

    slots, budget = number("--max_batch_size", "max_batch_size"), number("--max_num_tokens", "max_num_tokens")
    if "--enable_chunked_prefill" in rest:
        chunked = flag("--enable_chunked_prefill", rest.pop("--enable_chunked_prefill"))
    elif "enable_chunked_prefill" in file:
        chunked = flag("enable_chunked_prefill", file["enable_chunked_prefill"])
    else:
        chunked, reasons["enable_chunked_prefill"] = False, f"off by default in {VERSION}"
    if budget is None:
        budget, reasons["max_num_batched_tokens"] = other_engines.TENSORRT_LLM_TOKENS, f"max_num_tokens of {VERSION}"
    if slots is None:
        slots, reasons["max_num_seqs"] = min(other_engines.TENSORRT_LLM_SLOTS, budget), f"max_batch_size of {VERSION}"
    block, tokens = cache.get("tokens_per_block", other_engines.TENSORRT_LLM_BLOCK), cache.get("max_tokens")
    dtype = cache.get("dtype", "auto")
    kv = KVSettings(
        kv_cache_dtype=dtype if dtype in ("fp8", "bfloat16", "float16") else "auto",
        block_size=block,
        max_model_len=number("--max_seq_len", "max_seq_len"),
        tensor_parallel_size=number("--tp_size", "tensor_parallel_size") or 1,
        num_gpu_blocks_override=None if tokens is None else max(whole("max_tokens", str(tokens)) // block, 1),
        enable_prefix_caching=cache.get("enable_block_reuse", True) is not False,
    )
    share = rest.pop("--kv_cache_free_gpu_memory_fraction", cache.get("free_gpu_memory_fraction"))
    if share is not None:
        fraction = real("free_gpu_memory_fraction", present("free_gpu_memory_fraction", str(share)))
        notes.append(
            f"free_gpu_memory_fraction {fraction:g} is the share of what is free once the weights are loaded, and has "
            "no equal in gpu_memory_utilization: take the pool that the server prints"
        )
    capacity = str(scheduler.get("capacity_scheduler_policy", "GUARANTEED_NO_EVICT"))
    if capacity != "MAX_UTILIZATION":
        notes.append(
            f"capacity_scheduler_policy {capacity} admits only what fits to its end and never pauses; the simulator "
            "admits what fits now and preempts, as MAX_UTILIZATION does"
        )
    rest |= {key: value for key, value in file.items() if key not in FILE | {"kv_cache_config", "scheduler_config"}}
    plain = {option: option.lstrip("-") for option in rest}
    notes += [
        f"{option} is not modelled ({NOT_MODELLED[key]})"
        for option, key in plain.items()
        if key in NOT_MODELLED and rest[option] not in (False, None)
    ]
    left_out = tuple(option for option, key in plain.items() if key not in NOT_MODELLED)
    return ParsedCommand(model, Continuous(slots, budget, chunked), kv, reasons, left_out, tuple(notes), VERSION)
