"""A command line of SGLang as a policy: `python -m sglang.launch_server` or `sglang serve`, release 0.5.9."""

from collections.abc import Sequence
from pathlib import Path

from course.base.settings import quote
from course.flags import config_file, manifests
from course.flags.kv import KVSettings
from course.flags.parsed import ParsedCommand, length, present, real, whole
from course.flags.words import Options, options_of
from course.models import other_engines
from course.models.gpus import GPU
from course.policies import Continuous, PrefillFirst

ALONE = frozenset(
    [
        "--enable-mixed-chunk",
        "--disable-radix-cache",
        "--trust-remote-code",
        "--enable-dp-attention",
        "--disable-cuda-graph",
        "--enable-torch-compile",
        "--enable-metrics",
        "--skip-tokenizer-init",
        "--disable-overlap-schedule",
        "--enable-ep-moe",
        "--enable-hierarchical-cache",
        "--log-requests",
        "--enable-lora",
        "--disable-shared-experts-fusion",
        "--enable-eplb",
        "--enable-cache-report",
        "--enable-memory-saver",
        "--enable-p2p-check",
        "--disable-chunked-prefix-cache",
        "--is-embedding",
        "--disable-custom-all-reduce",
        "--enable-nccl-nvls",
        "--enable-two-batch-overlap",
        "--skip-server-warmup",
    ]
)
SHORT = {
    "--tp": "--tp-size", "--tensor-parallel-size": "--tp-size", "--dp": "--dp-size",
    "--data-parallel-size": "--dp-size", "--pp": "--pp-size", "--pipeline-parallel-size": "--pp-size",
    "--ep": "--ep-size", "--model": "--model-path", "--expert-parallel-size": "--ep-size",
}  # fmt: skip
DTYPES = {"auto": "auto", "fp8_e5m2": "fp8_e5m2", "fp8_e4m3": "fp8_e4m3", "bf16": "bfloat16", "bfloat16": "bfloat16"}
NOT_MODELLED = {
    "--speculative-algorithm": "drafted tokens: a step of the simulator emits one token per sequence",
    "--schedule-policy": "order: the simulator's is first come first served",
    "--schedule-conservativeness": "the share of max_new_tokens that is held back on admission",
    "--dp-size": "replicas: a policy is for one engine",
    "--pp-size": "pipeline stages: a policy is for one engine",
    "--enable-hierarchical-cache": "KV cache that moves to the host",
    "--enable-dp-attention": "attention of whole requests per rank",
    "--disaggregation-mode": "prefill and decode on engines of their own",
    "--cpu-offload-gb": "weights that are read over the bus",
    "--enable-lora": "adapters",
    "--lora-paths": "adapters",
    "--max-prefill-tokens": "the most prompt tokens of a step, which the chunk does not exceed",
    "--prefill-max-requests": "the most prompts of a step",
    "--quantization": "weights then take another number of bytes, and the KV pool is what they leave",
    "--swa-full-tokens-ratio": "how the pool is divided among layers with and without a window",
    "--mamba-ssm-dtype": "bytes of a recurrent state",
    "--enable-two-batch-overlap": "overlapped micro-batches",
}


def arguments(words: Sequence[str]) -> list[str] | None:
    """What follows the program, or None if the words start no server of SGLang."""
    for place, word in enumerate(words):
        if word.endswith("sglang.launch_server"):
            return list(words[place + 1 :])
        if word.rsplit("/", 1)[-1] == "sglang" and tuple(words[place + 1 : place + 2]) == ("serve",):
            return list(words[place + 2 :])
    return None


def parse(words: Sequence[str], notes: Sequence[str], card: GPU | None) -> ParsedCommand:
    """The policy of a command line. ValueError, in a sentence, for values that SGLang refuses.

    Options are not checked against SGLang's own list: one that is not known here is left out.
    """
    model, rest, remarks = options_of(words, ALONE, SHORT)
    notes, reasons = [*notes, *remarks], dict[str, str]()
    if "--config" in rest:
        rest = _file(present("--config", rest.pop("--config")), notes) | rest  # the command line counts before the file
    if "--model-path" in rest:
        model = present("--model-path", rest.pop("--model-path"))

    def number(option: str) -> int | None:
        return whole(option, present(option, rest.pop(option))) if option in rest else None

    page = number("--page-size") or other_engines.SGLANG_PAGE
    tokens = number("--max-total-tokens")
    dtype = rest.pop("--kv-cache-dtype", "auto")
    if dtype not in DTYPES:
        raise ValueError(f"--kv-cache-dtype of SGLang is one of {', '.join(DTYPES)}, not {quote(dtype)}")
    context = rest.pop("--context-length", None)
    kv = KVSettings(
        kv_cache_dtype=DTYPES[dtype],
        block_size=page,
        max_model_len=None if context is None else length("--context-length", present("--context-length", context)),
        tensor_parallel_size=number("--tp-size") or 1,
        num_gpu_blocks_override=None if tokens is None else max(tokens // page, 1),
        enable_prefix_caching=rest.pop("--disable-radix-cache", False) is False,
    )
    if "--mem-fraction-static" in rest:
        share = real("--mem-fraction-static", present("--mem-fraction-static", rest.pop("--mem-fraction-static")))
        notes.append(
            f"--mem-fraction-static {share:g} is the share of weights and KV pool alone, without activations and "
            "graphs, and has no equal in gpu_memory_utilization: take the pool that the server prints"
        )
    slots, chunk, most = (number(f"--{name}") for name in
                          ("max-running-requests", "chunked-prefill-size", "max-prefill-tokens"))  # fmt: skip
    policy = _policy(slots, chunk, most, rest.pop("--enable-mixed-chunk", False) is not False, card, reasons, notes)
    notes += [
        f"{option} is not modelled ({why})"
        for option, why in NOT_MODELLED.items()
        if rest.get(option) not in (None, False, "1", "fcfs")
    ]
    left_out = tuple(option for option in rest if option not in NOT_MODELLED or rest[option] in (False, "1", "fcfs"))
    return ParsedCommand(model, policy, kv, reasons, left_out, tuple(notes), other_engines.SGLANG)


def _file(name: str, notes: list[str]) -> Options:
    """The options in the file of --config. A key that is true stands alone as an option; one that is false is none."""
    content = config_file.settings_of(name, "max-running-requests: 64", notes)
    words = manifests.words_of({key: value for key, value in content.items() if value is not False})
    _, options, remarks = options_of(words, ALONE, SHORT)
    notes += remarks
    if content:
        notes.append(
            f"{len(content):,} options come from {Path(name).name}; those of the command line count before them"
        )
    return options


def _policy(
    slots: int | None, chunk: int | None, most: int | None, mixed: bool, card: GPU | None, reasons: dict[str, str],
    notes: list[str],
) -> PrefillFirst | Continuous:  # fmt: skip
    if chunk is None:
        chunk = other_engines.sglang_chunk(card)
        where = "a card of 60 to 160 GiB, since none is named" if card is None else card.name
        reasons["max_num_batched_tokens"] = f"--chunked-prefill-size of {other_engines.SGLANG} on {where}"
    most = other_engines.SGLANG_PREFILL_TOKENS if most is None else most
    chunked = chunk > 0
    budget = min(chunk, most) if chunked else most
    if slots is None:
        slots = min(other_engines.SGLANG_SLOTS, budget)
        reasons["max_num_seqs"] = (
            f"--max-running-requests of {other_engines.SGLANG}: 2,048 to 4,096, by the pool; not above the chunk"
        )
    elif slots > budget:
        notes.append(
            f"SGLang has no limit of tokens for a step of decodes, and here one number limits both kinds of steps: "
            f"{slots:,} slots are lowered to the chunk of {budget:,}"
        )
        slots = budget
    if mixed:
        notes.append("--enable-mixed-chunk: decodes run beside the chunk and count against it, as in vLLM's order")
        return Continuous(slots, budget, chunked)
    reasons["policy"] = "without --enable-mixed-chunk a step is prompts alone or decodes alone, prompts first"
    return PrefillFirst(slots, budget, chunked)
