"""A page of Prometheus metrics as text: samples with their labels, counters and histograms summed over series.

    vllm:num_requests_running{engine="0",model_name="m"} 3.0
    vllm:time_to_first_token_seconds_bucket{engine="0",le="0.25",model_name="m"} 102.0

The format is Prometheus' text exposition 0.0.4: a name, labels in braces, a value, perhaps a moment in milliseconds.
A file may hold several pages one after the other: a new one begins where a series comes again.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from course.base.settings import quote

SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+))?\s*", re.ASCII)
LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)', re.ASCII)
LONGEST_LINE = 100_000

Labels = tuple[tuple[str, str], ...]


@dataclass
class Page:
    """The samples of one scrape. samples: name -> labels -> value. moment: seconds, NaN if the page does not say."""

    samples: dict[str, dict[Labels, float]] = field(default_factory=dict)
    moment: float = math.nan

    def total(self, *names: str) -> float:
        """The sum of a metric over its series, of the first of these names that is there; NaN if none is."""
        for name in names:
            if name in self.samples:
                return sum(self.samples[name].values())
        return math.nan

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """A metric, summed for each value of a label; "" if a series does not have it."""
        sums: dict[str, float] = {}
        for labels, value in self.samples.get(name, {}).items():
            key = dict(labels).get(label, "")
            sums[key] = sums.get(key, 0.0) + value
        return sums

    def labels(self, name: str) -> Mapping[str, str]:
        """The labels of the first series of a metric; empty if there is none."""
        return dict(next(iter(self.samples.get(name, {})), ()))

    def histogram(self, name: str) -> "Histogram | None":
        """A histogram, summed over series; None if it is not there or has counted nothing."""
        count, total = self.total(f"{name}_count"), self.total(f"{name}_sum")
        buckets = {_bound(le): value for le, value in self.by_label(f"{name}_bucket", "le").items()}
        return Histogram(count, total, dict(sorted(buckets.items()))) if count > 0 else None


@dataclass(frozen=True)
class Histogram:
    """count of values, their sum, and how many were at or below each bound; bounds in ascending order, inf the last."""

    count: float
    total: float
    buckets: Mapping[float, float]

    @property
    def mean(self) -> float:
        """The sum over the count."""
        return self.total / self.count

    def less(self, before: "Histogram | None") -> "Histogram | None":
        """What was counted since; None for nothing."""
        if before is None:
            return self
        if not self.count > before.count:
            return None
        buckets = {bound: value - before.buckets.get(bound, 0.0) for bound, value in self.buckets.items()}
        return Histogram(self.count - before.count, self.total - before.total, buckets)

    def percentile(self, p: float) -> tuple[float, float, float]:
        """(value, lower bound, upper bound) of a percentile, evenly between them, as histogram_quantile does it.

        All NaN without buckets. Above the last finite bound it is that bound, and the upper one inf.
        """
        rank, low, below = p / 100 * self.count, 0.0, 0.0
        for bound, value in self.buckets.items():
            if value >= rank and value > 0:
                if math.isinf(bound):
                    return low, low, bound
                share = (rank - below) / (value - below) if value > below else 1.0
                return low + (bound - low) * share, low, bound
            low, below = bound, value
        return math.nan, math.nan, math.nan


def _bound(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def pages(path: Path, content: str) -> list[Page]:
    """Every page of a file. ValueError, with the row, for a line that is no sample."""
    pages_so_far = [Page()]
    for row, line in enumerate(content.splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = SAMPLE.fullmatch(text) if len(text) <= LONGEST_LINE else None
        value = _number(match[3]) if match else None
        if match is None or value is None:
            raise ValueError(
                f"{path.name}, row {row}: {quote(text)} is not a sample of a metrics page (name{{labels}} value)"
            )
        labels = tuple(sorted(_labels(match[2] or "")))
        page = pages_so_far[-1]
        if labels in page.samples.get(match[1], {}):
            page = Page()
            pages_so_far.append(page)
        page.samples.setdefault(match[1], {})[labels] = value
        if match[4] is not None:
            page.moment = int(match[4]) / 1_000
    return pages_so_far


def among(text: str, names: tuple[str, ...]) -> Page:
    """The last sample of each series whose name begins with one of these, whatever stands between the lines."""
    page = Page()
    for line in text.splitlines() if any(name in text for name in names) else ():
        match = SAMPLE.fullmatch(line) if line.startswith(names) and len(line) < LONGEST_LINE else None
        value = _number(match[3]) if match else None
        if match and value is not None:
            page.samples.setdefault(match[1], {})[tuple(sorted(_labels(match[2] or "")))] = value
    return page


def _labels(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        match = LABEL.match(text, place)
        if match is None:
            return
        yield match[1], re.sub(r"\\(.)", lambda one: "\n" if one[1] == "n" else one[1], match[2])
        place = match.end()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
