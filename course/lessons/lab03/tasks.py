"""Lab 03: what its two explorers ask of a result. Settings are searched for, so that they hold for other step times."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab03 import one_engine
from course.lessons.lab03.one_engine import UnderLoad, Window

# One engine under load

START: dict[str, Any] = {"rate": 10.0, "arrival_cv": 1.0, "max_num_seqs": 32, "kind": one_engine.DRAWS}
TIMES = 10.0  # how far the tail must be above its floor to have left it
SOON, FLOOR = 14.0, 0.05  # requests/s, seconds
PRICE: dict[str, Any] = {"rate": 34.0, "max_num_seqs": 256}


def left_the_floor(settings: Settings, result: UnderLoad) -> bool:
    """Whether the p99 of TTFT is TIMES as long as at the start, below capacity."""
    return result.forecast is not None and _times(result) >= TIMES


def e2e_grows_less(settings: Settings, result: UnderLoad) -> bool:
    """Whether the mean E2E grew by less than the p99 of TTFT."""
    return _times(result) > result.run.e2e.mean() / one_engine.under_load(**START).run.e2e.mean()


def no_queue(settings: Settings, result: UnderLoad) -> bool:
    """Whether the p99 of TTFT at the rate that is to come is below FLOOR."""
    return _at(settings, rate=SOON) and _p(result, 99) < FLOOR


def same_speed(settings: Settings, result: UnderLoad) -> bool:
    """Whether TPOT is that of 32 slots to 2%."""
    return abs(_tpot(result) / _tpot(one_engine.under_load(SOON)) - 1) < 0.02


def tpot_ms(settings: Settings, result: UnderLoad) -> float:
    """Mean TPOT [ms]."""
    return 1e3 * _tpot(result)


def at_the_price(settings: Settings, result: UnderLoad) -> bool:
    """Whether the controls are where a GPU carries the most, with slots enough."""
    return _at(settings, **PRICE)


def slow_without_queue(settings: Settings, result: UnderLoad) -> bool:
    """Whether TPOT is twice that of the rate to come, and the p99 of TTFT still far below a second."""
    return (
        _tpot(result) > 2 * _tpot(one_engine.under_load(SOON, max_num_seqs=PRICE["max_num_seqs"]))
        and _p(result, 99) < 0.2
    )


def slots_help_no_more(settings: Settings, result: UnderLoad) -> bool:
    """Whether the largest numbers of slots have capacities within 4%."""
    few, *more = (one_engine.capacity(slots) for slots in one_engine.CHOICES[-3:])
    return all(abs(each / few - 1) < 0.04 for each in more)


@lru_cache(maxsize=1)
def knee() -> Settings:
    """The lowest rate of the slider at which the tail has left its floor."""
    rates = np.arange(START["rate"], one_engine.capacity(), 0.5).tolist()
    return {"rate": next(rate for rate in rates if _times(one_engine.under_load(rate)) >= TIMES)}


@lru_cache(maxsize=1)
def enough() -> Settings:
    """The fewest slots that leave no queue at the rate to come."""
    moved = ({"rate": SOON, "max_num_seqs": slots} for slots in one_engine.CHOICES)
    return next(one for one in moved if no_queue(START | one, one_engine.under_load(**START | one)))


def load(settings: Settings, result: UnderLoad) -> Mapping[str, Any]:
    """What the answers name."""
    before, soon = one_engine.under_load(**START), one_engine.under_load(SOON)
    return {
        "load": f"{result.rate / result.curve.capacity:.0%}",
        "slots": f"{settings['max_num_seqs']:,}",
        "p99": seconds(_p(result, 99)),
        "p99_soon": seconds(_p(soon, 99)),
        "tpot": seconds(_tpot(result)),
        "tpot_soon": seconds(_tpot(soon)),
        "times": f"{_times(result):.1f}",
        "e2e": f"{result.run.e2e.mean() / before.run.e2e.mean():.1f}",
        "share": f"{one_engine.slots_taken(result.run):.2%}",
        "few_slots": f"{START['max_num_seqs']:,}",
        "enough": f"{PRICE['max_num_seqs']:,}",
        "carries": f"{one_engine.capacity(PRICE['max_num_seqs']):.1f}",
        "capacity": f"{result.curve.capacity:.1f}",
        "room": f"{10 * (one_engine.room() // one_engine.CONTEXT // 10)}",
    }


def _at(settings: Settings, **moved: Any) -> bool:
    """Whether the drawn requests come as at the start, and these controls are here."""
    return all(settings[name] == (START | moved)[name] for name in ("kind", "arrival_cv", *moved))


def _p(result: UnderLoad, percent: float) -> float:
    return float(np.percentile(result.run.ttft, percent))


def _tpot(result: UnderLoad) -> float:
    return float(np.nanmean(result.run.tpot))


def _times(result: UnderLoad) -> float:
    """p99 of TTFT, against the start."""
    return _p(result, 99) / _p(one_engine.under_load(**START), 99)


# Little's law in a window

WINDOW: dict[str, Any] = {"rate": 14.0, "arrival_cv": 1.0, "start": 70, "length": 10}
SHORT, RISES = 5, 0.2  # seconds; a share of L


def closer(settings: Settings, result: Window) -> bool:
    """Whether λ W is four times as close to L as in the first window."""
    return abs(off(result)) <= abs(off(window())) / 4


def rises(settings: Settings, result: Window) -> bool:
    """Whether λ W is well above L in another, short window."""
    return settings["start"] != WINDOW["start"] and settings["length"] <= SHORT and off(result) >= RISES


def too_large(settings: Settings, result: Window) -> bool:
    """Whether λ W is above L."""
    return off(result) > 0


def edges(settings: Settings, result: Window) -> float:
    """What both edges add to λ W [requests]."""
    return result.little.carried_in - result.little.carried_out


def exact_with_edges(settings: Settings, result: Window) -> bool:
    """Whether λ W with its edges is L."""
    return abs(result.little.residual) < 1e-6


def after_its_end(settings: Settings, result: Window) -> bool:
    """Whether what is carried out are the seconds after the end, and more than is carried in."""
    law = result.little
    out = stay_on(result) / settings["length"]
    return law.carried_out > law.carried_in and abs(out - law.carried_out) < 1e-6


@lru_cache(maxsize=1)
def longer() -> Settings:
    """The first window, in steps of 10 s, that brings both sides together; between them some do so by chance."""
    lengths = range(WINDOW["length"] + 10, 61, 10)
    return {"length": next(length for length in lengths if closer(WINDOW, window(length=length)))}


@lru_cache(maxsize=1)
def short_window() -> Settings:
    """The short window in which λ W is most too large."""
    starts = [start for start in range(5, 81, 5) if start != WINDOW["start"]]
    return {"start": max(starts, key=lambda start: off(window(start=start, length=SHORT))), "length": SHORT}


def law(settings: Settings, result: Window) -> Mapping[str, Any]:
    """What the answers name."""
    found = result.little
    return {
        "start": f"{result.start:g}",
        "end": f"{result.end:g}",
        "off": f"{abs(off(result)):.1%}",
        "off_before": f"{abs(off(window())):.1%}",
        "side": "below" if off(result) < 0 else "above",
        "length": f"{settings['length']:g}",
        "product": f"{found.arrival_rate * found.W:.2f}",
        "carried_in": f"{found.carried_in:.2f}",
        "carried_out": f"{found.carried_out:.2f}",
        "after": f"{stay_on(result):.1f}",
        "edges": f"{found.carried_in - found.carried_out:.2f}",
    }


def window(**moved: Any) -> Window:
    """The window at the start, with some controls moved."""
    return one_engine.window(**(WINDOW | moved))


def off(result: Window) -> float:
    """How far λ W is from L, as a share of L; below 0 where it is too small."""
    found = result.little
    return found.arrival_rate * found.W / found.L - 1 if found.L else 0.0


def stay_on(result: Window) -> float:
    """The seconds that those who arrive in the window stay after it, added up."""
    run = result.run
    here = (run.arrival >= result.start) & (run.arrival < result.end)
    return float(np.maximum(run.response[here] - result.end, 0).sum())
