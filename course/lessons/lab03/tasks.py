"""Lab 03: what its two explorers ask. Settings are searched for, so that they hold for other step times too."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from course.explore.tasks import Find, Read, Settings, Why
from course.figures.words import seconds
from course.lessons.lab03 import one_engine
from course.lessons.lab03.one_engine import UnderLoad, Window

# One engine under load

START: dict[str, Any] = {"rate": 10.0, "arrival_cv": 1.0, "max_num_seqs": 32, "kind": one_engine.DRAWS}
TIMES = 10.0  # how far the tail must be above its floor to have left it


def _p(result: UnderLoad, percent: float) -> float:
    return float(np.percentile(result.run.ttft, percent))


def _times(result: UnderLoad) -> float:
    """p99 of TTFT, against the start."""
    return _p(result, 99) / _p(one_engine.under_load(**START), 99)


def _knee_facts(settings: Settings, result: UnderLoad) -> Mapping[str, Any]:
    before = one_engine.under_load(**START)
    return {
        "rate": f"{settings['rate']:g}",
        "load": f"{result.rate / result.curve.capacity:.0%}",
        "p99": seconds(_p(result, 99)),
        "times": f"{_times(result):.1f}",
        "e2e": f"{result.run.e2e.mean() / before.run.e2e.mean():.1f}",
        "share": f"{one_engine.slots_taken(result.run):.2%}",
    }


def _only(settings: Settings, *free: str) -> bool:
    """Whether all controls but those named are where they were at the start."""
    return all(settings[name] == value for name, value in START.items() if name not in free)


def _left_the_floor(settings: Settings, result: UnderLoad) -> bool:
    return _only(settings, "rate") and result.forecast is not None and _times(result) >= TIMES


@lru_cache(maxsize=1)
def _knee() -> Settings:
    """The lowest rate of the slider at which the tail has left its floor."""
    rates = np.arange(START["rate"], one_engine.capacity(), 0.5).tolist()
    return {"rate": next(rate for rate in rates if _times(one_engine.under_load(rate)) >= TIMES)}


def _theory(result: UnderLoad) -> float:
    return float(result.forecast.ttft_percentile_s(0.95)) if result.forecast else np.inf


def _bursts_beat_theory(settings: Settings, result: UnderLoad) -> bool:
    return _only(settings, "arrival_cv") and _p(result, 95) >= TIMES * _theory(result)


@lru_cache(maxsize=1)
def _bursts() -> Settings:
    """The smallest spread on the slider at which the p95 is that far above theory."""
    for cv in np.arange(START["arrival_cv"], 5.01, 0.5).tolist():
        moved = START | {"arrival_cv": cv}
        if _bursts_beat_theory(moved, one_engine.under_load(**moved)):
            return {"arrival_cv": cv}
    raise ValueError(f"no spread on the slider brings the p95 of TTFT to {TIMES:g} times theory: choose another goal")


LOAD = (
    Find(
        id="knee",
        text="Raise only the rate, below capacity, until the p99 of TTFT is ten times as long.",
        show=_knee,
        reached=_left_the_floor,
        miss="The p99 of TTFT is {p99}: {times} times what it was at the start.",
        answer="At {load} of capacity it is {p99}, {times} times as long. The mean E2E is only {e2e} times as long.",
        facts=_knee_facts,
        claim=lambda settings, result: _times(result) > result.run.e2e.mean(),
    ),
    Read(
        id="slots",
        text="Stay there. What percentage waited for a slot?",
        show=_knee,
        value=lambda settings, result: 100 * one_engine.slots_taken(result.run),
        unit="%",
        where=_left_the_floor,
        slips=((0.01, "That is the share: give it in percent."),),
        answer="{share}. Above 1% the p99 of TTFT is a wait for a slot.",
        facts=_knee_facts,
        claim=lambda settings, result: one_engine.slots_taken(result.run) > 0.01,
    ),
    Find(
        id="gaps",
        text="Press Reset. Raise only the spread of the gaps until the p95 of TTFT is ten times what theory says.",
        show=_bursts,
        reached=_bursts_beat_theory,
        miss="Simulated, the p95 of TTFT is {p95}; theory says {theory}.",
        answer="At a CV of {cv} it is {p95}. Theory assumes Poisson arrivals and still says {theory}.",
        facts=lambda settings, result: {
            "cv": f"{settings['arrival_cv']:g}",
            "p95": seconds(_p(result, 95)),
            "theory": seconds(_theory(result)),
        },
        claim=lambda settings, result: _theory(result) == _theory(one_engine.under_load(**START)),
    ),
    Why(
        id="tail",
        text="Why does the p99 of TTFT rise so far below capacity?",
        show=_knee,
        options=(
            ("Steps with more requests take longer.", "They do, a little and for everybody: look at the mean E2E."),
            ("1 in 100 or more finds no free slot.", ""),
            ("1 in 100 has a much longer prompt.", "All drawn prompts have 512 tokens."),
        ),
        right="b",
        answer="{share} wait for a slot, and the p99 is one of their waits.",
        facts=_knee_facts,
        claim=lambda settings, result: 0.01 < one_engine.slots_taken(result.run) < 0.5,
    ),
)


# Little's law in a window

WINDOW: dict[str, Any] = {"rate": 14.0, "arrival_cv": 1.0, "start": 70, "length": 10}
SHORT = 5  # seconds


def _off(result: Window) -> float:
    """How far λ W is from L, as a share of L; below 0 where it is too small."""
    law = result.little
    return law.arrival_rate * law.W / law.L - 1 if law.L else 0.0


def _window(**moved: Any) -> Window:
    return one_engine.window(**(WINDOW | moved))


def _closer(settings: Settings, result: Window) -> bool:
    others = all(settings[name] == WINDOW[name] for name in ("rate", "arrival_cv", "start"))
    return others and abs(_off(result)) <= abs(_off(_window())) / 4


@lru_cache(maxsize=1)
def _longer() -> Settings:
    """The first window, in steps of 10 s, that brings both sides together; between them some do so by chance."""
    lengths = (length for length in range(WINDOW["length"] + 10, 61, 10) if _closer(WINDOW, _window(length=length)))
    return {"length": next(lengths)}


def _rises(settings: Settings, result: Window) -> bool:
    return settings["start"] != WINDOW["start"] and settings["length"] <= SHORT and _off(result) >= 0.2


@lru_cache(maxsize=1)
def _where_it_rises() -> Settings:
    """The short window in which λ W is most too large."""
    starts = [start for start in range(5, 81, 5) if start != WINDOW["start"]]
    best = max(starts, key=lambda start: _off(_window(start=start, length=SHORT)))
    return {"start": best, "length": SHORT}


def stay_on(result: Window) -> tuple[int, float]:
    """How many arrive in the window and are answered after it, and their seconds after it, added up."""
    run = result.run
    stays = (run.arrival >= result.start) & (run.arrival < result.end) & (run.response > result.end)
    return int(stays.sum()), float((run.response[stays] - result.end).sum())


def _window_facts(settings: Settings, result: Window) -> Mapping[str, Any]:
    law = result.little
    staying, after = stay_on(result)
    return {
        "start": f"{result.start:g}",
        "end": f"{result.end:g}",
        "off": f"{abs(_off(result)):.1%}",
        "off_before": f"{abs(_off(_window())):.1%}",
        "side": "below" if _off(result) < 0 else "above",
        "length": f"{settings['length']:g}",
        "L": f"{law.L:.2f}",
        "product": f"{law.arrival_rate * law.W:.2f}",
        "carried_in": f"{law.carried_in:.2f}",
        "carried_out": f"{law.carried_out:.2f}",
        "staying": f"{staying}",
        "after": f"{after:.1f}",
        "edges": f"{law.carried_in - law.carried_out:.2f}",
    }


LAW = (
    Find(
        id="longer",
        text="Make the window longer until λ W is four times as close to L as now.",
        show=_longer,
        reached=_closer,
        miss="λ W is {off} {side} L; with the first window it was off by {off_before}.",
        answer="Over {length} s it is {off} {side} L: the edges count for less.",
        facts=_window_facts,
    ),
    Find(
        id="rises",
        text="Take a window of 5 s or less, and move its start until λ W is 20% or more above L.",
        show=_where_it_rises,
        reached=_rises,
        miss="From {start} s to {end} s λ W is {off} {side} L.",
        answer="From {start} s to {end} s λ W is {product}, {off} above L.",
        facts=_window_facts,
        claim=lambda settings, result: _off(result) > 0,
    ),
    Read(
        id="edges",
        text="Stay there. How much do both edges add to λ W (negative if they take off)?",
        show=_where_it_rises,
        value=lambda settings, result: result.little.carried_in - result.little.carried_out,
        unit="requests",
        where=_rises,
        slips=((-1.0, "Mind the sign: what is carried in is added, what is carried out is subtracted."),),
        answer="{carried_in} - {carried_out} = {edges}. With its edges the law is exact in any window.",
        facts=_window_facts,
        claim=lambda settings, result: abs(result.little.residual) < 1e-6,
    ),
    Why(
        id="before",
        text="Why is λ W too large in that window?",
        show=_where_it_rises,
        options=(
            ("W of few arrivals is a bad estimate.", "It is no estimate: it is the exact mean of these arrivals."),
            ("More arrive than Poisson arrivals would.", "λ is what arrived in the window, whatever was expected."),
            ("Those who arrive stay on after its end.", ""),
        ),
        right="c",
        answer="λ W counts the seconds after its end: {staying} requests stay on after {end} s, for "
        "{after} s together, and {after} / {length} = {carried_out}.",
        facts=_window_facts,
        claim=lambda settings, result: (
            result.little.carried_out > result.little.carried_in
            and abs(stay_on(result)[1] / settings["length"] - result.little.carried_out) < 1e-6
        ),
    ),
)
