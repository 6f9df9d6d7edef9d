"""Random numbers that depend on a seed and on whom they are for, and on nothing else: not on the batch or the order."""

import numpy as np


def uniform(seed: int, requests: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """A float64 from 0 to below 1 for each request and position, the same in every batch and on every machine.

    requests, positions: whole numbers, of shapes that fit each other.
    """
    mixed = _mix(np.array([seed], np.uint64))
    for part in (requests, positions):
        mixed = _mix(mixed + np.asarray(part).astype(np.uint64))
    return (mixed >> np.uint64(11)) * 2.0**-53


def _mix(x: np.ndarray) -> np.ndarray:
    """SplitMix64 (Steele, Lea and Flood, 2014), modulo 2^64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
