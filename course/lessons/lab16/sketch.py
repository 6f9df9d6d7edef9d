"""The curve of lab 16 that is drawn before it is seen: the p99 that a limited client reports, over what it measured."""

from functools import cache

from course.engine.serving import serve
from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab16 import load_test, tasks

TOLD, NOW = load_test.REQUESTS, 35.0  # requests of the test in the question, and the p99 in its report [ms]
MEASURED = (50, 100, 200, TOLD, 4_000, 8_000)
HALF = 2_760  # of the stall [ms]
BETWEEN = (500, 1_000)  # where the curve falls: in other draws of the arrivals a little earlier or later


@cache
def tested(requests: int, seed: int = 0) -> load_test.LoadTest:
    """The test of the question, with so many requests; only what the client writes down is asked of it."""
    rate, limit, document = (tasks.START[name] for name in ("rate", "max_concurrency", "document_tokens"))
    run = serve(load_test.requests(rate, document, requests, seed), load_test.engine(limit), load_test.STEP)
    return load_test.LoadTest(rate, limit, load_test.stall(document), run, run)


def reported(requests: int, seed: int = 0) -> float:
    """The p99 of TTFT [ms] in the report of such a test."""
    return 1e3 * tasks.p99(tested(requests, seed).written)


def reports() -> Points:
    """What it reports, with one stall in the middle of each test."""
    return [(requests, reported(requests)) for requests in sorted((*MEASURED, *BETWEEN))]


REPORT = Sketch(
    x=Axis("requests of the test", 42, 9_500, MEASURED, log=True),
    y=Axis("p99 of TTFT in the report [ms]", 10, 10_000, (10, 100, 1_000, 10_000), log=True),
    columns=MEASURED,
    given={TOLD: NOW},
    named="{x:,} requests",
    value="{y} ms",
    truth=reports,
    beliefs={
        "rare-is-invisible": Belief(lambda y: max(y) < 3 * NOW, lambda x: NOW),
        "waits-are-spread-evenly": Belief(lambda y: 1_500 < y[0] < 4_000 and y[-1] < 200,
                                          lambda x: HALF if x < TOLD else NOW),
        "client-sees-what-users-see": Belief(lambda y: min(y[0], y[-1]) > 1_000, lambda x: 5_000),
        "more-runs-tell": Belief(lambda y: y[0] < 1_000 and y[-1] > 3 * NOW, lambda x: NOW * (x / TOLD) ** 1.5),
    },
)  # fmt: skip
