"""A server on a free port of 127.0.0.1, in a thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest

from course import policies
from course.lm import LanguageModel
from course.lm.http.run import make_server, open_port
from course.lm.http.service import Service
from tests.helpers.sizes import PATIENCE

TOKEN = "a token of the tests"


@dataclass
class Served:
    """A server that runs. client: with the token."""

    service: Service
    port: int
    client: httpx.Client

    def metric(self, name: str) -> float:
        """A sample of /metrics, its series added up."""
        lines = self.client.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((f"{name}{{", f"{name} ")))

    def wait_for(self, what: Callable[[], bool]) -> None:
        """Until it is so; a test whose time is up says which."""
        for _ in range(100 * PATIENCE):
            if what():
                return
            time.sleep(0.01)
        raise AssertionError(f"{PATIENCE} s, and it is not so")


@contextlib.contextmanager
def serving(model: LanguageModel, policy: object, max_waiting: int = 256, cache: object = None) -> Iterator[Served]:
    """A server under this policy."""
    with Service(model, policy, cache, max_waiting) as service, open_port(0) as listening:
        server, port = make_server(service, TOKEN), listening.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=PATIENCE) as client:
                yield Served(service, port, client)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


@pytest.fixture(scope="module")
def server(model) -> Iterator[Served]:
    """One server for all questions that leave it as it was."""
    with serving(model, policies.Continuous(4, 128), max_waiting=8) as served:
        yield served
