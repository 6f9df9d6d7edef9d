"""The next token: the most likely one, or drawn with a number that depends on seed, request and position alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from course.base import settings
from course.base.draws import uniform as uniform


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen: temperature 0 is greedy, top_k 0 and top_p 1 leave all tokens.

    top_p: the most likely tokens are left that together have this probability, the last of them whole. ValueError for a
    negative value, and for a top_p of 0 or above 1.
    """

    temperature: float = 0.0
    top_k: int = 0
    seed: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", settings.real("temperature", self.temperature, low=0, high=100))
        object.__setattr__(self, "top_k", settings.whole("top_k", self.top_k, low=0))
        object.__setattr__(self, "seed", settings.whole("seed", self.seed, low=0, high=2**64 - 1))
        object.__setattr__(self, "top_p", settings.real("top_p", self.top_p, low=0, high=1))
        if self.top_p == 0:
            raise ValueError("top_p must be above 0, not 0: with it no token would be left")

    def choose(self, logits: np.ndarray, requests: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The next tokens, int64 [rows].

        logits: [rows, vocabulary]. requests, positions: whole numbers [rows]; the number of each request and how many
        tokens stand before the one that is chosen.
        """
        if self.temperature == 0:
            return logits.argmax(-1)
        edges = cumulate(logits, self.temperature, self.top_k, self.top_p)
        thresholds = uniform(self.seed, requests, positions)
        return (edges <= thresholds[:, None]).sum(-1)


GREEDY = Sampling()


def cumulate(logits: np.ndarray, temperature: float, top_k: int = 0, top_p: float = 1.0) -> np.ndarray:
    """The cumulative probabilities in the order of token ids, float64 [rows, vocabulary], the last of them 1."""
    with np.errstate(over="ignore"):
        scaled = logits.astype(np.float64) / temperature
        if not np.isfinite(scaled.max(-1)).all():  # a temperature near 0, at which differences count alone
            scaled = (logits.astype(np.float64) - logits.max(-1, keepdims=True)) / temperature
    if 0 < top_k < scaled.shape[1]:
        least = np.partition(scaled, -top_k, axis=-1)[:, -top_k, None]
        scaled = np.where(scaled < least, -np.inf, scaled)
    weights = np.exp(scaled - scaled.max(-1, keepdims=True))
    if top_p < 1:
        order = np.argsort(-weights, axis=-1, kind="stable")
        sorted_ = np.take_along_axis(weights, order, -1)
        before = sorted_.cumsum(-1) - sorted_
        left = before < top_p * sorted_.sum(-1, keepdims=True)
        np.put_along_axis(weights, order, np.where(left, sorted_, 0.0), -1)
    sums = weights.cumsum(-1)
    return sums / sums[:, -1:]
