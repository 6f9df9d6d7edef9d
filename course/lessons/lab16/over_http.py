"""A client over HTTP and `course serve` in one process: what the client writes down beside the server's metrics."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import numpy as np

from course import policies, results
from course.explore.table import Table, table
from course.figures.words import seconds
from course.results.result import Result

__all__ = ["a_client_and_a_server"]

NEEDED = ("starlette", "uvicorn", "prometheus_client")
QUESTION = "Count from 3 to 30."
TOKENS = 40  # of every answer, by ignore_eos
SLOTS, BUDGET = 16, 256  # of the server
REQUESTS, RATE = 40, 20.0  # requests, and how many a second the client plans
PATIENCE = 60.0  # seconds that the client waits for a piece
MEANS = {"ttft": "TTFT", "e2e": "E2E", "tpot": "TPOT"}


@dataclass(frozen=True)
class Measured:
    """What a client wrote down and what the server counted; times in seconds since the test began, shape (n,).

    planned, sent, first, last: when each request was due, was sent, had its first and its last token. tokens: of each
    answer, which this server sends one a piece. server: /metrics from before the first to after the last answer.
    """

    max_concurrency: int
    planned: np.ndarray
    sent: np.ndarray
    first: np.ndarray
    last: np.ndarray
    tokens: np.ndarray
    server: Result

    @cached_property
    def means(self) -> dict[str, tuple[float, float, float]]:
        """Mean TTFT, E2E and TPOT [s]: from sending, from the plan, and by the server."""
        tpot = (self.last - self.first) / (self.tokens - 1)
        ways = {"ttft": (self.first - self.sent, self.first - self.planned),
                "e2e": (self.last - self.sent, self.last - self.planned), "tpot": (tpot, tpot)}  # fmt: skip
        by_server = {name: self.server.summary[name]["mean"] for name in MEANS}
        return {name: (float(a.mean()), float(b.mean()), by_server[name]) for name, (a, b) in ways.items()}

    @property
    def answered(self) -> int:
        """Requests that the server counted as answered."""
        return int(self.server.totals["requests"])


@dataclass(frozen=True)
class BothSides:
    """One test a limit. problem: a sentence where nothing could be measured."""

    tests: tuple[Measured, ...]
    problem: str = ""

    @property
    def table(self) -> Table:
        """The means by each clock."""
        rows: list[tuple[str, ...]] = [("", "from sending", "from the plan", "server's /metrics")]
        for test in self.tests:
            limit, count = f"limit {test.max_concurrency}", f"{len(test.planned)}"
            rows += [(f"{limit}, {MEANS[name]} mean", *map(seconds, found)) for name, found in test.means.items()]
            rows.append((f"{limit}, answered", count, count, f"{test.answered}"))
        if self.problem:
            rows = [("", ""), ("not measured", self.problem)]
        return table(rows, f"{REQUESTS} requests over HTTP, {RATE:g} a second planned [measured: this machine's CPU]")


def a_client_and_a_server(limits: Sequence[int] = (1, 16)) -> BothSides:
    """A test for each limit in flight, one after the other; a problem where the server's packages are missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        advice = f"the server needs {', '.join(missing)}: pip install {' '.join(missing).replace('_', '-')}"
        return BothSides((), advice)
    return BothSides(tuple(measure(limit) for limit in limits))


def measure(max_concurrency: int, rate: float = RATE, requests: int = REQUESTS) -> Measured:
    """A test of a server that is started for it, on a free port of 127.0.0.1, and ended afterwards.

    max_concurrency: limit in flight. rate: requests/s that the client plans, at even distances. ValueError where a
    request is refused.
    """
    planned = np.arange(requests) / rate
    with _serving() as (port, token), ThreadPoolExecutor(max_concurrency) as permits:
        _ask(port, token)  # the first answer pays for what is made once
        before, begin = _scrape(port), time.monotonic()
        asked = []
        for due in planned:
            time.sleep(max(0.0, begin + due - time.monotonic()))  # to the planned moment, not for a planned time
            asked.append(permits.submit(_ask, port, token))
        answers = [one.result() for one in asked]
        after, end = _scrape(port), time.monotonic()
    sent, first, last = np.array([(sent, pieces[0], pieces[-1]) for sent, pieces in answers]).T - begin
    tokens = np.array([len(pieces) for _, pieces in answers])
    return Measured(max_concurrency, planned, sent, first, last, tokens, _between(before, after, end - begin))


@contextmanager
def _serving() -> Iterator[tuple[int, str]]:
    """A server in threads of this process: (port, token)."""
    from course import lm
    from course.lm.http.run import make_server, open_port
    from course.lm.http.service import Service

    token = secrets.token_urlsafe(16)
    with Service(lm.load(), policies.Continuous(SLOTS, BUDGET)) as service, open_port(0) as listening:
        server = make_server(service, token)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1], token
        finally:
            server.should_exit = True
            thread.join(20)


def _ask(port: int, token: str) -> tuple[float, list[float]]:
    """One streamed answer: when it was sent, and when each piece came [s on time.monotonic]."""
    asked = {"prompt": QUESTION, "max_tokens": TOKENS, "ignore_eos": True, "stream": True}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        sent = time.monotonic()
        connection.request("POST", "/v1/completions", json.dumps(asked), headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"the server refused a request with {answer.status}: {answer.read(500).decode()}")
        return sent, [time.monotonic() for line in answer if line.startswith(b"data: {")]
    finally:
        connection.close()


def _scrape(port: int) -> str:
    """The page of /metrics."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def _between(before: str, after: str, apart: float) -> Result:
    """What happened between two scrapes so many seconds apart, as `course results` reads it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("before.txt", "after.txt")]
        for path, page in zip(paths, (before, after), strict=True):
            path.write_text(page, encoding="utf-8")
        return results.read_files(paths, interval=apart)[0]
