"""Is this setting a number we can use? Every refusal is a sentence: what was wrong, which value, what is allowed."""

import sys
from math import inf, isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

MAX_REQUESTS = 5_000_000  # about 200 MB of arrays; a mistyped 10**12 must not eat the machine
MAX_TOKENS = 10**9  # the square of it, the query-key pairs of one prompt, still fits int64
MAX_SECONDS = 1e10  # above this a float64 no longer tells microseconds apart
MAX_STEPS = 20_000_000  # a summary of as many holds about 2 GB
MAX_CHUNKS = 5_000_000  # of prompts in a run, each noted: about 1 GB, and half a minute


def _plain(value: Any) -> Any:
    """A NumPy scalar as the number that it holds, anything else as it is; without waiting for NumPy to be imported."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def quote(value: Any) -> str:
    """`value` as it would be typed, cut to a length that fits a sentence."""
    try:
        text = repr(_plain(value))
    except Exception:  # an int of 5,000 digits has no repr, and a stranger's __repr__ may raise anything
        return f"something of type {type(value).__name__} that cannot be shown"
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def reason(error: BaseException) -> str:
    """What an exception says, with its kind; a stranger's __str__ may raise anything."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def real(name: str, value: Any, *, low: float = -inf, high: float = inf, above: float | None = None) -> float:
    """`value` as a finite float with low <= value <= high, and value > above if given; else ValueError."""
    if isinstance(value, bool) or not isinstance(value, Real):  # NumPy's bool is no Real
        raise ValueError(f"{name} must be a number{_range_words(low, high, above)}, not {quote(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not isfinite(number) or not low <= number <= high or (above is not None and number <= above):
        raise ValueError(f"{name} must be a finite number{_range_words(low, high, above)}, not {quote(value)}")
    return number


def whole(name: str, value: Any, *, low: int = 1, high: int = MAX_TOKENS) -> int:
    """`value` as an int with low <= value <= high; 2e3 counts as 2000, 12.5 and True do not; else ValueError."""
    usable = isinstance(value, Real) and not isinstance(value, bool)
    if not usable or not low <= value <= high or value != int(value):
        raise ValueError(f"{name} must be a whole number{_range_words(low, high)}, not {quote(value)}")
    return int(value)


def seed_sequence(seed: Any) -> "np.random.SeedSequence":
    """The root of a workload's random streams; ValueError unless `seed` is a whole number from 0 to 2^64 - 1."""
    from numpy.random import SeedSequence

    return SeedSequence(whole("seed", seed, low=0, high=2**64 - 1))


def _range_words(low: float, high: float, above: float | None = None) -> str:
    """The words for a range: " from 1 to 5,000,000", " above 0", " of at least 1", or nothing."""
    low_text, high_text = (f"{x:,}" if isinstance(x, int) else f"{x:g}" for x in (low, high))
    if above is not None:
        return f" above {above:g}" + (f" and at most {high_text}" if high != inf else "")
    if low != -inf and high != inf:
        return f" from {low_text} to {high_text}"
    if low != -inf:
        return f" of at least {low_text}"
    return f" of at most {high_text}" if high != inf else ""


def flag(name: str, value: Any) -> bool:
    """`value` as a bool; ValueError for anything but True and False."""
    if isinstance(_plain(value), bool):
        return bool(value)
    raise ValueError(f"{name} must be True or False, not {quote(value)}")
