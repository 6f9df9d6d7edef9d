"""One step of Llama-3.1-8B on 1, 2, 4 or 8 H200s, and what its tokens cost: recorded steps, halves and all-reduces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from course.figures.words import seconds
from course.models import prices
from course.steptime import Sharded, recorded, recorded_link
from course.steptime.links import two_cards

RECORDING = recorded("h200-llama3-8b-flash")
CARD, CONTEXT = "H200", 1_000  # and tokens that each sequence attends to
PRICE = prices.per_hour(CARD)
CARDS, BATCHES = (1, 2, 4, 8), (1, 2, 4, 8, 16, 32, 64, 128, 256)
NCCL, FASTEST = "NCCL", "symmetric memory"
KINDS = {NCCL: "nccl", FASTEST: "fastest"}
"""Who adds up, and which all-reduces were recorded of it: of symmetric memory the faster of one-shot and two-shot."""
HIDDEN, NUMBER_BYTES = RECORDING.sizes["hidden"], 2
LAYERS = RECORDING.sizes["layers"]


@cache
def model(cards: int, kind: str = FASTEST) -> Sharded:
    """The step time of so many cards that share each layer."""
    return Sharded(RECORDING, cards, link=recorded_link(KINDS[kind]))


@dataclass(frozen=True)
class Spread:
    """A step of `batch` decodes on `cards`. Seconds: shared (shrinks with the cards), stays, sums, and one card's.

    What stays is a part of the step of one card too.
    """

    cards: int
    batch: int
    kind: str
    shared: float
    stays: float
    sums: float
    alone: float

    @property
    def step(self) -> float:
        """Seconds of the step."""
        return self.shared + self.stays + self.sums

    @property
    def speed_up(self) -> float:
        """Times as fast as one card."""
        return self.alone / self.step

    @property
    def tokens_a_card(self) -> float:
        """Tokens/s of each card."""
        return self.batch / self.step / self.cards

    @property
    def cost(self) -> float:
        """Dollars for a million tokens."""
        return prices.per_million(self.batch / self.step, PRICE, self.cards)


@cache
def spread(cards: int = 2, batch: int = 1, kind: str = FASTEST) -> Spread:
    """Where the time of such a step goes."""
    time, context = model(cards, kind), CONTEXT * batch
    whole, alone = (one.seconds(batch, context, 0, 0, 0) for one in (time, RECORDING))
    sums = time.all_reduces(batch)
    return Spread(cards, batch, kind, whole - sums - time.stays, time.stays, sums, alone)


def rows(found: Spread) -> list[tuple[str, str, str]]:
    """The table beside the figure."""
    one = spread(1, found.batch)
    return [
        ("", f"{found.cards} card{'s' if found.cards > 1 else ''}", "1 card"),
        ("step", seconds(found.step), seconds(one.step)),
        ("of it all-reduces", seconds(found.sums) if found.sums else "0", "0"),
        ("tokens/s a user", f"{1 / found.step:,.0f}", f"{1 / one.step:,.0f}"),
        ("tokens/s a card", f"{found.tokens_a_card:,.0f}", f"{one.tokens_a_card:,.0f}"),
        ("a million tokens", f"{found.cost:.3g} $", f"{one.cost:.3g} $"),
    ]


def layer_us(tp: int, tokens: int, kind: str, graphs: bool = True, name: str = "llama-3.1-8b") -> float:
    """Microseconds of a layer as two cards took them. kind: of the all-reduce, or "none"."""
    wanted = {"model": name, "tp": tp, "tokens": tokens, "all_reduce": kind, "graphs": graphs}
    (row,) = (row for row in two_cards()["steps"] if wanted.items() <= row.items())
    return float(row["us_a_layer"][0])


def watts(tp: int, tokens: int, kind: str, graphs: bool = True) -> float:
    """Watts of one of the cards meanwhile."""
    wanted = {"model": "llama-3.1-8b", "tp": tp, "tokens": tokens, "all_reduce": kind, "graphs": graphs}
    (row,) = (row for row in two_cards()["steps"] if wanted.items() <= row.items())
    return float(sum(row["watts"]) / 2)


def tokens_a_joule(tp: int, tokens: int, kind: str) -> float:
    """Of the layers, in CUDA graphs, by the watts of all `tp` cards."""
    return tokens / (LAYERS * 1e-6 * layer_us(tp, tokens, kind)) / (tp * watts(tp, tokens, kind))


LAYER_BYTES = NUMBER_BYTES * (4_096 * 6_144 + 4_096 * 4_096 + 3 * 4_096 * 14_336)
"""Weights of a layer of Llama-3.1-8B."""
NVLINK = 450e9
"""Bytes/s of an H200 to the others of its host, each way, by its data sheet."""


def layer_table() -> list[tuple[str, str, str]]:
    """The question's table: what one layer reads and sends for one token."""
    return [
        ("one layer, one token", "one card", "each of two"),
        ("weights that it reads", f"{LAYER_BYTES / 1e6:.0f} MB", f"{LAYER_BYTES / 2e6:.0f} MB"),
        ("KV heads", f"{RECORDING.sizes['kv_heads']}", f"{RECORDING.sizes['kv_heads'] // 2}"),
        ("bytes of an all-reduce", "-", f"{HIDDEN * NUMBER_BYTES / 1_024:.0f} KiB"),
        ("bytes/s to the other card", "-", f"{NVLINK / 1e9:.0f} GB/s"),
    ]
