"""Starting the server, on 127.0.0.1 and nowhere else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from course.base import settings
from course.lm.http.app import HOSTS, make_app
from course.lm.http.service import Service

MOST_CONNECTIONS = 1_000  # beyond the requests that may be here; idle ones and refused ones

IDLE_SECONDS = 10.0
"""That a connection may go without the head of a request: too many that say nothing keep all others out (503)."""


class Hurried(H11Protocol):
    """HTTP/1.1 that closes a connection on which no request begins; uvicorn's waits for the first one for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See H11Protocol."""
        super().connection_made(transport)
        self.loop.call_later(IDLE_SECONDS, self._close_if_nothing_came)

    def _close_if_nothing_came(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def open_port(port: int) -> socket.socket:
    """A socket on 127.0.0.1 that listens. port: 0 takes a free one. ValueError if it is taken."""
    port = settings.whole("port", port, low=0, high=65_535)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOSTS[0], port))
    except OSError as error:
        listening.close()
        raise ValueError(f"port {port} of {HOSTS[0]} cannot be used: {error.strerror}; give another --port") from None
    listening.listen(2_048)
    return listening


def make_server(service: Service, token: str) -> uvicorn.Server:
    """The server, which `run(sockets=[...])` starts and `should_exit` ends."""
    config = uvicorn.Config(
        make_app(service, token),
        log_level="warning",
        access_log=False,
        lifespan="off",
        http=Hurried,  # on h11, which is there everywhere, whatever else is installed
        loop="asyncio",
        ws="none",
        limit_concurrency=service.most + MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
        server_header=False,
        proxy_headers=False,
    )
    return uvicorn.Server(config)


def run(service: Service, listening: socket.socket, token: str, started: Callable[[], None]) -> None:
    """Serve until Ctrl-C. started: called when the engine runs and before the first request is taken."""
    with service, listening:
        started()
        make_server(service, token).run(sockets=[listening])
