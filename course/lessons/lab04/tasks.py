"""Lab 04: what its two explorers ask of a result. Settings are searched for, so that they hold for other steps too."""

from collections.abc import Mapping
from typing import Any

from course.engine.run import Run
from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab04 import three_batchers
from course.lessons.lab04.side_by_side import Gain
from course.lessons.lab04.three_batchers import CLAIM, FOLLOWED, SLOTS, Saturated

Runs = Mapping[str, Run]
FOLLOW = FOLLOWED - 1  # counted from 0
CLOSE = 3.0  # times behind

# One trace, three policies


def late(settings: Settings, runs: Runs) -> float:
    """From arrival to the answer of the request that is followed, under static batching [s]."""
    return _waited(runs["static"])


def late_for_nothing(settings: Settings, runs: Runs) -> bool:
    """Whether it waits longer than for its own tokens, and than under continuous batching."""
    return _own(runs["static"]) < late(settings, runs) > _waited(runs["continuous"])


def no_padding(settings: Settings, runs: Runs) -> bool:
    """Whether static batching computes no padding."""
    return int(runs["static"].steps.wasted.sum()) == 0


def static_alone_pads(settings: Settings, runs: Runs) -> bool:
    """Whether static batching computes padding, and continuous batching none."""
    return bool(runs["static"].steps.wasted.sum() > 0 == runs["continuous"].steps.wasted.sum())


def sooner(settings: Settings, runs: Runs) -> bool:
    """Whether continuous batching answers sooner on average."""
    return bool(runs["continuous"].e2e.mean() < runs["static"].e2e.mean())


def trace(settings: Settings, runs: Runs) -> Mapping[str, Any]:
    """What the answers name."""
    static = runs["static"]
    useful, wasted = static.steps.useful.sum(), static.steps.wasted.sum()
    return {
        "cv": f"{settings['output_cv']:g}",
        "static": seconds(_waited(static)),
        "own": seconds(_own(static)),
        "continuous": seconds(_waited(runs["continuous"])),
        "padding": f"{wasted:,}",
        "share": f"{wasted / (wasted + useful):.0%}",
        "mean": seconds(static.e2e.mean()),
        "mean_continuous": seconds(runs["continuous"].e2e.mean()),
    }


def _waited(run: Run) -> float:
    return float(run.e2e[FOLLOW])


def _own(run: Run) -> float:
    """From its arrival to its last token [s]."""
    return float(run.last_computed[FOLLOW] - run.arrival[FOLLOW])


# Gain at saturation


def the_claim(settings: Settings, result: Saturated) -> bool:
    """Whether the gain is what is often quoted."""
    return CLAIM[0] <= result.recorded.gain <= CLAIM[1]


def close(settings: Settings, result: Saturated) -> bool:
    """Whether static batching is less than CLOSE times behind."""
    return result.recorded.gain < CLOSE


def static_drops(settings: Settings, result: Saturated) -> bool:
    """Whether static batching delivers less than at the start."""
    return result.recorded.static < three_batchers.gain(SLOTS, 1.0).static


def longest_grows(settings: Settings, result: Saturated) -> bool:
    """Whether the longest answer of a batch is longer than with the fewest slots."""
    return result.recorded.drawn_bound > _few(1.0).drawn_bound


def saturation(settings: Settings, result: Saturated) -> Mapping[str, Any]:
    """What the answers name."""
    found, few = result.recorded, _few(settings["output_cv"])
    return {
        "cv": f"{settings['output_cv']:g}",
        "slots": f"{settings['max_num_seqs']:,}",
        "few_slots": f"{few.max_num_seqs:,}",
        "gain": f"{found.gain:.2f}",
        "more": f"{found.gain - 1:.0%}",
        "static": f"{found.static:,.0f}",
        "before_static": f"{three_batchers.gain(SLOTS, 1.0).static:,.0f}",
        "continuous": f"{found.continuous:,.0f}",
        "longest": f"{found.drawn_bound:.1f}",
        "few_longest": f"{few.drawn_bound:.1f}",
    }


def _few(output_cv: float) -> Gain:
    return three_batchers.gain(min(three_batchers.BATCHES), output_cv)
