"""`--group-by`: times of groups of requests beside each other, by the length of their prompts or by their class."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course.base.settings import MAX_TOKENS, quote
from course.cli.common import AsTyped
from course.cli.output import new_table, one_line
from course.engine.metrics import percentiles

EXAMPLE = "--group-by prompt:2048,16384 or --group-by class"
METRICS = ("ttft", "tpot", "e2e")
STATISTICS = ("p50", "p95", "p99")

Groups = dict[str, dict[str, float]]


def edges(by: str) -> list[int] | None:
    """The ends of the groups of prompt:2048,16384, in tokens; None for class. ValueError for anything else."""
    kind, _, text = by.partition(":")
    if by == "class":
        return None
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    rising = found == sorted(set(found)) and found and found[0] >= 1 and found[-1] <= MAX_TOKENS
    if kind != "prompt" or not rising:
        raise AsTyped(f"--group-by takes rising numbers of prompt tokens, or class, as in {EXAMPLE}; not {quote(by)}")
    return found


def masks(by: str, prompt_tokens: np.ndarray, classes: np.ndarray | None) -> dict[str, np.ndarray]:
    """Which requests are in which group. shape of each: (n,) of bool. ValueError if requests have no classes."""
    ends = edges(by)
    if ends is None:
        if classes is None:
            raise AsTyped("--group-by class needs requests with classes, as --class or a trace gives them")
        return {str(name): classes == name for name in dict.fromkeys(classes.tolist())}
    place = np.searchsorted(ends, prompt_tokens)
    names = [f"prompt up to {end:,}" for end in ends] + [f"prompt above {ends[-1]:,}"]
    return {name: place == number for number, name in enumerate(names)}


def of(by: str, prompt_tokens: np.ndarray, classes: np.ndarray | None, times: Mapping[str, np.ndarray]) -> Groups:
    """Number and share of the requests of each group, and percentiles of TTFT, TPOT and E2E [s]; NaN if there are none.

    times: ttft, tpot and e2e, each of shape (n,).
    """
    groups = {}
    for name, inside in masks(by, prompt_tokens, classes).items():
        numbers = {"requests": float(inside.sum()), "share": float(inside.mean()) if len(inside) else float("nan")}
        for metric in METRICS:
            values = percentiles(times[metric][inside])
            numbers |= {f"{metric}_{statistic}": values[statistic] for statistic in STATISTICS}
        groups[name] = numbers
    return groups


def table(runs: Sequence[tuple[str, Mapping[str, Mapping[str, float]]]]) -> Any:
    """One row for each group of each run; times in milliseconds."""
    made = new_table("run", "group")
    for head in ("requests", "share", *(f"{metric.upper()}\n{one}, ms" for metric in METRICS for one in STATISTICS)):
        made.add_column(head, justify="right", no_wrap=True)
    for run, groups in runs:
        for name, numbers in groups.items():
            times = [1_000 * numbers[f"{metric}_{one}"] for metric in METRICS for one in STATISTICS]
            cells = ["-" if np.isnan(value) else f"{value:,.1f}" for value in times]
            made.add_row(
                one_line(run), one_line(name), f"{numbers['requests']:,.0f}", f"{numbers['share']:.1%}", *cells
            )
    return made
