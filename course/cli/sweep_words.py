"""What is typed for a sweep, read: `--set max_num_seqs=32,64`, `--slo chat:ttft=0.8`, `--price H100=2.5`."""

import re
from typing import Any

from course.base.settings import MAX_SECONDS, quote, real
from course.cli import sweep_design
from course.cli.common import AsTyped

MOST_VALUES = 10_000  # of one setting
SET = "--set max_num_seqs=32,64,128"
SLO = "--slo ttft=0.8,tpot=0.03"


def grid_of(texts: list[str]) -> dict[str, list[Any]]:
    """The values of each setting. ValueError for a setting or a value that `course simulate` does not have."""
    if not texts:
        raise AsTyped(f"there is nothing to vary: give the values of a setting, as in {SET}")
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = (piece.strip() for piece in text.partition("="))
        name = name.removeprefix("--").replace("-", "_")
        name = {
            "tp": "tensor_parallel_size",
            "kv_dtype": "kv_cache_dtype",
            "num_gpu_blocks": "num_gpu_blocks_override",
        }.get(name, name)
        if not equals or not name:
            raise AsTyped(f"--set takes a name and values, as in {SET}, not {quote(text)}")
        if name not in sweep_design.kinds():
            raise AsTyped(_no_setting(name))
        if name in grid:
            raise AsTyped(f"--set gives {name} twice: put all of its values into one")
        grid[name] = list(dict.fromkeys(_values(name, values, sweep_design.kinds()[name])))
    return grid


def _no_setting(name: str) -> str:
    if name in sweep_design.FIXED:
        option = "--class" if name == "request_class" else f"--{name.replace('_', '-')}"
        return f"{option} says what is served, and has one value in a sweep: {quote(name)} cannot be --set"
    if name in ("seed", "seeds"):
        return "the seeds of a sweep are --seeds"
    if name.endswith("_slo_ms"):
        return f"the SLOs of a sweep are --slo, in seconds, as in {SLO}"
    return (
        f"`course simulate` has no setting called {quote(name)}: `course simulate --help` lists them; cards is another"
    )


def _values(name: str, text: str, kind: type) -> list[Any]:
    values: list[Any] = []
    for part in (piece.strip() for piece in text.split(",")):
        span = re.fullmatch(r"(\d{1,12})\.\.(\d{1,12})", part) if kind is int else None
        if span is not None:
            first, last = int(span[1]), int(span[2])
            if not 0 <= last - first < MOST_VALUES:
                raise AsTyped(f"--set {name}: {part} must rise, by less than {MOST_VALUES:,}")
            values += range(first, last + 1)
        else:
            values.append(_value(name, part, kind))
    return values


def _value(name: str, part: str, kind: type) -> Any:
    words = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    if not part:
        raise AsTyped(f"--set {name} has an empty value: give some, as in {SET}")
    if kind is bool:
        if part.lower() not in words:
            raise AsTyped(f"--set {name}: a value is true or false, not {quote(part)}")
        return words[part.lower()]
    if kind is str:
        return part
    try:
        return kind(part)
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise AsTyped(f"--set {name}: a value must be a {what}, not {quote(part)}") from None


def slos_of(texts: list[str]) -> dict[str, dict[str, float]]:
    """Class -> metric -> seconds; the class "" is every request."""
    slos: dict[str, dict[str, float]] = {}
    for text in texts:
        name, colon, rest = text.rpartition(":")
        name = name.strip()
        if (colon and not name) or name in slos:
            why = (
                "gives a class twice"
                if name in slos and name
                else "is given twice: use one"
                if not colon
                else "lacks a class"
            )
            raise AsTyped(f"--slo {why}, in {quote(text)}")
        slos[name] = _pairs("--slo", rest, f"ttft, tpot or e2e and seconds, as in {SLO}", ("ttft", "tpot", "e2e"))
    return slos


def prices_of(text: str | None) -> dict[str, float]:
    """Dollars an hour, by the name of a card. ValueError for a card that is not known."""
    from course.models import gpus

    if text is None:
        return {}
    prices = _pairs("--price", text, "cards and dollars an hour, as in --price H100=2.5,H200=3.3", None)
    for name in prices:
        gpus.gpu(name)
    return prices


def _pairs(option: str, text: str, what: str, names: tuple[str, ...] | None) -> dict[str, float]:
    pairs: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or (names is not None and name not in names):
            raise AsTyped(f"{option} takes {what}, not {quote(part)}")
        if name in pairs:
            raise AsTyped(f"{option} gives {name} twice: keep one")
        try:
            number = float(value)
        except ValueError:
            raise AsTyped(f"{option}: {name} must be a number, not {quote(value)}") from None
        pairs[name] = real(f"{name} of {option}", number, above=0, high=MAX_SECONDS)
    return pairs
