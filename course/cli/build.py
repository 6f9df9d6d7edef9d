"""From options to objects. Every function raises ValueError with a sentence in the words of the command line."""

import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from course import memory, models, steptime, traces
from course.base.settings import MAX_TOKENS, quote, real, whole
from course.cli import classes, knobs, policy_file
from course.cli.common import AsTyped
from course.engine.run import Run
from course.memory.kvcache import KVCache
from course.models import ModelSpec
from course.models.engine_defaults import VERSION
from course.policies import Policy
from course.workload import Workload, lengths
from course.workload.arrivals import HIGHEST_RATE, LOWEST_RATE

Options = Mapping[str, Any]

PER_CLASS = ("prompt_tokens", "prompt_cv", "output_tokens", "output_cv", "arrival_cv")
SYNTHETIC = ("rate", "request_class", "think_time", "num_requests", *PER_CLASS, "seed")
ON_ERROR = ("raise", "skip")
POWER_LAW = ("t0", "c", "alpha", "prefill", "context", "pairs")
EXAMPLE = "power-law:t0=0.0055,c=3e-5,alpha=1,prefill=2.5e-5,context=4.5e-8"


def flag(name: str) -> str:
    """An option as it is typed."""
    return "--class" if name == "request_class" else "--" + name.replace("_", "-")  # `class` is a word of Python


@contextmanager
def spoken_in_flags(options: Options) -> Iterator[None]:
    """Errors of the library name its arguments; the person at the terminal typed flags."""
    try:
        yield
    except AsTyped:
        raise
    except ValueError as error:
        sentence = re.sub(r"`(\w+)`", lambda one: f"`{flag(one[1])}`" if one[1] in options else one[0], str(error))
        sentence = re.sub(r"""\b(\w+)=(["']?)([\w.]+)\2""", lambda one: _typed(one, options), sentence)
        long = "|".join(name for name in options if "_" in name)
        sentence = (
            re.sub(rf"(?<![-\w.])(?:{long})(?![-\w.(=])", lambda one: flag(one[0]), sentence) if long else sentence
        )
        first = re.match(r"(\w+) must be ", sentence)
        if first and first[1] in options:
            sentence = flag(first[1]) + sentence[first.end(1) :]
        raise ValueError(sentence) from None


def _typed(pair: re.Match[str], options: Options) -> str:
    """An argument of Python as an option: max_num_seqs=4 as --max-num-seqs 4, sort=True as --sort."""
    name, value = pair[1], pair[3]
    if name not in options:
        return pair[0]
    if value in ("True", "False"):
        return flag(name) if value == "True" else flag(f"no_{name}")
    return f"{flag(name)} {value}"


def check(options: Options) -> None:
    """Refuse what no run could use, also where this run would not look at it: a mistyped value is a mistake anywhere.

    What contradicts only another option is left to those that read both.
    """
    knobs.check(options)
    KVCache(num_blocks=1, block_size=options["block_size"])
    real("gpu_memory_utilization", options["gpu_memory_utilization"], above=0, high=1)
    _roofline(options)
    real("warmup", options["warmup"], low=0)
    if options["on_error"] not in ON_ERROR:
        raise ValueError(f"--on-error is {' or '.join(ON_ERROR)}, not {quote(options['on_error'])}")
    if options["head"] is not None:
        whole("head", options["head"], high=10**18)
    if options["scale_rate"] is not None:
        real("scale_rate", options["scale_rate"], low=LOWEST_RATE, high=HIGHEST_RATE)


def workload(options: Options, given: set[str]) -> Workload:
    """The requests: from a trace, or drawn; then --head, then --scale-rate, then the cap in the client."""
    if options["trace"] is not None:
        clash = [flag(name) for name in SYNTHETIC if name in given]
        if clash:
            raise ValueError(f"--trace has its own requests: leave out {', '.join(clash)}, or the trace")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what was left out is in load.notes, and shown from there
            load = traces.read(
                options["trace"], on_error=options["on_error"], sort=options["sort"], format=options["format"]
            )
    elif options["request_class"]:
        if options["rate"] is not None:
            raise ValueError("each --class has a rate of its own: leave out --rate")
        load = classes.drawn(options, _drawn)
    elif options["rate"] is None and options["max_concurrency"] is not None:
        load = _closed(options)
    elif options["rate"] is None:
        raise ValueError("there are no requests: give a trace with --trace FILE, or a rate with --rate 10")
    else:
        load = replace(_drawn(options), name=f"drawn with seed {options['seed']}")
    if options["head"] is not None:
        load = load.head(options["head"])
    if options["scale_rate"] is not None:
        load = load.scaled(rate=options["scale_rate"])
    if options["max_concurrency"] is not None and _has_times(options):
        load = replace(load, max_concurrency=whole("max_concurrency", options["max_concurrency"]))
    return load


def _has_times(options: Options) -> bool:
    """Whether requests are due at times: --max-concurrency is then a cap in the client, and users in a loop if not."""
    return any((options["trace"], options["request_class"], options["rate"] is not None))


def _drawn(options: Options) -> Workload:
    """Requests at a rate, as the options say."""
    return Workload.gamma(
        rate=options["rate"],
        cv=real("arrival_cv", options["arrival_cv"], low=0, high=100),
        num_requests=options["num_requests"],
        prompt_tokens=_lengths("prompt", options),
        output_tokens=_lengths("output", options),
        seed=options["seed"],
    )


def _closed(options: Options) -> Workload:
    """Requests of --max-concurrency users, each of whom waits for the answer, thinks, and asks again."""
    users = whole("max_concurrency", options["max_concurrency"])
    number = whole("num_requests", options["num_requests"])
    load = Workload.closed_loop(
        users=min(users, number),
        think_time=options["think_time"],
        requests_per_user=-(-number // users),
        prompt_tokens=_lengths("prompt", options),
        output_tokens=_lengths("output", options),
        seed=options["seed"],
    )
    return replace(load.head(number), name=f"{users:,} users, drawn with seed {options['seed']}")


def _lengths(side: str, options: Options) -> lengths.Lengths:
    mean = real(f"{side}_tokens", options[f"{side}_tokens"], low=1, high=MAX_TOKENS)
    return lengths.lognormal(mean, real(f"{side}_cv", options[f"{side}_cv"], low=0, high=100))


def policies(options: Options, given: Collection[str] = ()) -> dict[str, Policy]:
    """The policies to compare, by name, in the order given; that of --policy-file last."""
    file = options.get("policy_file")
    asked = options["policy"] or ([] if file else ["continuous"])
    found = {name: knobs.build(name, options) for text in asked for name in _names(text)}
    if file:
        name, own, _ = policy_file.load(file, options, given)
        found[name] = own
    return found


def _names(text: str) -> list[str]:
    return [name.strip().lower() for name in text.split(",")]


def served(serve: Any, load: Workload, policy: Policy, timing: Any, blocks: KVCache | None, options: Options) -> Run:
    """The run. ValueError with a sentence, the line of the file among it, where a policy of --policy-file fails."""
    file = options["policy_file"]
    if not file or not type(policy).__module__.startswith("policy_file_"):
        return serve(load, policy, timing, blocks)
    try:
        return serve(load, policy, timing, blocks)
    except ValueError:
        raise
    except Exception as error:
        raise AsTyped(policy_file.blame(file, error, f"{type(policy).__name__} failed while it served")) from None


def step_time(options: Options) -> steptime.StepTimeModel:
    """The step-time model that --step-time, --model and --gpu describe."""
    kind, _, text = options["step_time"].partition(":")
    kind = kind.strip().lower()
    if kind == "roofline" and not text:
        return _roofline(options)
    if kind != "power-law":
        raise ValueError(f"--step-time is roofline or {EXAMPLE}, not {quote(options['step_time'])}")
    constants: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in POWER_LAW or not equals:
            raise ValueError(f"--step-time power-law takes {', '.join(POWER_LAW)} as in {EXAMPLE}, not {quote(part)}")
        if name in constants:
            raise ValueError(f"--step-time gives {name} twice: keep one")
        try:
            constants[name] = float(value)
        except ValueError:
            raise ValueError(f"--step-time: {name} must be a number of seconds, not {quote(value)}") from None
    missing = [name for name in ("t0", "c") if name not in constants]
    if missing:
        raise ValueError(f"--step-time power-law needs {' and '.join(missing)}, as in {EXAMPLE}")
    return steptime.PowerLaw(**{"alpha": 1.0, **constants})


def model_of(options: Options) -> ModelSpec:
    """The model of --model, a name unless a file is called so, with K and V in --kv-cache-dtype."""
    return models.named_or_read(options["model"]).with_kv_dtype(options["kv_cache_dtype"])


def _roofline(options: Options) -> steptime.Roofline:
    return steptime.Roofline(model_of(options), options["gpu"], tp=options["tensor_parallel_size"])


def cache(options: Options, given: set[str], load: Workload) -> tuple[KVCache | None, str]:
    """The KV cache, None for unlimited memory, and where it comes from.

    Without --num-gpu-blocks-override it is what the ledger of the card has left. A step time of constants stands for no
    card, so that memory is unlimited with it unless --gpu is given. ValueError if the weights do not fit.
    """
    blocks = options["num_gpu_blocks_override"]
    if blocks is not None:
        if options["unlimited_kv"]:
            raise ValueError("--unlimited-kv and --num-gpu-blocks-override exclude each other: keep one")
        blocks = whole("num_gpu_blocks_override", blocks)
        return KVCache(blocks, options["block_size"], options["engine_version"]), ""
    if options["unlimited_kv"]:
        return None, "as asked"
    if ":" in options["step_time"] and "gpu" not in given:
        return None, "--step-time does not name a card: give --gpu, or --num-gpu-blocks-override"
    card = _ledger(options, load)
    if card.kv_bytes <= 0 or card.num_blocks < 1:
        reason = card.problems[0] if card.problems else "nothing is left for the KV cache"
        raise ValueError(
            f"{card.spec.name} on {options['gpu']}: {reason}. --unlimited-kv simulates without a limit of memory"
        )
    longest = int((load.prompt_tokens + load.output_tokens).max())
    # The simulator's cache has one kind of blocks: as many as make the longest sequence fit as often as it does there.
    size = options["block_size"]
    blocks = card.num_blocks * -(-longest // size) // card.pool.blocks_for(longest)
    where = f"estimated: {card.kv_bytes / 2**30:.2f} GiB left of {options['gpu']}, as {VERSION} lays them out"
    if len(card.pool.groups) > 1:
        where += f", as sequences of {longest:,} tokens fill it"
    return KVCache(max(blocks, 1), size, options["engine_version"]), where


def _ledger(options: Options, load: Workload) -> memory.Ledger:
    """The memory of one card, for sequences as long as the longest here."""
    seqs, tokens = (whole(name, options[name]) for name in ("max_num_seqs", "max_num_batched_tokens"))
    return memory.ledger(
        model_of(options),
        options["gpu"],
        tp=options["tensor_parallel_size"],
        max_model_len=int((load.prompt_tokens + load.output_tokens).max()),
        gpu_memory_utilization=options["gpu_memory_utilization"],
        max_num_seqs=seqs,
        max_num_batched_tokens=max(tokens, seqs),
        enable_chunked_prefill=options["enable_chunked_prefill"],
        block_size=options["block_size"],
    )


def slo(metric: str, options: Options) -> float | None:
    """The SLO of a metric in seconds, or None."""
    milliseconds = options[f"{metric}_slo_ms"]
    return None if milliseconds is None else real(f"{metric}_slo_ms", milliseconds, above=0) / 1_000


def _has_unlimited_kv(options: Options, given: set[str]) -> bool:
    if options["num_gpu_blocks_override"] is not None:
        return False
    return options["unlimited_kv"] or (":" in options["step_time"] and "gpu" not in given)


def without_effect(options: Options, given: set[str], chosen: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each option that was given and changes nothing. chosen: the names of the policies of this run."""
    file = options.get("policy_file")
    taken = policy_file.load(file, options, given)[2] if file else set()
    others = _only_of_others(chosen, taken)
    capped = options["max_concurrency"] is not None and _has_times(options)
    idle = {
        **{f"no policy of this run is {' or '.join(who)}": names for who, names in others.items()},
        "KV memory is unlimited": ("block_size", "gpu_memory_utilization") if _has_unlimited_kv(options, given) else (),
        "--num-gpu-blocks-override gives the KV memory": ("gpu_memory_utilization",)
        if options["num_gpu_blocks_override"] is not None
        else (),
        "--step-time is not roofline, and no --gpu is given": ("model", "tensor_parallel_size", "kv_cache_dtype")
        if ":" in options["step_time"] and "gpu" not in given
        else (),
        "there is no --max-concurrency": ("think_time",) if options["max_concurrency"] is None else (),
        "requests come at a rate, and --max-concurrency caps them": ("think_time",) if capped else (),
        "users do not arrive at a rate": ("arrival_cv",)
        if options["max_concurrency"] is not None and not capped
        else (),
        "there is no --trace": ("format", "sort", "on_error") if options["trace"] is None else (),
    }
    return tuple(f"{flag(name)} has no effect: {why}" for why, names in idle.items() for name in names if name in given)


def _only_of_others(chosen: Iterable[str], taken: set[str]) -> dict[tuple[str, ...], list[str]]:
    """Policies -> the settings that only those take, if none of them was chosen. taken: by a policy of a file."""
    found: dict[tuple[str, ...], list[str]] = {}
    for option in knobs.OPTIONS:
        if option.name not in taken and not set(option.policies) & set(chosen):
            found.setdefault(option.policies, []).append(option.name)
    return found
