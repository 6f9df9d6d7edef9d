"""Result files that keep one list a property: input_lens, output_lens, ttfts, itls, ..., as vLLM and SGLang write."""

from collections.abc import Mapping

import numpy as np

from course.base.settings import quote
from course.results.assemble import tpot_of
from course.results.result import Requests
from course.results.rows import NAN, items, seconds, tokens

FEW_CHUNKS = 0.95  # a stream of fewer pieces than this share of its tokens is one of chunks
MOST = 0.95  # of the answers: from this share on, what holds for them is how the tool counts
ALIKE = 0.01  # of TTFT: a first gap that is no further off is TTFT itself


def table_of(place: str, doc: Mapping) -> tuple[Requests | None, list[str]]:
    """The requests of one run, None if the lists are not there, and sentences about them.

    ttfts and itls are in seconds beside summaries in milliseconds. A failed request has an error, or no output tokens;
    its zeros are no times. E2E is TTFT + the sum of the gaps, from which TTFT is taken out first if it was counted
    among them. ValueError, naming the request, for what cannot be.
    """
    outputs = items(place, doc, "output_lens")
    firsts = items(place, doc, "ttfts")
    if not outputs or not firsts:
        return None, []
    n = len(outputs)
    names = ("input_lens", "ttfts", "itls", "errors", "start_times", "queue_times")
    lists = {name: values for name in names if (values := items(place, doc, name))}
    for name, values in lists.items():
        if len(values) != n:
            raise ValueError(f"{place}: {len(values):,} {name} but {n:,} output_lens: one per request is needed")
    failed = np.zeros(n, dtype=bool)
    columns = {name: np.full(n, NAN) for name in ("arrival", "prompt", "output", "ttft", "e2e", "wait")}
    gaps: list[np.ndarray] = []
    for i in range(n):
        row = {name: values[i] for name, values in lists.items()} | {"output_lens": outputs[i]}
        here = f"{place}, request {i}"
        columns["prompt"][i] = tokens(here, row, "input_lens")
        columns["output"][i] = tokens(here, row, "output_lens")
        columns["arrival"][i] = _moment(here, row)
        failed[i] = bool(row.get("errors")) or not columns["output"][i] > 0
        gaps.append(_gaps(here, row.get("itls"), "itls" in lists and not failed[i]))
        if not failed[i]:
            columns["ttft"][i] = seconds(here, row, "ttfts")
            columns["wait"][i] = seconds(here, row, "queue_times")
    gaps, notes = _without_first(columns["ttft"], columns["output"], gaps)
    if "itls" in lists:
        columns["e2e"] = columns["ttft"] + np.array([gap.sum() for gap in gaps])
    arrival = columns["arrival"] - (np.nanmin(columns["arrival"]) if np.isfinite(columns["arrival"]).any() else 0)
    table = Requests(
        arrival=arrival,
        prompt_tokens=columns["prompt"],
        output_tokens=columns["output"],
        ttft=columns["ttft"],
        tpot=tpot_of(columns["ttft"], columns["e2e"], columns["output"]),
        e2e=columns["e2e"],
        queue_wait=np.full(n, NAN),
        failed=failed,
        itl=gaps if "itls" in lists else None,
        client_wait=columns["wait"] if "queue_times" in lists else None,
    )
    return table, notes + _on_chunks(table)


def _without_first(ttft: np.ndarray, tokens: np.ndarray, gaps: list[np.ndarray]) -> tuple[list[np.ndarray], list[str]]:
    """The gaps without TTFT, if a tool writes it as the first of as many gaps as there are tokens."""
    streamed = [i for i, gap in enumerate(gaps) if len(gap) > 1]
    inside = [i for i in streamed if len(gaps[i]) == tokens[i] and abs(gaps[i][0] - ttft[i]) <= ALIKE * ttft[i]]
    if not streamed or len(inside) < MOST * len(streamed):
        return gaps, []
    rest = [gap[1:] if len(gap) == n else gap for gap, n in zip(gaps, tokens, strict=True)]
    return rest, [
        "TTFT is the first of the gaps in this file (as many gaps as tokens): it was taken out of ITL and of E2E"
    ]


def without_empty(
    table: Requests | None, totals: dict[str, float], reported: dict[str, dict[str, float]]
) -> tuple[dict[str, float], dict[str, dict[str, float]], list[str]]:
    """Totals and statistics of a file that counts answers without a token as completed, without those; and a sentence.

    Unchanged if it does not. The zeros of empty answers are in its means, so those of the rows take their place.
    """
    if table is None:
        return totals, reported, []
    good, empty = int((~table.failed).sum()), int((table.failed & (table.output_tokens == 0)).sum())
    if not empty or totals.get("requests") != good + empty:
        return totals, reported, []
    corrected = {"requests": float(good), "failed": totals.get("failed", 0.0) + empty}
    if np.isfinite(table.prompt_tokens).all():
        corrected["prompt_tokens"] = float(table.prompt_tokens[~table.failed].sum())
    if totals.get("duration", 0) > 0:
        corrected["requests_per_second"] = good / totals["duration"]
    others = {name: value for name, value in totals.items() if name != "total_tokens_per_second"}
    return (
        others | corrected,
        {},
        [
            f"{empty:,} of the {good + empty:,} requests that the file counts as completed have no token: they are no "
            "answers. Its rates and means count their zeros; here are those of the others"
        ],
    )


def _moment(place: str, row: Mapping) -> float:
    """A start time [s] on a clock whose zero is not known."""
    value = row.get("start_times")
    if value is None:
        return NAN
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e12:
        raise ValueError(f"{place}: start_times is {quote(value)}, which is not a time in seconds")
    return float(value)


def _gaps(place: str, values: object, keep: bool) -> np.ndarray:
    """The gaps of one answer as an array [s]."""
    if not keep or values is None:
        return np.empty(0)
    if not isinstance(values, list):
        raise ValueError(f"{place}: itls is {quote(values)}, which is not a list of seconds")
    return np.array([seconds(f"{place}, gap {k}", {"itl": value}, "itl") for k, value in enumerate(values)])


def _on_chunks(table: Requests) -> list[str]:
    """Whether the gaps are between tokens, or between pieces of several."""
    if table.itl is None:
        return []
    good = ~table.failed
    tokens_after_first = float((table.output_tokens[good] - 1).sum())
    pieces = sum(len(gap) for gap, ok in zip(table.itl, good, strict=True) if ok)
    if not 0 < pieces < FEW_CHUNKS * tokens_after_first:
        return []
    return [
        f"ITL is between the {pieces:,} pieces that the server sent, not between {tokens_after_first:,.0f} tokens: "
        "several came at once, so a gap is longer than the time of a token"
    ]
