"""What a length predictor says of each answer before it is there: the truth, with a named kind of noise on it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from course.base.settings import MAX_TOKENS, quote, real, reason, seed_sequence


def exact(output_tokens: np.ndarray) -> np.ndarray:
    """A predictor that is always right."""
    return output_tokens.astype(np.float64)


def lognormal(output_tokens: np.ndarray, error: float, seed: int = 0) -> np.ndarray:
    """The truth times exp(error x Z), Z standard normal and independent: `error` is the standard deviation of the log.

    The median is unbiased: half of the guesses are too long, and half too short. Their mean is exp(error^2 / 2) times
    the truth, their coefficient of variation sqrt(exp(error^2) - 1): 0.53 for an error of 0.5. Kept within 1 to 1e9.
    """
    error = real("error", error, low=0, high=10)
    normal = np.random.default_rng(seed_sequence(seed)).standard_normal(len(output_tokens))
    return np.clip(output_tokens * np.exp(error * normal), 1, MAX_TOKENS)


def constant(output_tokens: np.ndarray, tokens: float) -> np.ndarray:
    """The same guess for every request: a predictor that knows nothing."""
    return np.full(len(output_tokens), real("tokens", tokens, low=1, high=MAX_TOKENS))


NOISE: dict[str, Callable[..., np.ndarray]] = {"exact": exact, "lognormal": lognormal, "constant": constant}


def guesses(output_tokens: np.ndarray, noise: Any, settings: dict[str, Any]) -> np.ndarray:
    """Tokens that a predictor with this noise says, float64 of shape (n,). See `Workload.with_guesses`."""
    if not isinstance(noise, str) or noise not in NOISE:
        raise ValueError(f"the noise of guesses must be one of {', '.join(NOISE)}, not {quote(noise)}")
    knobs = [str(knob).split(":")[0] for knob in list(signature(NOISE[noise]).parameters.values())[1:]]
    try:
        signature(NOISE[noise]).bind(output_tokens, **settings)
    except TypeError as error:
        takes = f"takes {' and '.join(knobs)}" if knobs else "takes no setting"
        raise ValueError(f"noise {noise!r} {takes}, not {quote(settings)}: {reason(error)}") from None
    return NOISE[noise](output_tokens, **settings)
