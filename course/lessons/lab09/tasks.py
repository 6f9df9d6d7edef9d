"""Lab 09: what its explorers ask of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab09 import pool
from course.lessons.lab09.pool import Served

# Reserved or paged

PLACED: dict[str, Any] = {"how": pool.MAX, "block_size": pool.BLOCK}
SIZES = (16, 32, 64, 128, 256)
FIFTH = 0.2  # of what is taken lies empty


def empty(settings: Settings, result: Served) -> float:
    """Per cent of what is reserved or taken that hold nothing."""
    return 100 * result.empty


def reserved_for_the_longest(settings: Settings, result: Served) -> bool:
    """Whether each request has room for the longest there may be."""
    return settings["how"] == pool.MAX


def a_fifth_is_empty(settings: Settings, result: Served) -> bool:
    """Whether blocks are so large that FIFTH of them lies empty."""
    return settings["how"] == pool.PAGED and result.empty >= FIFTH


def speed_hardly_falls(settings: Settings, result: Served) -> bool:
    """Whether the tokens/s fall by far less than the empty share."""
    return 0.9 < result.tokens_per_second / _paged().tokens_per_second < 1


def few_wait_for_more(settings: Settings, result: Served) -> bool:
    """Whether far fewer run than in blocks, with the same pool and no token lost."""
    return result.running < 0.6 * _paged().running and not result.preemptions


def placed(settings: Settings, result: Served) -> Mapping[str, Any]:
    """What the answers name."""
    paged = _paged()
    return {
        "empty": f"{result.empty:.0%}",
        "running": f"{result.running:.0f}",
        "running_paged": f"{paged.running:.0f}",
        "speed": f"{result.tokens_per_second:,.0f}",
        "speed_paged": f"{paged.tokens_per_second:,.0f}",
        "size": settings["block_size"],
    }


def _paged() -> Served:
    return pool.placed(pool.PAGED)


# Out of blocks

OUT: dict[str, Any] = {"slots": pool.SLOTS, "watermark": 0.0, "victim": pool.LAST, "bandwidth": pool.AGAIN}
SLOTS = (64, 72, 80, 88, 96, 128, 256, 1_024)
WATERMARKS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
BANDWIDTHS = (pool.AGAIN, 6.0, 9.0, 12.0, 15.0, 25.0, 50.0)  # GB/s
SHORT_GAP = 0.25  # seconds that an answer may stop


def calm(settings: Settings, result: Served) -> bool:
    """No answer stops for longer than SHORT_GAP, and more is said than at the start."""
    return result.longest_gap <= SHORT_GAP and result.tokens_per_second > _start().tokens_per_second


def hardly_preempted(settings: Settings, result: Served) -> bool:
    """Whether less than a tenth of the preemptions is left."""
    return result.preemptions < 0.1 * _start().preemptions


def break_even() -> float:
    """The smallest bandwidth on offer [GB/s] that answers sooner than computing again."""
    again = _start().tokens_per_second
    return next(b for b in BANDWIDTHS[1:] if pool.out_of_blocks(bandwidth=b).tokens_per_second > again)


def copy_wins(settings: Settings, result: Served) -> bool:
    """The slowest copy that beats computing again, and nothing else moved."""
    others = all(settings[name] == OUT[name] for name in OUT if name != "bandwidth")
    return others and settings["bandwidth"] == break_even()


def as_many_go(settings: Settings, result: Served) -> bool:
    """Whether the same requests lose their blocks as often, and nothing is computed again."""
    return result.preemptions == _start().preemptions and not result.again


def stall_stays(settings: Settings, result: Served) -> bool:
    """Whether hardly anybody is preempted, and somebody still waits for long; those that began are too many."""
    began = result.run.steps.running.max() > 2 * result.running
    return hardly_preempted(settings, result) and result.longest_gap > 1 and began


def out(settings: Settings, result: Served) -> Mapping[str, Any]:
    """What the answers name."""
    start = _start()
    bandwidths = [b for b in BANDWIDTHS if 0 < b < break_even()]
    slower = pool.out_of_blocks(bandwidth=bandwidths[-1])
    return {
        "slots": settings["slots"],
        "gap": seconds(result.longest_gap),
        "gap_start": seconds(start.longest_gap),
        "speed": f"{result.tokens_per_second:,.0f}",
        "speed_start": f"{start.tokens_per_second:,.0f}",
        "lost": f"{result.preemptions:,}",
        "lost_start": f"{start.preemptions:,}",
        "bandwidth": f"{settings['bandwidth']:g}",
        "slower": f"{bandwidths[-1]:g}",
        "speed_slower": f"{slower.tokens_per_second:,.0f}",
        "began": f"{result.run.steps.running.max()}",
        "running": f"{result.running:.0f}",
    }


def _start() -> Served:
    return pool.out_of_blocks()
