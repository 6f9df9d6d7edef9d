"""The exercise "write the floor": seconds of a step from bytes and FLOPs, and known slips."""

from __future__ import annotations

W, B, F, R, K = 15.0e9, 3.02e12, 15.0e9, 778e12, 131_072
"""Bytes of weights, bytes/s, FLOP a sequence, FLOP/s, and KV bytes a token: as the notebook gives them."""
PROBES = ((1, 1_024), (64, 1_024), (400, 16), (32, 4_096), (256, 128))


def floor(batch: int, context: int) -> float:
    """Seconds of a step of so many sequences of `context` tokens each: reading and multiplying overlap, K and V add."""
    return max(W / B, batch * F / R) + batch * context * K / B


def adds_up(batch: int, context: int) -> float:
    """Reading and multiplying one after the other."""
    return W / B + batch * F / R + batch * context * K / B


def all_meanwhile(batch: int, context: int) -> float:
    """Products that go on while K and V are read too."""
    return max((W + batch * context * K) / B, batch * F / R)


def weights_for_each(batch: int, context: int) -> float:
    """The weights read again for each sequence."""
    return max(batch * W / B, batch * F / R) + batch * context * K / B


def one_multiplication(batch: int, context: int) -> float:
    """The products of a single sequence."""
    return max(W / B, F / R) + batch * context * K / B


def kv_of_one(batch: int, context: int) -> float:
    """K and V of a single sequence."""
    return max(W / B, batch * F / R) + context * K / B


def without_kv(batch: int, context: int) -> float:
    """No K and V."""
    return max(W / B, batch * F / R)


def eight_bits(batch: int, context: int) -> float:
    """The twin: half the bytes of weights, everything else as before."""
    return max(W / 2 / B, batch * F / R) + batch * context * K / B
