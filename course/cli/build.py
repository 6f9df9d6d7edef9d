"""From options to objects. Every function raises ValueError with a sentence in the words of the command line."""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from course import steptime, traces
from course.base.settings import MAX_TOKENS, quote, real, whole
from course.cli import knobs
from course.memory.kvcache import KVCache
from course.policies import Policy
from course.workload import Workload, lengths
from course.workload.arrivals import HIGHEST_RATE, LOWEST_RATE

Options = Mapping[str, Any]

SYNTHETIC = ("rate", "num_requests", "prompt_tokens", "prompt_cv", "output_tokens", "output_cv", "arrival_cv", "seed")
ON_ERROR = ("raise", "skip")
POWER_LAW = ("t0", "c", "alpha", "prefill", "context", "pairs")
EXAMPLE = "power-law:t0=0.0055,c=3e-5,alpha=1,prefill=2.5e-5,context=4.5e-8"


def flag(name: str) -> str:
    """An option as it is typed."""
    return "--" + name.replace("_", "-")


@contextmanager
def spoken_in_flags(options: Options) -> Iterator[None]:
    """Errors of the library name its arguments; the person at the terminal typed flags."""
    try:
        yield
    except ValueError as error:
        sentence = str(error).replace('on_error="skip"', "--on-error skip").replace("sort=True", "--sort")
        name = re.match(r"(\w+) must be ", sentence)
        if name and name[1] in options:
            sentence = flag(name[1]) + sentence[name.end(1) :]
        raise ValueError(sentence) from None


def check(options: Options) -> None:
    """Refuse what no run could use, also where this run would not look at it: a mistyped value is a mistake anywhere.

    What contradicts only another option is left to those that read both.
    """
    knobs.check(options)
    KVCache(num_blocks=1, block_size=options["block_size"])
    steptime.Roofline(options["model"], options["gpu"])
    real("warmup", options["warmup"], low=0)
    if options["on_error"] not in ON_ERROR:
        raise ValueError(f"--on-error is {' or '.join(ON_ERROR)}, not {quote(options['on_error'])}")
    if options["head"] is not None:
        whole("head", options["head"], high=10**18)
    if options["scale_rate"] is not None:
        real("scale_rate", options["scale_rate"], low=LOWEST_RATE, high=HIGHEST_RATE)


def workload(options: Options, given: set[str]) -> Workload:
    """The requests: from a trace, or drawn; then --head, then --scale-rate."""
    if options["trace"] is not None:
        clash = [flag(name) for name in SYNTHETIC if name in given]
        if clash:
            raise ValueError(f"--trace brings its own requests: leave out {', '.join(clash)}, or the trace")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what was left out is in load.notes, and shown from there
            load = traces.read(
                options["trace"], on_error=options["on_error"], sort=options["sort"], format=options["format"]
            )
    elif options["rate"] is None:
        raise ValueError("there are no requests yet: give a trace with --trace FILE, or a rate with --rate 10")
    else:
        load = Workload.gamma(
            rate=options["rate"],
            cv=real("arrival_cv", options["arrival_cv"], low=0, high=100),
            num_requests=options["num_requests"],
            prompt_tokens=_lengths("prompt", options),
            output_tokens=_lengths("output", options),
            seed=options["seed"],
        )
        load = replace(load, name=f"drawn with seed {options['seed']}")
    if options["head"] is not None:
        load = load.head(options["head"])
    if options["scale_rate"] is not None:
        load = load.scaled(rate=options["scale_rate"])
    return load


def _lengths(side: str, options: Options) -> lengths.Lengths:
    mean = real(f"{side}_tokens", options[f"{side}_tokens"], low=1, high=MAX_TOKENS)
    return lengths.lognormal(mean, real(f"{side}_cv", options[f"{side}_cv"], low=0, high=100))


def policies(options: Options) -> dict[str, Policy]:
    """The policies to compare, by name, in the order given."""
    names = [name.strip().lower() for text in options["policy"] or ["continuous"] for name in text.split(",")]
    return {name: knobs.build(name, options) for name in names}


def step_time(options: Options) -> steptime.StepTimeModel:
    """The step-time model that --step-time, --model and --gpu describe."""
    kind, _, text = options["step_time"].partition(":")
    kind = kind.strip().lower()
    if kind == "roofline" and not text:
        return steptime.Roofline(options["model"], options["gpu"])
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


def cache(options: Options) -> KVCache | None:
    """The KV cache, or None for unlimited memory."""
    if options["num_gpu_blocks"] is None:
        return None
    return KVCache(num_blocks=whole("num_gpu_blocks", options["num_gpu_blocks"]), block_size=options["block_size"])


def slo(metric: str, options: Options) -> float | None:
    """The SLO of a metric in seconds, or None."""
    milliseconds = options[f"{metric}_slo_ms"]
    return None if milliseconds is None else real(f"{metric}_slo_ms", milliseconds, above=0) / 1_000


def without_effect(options: Options, given: set[str]) -> tuple[str, ...]:
    """A sentence for each option that was given and changes nothing."""
    chosen = policies(options)
    idle = {
        **{f"no policy here is {' or '.join(who)}": names for who, names in _only_of_others(chosen).items()},
        "KV memory is unlimited without --num-gpu-blocks": ("block_size",) if options["num_gpu_blocks"] is None else (),
        "--step-time is no roofline": ("model", "gpu") if ":" in options["step_time"] else (),
        "there is no --trace": ("format", "sort", "on_error") if options["trace"] is None else (),
    }
    return tuple(f"{flag(name)} has no effect: {why}" for why, names in idle.items() for name in names if name in given)


def _only_of_others(chosen: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """Policies -> the settings that only those take, where none of them was chosen."""
    found: dict[tuple[str, ...], list[str]] = {}
    for option in knobs.OPTIONS:
        if not set(option.policies) & set(chosen):
            found.setdefault(option.policies, []).append(option.name)
    return found
