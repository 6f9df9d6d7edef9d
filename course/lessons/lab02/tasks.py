"""Lab 02: what its two explorers ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Find, Read, Settings, Why
from course.figures.words import seconds
from course.lessons.lab02.one_curve import CONTEXT, LARGEST, MOST, PRICE, OneCurve
from course.lessons.lab02.one_step import OneStep

# A step on the roofline

START = {"decodes": 1, "context": CONTEXT, "prompt": 0}


def _only(settings: Settings, start: Settings, free: str) -> bool:
    """Whether all controls but that one are where they were at the start."""
    return all(settings[name] == value for name, value in start.items() if name != free)


def _step_facts(settings: Settings, found: OneStep) -> Mapping[str, Any]:
    return {
        "share": f"{100 * found.share:.3g}%",
        "multiplying": seconds(found.computing),
        "reading": seconds(found.reading),
        "weights": seconds(found.reading_weights),
        "kv": seconds(found.reading_kv),
        "decodes": f"{found.decodes:,}",
        "prompt": f"{found.prompt:,}",
        "step": seconds(found.recorded),
        "token": seconds(found.recorded / (found.prompt + found.decodes)),
        "intensity": f"{found.intensity:.3g}",
    }


STEP_TASKS = (
    Read(
        id="share",
        text="At the start: what share of the card's FLOP/s does the recorded step reach, in %?",
        show={},
        value=lambda settings, found: 100 * found.share,
        unit="%",
        where=lambda settings, found: dict(settings) == START,
        slips=((1e-2, "That is a share between 0 and 1: the task asks for percent."),),
        facts=_step_facts,
        answer="{share}: it multiplies for {multiplying} and reads for {reading}.",
        claim=lambda settings, found: found.reading > 100 * found.computing,
    ),
    Find(
        id="kv",
        text="Move only the decodes, until K and V take longer to read than the weights.",
        show={"decodes": 128},
        reached=lambda settings, found: _only(settings, START, "decodes") and found.reading_kv > found.reading_weights,
        facts=_step_facts,
        miss="With {decodes} decodes K and V take {kv}, the weights {weights}.",
        answer="At {decodes} decodes K and V take {kv}, the weights {weights}, multiplying {multiplying}.",
        claim=lambda settings, found: found.computing < found.reading_weights,
    ),
    Find(
        id="bound",
        text="Press Reset. Add a prompt with which multiplying takes longer than reading.",
        show={"prompt": 512},
        reached=lambda settings, found: _only(settings, START, "prompt") and found.computing > found.reading,
        facts=_step_facts,
        miss="Multiplying takes {multiplying}, reading {reading}.",
        answer="With {prompt} tokens multiplying takes {multiplying}, reading {reading}: {intensity} FLOP a byte.",
        claim=lambda settings, found: found.intensity > 258,
    ),
    Why(
        id="cheap_prompt",
        text="One decode took 5 ms. Why does a token of this prompt take far less?",
        show={"prompt": 512},
        facts=_step_facts,
        options=(
            ("Prompts are computed with fewer digits.", "The weights and the rate are those of a decode."),
            ("The tokens of a prompt need no K and V.", "They write theirs, and read them. Look at the weights."),
            ("All of them share one read of weights.", ""),
        ),
        right="c",
        answer="The weights are read once, in {weights}. A token takes {token}.",
        claim=lambda settings, found: found.recorded / found.prompt < found.reading_weights / 100,
    ),
)


# A curve and its knee

CURVE_START = {"context": CONTEXT, "most": MOST, "batch": 1, "price": PRICE}
CHEAP = 0.10  # dollars for a million tokens


def _curve_facts(settings: Settings, found: OneCurve) -> Mapping[str, Any]:
    low, high = found.curve.band(LARGEST)
    return {
        "knee": f"{found.curve.knee:.0f}",
        "t0": seconds(found.curve.t0),
        "twice": seconds(2 * found.curve.t0),
        "most": f"{found.most}",
        "largest": seconds(found.largest),
        "recorded": seconds(found.recorded_largest),
        "low": seconds(float(low)),
        "high": seconds(float(high)),
        "batch": f"{found.batch}",
        "cost": f"{found.cost:.2g}",
        "step": seconds(found.step),
        "own": seconds(found.step - found.curve.t0),
    }


CURVE_TASKS = (
    Read(
        id="knee",
        text="At the start: at which batch is the knee?",
        show={},
        value=lambda settings, found: found.curve.knee,
        unit="sequences",
        where=lambda settings, found: dict(settings) == CURVE_START,
        facts=_curve_facts,
        answer="{knee}: a step takes {twice} there, twice the {t0} of t0.",
        claim=lambda settings, found: abs(float(found.curve.seconds(found.curve.knee)) / found.curve.t0 - 2) < 1e-6,
    ),
    Find(
        id="short",
        text=f"Move only the largest batch measured, until the curve says over twice the recorded step of {LARGEST}.",
        show={"most": 32},
        reached=lambda settings, found: (
            _only(settings, CURVE_START, "most") and found.largest > 2 * found.recorded_largest
        ),
        facts=_curve_facts,
        miss="Measured up to {most}, the curve says {largest}; recorded are {recorded}.",
        answer="Measured up to {most}, it says {largest}, recorded are {recorded}. Even the band, {low} to {high}, is "
        "above: it trusts the form of the curve.",
        claim=lambda settings, found: float(found.curve.band(LARGEST)[0]) > found.recorded_largest,
    ),
    Find(
        id="cheap",
        text="Press Reset. Move only the batch, until a million tokens cost less than 0.10 dollars.",
        show={"batch": 64},
        reached=lambda settings, found: _only(settings, CURVE_START, "batch") and found.cost < CHEAP,
        facts=_curve_facts,
        miss="With {batch} they cost {cost} dollars.",
        answer="With {batch} they cost {cost} dollars, and a step takes {step}.",
    ),
    Why(
        id="not_a_quarter",
        text=f"Four times this batch is {LARGEST}. Why do its tokens not cost a quarter?",
        show={"batch": LARGEST},
        facts=_curve_facts,
        options=(
            ("K and V are read for each sequence.", ""),
            ("The weights are read more often.", "They are read once in a step, whatever the batch."),
            ("Its products are at the limit of FLOP/s.", "With 256 decodes multiplying still takes less than reading."),
        ),
        right="a",
        answer="A step takes {step}, of which {own} came with the sequences. A million tokens cost {cost} dollars.",
        claim=lambda settings, found: found.step - found.curve.t0 > 2 * found.curve.t0,
    ),
)
