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
from http.client import HTTPConnection, HTTPResponse
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from course import policies, results
from course.explore.table import Table, table
from course.figures.words import seconds
from course.results.result import Result

__all__ = ["a_client_and_a_server"]

NEEDED = ("starlette", "uvicorn", "prometheus_client")
TOKENS = 40  # of every answer, by ignore_eos; this server sends one a piece
SLOTS, BUDGET = 16, 256  # of the server
REQUESTS, RATE = 40, 20.0  # requests, and how many a second the client plans
PATIENCE = 60.0  # seconds that the client waits for a piece


@dataclass(frozen=True)
class Measured:
    """What a client wrote down and what the server counted; times in seconds since the test began, shape (n,).

    planned, sent, first, last: when each request was due, was sent, had its first and its last token. server: /metrics
    from before the first to after the last answer.
    """

    max_concurrency: int
    planned: np.ndarray
    sent: np.ndarray
    first: np.ndarray
    last: np.ndarray
    server: Result

    @cached_property
    def means(self) -> dict[str, tuple[float, float, float]]:
        """Mean TTFT, E2E and TPOT [s]: from sending, from the plan, and by the server."""
        ways = {"ttft": (self.first - self.sent, self.first - self.planned),
                "e2e": (self.last - self.sent, self.last - self.planned),
                "tpot": ((self.last - self.first) / (TOKENS - 1),) * 2}  # fmt: skip
        server = self.server.summary
        return {name: (float(a.mean()), float(b.mean()), server[name]["mean"]) for name, (a, b) in ways.items()}


def a_client_and_a_server(limits: Sequence[int] = (1, 16)) -> tuple[list[Measured], Table]:
    """A test for each limit in flight and their means; a sentence where the server's packages are missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    tests = [] if missing else [measure(limit) for limit in limits]
    rows: list[tuple[str, ...]] = [("", "from sending", "from the plan", "server's /metrics")]
    for test in tests:
        rows += [(f"limit {test.max_concurrency}, mean {name.upper()}", *map(seconds, found))
                 for name, found in test.means.items()]  # fmt: skip
    if missing:
        advice = f"the server needs {', '.join(missing)}: `course doctor` says how to install it"
        rows = [("", ""), ("not measured", advice)]
    caption = f"{REQUESTS} requests over HTTP, {RATE:g} a second planned [measured: this machine's CPU]"
    return tests, table(rows, caption)


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
        sent, first, last = np.array([one.result() for one in asked]).T - begin
        pages, apart = (before, _scrape(port)), time.monotonic() - begin
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("before.txt", "after.txt")]
        for path, page in zip(paths, pages, strict=True):
            path.write_text(page, encoding="utf-8")
        server = results.read_files(paths, interval=apart)[0]
    return Measured(max_concurrency, planned, sent, first, last, server)


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


@contextmanager
def _answer(port: int, *request: Any) -> Iterator[HTTPResponse]:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(*request)
        yield connection.getresponse()
    finally:
        connection.close()


def _ask(port: int, token: str) -> tuple[float, float, float]:
    """One streamed answer: when it was sent, and when its first and its last piece came [s on time.monotonic]."""
    asked = {"prompt": "Count from 3 to 30.", "max_tokens": TOKENS, "ignore_eos": True, "stream": True}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sent = time.monotonic()
    with _answer(port, "POST", "/v1/completions", json.dumps(asked), headers) as answer:
        if answer.status != 200:
            raise ValueError(f"the server refused a request with {answer.status}: {answer.read(500).decode()}")
        pieces = [time.monotonic() for line in answer if line.startswith(b"data: {")]
    return sent, pieces[0], pieces[-1]


def _scrape(port: int) -> str:
    """The page of /metrics."""
    with _answer(port, "GET", "/metrics") as answer:
        return answer.read().decode()
