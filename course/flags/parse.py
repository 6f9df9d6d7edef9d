"""From a vLLM command line to a policy and KV settings."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.base.settings import quote
from course.flags import command_line
from course.flags.kv import KVSettings
from course.models import engine_defaults
from course.models.gpus import GPU, gpu
from course.policies import Continuous

WITHOUT_MODEL = {
    "--scheduling-policy": "order: the simulator's is first come first served",
    "--speculative-config": "drafted tokens: a step of the simulator emits one token a sequence",
    "--kv-transfer-config": "KV cache that comes from elsewhere",
    "--kv-offloading-size": "KV cache that moves to the host",
    "--cpu-offload-gb": "weights that are read over the bus",
    "--enable-lora": "adapters",
    "--scheduler-cls": "a scheduler of your own",
    "--enable-dbo": "overlapped micro-batches",
    "--max-long-partial-prefills": "several long prompts at once",
    "--config": "options in a file, which is not read here",
}
SHARDING = {"--pipeline-parallel-size": "pipeline stages", "--data-parallel-size": "replicas"}


@dataclass(frozen=True)
class ParsedCommand:
    """What a command line means.

    model: its name, None where it names none. policy, kv: what runs. defaults: setting -> why it has the value that
    nobody gave. left_out: options that change neither batching nor KV memory here. notes: what a reader should know.
    """

    model: str | None
    policy: Continuous
    kv: KVSettings
    defaults: dict[str, str]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def parse(line: str, gpu_name: GPU | str | None = None, *, ignore_unknown: bool = False) -> ParsedCommand:
    """The policy and the KV settings of a vLLM command line, as vLLM 0.19 understands it.

    gpu_name: the card, on which the defaults of max_num_seqs and max_num_batched_tokens depend; without one, a card
    below 70 GiB. ignore_unknown: options that vLLM 0.19 does not have become a note.

    Raises ValueError, in a sentence, for a line that vLLM refuses, and for settings that the simulator cannot have.
    """
    card = gpu_name if gpu_name is None or isinstance(gpu_name, GPU) else gpu(gpu_name)
    said = command_line.words(line, ignore_unknown=ignore_unknown)
    rest = dict(said.options)
    notes = list(said.notes)

    def take(option: str, read: Callable[[str, Any], Any], default: Any = None) -> Any:
        return read(option, rest.pop(option)) if option in rest else default

    kv = KVSettings(
        gpu_memory_utilization=take("--gpu-memory-utilization", _real, engine_defaults.GPU_MEMORY_UTILIZATION),
        kv_cache_dtype=take("--kv-cache-dtype", _word, engine_defaults.KV_CACHE_DTYPE),
        block_size=take("--block-size", _whole, engine_defaults.BLOCK_SIZE),
        max_model_len=take("--max-model-len", _length),
        tensor_parallel_size=take("--tensor-parallel-size", _whole, 1),
        num_gpu_blocks_override=take("--num-gpu-blocks-override", _whole_or_none),
        kv_cache_memory_bytes=take("--kv-cache-memory-bytes", _human),
        enable_prefix_caching=take("--enable-prefix-caching", _flag, True),
    )
    policy, reasons = _policy(take, rest, kv, card)
    left_out = []
    for option, value in rest.items():
        if option in WITHOUT_MODEL and value is not False and (option, value) != ("--scheduling-policy", "fcfs"):
            notes.append(f"{option} is not modelled ({WITHOUT_MODEL[option]})")
        elif option in SHARDING and value != "1":
            notes.append(f"{option} is not part of a policy ({SHARDING[option]}): this is one engine's")
        else:
            left_out.append(option)
    return ParsedCommand(said.model, policy, kv, reasons, tuple(left_out), tuple(notes))


def _policy(
    take: Callable[..., Any], rest: dict[str, Any], kv: KVSettings, card: GPU | None
) -> tuple[Continuous, dict[str, str]]:
    reasons: dict[str, str] = {}
    mode = take("--performance-mode", _word, "balanced")
    if mode not in ("balanced", "interactivity", "throughput"):
        raise ValueError(f"--performance-mode is balanced, interactivity or throughput, not {quote(mode)}")
    partial = take("--max-num-partial-prefills", _whole, 1)
    if partial != 1:
        raise ValueError(
            f"{engine_defaults.VERSION} refuses --max-num-partial-prefills other than 1, and this is {partial}"
        )
    chunked = take("--enable-chunked-prefill", _flag)
    if chunked is None:
        chunked, reasons["enable_chunked_prefill"] = True, f"on by default in {engine_defaults.VERSION}"
    threshold = take("--long-prefill-token-threshold", _whole, None)
    if threshold is None:
        threshold, reasons["long_prefill_token_threshold"] = 0, f"no limit by default in {engine_defaults.VERSION}"
    reserve = take("--scheduler-reserve-full-isl", _flag)
    if reserve is None:
        reserve, reasons["scheduler_reserve_full_isl"] = True, f"on by default in {engine_defaults.VERSION}"
    seqs, tokens = take("--max-num-seqs", _whole), take("--max-num-batched-tokens", _human)
    seqs, tokens = _batch(seqs, tokens, chunked, kv.max_model_len, card, mode == "throughput", reasons)
    if not chunked and kv.max_model_len is not None and tokens < kv.max_model_len:
        raise ValueError(
            f"vLLM refuses --no-enable-chunked-prefill with a --max-num-batched-tokens of {tokens:,} below the "
            f"--max-model-len of {kv.max_model_len:,}: raise the one or lower the other"
        )
    return Continuous(seqs, tokens, chunked, threshold, reserve), reasons


def _batch(
    seqs: int | None,
    tokens: int | None,
    chunked: bool,
    length: int | None,
    card: GPU | None,
    throughput: bool,
    reasons: dict[str, str],
) -> tuple[int, int]:
    """max_num_seqs and max_num_batched_tokens as vLLM fills them in, in its order."""
    slots, budget = engine_defaults.batch(card, throughput=throughput)
    where = "a card below 70 GiB" if card is None else card.name
    source = f"the default of {engine_defaults.VERSION} on {where}{', doubled for throughput' if throughput else ''}"
    chosen = slots if seqs is None else seqs
    if tokens is None:
        tokens, reasons["max_num_batched_tokens"] = budget, source
        if not chunked and length is not None and length > tokens:
            tokens = length
            reasons["max_num_batched_tokens"] = "max_model_len, since prompts are not split"
        if length is not None and chosen * length < tokens:
            tokens = chosen * length
            reasons["max_num_batched_tokens"] = "max_num_seqs x max_model_len: more cannot come together"
    if seqs is None:
        reasons["max_num_seqs"] = source
        if tokens < chosen:
            chosen, reasons["max_num_seqs"] = tokens, "the token budget: one decode a sequence"
    return chosen, tokens


# Values, as vLLM's command line reads them


def _flag(option: str, value: Any) -> bool:
    return bool(value)


def _word(option: str, value: str) -> str:
    return value


def _whole(option: str, value: str) -> int:
    """A plain whole number: vLLM takes 8k for a few options only."""
    try:
        if len(value) > 30:
            raise ValueError
        return int(value)
    except ValueError:
        hint = ": vLLM reads 8k only for the token budget and lengths" if re.fullmatch(r"\d+[kKmM]", value) else ""
        raise ValueError(f"{option} must be a whole number, not {quote(value)}{hint}") from None


def _whole_or_none(option: str, value: str) -> int | None:
    return None if value in ("", "None") else _whole(option, value)


def _real(option: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{option} must be a number, not {quote(value)}") from None


def _length(option: str, value: str) -> int | None:
    """A length, or auto (also -1) for what fits the memory."""
    if value.strip() == "-1" or value.strip().lower() == "auto":
        return None
    return _human(option, value)


def _human(option: str, value: str) -> int | None:
    """A whole number, where 1k is 1,000 and 1K is 1,024, as vLLM's human_readable_int."""
    if value in ("", "None"):
        return None
    text = value.strip()
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)([kKmMgGtT])", text)
    if match is None:
        return _whole(option, text)
    number, letter = match.groups()
    power = "kmgt".index(letter.lower()) + 1
    if letter.islower():
        return int(float(number) * 1000**power)
    if "." in number:
        raise ValueError(
            f"{option} {quote(value)}: vLLM takes no decimals before {letter} (1,024 to the power {power}); "
            f"{number}{letter.lower()} counts in thousands"
        )
    return int(number) * 1024**power
