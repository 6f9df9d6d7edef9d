"""A chat service under three batching policies: what the explorers of lab 04 and its first table compute.

Pure functions of the settings of the sliders, and the rows of their tables. Lines behind the dots are computed once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course import policies, steptime
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab04 import side_by_side
from course.workload import Workload, lengths

STEP = steptime.recorded("h100-llama3-8b")
ROOFLINE = steptime.Roofline("llama-3.1-8b", "H100")  # theory, beside what was recorded


def chat(rate: float = 6, num_requests: int = 2_000, seed: int = 0) -> Workload:
    """A draw of the lab's chat: Poisson arrivals [requests/s], prompts of 512 tokens, answers of 256 with a CV of 1."""
    return Workload.poisson(rate, num_requests, 512, lengths.lognormal(256, cv=1), seed)


CHAT = chat()
SLOTS = 32
BUDGET = 8_192  # tokens a step of the continuous policy
GRUMBLED, WAITED = 4, 6  # requests/s of the question
CLAIM = (1.2, 1.3)  # the gain that is often quoted: 20 to 30%

SPREADS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
BATCHES = (4, 8, 16, 32, 64, 128)

FOLLOWED = 5  # the request that is picked out in the timelines, counted from 1
FEW = {"num_requests": 12, "slots": 3, "rate": 6.0}


def weeks() -> list[tuple[str, ...]]:
    """The static service of the question at 4 and at 6 requests/s, in rows."""
    rows: list[tuple[str, ...]] = [("", "95% answered within", "GPU busy")]
    for rate in (GRUMBLED, WAITED):
        run = serve(CHAT.scaled(rate), policies.Static(SLOTS), STEP)
        busy = run.steps.seconds.sum() / run.makespan
        rows.append((f"{rate} requests/s", f"{np.percentile(run.e2e, 95):.0f} s", f"{busy:.0%}"))
    return rows


# One trace


def one_trace(output_cv: float, max_queue_delay: float) -> dict[str, Run]:
    """A dozen requests under each policy; the delay [s] is dynamic's."""
    load = Workload.poisson(
        rate=FEW["rate"],
        num_requests=int(FEW["num_requests"]),
        prompt_tokens=1_024,
        output_tokens=lengths.lognormal(64, output_cv),
    )
    by_name = side_by_side.three_policies(int(FEW["slots"]), max_queue_delay, max_num_batched_tokens=2_048)
    return side_by_side.serve_each(load, by_name, STEP)


def trace_rows(runs: Mapping[str, Run]) -> list[tuple[str, ...]]:
    """Mean time to an answer, and the slot-steps."""
    return [
        ("", *runs),
        ("mean time to an answer", *(f"{run.e2e.mean():.2f} s" for run in runs.values())),
        ("slot-steps wanted + padding", *(_slot_steps(run) for run in runs.values())),
    ]


def _slot_steps(run: Run) -> str:
    return f"{run.steps.useful.sum():,} + {run.steps.wasted.sum():,}"


# Saturation


@dataclass(frozen=True)
class Saturated:
    """One setting at saturation: on recorded steps, and on those of the roofline."""

    recorded: side_by_side.Gain
    theory: side_by_side.Gain


@lru_cache(maxsize=1_000)
def gain(max_num_seqs: int, output_cv: float) -> side_by_side.Gain:
    """Both policies at saturation on recorded steps, 2,000 requests."""
    return side_by_side.saturated_gain(STEP, max_num_seqs=max_num_seqs, output_cv=output_cv)


@lru_cache(maxsize=1_000)
def saturated(max_num_seqs: int, output_cv: float) -> Saturated:
    """The same, with the roofline's steps beside it."""
    theory = side_by_side.saturated_gain(ROOFLINE, max_num_seqs=max_num_seqs, output_cv=output_cv)
    return Saturated(gain(max_num_seqs, output_cv), theory)


@lru_cache(maxsize=1)
def gain_sweep() -> tuple[side_by_side.Gain, ...]:
    """The gain on the grid of BATCHES and SPREADS."""
    return tuple(gain(slots, output_cv) for slots in BATCHES for output_cv in SPREADS)


def saturated_rows(result: Saturated) -> list[tuple[str, ...]]:
    """The two rates and their ratio, on recorded steps and in theory, and the ratio in slot-steps."""
    found = result.recorded
    return [
        ("", "static, dynamic", "continuous", "gain"),
        *(
            (label, f"{g.static:,.0f} tokens/s", f"{g.continuous:,.0f} tokens/s", f"{g.gain:.2f}x")
            for label, g in (("recorded steps", found), ("roofline (theory)", result.theory))
        ),
        ("slot-steps for each token", f"{found.drawn_bound:.2f}", "1.00", f"{found.drawn_bound:.2f}x"),
    ]


# By hand

BY_HAND = (6, 1, 2, 3)
"""Answers [tokens] of four requests that two slots can serve on paper."""


def by_hand() -> dict[str, Run]:
    """Those four, all there at the start, with two slots and steps of one second."""
    load = Workload(np.zeros(len(BY_HAND)), np.ones(len(BY_HAND), dtype=int), np.array(BY_HAND))
    second_a_step = steptime.PowerLaw(t0=1, c=0, alpha=1)
    by_name = side_by_side.three_policies(2)
    return side_by_side.serve_each(load, {name: by_name[name] for name in ("static", "continuous")}, second_a_step)
