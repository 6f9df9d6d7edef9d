"""Lab 04: what its two explorers ask. Settings are searched for, so that they hold for other step times too."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from course.engine.run import Run
from course.explore.tasks import Find, Read, Settings, Why
from course.figures.words import seconds
from course.lessons.lab04 import three_batchers
from course.lessons.lab04.three_batchers import FOLLOWED, Saturated

Runs = Mapping[str, Run]

# One trace, three policies

START = {"output_cv": 1.0, "max_queue_delay": 0.1}
FOLLOW = FOLLOWED - 1  # counted from 0


def _waited(run: Run) -> float:
    """From arrival to the answer of the request that is followed [s]."""
    return float(run.e2e[FOLLOW])


def _own(run: Run) -> float:
    """From its arrival to its last token [s]."""
    return float(run.last_computed[FOLLOW] - run.arrival[FOLLOW])


def _only(settings: Settings, start: Settings, free: str) -> bool:
    """Whether all controls but that one are where they were at the start."""
    return all(settings[name] == value for name, value in start.items() if name != free)


def _alike(runs: Runs) -> bool:
    """Whether dynamic answers everybody when static does."""
    return bool(np.array_equal(runs["dynamic"].response, runs["static"].response))


def _full(run: Run) -> bool:
    """Whether every batch of the run starts with all slots taken."""
    _, sizes = np.unique(run.admitted, return_counts=True)
    return bool((sizes == three_batchers.FEW["slots"]).all())


@lru_cache(maxsize=1)
def _long_delay() -> Settings:
    """The shortest delay of the slider with which dynamic is static."""
    delays = np.arange(0.1, 1.01, 0.05).round(2).tolist()
    found = (delay for delay in delays if _alike(three_batchers.one_trace(START["output_cv"], delay)))
    return {"max_queue_delay": next(found)}


def _trace_facts(settings: Settings, runs: Runs) -> Mapping[str, Any]:
    static = runs["static"]
    return {
        "cv": f"{settings['output_cv']:g}",
        "delay": seconds(settings["max_queue_delay"]),
        "static": seconds(_waited(static)),
        "own": seconds(_own(static)),
        "continuous": seconds(_waited(runs["continuous"])),
        "tokens": f"{static.workload.output_tokens[0]:,}",
        "padding": f"{static.steps.wasted.sum():,}",
        "share": f"{static.steps.wasted.sum() / (static.steps.wasted.sum() + static.steps.useful.sum()):.0%}",
        "mean": seconds(static.e2e.mean()),
        "mean_dynamic": seconds(runs["dynamic"].e2e.mean()),
        "mean_continuous": seconds(runs["continuous"].e2e.mean()),
    }


TRACE = (
    Read(
        id="late",
        text="At the start settings, after how many seconds does static batching answer request 5?",
        show={},
        value=lambda settings, runs: _waited(runs["static"]),
        unit="s",
        where=lambda settings, runs: dict(settings) == START,
        slips=((1e3, "That is in milliseconds: give seconds."),),
        answer="After {static}, though its last token was computed after {own}. Continuous batching: {continuous}.",
        facts=_trace_facts,
        claim=lambda settings, runs: _own(runs["static"]) < _waited(runs["static"]) > _waited(runs["continuous"]),
    ),
    Find(
        id="equal",
        text="Move only the spread until static batching computes no padding.",
        show={"output_cv": 0.0},
        reached=lambda settings, runs: (
            _only(settings, START, "output_cv") and int(runs["static"].steps.wasted.sum()) == 0
        ),
        miss="At a spread of {cv} static batching computes {padding} slot-steps of padding.",
        answer="All answers have {tokens} tokens. Continuous batching still answers sooner: after {mean_continuous} on "
        "average, not {mean}.",
        facts=_trace_facts,
        claim=lambda settings, runs: runs["continuous"].e2e.mean() < runs["static"].e2e.mean(),
    ),
    Find(
        id="delay",
        text="Press Reset. Raise only the delay until dynamic batching answers everybody when static does.",
        show=_long_delay,
        reached=lambda settings, runs: _only(settings, START, "max_queue_delay") and _alike(runs),
        miss="With a delay of {delay} dynamic batching answers after {mean_dynamic} on average, static after {mean}.",
        answer="With {delay} every batch is full before the delay is over.",
        facts=_trace_facts,
        claim=lambda settings, runs: _full(runs["dynamic"]),
    ),
    Why(
        id="busy",
        text="Why does static batching keep the GPU busy after request 5 has its last token?",
        show={},
        options=(
            ("Its slot starts on the next request.", "Look at its lane: nobody new starts in this batch."),
            ("Its slot computes padding till the end.", ""),
            ("The other slots run faster.", "All slots of a batch take the same steps."),
        ),
        right="b",
        answer="{padding} slot-steps, {share} of all, are padding.",
        facts=_trace_facts,
        claim=lambda settings, runs: runs["static"].steps.wasted.sum() > 0 == runs["continuous"].steps.wasted.sum(),
    ),
)


# Gain at saturation

LEVEL = {"output_cv": 1.0, "max_num_seqs": three_batchers.SLOTS}
CLAIM = (1.2, 1.3)  # "20 to 30% more"
CLOSE = 3.0  # times behind


def _level() -> three_batchers.side_by_side.Gain:
    return three_batchers.gain(LEVEL["max_num_seqs"], LEVEL["output_cv"])


def _saturation_facts(settings: Settings, result: Saturated) -> Mapping[str, Any]:
    found, before = result.recorded, _level()
    few = three_batchers.gain(min(three_batchers.BATCHES), settings["output_cv"])
    return {
        "cv": f"{settings['output_cv']:g}",
        "slots": f"{settings['max_num_seqs']:,}",
        "few_slots": f"{few.max_num_seqs:,}",
        "gain": f"{found.gain:.2f}",
        "more": f"{found.gain - 1:.0%}",
        "static": f"{found.static:,.0f}",
        "before_static": f"{before.static:,.0f}",
        "continuous": f"{found.continuous:,.0f}",
        "longest": f"{found.drawn_bound:.1f}",
        "few_longest": f"{few.drawn_bound:.1f}",
    }


SATURATION = (
    Read(
        id="gain",
        text="At the start settings, what is the gain in tokens/s?",
        show={},
        value=lambda settings, result: result.recorded.gain,
        unit="times",
        where=lambda settings, result: dict(settings) == LEVEL,
        slips=((100, "That is a percentage: give how many times."),),
        answer="{gain} times: {continuous} tokens/s instead of {static}.",
        facts=_saturation_facts,
        claim=lambda settings, result: result.recorded.gain > 2 * CLAIM[1],
    ),
    Find(
        id="claim",
        text='Move only the spread until the often quoted "20 to 30% more" is true.',
        show={"output_cv": 0.1},
        reached=lambda settings, result: (
            _only(settings, LEVEL, "output_cv") and CLAIM[0] <= result.recorded.gain <= CLAIM[1]
        ),
        miss="At a spread of {cv} continuous batching delivers {more} more.",
        answer="At a spread of {cv} it is {more} more. Answers in a chat differ far more.",
        facts=_saturation_facts,
    ),
    Find(
        id="closer",
        text="Press Reset. Change only the slots until the gain is below 3.",
        show={"max_num_seqs": 8},
        reached=lambda settings, result: _only(settings, LEVEL, "max_num_seqs") and result.recorded.gain < CLOSE,
        miss="With {slots} slots the gain is {gain}.",
        answer="The gain is {gain}, but static batching drops from {before_static} to {static} tokens/s.",
        facts=_saturation_facts,
        claim=lambda settings, result: result.recorded.static < _level().static,
    ),
    Why(
        id="slots",
        text="Why does static batching fall further behind with more slots?",
        show={"max_num_seqs": 128},
        options=(
            ("The longest of more answers is longer.", ""),
            ("Each step takes longer with more slots.", "They do, but for both policies alike."),
            ("A batch with more slots is full later.", "Here all requests are there at the start."),
        ),
        right="a",
        answer="The longest answer of a batch is {few_longest} times the mean with {few_slots} slots and {longest} "
        "times with {slots}.",
        facts=_saturation_facts,
        claim=lambda settings, result: (
            result.recorded.drawn_bound > three_batchers.gain(min(three_batchers.BATCHES), 1.0).drawn_bound
        ),
    ),
)
