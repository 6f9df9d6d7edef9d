"""How long prompts and answers are: distributions of token counts.

Each distribution has a `mean` (tokens) and `sample(rng, n) -> int64 array of n token counts, each at least 1`. Wherever
the course asks for `prompt_tokens=` or `output_tokens=`, a plain int means that every request has that length.
"""

from dataclasses import dataclass, field
from math import log1p, sqrt
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from course.base.settings import MAX_REQUESTS, MAX_TOKENS, quote, real, whole
from course.workload.columns import tokens


@runtime_checkable
class Lengths(Protocol):
    """Anything with these two can be a length distribution."""

    @property
    def mean(self) -> float:
        """The mean length [tokens]."""
        ...

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """`n` token counts, int64, each at least 1, drawn from `rng` alone."""
        ...


def _set(self: Any, **checked: Any) -> None:
    """Fields of a frozen dataclass, after a look at them."""
    for name, value in checked.items():
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Fixed:
    """Every length is `tokens`."""

    tokens: int

    def __post_init__(self) -> None:
        _set(self, tokens=whole("the number of tokens", self.tokens))

    @property
    def mean(self) -> float:
        """See Lengths."""
        return float(self.tokens)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """See Lengths."""
        return np.full(n, self.tokens, dtype=np.int64)


@dataclass(frozen=True)
class Lognormal:
    """The exponential of a normal variable, rounded to the nearest whole token, then clipped to [low, high]."""

    mean: float
    cv: float
    low: int = 1
    high: int = MAX_TOKENS

    def __post_init__(self) -> None:
        low, high = _low_and_high(self.low, self.high)
        mean = real("the mean length", self.mean, low=low, high=high)
        cv = real("the coefficient of variation of the length", self.cv, low=0, high=100)
        _set(self, mean=mean, cv=cv, low=low, high=high)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """See Lengths."""
        # X = exp(N(mu, sigma^2)) has mean exp(mu + sigma^2 / 2) and CV^2 = exp(sigma^2) - 1: solved for sigma and mu.
        sigma = sqrt(log1p(self.cv**2))
        draws = self.mean * np.exp(sigma * rng.standard_normal(n) - sigma**2 / 2)
        return np.clip(np.rint(draws), self.low, self.high).astype(np.int64)


@dataclass(frozen=True)
class Uniform:
    """Every whole number from `low` to `high`, both included, equally likely."""

    low: int
    high: int

    def __post_init__(self) -> None:
        low, high = _low_and_high(self.low, self.high)
        _set(self, low=low, high=high)

    @property
    def mean(self) -> float:
        """See Lengths."""
        return (self.low + self.high) / 2

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """See Lengths."""
        return rng.integers(self.low, self.high, size=n, endpoint=True, dtype=np.int64)


@dataclass(frozen=True)
class Geometric:
    """Stops after each token with probability 1 / mean, however many came before: the discrete exponential."""

    mean: float

    def __post_init__(self) -> None:
        _set(self, mean=real("the mean length", self.mean, low=1, high=MAX_TOKENS))

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """See Lengths."""
        return np.minimum(rng.geometric(1 / self.mean, size=n), MAX_TOKENS).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Empirical:
    """Draws with replacement from measured lengths."""

    values: np.ndarray = field(repr=False)

    def __post_init__(self) -> None:
        values = tokens("the length", self.values)
        if not values.size:
            raise ValueError("empirical lengths need at least one value, but none were given")
        if values.size > MAX_REQUESTS:
            raise ValueError(f"empirical lengths take at most {MAX_REQUESTS:,} values, not {values.size:,}")
        values.setflags(write=False)
        _set(self, values=values)

    @property
    def mean(self) -> float:
        """See Lengths."""
        return float(self.values.mean())

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """See Lengths."""
        return self.values[rng.integers(len(self.values), size=n)]


def _low_and_high(low: Any, high: Any) -> tuple[int, int]:
    low, high = whole("low", low), whole("high", high)
    if low > high:
        raise ValueError(f"low must not be above high, but low is {low} and high is {high}")
    return low, high


def fixed(n: int) -> Fixed:
    """Every request has `n` tokens. ValueError unless n is a whole number of at least 1."""
    return Fixed(n)


def lognormal(mean: float, cv: float, low: int = 1, high: int | None = None) -> Lognormal | Fixed:
    """Lognormal lengths with this mean [tokens] and coefficient of variation (standard deviation / mean).

    `mean` and `cv` are those of the distribution before rounding to the nearest token and clipping to [low, high].
    Rounding and the floor of one token move the mean by less than 1% for mean >= 16 and cv <= 4; `high` may cut off
    more of it. cv = 0 gives the fixed length round(mean). ValueError for a mean outside [low, high], a cv outside 0 to
    100, or low > high.
    """
    shape = Lognormal(mean, cv, low, MAX_TOKENS if high is None else high)
    return Fixed(round(shape.mean)) if shape.cv == 0 else shape


def uniform(low: int, high: int) -> Uniform:
    """Whole numbers from `low` to `high`, both included. ValueError unless 1 <= low <= high."""
    return Uniform(low, high)


def geometric(mean: float) -> Geometric:
    """Geometric lengths 1, 2, 3, ... with this mean [tokens]; the coefficient of variation is sqrt(1 - 1 / mean).

    This is the memoryless length of queueing theory: what is left is as long as what was left before. ValueError for
    mean < 1.
    """
    return Geometric(mean)


def empirical(values: Any) -> Empirical:
    """Lengths drawn with replacement from `values`, one or more measured token counts from 1 up; else ValueError."""
    return Empirical(values)


def sample_lengths(name: str, lengths: Lengths, rng: np.random.Generator, n: int) -> np.ndarray:
    """`n` lengths, int64; ValueError if a distribution of your own gives something else."""
    try:
        values = tokens(name, lengths.sample(rng, n))
    except ValueError as error:
        raise ValueError(f"what {quote(lengths)} draws impossible lengths: {error}") from None
    if len(values) != n:
        raise ValueError(f"{quote(lengths)} was asked for {n:,} lengths for {name} and gave {len(values):,}")
    return values


def as_lengths(name: str, value: Any) -> Lengths:
    """`value` if it is a distribution, a fixed length if it is a whole number; else a ValueError naming the setting."""
    if isinstance(value, Lengths) and isinstance(value.mean, Real):  # a data frame has both names, as methods
        return value
    try:
        return Fixed(whole(name, value))
    except ValueError:
        raise ValueError(
            f"{name} must be a whole number from 1 to {MAX_TOKENS:,}, or a distribution such as "
            f"lengths.lognormal(mean=512, cv=1), not {quote(value)}"
        ) from None
