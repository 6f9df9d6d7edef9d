"""What the numbers of a row are called in a table or on an axis, and in which unit."""

TIMES = ("ttft", "tpot", "itl", "e2e", "queue_wait")
UNITS = {
    "goodput": "requests/s",
    "goodput_per_card": "requests/s",
    "goodput_per_dollar": "requests",
    "requests_per_second": "requests/s",
    "output_tokens_per_second": "tokens/s",
    "makespan": "s",
    "cards": "cards",
    "dollars_per_hour": "dollars",
}
SHARE = "share_within_slo"


def words_of(name: str) -> tuple[str, str, float]:
    """(words, unit, factor from the unit of the row): ("TTFT p95", "ms", 1000.0) for ttft_p95.

    The unit of a number that no run of `course simulate` has is "as returned".
    """
    metric, _, statistic = name.rpartition("_")
    if metric in TIMES:
        return f"{metric.upper() if len(metric) < 5 else metric.replace('_', ' ')} {statistic}", "ms", 1_000.0
    if name.startswith(SHARE):
        return f"within SLO{name.removeprefix(SHARE).replace('_class_', ', ')}", "%", 100.0
    if name == "kv_peak":
        return "KV peak", "%", 100.0
    return name.removesuffix("_per_second").replace("_", " "), UNITS.get(name, "as returned"), 1.0
