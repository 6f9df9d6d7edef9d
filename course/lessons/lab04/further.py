"""The tables of lab 04's optional notebook: the formula against runs, a claim beside numbers, other loads."""

from __future__ import annotations

from course import queueing
from course.explore.table import Table, table
from course.lessons.lab04 import side_by_side, three_batchers
from course.lessons.lab04.other_loads import TRACE
from course.lessons.lab04.side_by_side import at_once, saturated_tokens_per_second, serve_each, slot_utilisation
from course.lessons.lab04.three_batchers import CHAT, ROOFLINE, SLOTS, STEP

__all__ = ["gain_and_formula", "the_trace", "wanted_shares"]


def gain_and_formula() -> Table:
    """Simulated gain and both forms of E[max] / mean, for some slots and spreads."""
    spreads = (0, 0.1, 0.2, 0.3, 1, 2)
    rows = [("", *(f"CV {cv:g}" for cv in spreads))]
    for slots in (8, 32, 128):
        found = [three_batchers.gain(slots, float(cv)) for cv in spreads]
        rows += [
            (f"{slots} slots, simulated", *(f"{g.gain:.2f}" for g in found)),
            (f"{slots} slots, formula, as drawn", *(f"{g.drawn_bound:.2f}" for g in found)),
            (f"{slots} slots, formula, expected", *(f"{g.bound:.2f}" for g in found)),
        ]
    return table(rows, f"Gain at saturation, 2,000 requests [{STEP.simulated}]")


def the_trace() -> Table:
    """Static and continuous on the Azure-style trace at saturation: what the answers explain, and what prompts add."""
    rows = [("slots", "static", "continuous", "gain", "longest / mean", "prompts padded")]
    for slots in (8, 32, 128):
        runs = serve_each(at_once(TRACE), side_by_side.three_policies(slots), ROOFLINE)
        static, continuous = (saturated_tokens_per_second(runs[name]) for name in ("static", "continuous"))
        bound = queueing.empirical_gain(batch=slots, output_tokens=TRACE.output_tokens.tolist()).gain
        prompts = runs["static"].steps.prefill_tokens.sum() / TRACE.prompt_tokens.sum()
        rows.append(
            (
                f"{slots}",
                f"{static:,.0f} tokens/s",
                f"{continuous:,.0f} tokens/s",
                f"{continuous / static:.1f}x",
                f"{bound:.2f}",
                f"{prompts:.1f}x",
            )
        )
    return table(rows, "The Azure-style trace at saturation [theory: roofline of an H100]")


def wanted_shares() -> Table:
    """Share of the slot-steps that somebody wanted, by spread, and what a dashboard shows."""
    runs = serve_each(at_once(CHAT), side_by_side.three_policies(SLOTS), STEP)
    rows = [("", "slot-steps wanted", "GPU busy")]
    for output_cv in (0.2, 0.3, 0.5, 1, 2):
        share = 1 / queueing.lognormal_gain(batch=SLOTS, output_cv=output_cv).gain
        rows.append((f"static, CV {output_cv:g}, expected", f"{share:.0%}", ""))
    for name in ("static", "continuous"):
        busy = runs[name].steps.seconds.sum() / runs[name].makespan
        rows.append((f"{name}, the chat, simulated", f"{slot_utilisation(runs[name]):.0%}", f"{busy:.0%}"))
    return table(rows, "32 slots at saturation")
