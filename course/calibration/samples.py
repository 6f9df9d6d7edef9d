"""What a result file measured of each request, as far as it can be compared."""

import numpy as np

from course.results import Result

METRICS = ("ttft", "tpot", "itl", "e2e")
STATISTICS = ("mean", "p50", "p90", "p99")


def samples(result: Result) -> dict[str, np.ndarray]:
    """Metric -> the values of all requests that were answered [s].

    Empty without a table, and nothing for a metric that the file lacks. If nothing was streamed the first token came
    at a time that was not measured: no TTFT either.
    """
    table = result.requests
    if table is None:
        return {}
    good = ~table.failed
    columns = {name: getattr(table, name)[good] for name in ("ttft", "tpot", "e2e")}
    if table.itl is not None:
        gaps_of_answers = [
            gaps for gaps, failed in zip(table.itl, table.failed, strict=True) if gaps is not None and not failed
        ]
        columns["itl"] = np.concatenate([*gaps_of_answers, np.empty(0)])
    if not is_streamed(result):
        columns.pop("ttft")
    columns = {name: values[np.isfinite(values)] for name, values in columns.items()}
    return {name: columns[name] for name in METRICS if name in columns and len(columns[name])}


def is_streamed(result: Result) -> bool:
    """Whether the first tokens were seen: False if answers of several tokens have no TPOT."""
    table = result.requests
    if table is None:
        return "tpot" in result.summary or "itl" in result.summary
    several = ~table.failed & (table.output_tokens > 1) & np.isfinite(table.ttft) & np.isfinite(table.e2e)
    return not several.any() or bool(np.isfinite(table.tpot[several]).any())
