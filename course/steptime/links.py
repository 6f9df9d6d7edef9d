"""What passes between cards: seconds of an all-reduce, as recorded on two cards, or by a latency and a bandwidth."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from math import log2
from typing import Any

import numpy as np

from course.base import settings
from course.steptime import files

KERNEL, RECORDING = "two_cards", "h200_x2_collectives"
MAX_BYTES = 10**15
HOP = 1.5e-6
"""Seconds that each doubling of the cards beyond two is assumed to add. Nobody measured it here."""


@dataclass(frozen=True)
class Link:
    """An all-reduce over ranks of which each holds all the bytes, by a latency [s] and a bandwidth [bytes/s].

    Two ranks take latency + size / bandwidth. More ranks take HOP more for each doubling, and send 2 (p - 1) / p times
    the bytes of two, as a ring does. Raises ValueError for a latency below 0 and a bandwidth below 1 byte/s.
    """

    latency: float
    bandwidth: float
    name: str = "as given"

    def __post_init__(self) -> None:
        settings.real("the latency of a link, in seconds,", self.latency, low=0, high=settings.MAX_SECONDS)
        settings.real("the bandwidth of a link, in bytes/s,", self.bandwidth, low=1, high=1e30)

    def badge(self, ranks: int) -> str:
        """Where the seconds of so many ranks come from."""
        return f"all-reduces modelled, {1e6 * self.latency:g} us and {self.bandwidth / 1e9:g} GB/s"

    def of_two(self, size: float) -> float:
        """Seconds of an all-reduce of so many bytes over two ranks."""
        return self.latency + size / self.bandwidth

    def all_reduce(self, size: float, ranks: int) -> float:
        """Seconds of an all-reduce of so many bytes. ValueError for no bytes or no rank."""
        size = settings.real("the bytes of an all-reduce", size, low=1, high=MAX_BYTES)
        ranks = settings.whole("the ranks of an all-reduce", ranks, high=4_096)
        if ranks == 1:
            return 0.0
        more = 2 * (ranks - 1) / ranks - 1
        return self.of_two(size) + HOP * log2(ranks / 2) + more * size / self.bandwidth

    def send(self, size: float) -> float:
        """Seconds to send so many bytes to another rank: those of an all-reduce of two, which sends as many."""
        return self.all_reduce(size, 2)


@dataclass(frozen=True)
class RecordedLink(Link):
    """The same with what two cards took: on straight lines between the recorded sizes, and on along the last one.

    sizes: bytes, seconds: of an all-reduce of so many over two cards. More than two cards are extrapolated.
    """

    sizes: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    recorded: str = ""

    def badge(self, ranks: int) -> str:
        """See Link."""
        return f"all-reduces recorded: {self.recorded}" + (f", extrapolated to {ranks}" if ranks > 2 else "")

    def of_two(self, size: float) -> float:
        """See Link."""
        if size > self.sizes[-1]:
            return self.seconds[-1] + (size - self.sizes[-1]) / self.bandwidth
        return between(size, self.sizes, self.seconds)


def between(x: float, xs: tuple[float, ...], ys: tuple[float, ...]) -> float:
    """On straight lines through points, of which there are two at least; the first and the last y outside of them."""
    i = min(max(bisect_right(xs, x), 1), len(xs) - 1)
    way = min(max((x - xs[i - 1]) / (xs[i] - xs[i - 1]), 0.0), 1.0)
    return ys[i - 1] + way * (ys[i] - ys[i - 1])


@cache
def two_cards(name: str = RECORDING) -> dict[str, Any]:
    """The recording of two cards of one host: all-reduces alone, and layers whole and in halves."""
    return files.read(KERNEL, name)


def kinds(name: str = RECORDING) -> tuple[str, ...]:
    """The kinds of all-reduce that were recorded."""
    return tuple(dict.fromkeys(row["kind"] for row in two_cards(name)["all_reduce"]))


@cache
def recorded_link(kind: str = "fastest", *, graphs: bool = True, name: str = RECORDING) -> RecordedLink:
    """An all-reduce of two H200s as recorded. kind: one of `kinds`, or the fastest of them at each size.

    graphs: in a CUDA graph; without, one call after the other. Raises ValueError for another kind.
    """
    found = two_cards(name)
    if kind != "fastest" and kind not in kinds(name):
        raise ValueError(f"no all-reduce called {settings.quote(kind)} was recorded: there is fastest, and "
                         f"{', '.join(kinds(name))}")  # fmt: skip
    times: dict[float, float] = {}
    for row in found["all_reduce"]:
        if kind in ("fastest", row["kind"]):
            seconds = 1e-6 * row["in_graph_us" if graphs else "in_a_row_us"][0]
            times[row["bytes"]] = min(seconds, times.get(row["bytes"], seconds))
    sizes = tuple(sorted(times))
    seconds = tuple(np.maximum.accumulate([times[size] for size in sizes]).tolist())
    bandwidth = (sizes[-1] - sizes[0]) / (seconds[-1] - seconds[0])
    where = found["provenance"]
    return RecordedLink(
        seconds[0], bandwidth, kind, sizes, seconds, f"{where['cards']} {where['card']}, {where['date']}"
    )
