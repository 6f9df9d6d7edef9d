"""What a design is judged by, and what is handed over: its report of one page."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from course.lessons.lab18 import search, service
from course.lessons.lab18.design import Design
from course.lessons.lab18.scoring import Score, score
from course.lessons.lab18.search import RUNS

MARGIN = 1.25  # times the score of the defaults
OTHER_DAYS = service.UNSEEN[:6]
MISSED = 1  # of OTHER_DAYS, at most
BETTER, HOLDS = "keeps both promises, and earns enough", "holds on other days, and earns enough"
ONE, FOUR = Design(), Design(replicas=4)  # answers that have a hint
TWO = Design(replicas=2)
PLAIN = replace(search.REFERENCE, num_speculative_tokens=0)
LARGER = replace(PLAIN, card="H200")
DRAFTED = (
    f"The head must be trained for {service.LONGEST:,} tokens: vLLM drafts nothing in a step with a sequence that is "
    "longer than the head's own limit."
)
"""vllm/v1/worker/gpu_model_runner.py asks whether the longest sequence of the step fits into the drafter."""
_SCORED = list[Score]()


@lru_cache(maxsize=1)
def to_beat() -> float:
    """MARGIN times the score of vLLM's defaults on as few H100 as pass."""
    return MARGIN * search.tried(search.defaults())


def checked(answer: Any) -> Design:
    """The design that is handed in. NotImplementedError for none; ValueError for anything else than a Design."""
    if answer is None or answer is ...:
        raise NotImplementedError("no design yet")
    if not isinstance(answer, Design):
        raise ValueError("hand in a Design, such as Design(card='H100', replicas=3)")
    return answer


def on_the_seen_day(answer: Any) -> str:
    """What a design does on the seen day, in words."""
    found = score(checked(answer), service.day())
    return _words(found)


def without_drafts(answer: Any) -> str:
    """The same, if drafts are not to be had."""
    if checked(answer).num_speculative_tokens:
        return "still drafts"
    return on_the_seen_day(answer)


def _words(found: Score) -> str:
    late = [name for name, share in found.share.items() if share < service.NEED]
    if late:
        return f"breaks the promise to {' and '.join(late)}"
    return BETTER if found.score >= to_beat() else "keeps both promises, and earns too little"


def on_other_days(answer: Any, least: float | None = None) -> str:
    """What a design does on OTHER_DAYS, in words. least: the mean score that is enough, to_beat() if it is left out."""
    found = search.unseen(checked(answer), OTHER_DAYS)
    if sum(one == 0 for one in found) > MISSED:
        return "breaks its promises on other days"
    return (
        HOLDS
        if np.mean(found) >= (to_beat() if least is None else least)
        else "holds on other days, and earns too little"
    )


def plain_on_other_days(answer: Any) -> str:
    """The same on other days, if drafts are not to be had."""
    if checked(answer).num_speculative_tokens:
        return "still drafts"
    return on_other_days(answer, to_beat() / MARGIN)


def scored(design: Design) -> Score:
    """Score a design on the seen day, and count it among the runs."""
    found = score(checked(design), service.day())
    _SCORED.append(found)
    return found


def runs() -> tuple[Score, ...]:
    """What was scored since the kernel started."""
    return tuple(_SCORED)


def start_again() -> None:
    """No run is counted."""
    _SCORED.clear()


def standing() -> str:
    """How many of the advised runs are used, in words."""
    many = len(_SCORED)
    best = max((found.score for found in _SCORED), default=0.0)
    over = f", {many - RUNS} more than advised" if many > RUNS else ""
    return f"scored run {many} of {RUNS} that are advised{over}; best so far {best:,.0f}"


def report(design: Design) -> str:
    """One page to hand over: the command line, what was promised, what held, and what would change it."""
    found = score(checked(design), service.day())
    other = search.unseen(design, OTHER_DAYS)
    kept = [f"{name}: {share:.1%} within {_promised(name)}" for name, share in found.share.items()]
    return "\n".join([
        design.command, "",
        f"{design.cards} {design.card}, {design.dollars_an_hour:.2f} dollars an hour (assumed prices)",
        f"seen day: {found.score:,.0f} requests within their promise a dollar", *kept,
        f"prompt tokens found in a prefix cache: {found.hit_rate:.0%}",
        f"{len(other)} busier days: held on {sum(one > 0 for one in other)}, mean {np.mean(other):,.0f} a dollar",
        f"scored runs on the seen day since the kernel started: {len(_SCORED)}", "",
        f"Simulated. {engine(design)}.",
        "Before it goes live: measure TTFT, TPOT and acceptance on the card, and the quality of fp8 KV.",
        *([DRAFTED] if design.num_speculative_tokens else []),
        "Change it when a class keeps less than 97%, and when acceptance or hit rate move.",
    ])  # fmt: skip


def engine(design: Design) -> str:
    """Where its step times come from."""
    from course.lessons.lab18.scoring import step_time

    parts = [step_time(design.card, design.tensor_parallel_size).badge]
    if design.kv_cache_dtype == "fp8":
        parts.append("fp8 KV modelled as half the bytes")
    if design.num_speculative_tokens:
        parts.append("drafts modelled, acceptance assumed")
    return "Step times " + "; ".join(parts)


def _promised(name: str) -> str:
    promise = service.PROMISES[name]
    return f"TTFT {promise.ttft:g} s and TPOT {1e3 * promise.tpot:g} ms"
