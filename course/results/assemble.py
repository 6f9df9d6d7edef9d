"""From what a reader found to a Result: the definitions side by side, and what the numbers themselves say is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from course.results import load, pieces, remarks, shape
from course.results.definitions import OURS, Definition
from course.results.documents import Document
from course.results.result import METRICS, Requests, Result
from course.results.rows import LONGEST, NAN, without_missing

Statistics = dict[str, dict[str, float]]  # metric -> statistic -> seconds
SAME_TIME = 1e-3  # E2E above TTFT by no more than this share of it: nothing was streamed


@dataclass
class Draft:
    """What a reader took from a file, in seconds and tokens, before anything is judged.

    meanings: metric -> what the tool means by it, and whether that is what is meant here. values: metric -> statistic
    -> seconds under the definitions used here, if the tool's differ and the file holds enough to say. loop: as in
    Result; None if the rate and the limit in `totals` tell. drafted: mean tokens a step, with speculation.
    checked: whether rates, counts and means are of the same requests, so that they can be held against each other.
    """

    tool: str
    name: str
    meanings: Mapping[str, tuple[str, bool]]
    table: Requests | None = None
    reported: Statistics = field(default_factory=dict)
    values: Statistics = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    setup: dict[str, Any] = field(default_factory=dict)
    series: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    loop: str | None = None
    drafted: float = float("nan")
    checked: bool = True


def finish(draft: Draft) -> Result:
    """The result. ValueError for a statistic that no clock can have shown."""
    notes = list(draft.notes)
    table, reported, values = draft.table, dict(draft.reported), dict(draft.values)
    values = {name: stats for name, stats in values.items() if all(value >= 0 for value in stats.values())}
    if table is not None:
        _in_order(draft.name, table)
        table, sentence = _without_streams(table)
        notes += [*sentence, *shape.on_first_pieces(table), *shape.on_start(table)]
    if _not_streamed(reported) or (table is not None and _nothing_streamed(table)):
        dropped_names = [name for name in ("tpot", "itl") if reported.pop(name, None) or values.pop(name, None)]
        notes.append(
            "TTFT is E2E: nothing was streamed, so when the first token came is not known, and there is no TPOT or ITL"
            + (
                f". What the file says of {' and '.join(name.upper() for name in dropped_names)} is left out"
                if dropped_names
                else ""
            )
        )
        values = {name: value for name, value in values.items() if name not in ("tpot", "itl")}
    _check(draft.name, reported)

    own = table.summary() if table is not None else {}
    definitions = {}
    for name in METRICS:
        if name not in reported and name not in own and name not in values:
            continue
        meaning, same = draft.meanings.get(name, ("not in the file; computed from its times", True))
        ours = own.get(name) or values.get(name) or (reported.get(name, {}) if same else {})
        definitions[name] = Definition(meaning, OURS[name], same, ours)

    mine = remarks.totals_of(table) if table is not None else {}
    loop = load.loop_of(draft.totals, unlimited=False) if draft.loop is None else draft.loop
    if loop in (load.CLOSED, load.BURST):
        mine.pop("offered_rate", None)  # when a request went out was no decision of the plan
    totals = mine | without_missing(draft.totals)
    rate = draft.totals.get("requests_per_second", 0)
    seconds = draft.totals.get("duration", mine.get("requests", NAN) / rate if rate > 0 else NAN)
    if table is not None and seconds > 0:
        # Rates and the number in flight over the file's own duration, or what its rate makes of it: they go together.
        whole = table.e2e[~table.failed]
        over = remarks.rates(mine, seconds, float(whole.sum()))
        if np.isnan(whole).any():
            del over["in_flight"]
        totals = mine | over | without_missing(draft.totals)
    if "in_flight" not in totals:
        mean = (values | reported).get("e2e", {}).get("mean", float("nan"))
        totals |= without_missing({"in_flight": mean * totals.get("requests_per_second", float("nan"))})
    if draft.checked:
        notes += remarks.on_failures(totals)
        estimated = "e2e" not in reported and "e2e" not in own
        notes += load.on_load(totals, values | own | reported, loop, estimated, table)
        broken = remarks.on_totals(totals, without_missing(draft.totals), mine)
        notes += broken
        notes += remarks.on_lengths(totals)
        notes += remarks.on_means(reported, definitions, own)
        if definitions.get("tpot") and definitions["tpot"].same and not broken:  # else its counts say nothing of tokens
            notes += pieces.on_tokens(reported, totals, draft.drafted, table)
    summary = {name: dict(stats) for name, stats in (values | own | reported).items() if stats}
    return Result(
        draft.tool, draft.name, table, summary, definitions, totals, draft.setup, draft.series, tuple(notes), loop
    )


def _check(name: str, reported: Statistics) -> None:
    for metric, stats in reported.items():
        for statistic, value in stats.items():
            if statistic != "std" and not 0 <= value <= LONGEST:
                why = "a time cannot be negative" if value < 0 else "that is more than eleven days"
                raise ValueError(f"{name}: its {statistic} {metric.upper()} is {value:.6g} s: {why}")


def _in_order(name: str, table: Requests) -> None:
    """ValueError for a request that was answered before its first token."""
    with np.errstate(invalid="ignore"):
        late = table.ttft - table.e2e > 1e-6  # seconds; a sum of gaps may be off by its roundings
    if late.any():
        i = int(np.argmax(late))
        raise ValueError(
            f"{name}, request {i}: its TTFT of {table.ttft[i]:.6g} s is longer than its E2E of {table.e2e[i]:.6g} s"
        )


def _not_streamed(reported: Statistics) -> bool:
    """Whether the mean, or else the median, of TTFT is that of E2E."""
    for statistic in ("mean", "p50"):
        first = reported.get("ttft", {}).get(statistic, float("nan"))
        whole = reported.get("e2e", {}).get(statistic, float("nan"))
        if not isnan(first) and not isnan(whole):
            return whole > 0 and abs(whole - first) <= SAME_TIME * whole
    return False


def _at_once(table: Requests) -> np.ndarray:
    """Whether each request's answer of several tokens came in one piece."""
    with np.errstate(invalid="ignore"):
        return (table.output_tokens > 1) & (table.e2e > 0) & (table.e2e - table.ttft <= SAME_TIME * table.e2e)


def _nothing_streamed(table: Requests) -> bool:
    several = (table.output_tokens > 1) & ~table.failed & np.isfinite(table.e2e)
    return bool(several.any() and _at_once(table)[several].all())


def _without_streams(table: Requests) -> tuple[Requests, list[str]]:
    """The table without the TPOT and ITL of answers that came in one piece, and the sentence about them."""
    at_once = _at_once(table)
    if not at_once.any():
        return table, []
    tpot = np.where(at_once, np.nan, table.tpot)
    gaps = None
    if table.itl is not None:
        gaps = [np.empty(0) if whole else gap for whole, gap in zip(at_once, table.itl, strict=True)]
    sentence = []
    if not _nothing_streamed(table):
        sentence.append(f"{int(at_once.sum()):,} answers came in one piece (E2E is TTFT) and have no TPOT")
    return replace(table, tpot=tpot, itl=gaps), sentence


def each(path: Path, documents: list[Document], run: Callable[[Path, Document, str], Result]) -> list[Result]:
    """A result for every document of a file; if there are several, their names end with their place."""
    several = len(documents) > 1
    return [run(path, document, f"{path.stem}:{i}" if several else path.stem) for i, document in enumerate(documents)]


def requests_of(
    failed: np.ndarray,
    arrival: np.ndarray,
    prompt_tokens: np.ndarray,
    output_tokens: np.ndarray,
    ttft: np.ndarray,
    e2e: np.ndarray,
    gaps: list[np.ndarray] | None = None,
) -> Requests:
    """The table of a tool that does not say how long a request waited for a slot; times in seconds.

    gaps: those between the tokens of each request; the column is left out if no request has any.
    """
    return Requests(
        arrival=arrival,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        ttft=ttft,
        tpot=tpot_of(ttft, e2e, output_tokens),
        e2e=e2e,
        queue_wait=np.full(len(failed), np.nan),
        failed=failed,
        itl=gaps if gaps and any(map(len, gaps)) else None,
    )


def tpot_of(ttft: np.ndarray, e2e: np.ndarray, output_tokens: np.ndarray) -> np.ndarray:
    """(E2E - TTFT) / (tokens - 1); NaN for an answer of one token and if something is missing."""
    with np.errstate(invalid="ignore"):
        return np.where(output_tokens > 1, (e2e - ttft) / np.maximum(output_tokens - 1, 1), np.nan)
