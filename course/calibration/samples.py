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
    answered = ~table.failed
    found = {name: getattr(table, name)[answered] for name in ("ttft", "tpot", "e2e")}
    if table.itl is not None:
        kept = [gaps for gaps, failed in zip(table.itl, table.failed, strict=True) if gaps is not None and not failed]
        found["itl"] = np.concatenate([*kept, np.empty(0)])
    if not is_streamed(result):
        found.pop("ttft")
    found = {name: values[np.isfinite(values)] for name, values in found.items()}
    return {name: found[name] for name in METRICS if name in found and len(found[name])}


def is_streamed(result: Result) -> bool:
    """Whether the first tokens were seen: False if answers of several tokens have no TPOT."""
    table = result.requests
    if table is None:
        return "tpot" in result.summary or "itl" in result.summary
    several = ~table.failed & (table.output_tokens > 1) & np.isfinite(table.ttft) & np.isfinite(table.e2e)
    return not several.any() or bool(np.isfinite(table.tpot[several]).any())
