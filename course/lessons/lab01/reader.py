"""The exercise "write the reader": the four times of one request from the moments of its tokens, and known slips."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Times = tuple[float, float, float, float]

PROBES: tuple[tuple[float, list[float]], ...] = (
    (10.0, [10.5, 10.75, 11.0, 12.5]),
    (0.0, [2.0, 2.25, 2.5]),
    (3.0, [3.25, 5.25]),
    (1.5, [2.0, 2.5, 2.75, 3.0, 3.5, 4.0]),
    (4.0, [4.25, 5.75, 6.0, 6.5, 6.75]),  # the longest gap is neither the last nor among the last ones
)


def four_times(sent: float, tokens: Sequence[float]) -> Times:
    """TTFT, TPOT, E2E and the longest gap [s] of a request that was sent at `sent` and got its tokens at `tokens`."""
    ttft, e2e = tokens[0] - sent, tokens[-1] - sent
    gaps = [later - earlier for earlier, later in pairwise(tokens)]
    return ttft, (e2e - ttft) / (len(tokens) - 1), e2e, max(gaps)


def divides_by_tokens(sent: float, tokens: Sequence[float]) -> Times:
    """TPOT over all tokens."""
    ttft, _, e2e, longest = four_times(sent, tokens)
    return ttft, (e2e - ttft) / len(tokens), e2e, longest


def first_token_in_tpot(sent: float, tokens: Sequence[float]) -> Times:
    """TPOT with the time to the first token in it."""
    ttft, _, e2e, longest = four_times(sent, tokens)
    return ttft, e2e / len(tokens), e2e, longest


def moments(sent: float, tokens: Sequence[float]) -> Times:
    """Moments of the clock in place of times since sending."""
    _, tpot, _, longest = four_times(sent, tokens)
    return tokens[0], tpot, tokens[-1], longest


def from_the_first_token(sent: float, tokens: Sequence[float]) -> Times:
    """E2E from the first token on."""
    ttft, tpot, _, longest = four_times(sent, tokens)
    return ttft, tpot, tokens[-1] - tokens[0], longest


def first_wait_is_a_gap(sent: float, tokens: Sequence[float]) -> Times:
    """The wait for the first token among the gaps."""
    ttft, tpot, e2e, longest = four_times(sent, tokens)
    return ttft, tpot, e2e, max(ttft, longest)


def in_another_order(sent: float, tokens: Sequence[float]) -> Times:
    """TPOT and E2E exchanged."""
    ttft, tpot, e2e, longest = four_times(sent, tokens)
    return ttft, e2e, tpot, longest


def mean_gap(sent: float, tokens: Sequence[float]) -> Times:
    """The mean gap in place of the longest."""
    ttft, tpot, e2e, _ = four_times(sent, tokens)
    return ttft, tpot, e2e, tpot


def last_gap(sent: float, tokens: Sequence[float]) -> Times:
    """The last gap in place of the longest."""
    ttft, tpot, e2e, _ = four_times(sent, tokens)
    return ttft, tpot, e2e, tokens[-1] - tokens[-2]


def shortest_gap(sent: float, tokens: Sequence[float]) -> Times:
    """The twin: TTFT, TPOT, E2E and the shortest gap [s]."""
    ttft, tpot, e2e, _ = four_times(sent, tokens)
    return ttft, tpot, e2e, min(later - earlier for earlier, later in pairwise(tokens))
