"""From a command line of an engine to a policy and KV settings."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.flags import command_line, config_file, manifests, sglang_line, sources, tensorrt_llm_line
from course.flags.kv import KVSettings
from course.flags.options import ONE_IS_NONE, SHARDING, WITHOUT_MODEL, on_memory
from course.flags.parsed import ParsedCommand, flag, human, length, present, real, whole, whole_or_none, word
from course.flags.shell import Source
from course.models import engine_defaults
from course.models.gpus import GPU, gpu
from course.policies import Continuous

PLAIN = (("--scheduling-policy", "fcfs"),)  # what the simulator does


def parse(
    line: str,
    gpu_name: GPU | str | None = None,
    *,
    ignore_unknown: bool = False,
    service: str | None = None,
    env: Mapping[str, str] | None = None,
) -> ParsedCommand:
    """The policy and the KV settings of a command line of vLLM 0.19, SGLang 0.5.9 or TensorRT-LLM 1.2.

    line: the command, a script with it, a file of docker compose or a manifest of Kubernetes (as text, or the name of
    the file). gpu_name: the card, on which defaults depend; without one, a card below 70 GiB. ignore_unknown: options
    that vLLM 0.19 does not have become a note. service: of a YAML file in which several run an engine. env: values
    of shell variables, by name.

    Raises ValueError, in a sentence, for a line that the engine refuses, and for settings that the simulator cannot
    have; OSError for a file that cannot be opened.
    """
    card = gpu_name if gpu_name is None or isinstance(gpu_name, GPU) else gpu(gpu_name)
    source = sources.source(line, service, env)
    for other in (sglang_line, tensorrt_llm_line):
        rest = other.arguments(source.words)
        if rest is not None:
            return other.parse(rest, source.notes, card)
    return _vllm(source, card, ignore_unknown)


def _vllm(source: Source, card: GPU | None, ignore_unknown: bool) -> ParsedCommand:
    line_words = command_line.words(source.words, ignore_unknown=ignore_unknown)
    options, model, notes = dict(line_words.options), line_words.model, [*source.notes, *line_words.notes]
    if "--config" in options:
        file = _config(present("--config", options.pop("--config")), ignore_unknown, notes)
        options = file.options | options  # the command line counts before the file
        model = model or file.model
    rest = dict(options)

    def take(option: str, read: Callable[[str, Any], Any], default: Any = None) -> Any:
        return read(option, present(option, rest.pop(option))) if option in rest else default

    kv = KVSettings(
        gpu_memory_utilization=take("--gpu-memory-utilization", real, engine_defaults.GPU_MEMORY_UTILIZATION),
        kv_cache_dtype=take("--kv-cache-dtype", word, engine_defaults.KV_CACHE_DTYPE),
        block_size=take("--block-size", whole, engine_defaults.BLOCK_SIZE),
        max_model_len=take("--max-model-len", length),
        tensor_parallel_size=take("--tensor-parallel-size", whole, 1),
        num_gpu_blocks_override=take("--num-gpu-blocks-override", whole_or_none),
        kv_cache_memory_bytes=take("--kv-cache-memory-bytes", human),
        enable_prefix_caching=take("--enable-prefix-caching", flag, True),
    )
    policy, reasons = _policy(take, rest, kv, card)
    left_out = []
    for option, value in rest.items():
        alone = option in ONE_IS_NONE and value in ("1", "0")
        memory = on_memory(option, value)
        if memory is not None:
            notes.append(memory)
        elif option in WITHOUT_MODEL and not alone and (option, value) not in PLAIN and value is not False:
            notes.append(f"{option} is not modelled ({WITHOUT_MODEL[option]})")
        elif option in SHARDING and not alone:
            notes.append(f"{option} is not part of a policy ({SHARDING[option]}): a policy is for one engine")
        else:
            left_out.append(option)
    return ParsedCommand(model, policy, kv, reasons, tuple(left_out), tuple(notes), engine_defaults.VERSION)


def _config(name: str, ignore_unknown: bool, notes: list[str]) -> command_line.Words:
    """The options in the file of --config: keys are options without their dashes."""
    content = config_file.settings_of(name, "max-num-seqs: 64", notes)
    if not content:
        return command_line.Words(None, {}, ())
    file_words = command_line.words(manifests.words_of(content), ignore_unknown=ignore_unknown)
    notes.append(f"{len(content):,} options come from {Path(name).name}; those of the command line count before them")
    notes.extend(file_words.notes)
    return file_words


def _policy(
    take: Callable[..., Any], rest: dict[str, Any], kv: KVSettings, card: GPU | None
) -> tuple[Continuous, dict[str, str]]:
    reasons: dict[str, str] = {}
    mode = take("--performance-mode", word, "balanced")
    if mode not in ("balanced", "interactivity", "throughput"):
        raise ValueError(f"--performance-mode is balanced, interactivity or throughput, not {quote(mode)}")
    partial = take("--max-num-partial-prefills", whole, 1)
    if partial != 1:
        raise ValueError(
            f"{engine_defaults.VERSION} refuses --max-num-partial-prefills other than 1, and this is {partial}"
        )
    chunked = take("--enable-chunked-prefill", flag)
    if chunked is None:
        chunked, reasons["enable_chunked_prefill"] = True, f"on by default in {engine_defaults.VERSION}"
    threshold = take("--long-prefill-token-threshold", whole, None)
    if threshold is None:
        threshold, reasons["long_prefill_token_threshold"] = 0, f"no limit by default in {engine_defaults.VERSION}"
    reserve = take("--scheduler-reserve-full-isl", flag)
    if reserve is None:
        reserve, reasons["scheduler_reserve_full_isl"] = True, f"on by default in {engine_defaults.VERSION}"
    seqs, tokens = take("--max-num-seqs", whole), take("--max-num-batched-tokens", human)
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
    sequences = slots if seqs is None else seqs
    if tokens is None:
        tokens, reasons["max_num_batched_tokens"] = budget, source
        if not chunked and length is not None and length > tokens:
            tokens = length
            reasons["max_num_batched_tokens"] = "max_model_len, since prompts are not split"
        if length is not None and sequences * length < tokens:
            tokens = sequences * length
            reasons["max_num_batched_tokens"] = "max_num_seqs x max_model_len: a step cannot have more"
    if seqs is None:
        reasons["max_num_seqs"] = source
        if tokens < sequences:
            sequences, reasons["max_num_seqs"] = tokens, "the token budget: one decode per sequence"
    return sequences, tokens
